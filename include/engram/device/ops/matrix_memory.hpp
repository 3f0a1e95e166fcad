#pragma once
// SPDX-License-Identifier: MIT

// Reading and writing a memory matrix on a device (equations: kernels/matrix_memory.hpp and kernels/least_used.hpp).
//
// Sums over slots and words are products of one small matrix a row, all rows in one batched call; what is left is
// pointwise. Both cosines are one body: their norms are guarded one by one, or under one root.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/least_used.hpp>
#include <engram/graph/ops/matrix_memory.hpp>

namespace engram {

/// Guarded norms of the H keys and N rows of each memory, [rows, H + N]; squares for the joint cosine.
template <class Real, bool Joint>
struct vector_norms {
    device_rows<Real> memory, keys;
    int slots, word, heads;
    Real* norms;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / (heads + slots), v = i % (heads + slots);
        const Real* const x = v < heads ? keys.row(row) + v * word : memory.row(row) + (v - heads) * word;
        Real sum = 0;
        for (int c = 0; c < word; ++c) sum += x[c] * x[c];
        norms[i] = Joint ? sum : sqrt(sum + static_cast<Real>(cosine_epsilon));
    }
};

/// What a product of key and row is divided by.
template <bool Joint, class Real>
ENGRAM_HD Real cosine_divisor(Real key, Real row) {
    return Joint ? sqrt(key * row + static_cast<Real>(joint_cosine_epsilon))
                 : key * row + static_cast<Real>(cosine_epsilon);
}

/// out = from / divisor, [rows, R * N]: cosines from products, and their gradients likewise.
template <class Real, bool Joint>
struct divide_by_norms {
    device_rows<Real> from, out;
    int slots, heads;
    const Real* norms;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / out.width, at = i % out.width;
        const Real* const norm = norms + row * (heads + slots);
        out.row(row)[at] = from.row(row)[at] / cosine_divisor<Joint>(norm[at / slots], norm[heads + at % slots]);
    }
};

/// Takes from the gradient of a vector x its part along x: a block a key (OfRows false) or a memory row.
template <class Real, bool Joint, bool OfRows>
struct cosine_shrink {
    static constexpr int lanes = 32;
    device_rows<Real> x, cosine, d_x;
    const Real *scaled, *norms;  // d_cosine / divisor [rows, R * N]
    int slots, word, heads;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int mine = OfRows ? slots : heads, others = OfRows ? heads : slots;
        const int row = index / mine, v = index % mine, N = slots;
        const Real *const norm = norms + std::ptrdiff_t{row} * (heads + slots), *const c = cosine.row(row);
        const Real* const s = scaled + std::ptrdiff_t{row} * heads * slots;
        const Real own = norm[OfRows ? heads + v : v];
        const Real* const other_norm = norm + (OfRows ? 0 : heads);
        const Real shrink = block_sum(block, others, [=](int o) {
            const std::ptrdiff_t at = OfRows ? std::ptrdiff_t{o} * N + v : std::ptrdiff_t{v} * N + o;
            return s[at] * c[at] * other_norm[o] / (Joint ? cosine_divisor<true>(own, other_norm[o]) : own);
        });
        const Real* const from = x.row(row) + std::ptrdiff_t{v} * word;
        Real* const to = d_x.row(row) + std::ptrdiff_t{v} * word;
        block_for(block, word, [=](int i) { to[i] -= shrink * from[i]; });
    }
};

/// Both cosines of R keys with N slots.
template <device_backend Backend, bool Joint>
struct device_cosine : device_kernel<Backend> {
    using real = typename Backend::real;

    device_cosine(const binder<Backend>& b, const matrix_memory_shape& s)
        : device_kernel<Backend>(b),
          shape(s),
          memory(b.in(0)),
          keys(b.in(1)),
          d_memory(b.d_in(0)),
          d_keys(b.d_in(1)),
          out(b.out(0)),
          d_out(b.d_out(0)) {
        const auto rows = static_cast<std::size_t>((out.step ? b.steps() : 1) * b.batch());
        norms = numbers(rows * static_cast<std::size_t>(s.heads + s.slots));
        if (b.needs_backward()) scaled = numbers(rows * static_cast<std::size_t>(s.heads * s.slots));
    }
    void forward(int t, int steps) override {
        const auto [N, W, R] = shape;
        const int rows = steps * this->batch;
        this->launch(steps, R + N, vector_norms<real, Joint>{{memory, t}, {keys, t}, N, W, R, norms_of(t)});
        this->on->products(this->name, rows, {keys.at(t), W}, keys.stride, {memory.at(t), W, true}, memory.stride,
                           false, out.at(t), N, out.stride, R, N, W);
        this->launch(steps, out.width, divide_by_norms<real, Joint>{{out, t}, {out, t}, N, R, norms_of(t)});
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        const auto [N, W, R] = shape;
        const int rows = steps * this->batch;
        const std::ptrdiff_t apart = std::ptrdiff_t{R} * N;
        operand<real> by{scaled.data() + std::ptrdiff_t{t} * this->batch * apart, apart, 0, out.width};
        this->launch(steps, out.width, divide_by_norms<real, Joint>{{d_out, t}, {by, 0}, N, R, norms_of(t)});
        if (d_keys) {
            this->on->products(this->name, rows, {by.data, N}, apart, {memory.at(t), W}, memory.stride,
                               d_keys.accumulate, d_keys.at(t), W, d_keys.stride, R, W, N);
            this->launch_blocks(
                steps, R, 32,
                cosine_shrink<real, Joint, false>{{keys, t}, {out, t}, {d_keys, t}, by.data, norms_of(t), N, W, R});
        }
        if (d_memory) {
            this->on->products(this->name, rows, {by.data, N, true}, apart, {keys.at(t), W}, keys.stride,
                               d_memory.accumulate, d_memory.at(t), W, d_memory.stride, N, W, R);
            this->launch_blocks(
                steps, N, 32,
                cosine_shrink<real, Joint, true>{{memory, t}, {out, t}, {d_memory, t}, by.data, norms_of(t), N, W, R});
        }
    }

private:
    using numbers = typename executor<Backend>::buffer;

    real* norms_of(int t) { return norms.data() + std::ptrdiff_t{t} * this->batch * (shape.heads + shape.slots); }

    matrix_memory_shape shape;
    operand<real> memory, keys, d_memory, d_keys, out, d_out;
    numbers norms, scaled;
};

template <device_backend Backend>
struct cosine_scores_kernel<Backend> final : device_cosine<Backend, false> {
    using device_cosine<Backend, false>::device_cosine;
};
template <device_backend Backend>
struct joint_cosine_kernel<Backend> final : device_cosine<Backend, true> {
    using device_cosine<Backend, true>::device_cosine;
};

// --- reading ---

template <device_backend Backend>
struct weighted_read_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    weighted_read_kernel(const binder<Backend>& b, const matrix_memory_shape& s)
        : device_kernel<Backend>(b),
          shape(s),
          weights(b.in(0)),
          memory(b.in(1)),
          d_weights(b.d_in(0)),
          d_memory(b.d_in(1)),
          out(b.out(0)),
          d_out(b.d_out(0)) {}
    void forward(int t, int steps) override {
        const auto [N, W, R] = shape;
        this->on->products(this->name, steps * this->batch, {weights.at(t), N}, weights.stride, {memory.at(t), W},
                           memory.stride, false, out.at(t), W, out.stride, R, W, N);
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        const auto [N, W, R] = shape;
        const int rows = steps * this->batch;
        if (d_weights)
            this->on->products(this->name, rows, {d_out.at(t), W}, d_out.stride, {memory.at(t), W, true}, memory.stride,
                               d_weights.accumulate, d_weights.at(t), N, d_weights.stride, R, N, W);
        if (d_memory)
            this->on->products(this->name, rows, {weights.at(t), N, true}, weights.stride, {d_out.at(t), W},
                               d_out.stride, d_memory.accumulate, d_memory.at(t), W, d_memory.stride, N, W, R);
    }
    matrix_memory_shape shape;
    operand<real> weights, memory, d_weights, d_memory, out, d_out;
};

// --- erasing and adding ---

/// What the threads of erase_add share; slopes: of the memory (0), the weights (1) and the erasures (2).
template <class Real>
struct erase_add_rows {
    device_rows<Real> memory, weights, erase, add, out;
    int slots, word, heads;

    ENGRAM_HD Real kept(std::ptrdiff_t row, int n, int c, int but) const {
        Real product = 1;
        for (int h = 0; h < heads; ++h)
            if (h != but) product *= 1 - weights.row(row)[h * slots + n] * erase.row(row)[h * word + c];
        return product;
    }
};

template <class Real>
struct erase_add_forward {
    erase_add_rows<Real> all;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / all.out.width;
        const int at = static_cast<int>(i % all.out.width), n = at / all.word, c = at % all.word;
        Real added = 0;
        for (int h = 0; h < all.heads; ++h)
            added += all.weights.row(row)[h * all.slots + n] * all.add.row(row)[h * all.word + c];
        all.out.row(row)[at] = all.memory.row(row)[at] * all.kept(row, n, c, -1) + added;
    }
};

template <class Real>
struct erase_add_to_memory {
    erase_add_rows<Real> all;
    device_rows<Real> d_out, d_memory;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_out.width;
        const int at = static_cast<int>(i % d_out.width);
        d_memory.take(row, at, d_out.row(row)[at] * all.kept(row, at / all.word, at % all.word, -1));
    }
};

template <class Real>
struct erase_add_to_weights {
    erase_add_rows<Real> all;
    device_rows<Real> d_out, d_weights;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_weights.width;
        const int at = static_cast<int>(i % d_weights.width), h = at / all.slots, n = at % all.slots;
        Real sum = 0;
        for (int c = 0; c < all.word; ++c) {
            const int place = n * all.word + c;
            const Real reach = all.memory.row(row)[place] * all.kept(row, n, c, h);
            sum += d_out.row(row)[place] *
                   (all.add.row(row)[h * all.word + c] - reach * all.erase.row(row)[h * all.word + c]);
        }
        d_weights.take(row, at, sum);
    }
};

template <class Real>
struct erase_add_to_erase {
    erase_add_rows<Real> all;
    device_rows<Real> d_out, d_erase;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_erase.width;
        const int at = static_cast<int>(i % d_erase.width), h = at / all.word, c = at % all.word;
        Real sum = 0;
        for (int n = 0; n < all.slots; ++n) {
            const int place = n * all.word + c;
            sum -= all.weights.row(row)[h * all.slots + n] * d_out.row(row)[place] * all.memory.row(row)[place] *
                   all.kept(row, n, c, h);
        }
        d_erase.take(row, at, sum);
    }
};

template <device_backend Backend>
struct erase_add_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    erase_add_kernel(const binder<Backend>& b, const matrix_memory_shape& s)
        : device_kernel<Backend>(b), shape(s), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t i = 0; i < 4; ++i) {
            in[i] = b.in(i);
            d_in[i] = b.d_in(i);
        }
    }
    void forward(int t, int steps) override { this->launch(steps, out.width, erase_add_forward<real>{rows(t)}); }
    void backward(int t, int steps) override {
        if (!d_out) return;
        const auto [N, W, H] = shape;
        if (d_in[0]) this->launch(steps, out.width, erase_add_to_memory<real>{rows(t), {d_out, t}, {d_in[0], t}});
        if (d_in[1]) this->launch(steps, in[1].width, erase_add_to_weights<real>{rows(t), {d_out, t}, {d_in[1], t}});
        if (d_in[2]) this->launch(steps, in[2].width, erase_add_to_erase<real>{rows(t), {d_out, t}, {d_in[2], t}});
        if (d_in[3])
            this->on->products(this->name, steps * this->batch, {in[1].at(t), N}, in[1].stride, {d_out.at(t), W},
                               d_out.stride, d_in[3].accumulate, d_in[3].at(t), W, d_in[3].stride, H, W, N);
    }

private:
    erase_add_rows<real> rows(int t) const {
        return {{in[0], t}, {in[1], t}, {in[2], t}, {in[3], t}, {out, t}, shape.slots, shape.word, shape.heads};
    }
    matrix_memory_shape shape;
    operand<real> in[4], d_in[4], out, d_out;
};

// --- least-recently-used access ---

/// A slot's rank by usage, ties by slot, what is no number last; head r marks the slot of rank r.
template <class Real>
struct mark_ranks {
    device_rows<Real> usage, out;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const int N = usage.width, heads = out.width / N, n = static_cast<int>(i % N);
        const std::ptrdiff_t row = i / N;
        const Real* const u = usage.row(row);
        const auto worth = [=](int m) { return u[m] == u[m] ? u[m] : std::numeric_limits<Real>::infinity(); };
        int rank = 0;
        for (int m = 0; m < N; ++m) rank += worth(m) < worth(n) || (worth(m) == worth(n) && m < n);
        for (int r = 0; r < heads; ++r) out.row(row)[r * N + n] = rank == r ? Real(1) : Real(0);
    }
};

template <device_backend Backend>
struct least_used_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    least_used_kernel(const binder<Backend>& b, no_settings)
        : device_kernel<Backend>(b), usage(b.in(0)), out(b.out(0)) {}
    void forward(int t, int steps) override {
        this->launch(steps, usage.width, mark_ranks<real>{{usage, t}, {out, t}});
    }
    operand<real> usage, out;
};

/// to = from where no head marks the slot, else zero; `to` is the memory written, or its gradient.
template <class Real>
struct clear_marked {
    device_rows<Real> from, marks, to;
    int slots, word, heads;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / to.width;
        const int at = static_cast<int>(i % to.width), n = at / word;
        bool marked = false;
        for (int r = 0; r < heads; ++r) marked |= marks.row(row)[r * slots + n] > Real(0.5);
        to.take(row, at, marked ? Real(0) : from.row(row)[at]);
    }
};

template <device_backend Backend>
struct clear_and_add_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    clear_and_add_kernel(const binder<Backend>& b, const matrix_memory_shape& s)
        : device_kernel<Backend>(b), shape(s), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t i = 0; i < 4; ++i) {
            in[i] = b.in(i);
            d_in[i] = b.d_in(i);
        }
    }
    void forward(int t, int steps) override {
        const auto [N, W, R] = shape;
        this->launch(steps, out.width, clear_marked<real>{{in[0], t}, {in[1], t}, {out, t}, N, W, R});
        this->on->products(this->name, steps * this->batch, {in[2].at(t), N, true}, in[2].stride, {in[3].at(t), W},
                           in[3].stride, true, out.at(t), W, out.stride, N, W, R);
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        const auto [N, W, R] = shape;
        const int rows = steps * this->batch;
        if (d_in[0]) this->launch(steps, out.width, clear_marked<real>{{d_out, t}, {in[1], t}, {d_in[0], t}, N, W, R});
        if (d_in[2])
            this->on->products(this->name, rows, {in[3].at(t), W}, in[3].stride, {d_out.at(t), W, true}, d_out.stride,
                               d_in[2].accumulate, d_in[2].at(t), N, d_in[2].stride, R, N, W);
        if (d_in[3])
            this->on->products(this->name, rows, {in[2].at(t), N}, in[2].stride, {d_out.at(t), W}, d_out.stride,
                               d_in[3].accumulate, d_in[3].at(t), W, d_in[3].stride, R, W, N);
    }
    matrix_memory_shape shape;
    operand<real> in[4], d_in[4], out, d_out;
};

}  // namespace engram
