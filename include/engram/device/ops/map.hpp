#pragma once
// SPDX-License-Identifier: MIT

// map on a device: one thread a number. The functor of the host serves here too, on duals; it is `constexpr`, which
// lets nvcc compile it for the device. Forward the duals depend on nothing: like a pack, and unlike a bare float, they
// take a constant such as 0.5 in their own type, and a device is many times slower in double.
//
// A chain (plan::chained) is one launch each way: what a thread carries from step to step it writes and reads itself,
// in memory.

#include <engram/device/kernel.hpp>
#include <engram/operations/map.hpp>

namespace engram {

namespace internal {

/// The rows of a thread, one after the other: of a chain that of every step.
struct rows_of_a_thread {
    int count = 1;
    std::ptrdiff_t ahead = 0, apart = 0;  // rows ahead of its first one, and from one to the next
};

/// Which inputs a map clears where an episode begins, a bit each.
template <class Real>
struct cleared_inputs {
    step_rows<Real> reset;
    unsigned inputs = 0;
    ENGRAM_HD unsigned at(std::ptrdiff_t row) const {
        return inputs != 0 && reset.row(row)[0] > Real(0.5) ? inputs : 0u;
    }
};

template <class Real, class Functor, int N, int M>
struct map_forward {
    Functor functor;
    step_rows<Real> in[N], out[M];
    int width, serves[N];
    cleared_inputs<Real> clears;
    rows_of_a_thread rows;

    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        std::ptrdiff_t row = i / width + rows.ahead;
        for (int k = 0; k < rows.count; ++k, row += rows.apart)
            apply(row, i % width, std::make_index_sequence<N>{}, std::make_index_sequence<M>{});
    }

private:
    template <std::size_t... I, std::size_t... O>
    ENGRAM_HD void apply(std::ptrdiff_t row, std::ptrdiff_t column, std::index_sequence<I...>,
                         std::index_sequence<O...>) const {
        const unsigned cleared = clears.at(row);
        const auto results = internal::map_tuple(functor(
            dual<Real, 0>(cleared >> I & 1u ? Real(0) : in[I].row(row)[static_cast<int>(column) / serves[I]])...));
        ((out[O].row(row)[column] = static_cast<Real>(value(std::get<O>(results)))), ...);
    }
};

/// The gradients of the inputs in `sent`, a bit each. With `Across`, one thread sums up what one column of the only
/// input sent stands for; without, each thread gives its number's share.
template <class Real, class Functor, int N, int M, bool Across>
struct map_backward {
    Functor functor;
    step_rows<Real> in[N], d_in[N], d_out[M];
    int width, serves[N];
    unsigned sent;
    int columns;  // with Across: those of the input
    cleared_inputs<Real> clears;
    rows_of_a_thread rows;

    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        Real slopes[N];
        if constexpr (Across) {
            Real total[N] = {};
            const std::ptrdiff_t row = i / columns, column = i % columns;
            const int each = width / columns;
            for (std::ptrdiff_t c = column * each; c < (column + 1) * each; ++c) {
                find(row, c, slopes, std::make_index_sequence<N>{});
                for (int k = 0; k < N; ++k) total[k] += slopes[k];
            }
            for (int k = 0; k < N; ++k)
                if (sent >> k & 1u) d_in[k].put(row, column, total[k]);
        } else {
            std::ptrdiff_t row = i / width + rows.ahead;
            for (int n = 0; n < rows.count; ++n, row += rows.apart) {
                find(row, i % width, slopes, std::make_index_sequence<N>{});
                const unsigned to = sent & ~clears.at(row);
                for (int k = 0; k < N; ++k)
                    if (to >> k & 1u) d_in[k].put(row, i % width, slopes[k]);
            }
        }
    }

private:
    template <std::size_t... I>
    ENGRAM_HD void find(std::ptrdiff_t row, std::ptrdiff_t column, Real* slopes, std::index_sequence<I...>) const {
        const unsigned cleared = clears.at(row);
        const auto results = internal::map_tuple(functor(make_input<static_cast<int>(I)>(
            cleared >> I & 1u ? Real(0) : in[I].row(row)[static_cast<int>(column) / serves[I]])...));
        ((slopes[I] = slope<I>(results, row, column, std::make_index_sequence<M>{})), ...);
    }
    template <std::size_t I, class Results, std::size_t... O>
    ENGRAM_HD Real slope(const Results& results, std::ptrdiff_t row, std::ptrdiff_t column,
                         std::index_sequence<O...>) const {
        Real sum = 0;
        ((sum += d_out[O].wanted()
                     ? Real(derivative<static_cast<int>(I)>(std::get<O>(results))) * d_out[O].row(row)[column]
                     : Real(0)),
         ...);
        return sum;
    }
};

}  // namespace internal

/// Where the numbers of a map are, and which gradients one launch may give together, whatever the functor.
template <device_backend Backend, int N, int M>
struct map_operands<Backend, N, M> : device_kernel<Backend> {
    using real = typename Backend::real;

    map_operands(const binder<Backend>& b, unsigned c) : device_kernel<Backend>(b), width(b.out(0).width), clears(c) {
        unsigned whole = 0;
        if (clears) reset = b.in(N);
        for (int i = 0; i < N; ++i) {
            in[i] = b.in(static_cast<std::size_t>(i));
            d_in[i] = b.d_in(static_cast<std::size_t>(i));
            if (!d_in[i]) continue;
            // Inputs that share columns of one value are given theirs by one launch after another.
            bool alone = false;
            for (int k = 0; k < i; ++k) alone |= d_in[k] && overlap(d_in[k], d_in[i]);
            if (in[i].width != width)
                across.push_back(i);
            else if (alone)
                along.push_back(1u << i);
            else
                whole |= 1u << i;
        }
        if (whole) along.insert(along.begin(), whole);
        for (int i = 0; i < M; ++i) {
            out[i] = b.out(static_cast<std::size_t>(i));
            d_out[i] = b.d_out(static_cast<std::size_t>(i));
        }
        in_order = b.chained() && points_follow_themselves();
    }
    bool runs_loop() const override { return in_order; }

    int width;
    operand<real> in[N], d_in[N], out[M], d_out[M], reset;
    unsigned clears;
    std::vector<unsigned> along;
    std::vector<int> across;
    bool in_order;  // several steps are a step after the other

protected:
    internal::cleared_inputs<real> cleared_from(int t) const { return {{reset, t}, clears}; }
    /// `body` at all points of `steps` steps; of a chain forward from the first one, or back from the last.
    template <class Body>
    void launch_points(int steps, Body body, bool back) {
        if (steps == 1 || !in_order) return this->launch(steps, width, body);
        const std::ptrdiff_t B = this->batch;
        body.rows = {steps, back ? (steps - 1) * B : 0, back ? -B : B};
        this->launch(1, width, body);
    }

private:
    /// Whether a point reads of other steps only what is of its own row and column.
    bool points_follow_themselves() const {
        const auto end = [&](const operand<real>& o) {
            return o.at(this->all_steps - 1) + (this->batch - 1) * o.stride + o.width;
        };
        if (clears && reset.step != this->batch * reset.stride) return false;
        for (int i = 0; i < N; ++i) {
            if (in[i].step != this->batch * in[i].stride) return false;
            for (const operand<real>& y : out) {
                const bool apart = in[i].data >= end(y) || end(in[i]) <= y.data;
                const bool behind = in[i].at(1) == y.data && in[i].stride == y.stride && in[i].width == width;
                if (!apart && !behind) return false;
                // Its gradient goes to the step before, by the first launch.
                if (!apart && d_in[i] && !(along[0] >> i & 1u)) return false;
            }
        }
        return true;
    }
    static bool overlap(const operand<real>& a, const operand<real>& b) {
        const std::ptrdiff_t apart = b.data - a.data;
        return apart < a.width && -apart < b.width;
    }
};

template <device_backend Backend, class Functor, int N>
struct map_kernel<Backend, Functor, N> final
    : map_operands<Backend, N, internal::map_outputs<typename Backend::real, Functor, N>> {
    using real = typename Backend::real;
    static constexpr int M = internal::map_outputs<real, Functor, N>;
    using operands = map_operands<Backend, N, M>;

    map_kernel(const binder<Backend>& b, Functor f, unsigned cleared) : operands(b, cleared), functor(f) {}

    void forward(int t, int steps) override {
        internal::map_forward<real, Functor, N, M> body{functor, {}, {}, width, {}, this->cleared_from(t), {}};
        for (int i = 0; i < N; ++i) {
            body.in[i] = {in[i], t};
            body.serves[i] = width / in[i].width;
        }
        for (int i = 0; i < M; ++i) body.out[i] = {out[i], t};
        this->launch_points(steps, body, false);
    }
    void backward(int t, int steps) override {
        for (const unsigned inputs : along) this->launch_points(steps, gradient<false>(t, inputs, width), true);
        for (const int i : across) this->launch(steps, in[i].width, gradient<true>(t, 1u << i, in[i].width));
    }

private:
    template <bool Across>
    internal::map_backward<real, Functor, N, M, Across> gradient(int t, unsigned inputs, int columns) const {
        internal::map_backward<real, Functor, N, M, Across> body{
            functor, {}, {}, {}, width, {}, inputs, columns, this->cleared_from(t), {}};
        for (int i = 0; i < N; ++i) {
            body.in[i] = {in[i], t};
            body.serves[i] = width / in[i].width;
            body.d_in[i] = {d_in[i], t};
        }
        for (int i = 0; i < M; ++i) body.d_out[i] = {d_out[i], t};
        return body;
    }

    using operands::width, operands::in, operands::d_in, operands::out, operands::d_out, operands::along,
        operands::across;

    Functor functor;
};

}  // namespace engram
