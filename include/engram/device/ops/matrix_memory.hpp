#pragma once
// SPDX-License-Identifier: MIT

// Reading and writing a memory matrix on a device (equations: kernels/matrix_memory.hpp and kernels/least_used.hpp).
//
// Cosines are one launch, and one for each of their gradients; other sums over slots and words are products of one
// small matrix a row, all rows in one batched call. Both cosines are one body: their norms are guarded one by one, or
// under one root.

#include <engram/core/flag.hpp>
#include <engram/device/kernel.hpp>
#include <engram/device/shared_sums.hpp>
#include <engram/operations/least_used.hpp>
#include <engram/operations/matrix_memory.hpp>

namespace engram {

/// What a product of key and row is divided by, from their guarded norms; squares for the joint cosine.
template <bool Joint, class Real>
ENGRAM_HD Real cosine_divisor(Real key, Real row) {
    return Joint ? sqrt(key * row + static_cast<Real>(joint_cosine_epsilon))
                 : key * row + static_cast<Real>(cosine_epsilon);
}

/// What the threads of both cosines share; norms of the H keys and N rows of each memory, [rows, H + N].
template <class Real, bool Joint>
struct cosine_rows {
    step_rows<Real> memory, keys, cosine, written;
    int slots, word, heads;
    bool ring, by_age;
    Real* norms;

    ENGRAM_HD const Real* key(std::ptrdiff_t row, int h) const { return keys.row(row) + std::ptrdiff_t{h} * word; }
    ENGRAM_HD const Real* slot(std::ptrdiff_t row, int n) const { return memory.row(row) + std::ptrdiff_t{n} * word; }
    ENGRAM_HD ring_places places(std::ptrdiff_t row) const {
        return {slots, ring ? count_of(written.row(row)[0]) : slots, ring && by_age};
    }
    ENGRAM_HD Real* norm(std::ptrdiff_t row) const { return norms + row * (heads + slots); }
    ENGRAM_HD static Real guarded(Real square) {
        return Joint ? square : sqrt(square + static_cast<Real>(cosine_epsilon));
    }
    ENGRAM_HD Real divisor(std::ptrdiff_t row, int h, int n) const {
        return cosine_divisor<Joint>(norm(row)[h], norm(row)[heads + n]);
    }
    /// The share of one product in what is taken from a vector along itself; `own` and `other` are their norms.
    ENGRAM_HD static Real shrinking(Real scaled, Real cosine, Real own, Real other) {
        return scaled * cosine * other / (Joint ? cosine_divisor<true>(own, other) : own);
    }
};

namespace internal {

/// One thread a key and slot. Norms are summed up by whoever needs them, and kept once.
template <class Real, bool Joint>
struct cosine_forward {
    cosine_rows<Real, Joint> all;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / all.cosine.width;
        const int at = static_cast<int>(i % all.cosine.width), h = at / all.slots, n = at % all.slots;
        const ring_places places = all.places(row);
        Real& to = all.cosine.row(row)[h * all.slots + places(n)];
        if (n >= places.valid) {
            to = 0;
            if (n == 0) all.norm(row)[h] = 0;
            return;
        }
        const Real *const a = all.key(row, h), *const b = all.slot(row, n);
        Real product = 0, key = 0, slot = 0;
        for (int c = 0; c < all.word; ++c) {
            product += a[c] * b[c];
            key += a[c] * a[c];
            slot += b[c] * b[c];
        }
        key = all.guarded(key), slot = all.guarded(slot);
        to = product / cosine_divisor<Joint>(key, slot);
        if (n == 0) all.norm(row)[h] = key;
        if (h == 0) all.norm(row)[all.heads + n] = slot;
    }
};

/// A block a key.
template <class Real, bool Joint>
struct cosine_to_keys {
    static constexpr int lanes = 256;
    using sums = shared_sums<lanes>;
    static int scratch(int slots) { return sums::share_numbers + slots; }

    cosine_rows<Real, Joint> all;
    step_rows<Real> d_cosine, d_keys;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const cosine_rows<Real, Joint> rows = all;
        const int row = index / rows.heads, h = index % rows.heads, W = rows.word;
        const ring_places places = rows.places(row);
        const int N = places.valid;
        const Real *const norm = rows.norm(row), own = norm[h];
        const Real* const cosine = rows.cosine.row(row) + std::ptrdiff_t{h} * rows.slots;
        const Real* const d = d_cosine.row(row) + std::ptrdiff_t{h} * rows.slots;
        const Real *const key = rows.key(row, h), *const memory = rows.slot(row, 0);
        Real* const scaled = block.scratch + sums::share_numbers;  // [N]
        block_for(block, N, [=](int n) { scaled[n] = d[places(n)] / rows.divisor(row, h, n); });
        const Real shrink = block_sum(
            block, N, [=](int n) { return rows.shrinking(scaled[n], cosine[places(n)], own, norm[rows.heads + n]); });
        const step_rows<Real> to = d_keys;
        sums::add_up(
            block, block.scratch, W, N, [=](int i, int n) { return scaled[n] * memory[std::ptrdiff_t{n} * W + i]; },
            [=](int i, Real sum) { to.put(row, std::ptrdiff_t{h} * W + i, sum - shrink * key[i]); });
    }
};

/// One thread a number of the memory.
template <class Real, bool Joint>
struct cosine_to_memory {
    cosine_rows<Real, Joint> all;
    step_rows<Real> d_cosine, d_memory;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_memory.width;
        const int at = static_cast<int>(i % d_memory.width), n = at / all.word, c = at % all.word;
        const ring_places places = all.places(row);
        if (n >= places.valid) return d_memory.put(row, at, 0);
        const Real own = all.norm(row)[all.heads + n];
        Real sum = 0, shrink = 0;
        for (int h = 0; h < all.heads; ++h) {
            const int place = h * all.slots + places(n);
            const Real scaled = d_cosine.row(row)[place] / all.divisor(row, h, n);
            sum += scaled * all.key(row, h)[c];
            shrink += all.shrinking(scaled, all.cosine.row(row)[place], own, all.norm(row)[h]);
        }
        d_memory.put(row, at, sum - shrink * all.memory.row(row)[at]);
    }
};

}  // namespace internal

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
          d_out(b.d_out(0)),
          written(b.op().inputs.size() > 2 ? b.in(2) : operand<real>{}),
          norms(static_cast<std::size_t>((out.step ? b.steps() : 1) * b.batch()) *
                static_cast<std::size_t>(s.heads + s.slots)) {}
    void forward(int t, int steps) override {
        this->launch(steps, out.width, internal::cosine_forward<real, Joint>{rows(t)});
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        using to_keys = internal::cosine_to_keys<real, Joint>;
        if (d_keys)
            this->launch_blocks(steps, shape.heads, to_keys::scratch(shape.slots),
                                to_keys{rows(t), {d_out, t}, {d_keys, t}});
        if (d_memory)
            this->launch(steps, d_memory.width,
                         internal::cosine_to_memory<real, Joint>{rows(t), {d_out, t}, {d_memory, t}});
    }

private:
    cosine_rows<real, Joint> rows(int t) {
        const int N = shape.slots, W = shape.word, R = shape.heads;
        return {{memory, t},
                {keys, t},
                {out, t},
                {written, t},
                N,
                W,
                R,
                static_cast<bool>(written),
                shape.by_age,
                norms.data() + std::ptrdiff_t{t} * this->batch * (R + N)};
    }

    matrix_memory_shape shape;
    operand<real> memory, keys, d_memory, d_keys, out, d_out, written;
    typename executor<Backend>::buffer norms;
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
        const int N = shape.slots, W = shape.word, R = shape.heads;
        this->on->products(this->name, steps * this->batch, {weights.at(t), N}, weights.stride, {memory.at(t), W},
                           memory.stride, false, out.at(t), W, out.stride, R, W, N);
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        const int N = shape.slots, W = shape.word, R = shape.heads;
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
    step_rows<Real> memory, weights, erase, add, out;
    int slots, word, heads;

    ENGRAM_HD Real kept(std::ptrdiff_t row, int n, int c, int but) const {
        Real product = 1;
        for (int h = 0; h < heads; ++h)
            if (h != but) product *= 1 - weights.row(row)[h * slots + n] * erase.row(row)[h * word + c];
        return product;
    }
};

namespace internal {

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
    step_rows<Real> d_out, d_memory;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_out.width;
        const int at = static_cast<int>(i % d_out.width);
        d_memory.put(row, at, d_out.row(row)[at] * all.kept(row, at / all.word, at % all.word, -1));
    }
};

template <class Real>
struct erase_add_to_weights {
    erase_add_rows<Real> all;
    step_rows<Real> d_out, d_weights;
    ENGRAM_HD int count() const { return all.heads * all.slots; }
    ENGRAM_HD int terms() const { return all.word; }
    ENGRAM_HD Real term(int row, int at, int c) const {
        const int h = at / all.slots, n = at % all.slots, place = n * all.word + c;
        const Real reach = all.memory.row(row)[place] * all.kept(row, n, c, h);
        return d_out.row(row)[place] *
               (all.add.row(row)[h * all.word + c] - reach * all.erase.row(row)[h * all.word + c]);
    }
    ENGRAM_HD void put(int row, int at, Real sum) const { d_weights.put(row, at, sum); }
};

template <class Real>
struct erase_add_to_erase {
    erase_add_rows<Real> all;
    step_rows<Real> d_out, d_erase;
    ENGRAM_HD int count() const { return all.heads * all.word; }
    ENGRAM_HD int terms() const { return all.slots; }
    ENGRAM_HD Real term(int row, int at, int n) const {
        const int h = at / all.word, c = at % all.word, place = n * all.word + c;
        return -all.weights.row(row)[h * all.slots + n] * d_out.row(row)[place] * all.memory.row(row)[place] *
               all.kept(row, n, c, h);
    }
    ENGRAM_HD void put(int row, int at, Real sum) const { d_erase.put(row, at, sum); }
};

}  // namespace internal

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
    void forward(int t, int steps) override {
        this->launch(steps, out.width, internal::erase_add_forward<real>{rows(t)});
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        const int N = shape.slots, W = shape.word, H = shape.heads;
        if (d_in[0])
            this->launch(steps, out.width, internal::erase_add_to_memory<real>{rows(t), {d_out, t}, {d_in[0], t}});
        if (d_in[1]) this->launch_sums(steps, internal::erase_add_to_weights<real>{rows(t), {d_out, t}, {d_in[1], t}});
        if (d_in[2]) this->launch_sums(steps, internal::erase_add_to_erase<real>{rows(t), {d_out, t}, {d_in[2], t}});
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

namespace internal {

/// A slot's rank by usage, ties by slot, what is no number last; head r marks the slot of rank r.
template <class Real>
struct mark_ranks {
    step_rows<Real> usage, out;
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

}  // namespace internal

template <device_backend Backend>
struct least_used_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    least_used_kernel(const binder<Backend>& b, no_settings)
        : device_kernel<Backend>(b), usage(b.in(0)), out(b.out(0)) {}
    void forward(int t, int steps) override {
        this->launch(steps, usage.width, internal::mark_ranks<real>{{usage, t}, {out, t}});
    }
    operand<real> usage, out;
};

namespace internal {

/// to = from where no head marks the slot, else zero; `to` is the memory written, or its gradient.
template <class Real>
struct clear_marked {
    step_rows<Real> from, marks, to;
    int slots, word, heads;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / to.width;
        const int at = static_cast<int>(i % to.width), n = at / word;
        bool marked = false;
        for (int r = 0; r < heads; ++r) marked |= is_set(marks.row(row)[r * slots + n]);
        to.put(row, at, marked ? Real(0) : from.row(row)[at]);
    }
};

}  // namespace internal

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
        const int N = shape.slots, W = shape.word, R = shape.heads;
        this->launch(steps, out.width, internal::clear_marked<real>{{in[0], t}, {in[1], t}, {out, t}, N, W, R});
        this->on->products(this->name, steps * this->batch, {in[2].at(t), N, true}, in[2].stride, {in[3].at(t), W},
                           in[3].stride, true, out.at(t), W, out.stride, N, W, R);
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        const int N = shape.slots, W = shape.word, R = shape.heads;
        const int rows = steps * this->batch;
        if (d_in[0])
            this->launch(steps, out.width, internal::clear_marked<real>{{d_out, t}, {in[1], t}, {d_in[0], t}, N, W, R});
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
