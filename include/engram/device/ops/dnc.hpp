#pragma once
// SPDX-License-Identifier: MIT

// Allocation and temporal links of a DNC on a device (equations: kernels/dnc_allocate.hpp and kernels/dnc_link.hpp;
// what is kept: operations/dnc.hpp).
//
// A slot's place in the order of usage is the number of slots before it, which every lane counts for itself; the
// cumulative product is short and one lane's. Links are updated a thread an entry and read by batched products.

#include <engram/device/kernel.hpp>
#include <engram/operations/dnc.hpp>

namespace engram {

// --- allocation ---

namespace internal {

template <class Real>
struct allocate_rows {
    static constexpr int lanes = 32;
    step_rows<Real> usage, out;
    int* order;  // [rows, N]
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int row) const {
        constexpr Real epsilon = static_cast<Real>(allocation_epsilon);
        const int N = usage.width;
        const Real* const u = usage.row(row);
        Real* const allocation = out.row(row);
        int* const slots = order + std::ptrdiff_t{row} * N;
        block_for(block, N, [=](int n) {
            const auto used = [=](int m) {
                const Real guarded = epsilon + (1 - epsilon) * u[m];
                return guarded == guarded ? guarded : Real(2);  // what is no number comes last
            };
            int rank = 0;
            for (int m = 0; m < N; ++m) rank += used(m) < used(n) || (used(m) == used(n) && m < n);
            slots[rank] = n;
        });
        block_for(block, 1, [=](int) {
            Real product = 1;
            for (int j = 0; j < N; ++j) {
                const int n = slots[j];
                allocation[n] = (1 - epsilon) * (1 - u[n]) * product;
                product *= epsilon + (1 - epsilon) * u[n];
            }
        });
    }
};

template <class Real>
struct allocate_gradient {
    static constexpr int lanes = 32;
    step_rows<Real> usage, d_out, d_usage;
    const int* order;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int row) const {
        const int N = usage.width;
        const Real *const u = usage.row(row), *const slope = d_out.row(row);
        const int* const slots = order + std::ptrdiff_t{row} * N;
        Real* const products = block.scratch;
        const step_rows<Real> to = d_usage;
        block_for(block, 1, [=](int) {
            constexpr Real epsilon = static_cast<Real>(allocation_epsilon);
            Real product = 1, behind = 0;
            for (int j = 0; j < N; ++j) {
                products[j] = product;
                product *= epsilon + (1 - epsilon) * u[slots[j]];
            }
            for (int j = N; j-- > 0;) {
                const int n = slots[j];
                to.put(row, n, (1 - epsilon) * products[j] * (behind - slope[n]));
                behind = slope[n] * (1 - epsilon) * (1 - u[n]) + (epsilon + (1 - epsilon) * u[n]) * behind;
            }
        });
    }
};

}  // namespace internal

template <device_backend Backend>
struct dnc_allocate_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    dnc_allocate_kernel(const binder<Backend>& b, no_settings)
        : device_kernel<Backend>(b),
          usage(b.in(0)),
          d_usage(b.d_in(0)),
          out(b.out(0)),
          d_out(b.d_out(0)),
          order(static_cast<std::size_t>((out.step ? b.steps() : 1) * b.batch() * out.width)) {}
    void forward(int t, int steps) override {
        this->launch_blocks(steps, 1, 0, internal::allocate_rows<real>{{usage, t}, {out, t}, order_of(t)});
    }
    void backward(int t, int steps) override {
        if (d_usage && d_out)
            this->launch_blocks(steps, 1, out.width,
                                internal::allocate_gradient<real>{{usage, t}, {d_out, t}, {d_usage, t}, order_of(t)});
    }

private:
    int* order_of(int t) { return order.data() + std::ptrdiff_t{t} * this->batch * out.width; }

    operand<real> usage, d_usage, out, d_out;
    typename executor<Backend>::template array<int> order;
};

// --- temporal links ---

namespace internal {

/// The link that a step enters with, where it is kept: zero if the step begins an episode, the resource's at first.
template <class Real>
struct link_enter {
    const Real* links;
    char *begins, *begun;  // [B]; begins: null when this plan only looks on
    Real* kept;
    std::ptrdiff_t size;
    bool first;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t b = i / size;
        const bool begin = begins && begins[b];
        if (begin)
            kept[i] = 0;
        else if (first)
            kept[i] = links[i];
        if (i % size == 0) begun[b] = begin;
    }
};

/// The beginnings of a step have been taken.
struct link_begun {
    char* begins;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const { begins[b] = 0; }
};

/// L'_ij of every row of a batch.
template <class Real>
struct link_step {
    const Real* from;
    Real* to;
    step_rows<Real> written, precedence;
    int slots;
    ENGRAM_HD void operator()(std::ptrdiff_t at) const {
        const std::ptrdiff_t size = std::ptrdiff_t{slots} * slots, b = at / size;
        const int i = static_cast<int>(at % size) / slots, j = static_cast<int>(at % size) % slots;
        const Real *const w = written.row(b), *const p = precedence.row(b);
        to[at] = i == j ? Real(0) : (1 - w[i] - w[j]) * from[at] + w[i] * p[j];
    }
};

/// Slot n's gradients as a written and as a preceding slot.
template <class Real>
struct link_slopes {
    const Real *from, *d_link;
    step_rows<Real> written, precedence, d_written, d_precedence;
    int slots;
    ENGRAM_HD void operator()(std::ptrdiff_t at) const {
        const int N = slots, n = static_cast<int>(at % N);
        const std::ptrdiff_t b = at / N, first = b * N * N;
        const Real *const w = written.row(b), *const p = precedence.row(b);
        Real to_written = 0, to_precedence = 0;
        for (int m = 0; m < N; ++m) {
            if (m == n) continue;  // the diagonal is a constant
            const std::ptrdiff_t row = first + std::ptrdiff_t{n} * N + m, column = first + std::ptrdiff_t{m} * N + n;
            to_written += d_link[row] * (p[m] - from[row]) - d_link[column] * from[column];
            to_precedence += d_link[column] * w[m];
        }
        if (d_written.wanted()) d_written.put(b, n, to_written);
        if (d_precedence.wanted()) d_precedence.put(b, n, to_precedence);
    }
};

/// From the gradient of a link to that of the link before the step.
template <class Real>
struct link_step_gradient {
    Real* d_link;
    step_rows<Real> written;
    const char* begun;
    int slots;
    ENGRAM_HD void operator()(std::ptrdiff_t at) const {
        const std::ptrdiff_t size = std::ptrdiff_t{slots} * slots, b = at / size;
        const int i = static_cast<int>(at % size) / slots, j = static_cast<int>(at % size) % slots;
        const Real* const w = written.row(b);
        d_link[at] = i == j || begun[b] ? Real(0) : d_link[at] * (1 - w[i] - w[j]);
    }
};

}  // namespace internal

template <device_backend Backend>
struct temporal_link_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;
    using matrices = typename link_matrices_of<Backend>::type;

    temporal_link_kernel(const binder<Backend>& b, dnc_link l)
        : device_kernel<Backend>(b),
          slots(l.slots),
          heads(b.in(2).width / l.slots),
          keeps(b.needs_backward()),
          writes(b.side_effects()),
          size(std::ptrdiff_t{l.slots} * l.slots),
          resource_in_use(b.bound_resource(l.resource)) {
        for (std::size_t i = 0; i < 3; ++i) {
            in[i] = b.in(i);
            d_in[i] = b.d_in(i);
        }
        for (std::size_t i = 0; i < 2; ++i) {
            out[i] = b.out(i);
            d_out[i] = b.d_out(i);
        }
        const auto all = static_cast<std::size_t>(b.batch() * size), T = static_cast<std::size_t>(b.steps());
        if (!writes) aside = numbers(all);
        begun = flags((keeps ? T : 1) * static_cast<std::size_t>(b.batch()));
        if (!keeps) return;
        history = numbers(T * all);
        d_link = numbers(all);
        scratch = numbers(all);
    }

    void forward(int t, int) override {
        auto& links = static_cast<matrices&>(**resource_in_use);
        real* const own = links.link(0);
        const std::ptrdiff_t all = this->batch * size;
        real* const from = keeps ? history.data() + t * all : writes || t == 0 ? own : aside.data();
        if (keeps)
            this->on->launch(
                this->name, all,
                internal::link_enter<real>{own, writes ? links.begins() : nullptr, begun_of(t), from, size, t == 0});
        if (writes) this->on->launch(this->name, this->batch, internal::link_begun{links.begins()});
        real* const to = keeps && t + 1 < this->all_steps ? from + all : writes ? own : aside.data();
        step(from, to, t);
        for (int way = 0; way < 2; ++way)
            this->on->products(this->name, this->batch, {in[2].at(t), slots}, in[2].stride, {to, slots, way == 0}, size,
                               false, out[way].at(t), slots, out[way].stride, heads, slots, slots);
    }

    void backward(int t, int) override {
        const std::ptrdiff_t all = this->batch * size;
        const real* const from = history.data() + t * all;
        if (t == this->all_steps - 1) this->on->clear(d_link.data(), all);
        step(from, scratch.data(), t);
        bool given = d_in[2] && d_in[2].accumulate;
        for (int way = 2; way-- > 0;) {
            if (!d_out[way]) continue;
            const bool ahead = way == 0;
            const matrix_operand<real> slope{d_out[way].at(t), slots};
            if (d_in[2])
                this->on->products(this->name, this->batch, slope, d_out[way].stride, {scratch.data(), slots, !ahead},
                                   size, std::exchange(given, true), d_in[2].at(t), slots, d_in[2].stride, heads, slots,
                                   slots);
            const operand<real>&left = ahead ? d_out[way] : in[2], &right = ahead ? in[2] : d_out[way];
            this->on->products(this->name, this->batch, {left.at(t), slots, true}, left.stride, {right.at(t), slots},
                               right.stride, true, d_link.data(), slots, size, slots, slots, heads);
        }
        this->launch(1, slots,
                     internal::link_slopes<real>{
                         from, d_link.data(), {in[0], t}, {in[1], t}, {d_in[0], t}, {d_in[1], t}, slots});
        this->on->launch(this->name, all,
                         internal::link_step_gradient<real>{d_link.data(), {in[0], t}, begun_of(t), slots});
    }

private:
    using numbers = typename executor<Backend>::buffer;
    using flags = typename executor<Backend>::template array<char>;

    char* begun_of(int t) { return begun.data() + (keeps ? std::ptrdiff_t{t} * this->batch : 0); }
    void step(const real* from, real* to, int t) {
        this->on->launch(this->name, this->batch * size,
                         internal::link_step<real>{from, to, {in[0], t}, {in[1], t}, slots});
    }

    int slots, heads;
    bool keeps, writes;
    std::ptrdiff_t size;
    std::shared_ptr<resource>* resource_in_use;
    operand<real> in[3], d_in[3], out[2], d_out[2];
    numbers history, d_link, aside, scratch;  // [T, B, N, N], [B, N, N], [B, N, N], [B, N, N]
    flags begun;                              // [T, B]
};

}  // namespace engram
