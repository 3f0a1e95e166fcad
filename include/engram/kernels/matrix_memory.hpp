#pragma once
// SPDX-License-Identifier: MIT

// A memory matrix M [N, W] of one row of a batch, as NTM, LRU and DNC use it (facts 4.4 to 4.6).
//
//   cosine   c_rn = k_r . M_n / (|k_r|' |M_n|' + e),  |x|' = sqrt(x . x + e),  e = 1e-6: zero rows give 0, and their
//            gradient is finite
//   read     r_r = sum_n w_rn M_n
//   write    M'_n = M_n * prod_h (1 - w_hn erase_h) + sum_h w_hn add_h   over H write heads, * and prod elementwise
//
// Shapes: keys, reads, erase, add [heads, W], weights, cosines [heads, N], all dense; M and M' may not overlap.
// Gradients: each comment says what is added to and what is stored. All cost O(heads N W) and allocate nothing.

#include <cmath>
#include <cstddef>

#include "engram/kernels/rows.hpp"

namespace engram {

/// The epsilon of facts 4.6.
inline constexpr double cosine_epsilon = 1e-6;

/// cosine [R, N]; keeps the guarded norms of the keys, key_norm [R], and of the rows, row_norm [N].
template <class Real>
void cosine_scores(const Real* memory, int N, int W, const Real* keys, int R, Real epsilon, Real* cosine,
                   Real* key_norm, Real* row_norm) {
    using P = pack<Real>;
    squares(memory, N, W, row_norm);
    for (int n = 0; n < N; n += P::width) {
        const int count = N - n < P::width ? N - n : P::width;
        sqrt(P::load(row_norm + n, count) + P(epsilon)).store(row_norm + n, count);
    }
    row_products(keys, W, R, memory, W, N, W, cosine, N);
    for (int r = 0; r < R; ++r) {
        const Real* key = keys + std::ptrdiff_t(r) * W;
        key_norm[r] = std::sqrt(dot(key, key, W) + epsilon);
        const P norm(key_norm[r]);
        Real* row = cosine + std::ptrdiff_t(r) * N;
        for (int n = 0; n < N; n += P::width) {
            const int count = N - n < P::width ? N - n : P::width;
            (P::load(row + n, count) / multiply_add(norm, P::load(row_norm + n, count), P(epsilon)))
                .store(row + n, count);
        }
    }
}

/// From d_cosine [R, N]: adds to d_memory [N, W] and to d_keys [R, W]. `scratch` [R, N].
template <class Real>
void cosine_scores_gradient(const Real* memory, int N, int W, const Real* keys, int R, Real epsilon, const Real* cosine,
                            const Real* key_norm, const Real* row_norm, const Real* d_cosine, Real* d_memory,
                            Real* d_keys, Real* scratch) {
    // With D = |k|' |M|' + e:  dc/dk = M / D - c |M|' k / (|k|' D),  dc/dM = k / D - c |k|' M / (|M|' D).
    using P = pack<Real>;
    for (int r = 0; r < R; ++r) {
        const std::ptrdiff_t at = std::ptrdiff_t(r) * N;
        const P norm(key_norm[r]);
        P shrink(0);
        for (int n = 0; n < N; n += P::width) {
            const int count = N - n < P::width ? N - n : P::width;
            const P rows = P::load(row_norm + n, count);
            const P scaled = P::load(d_cosine + at + n, count) / multiply_add(norm, rows, P(epsilon));
            scaled.store(scratch + at + n, count);
            shrink = multiply_add(scaled * P::load(cosine + at + n, count), rows, shrink);
        }
        add_scaled(d_keys + std::ptrdiff_t(r) * W, -shrink.sum() / key_norm[r], keys + std::ptrdiff_t(r) * W, W);
    }
    weighted_rows<true>(scratch, N, 1, R, memory, W, N, d_keys, W, W);
    weighted_rows<true>(scratch, 1, N, N, keys, W, R, d_memory, W, W);
    for (int first = 0; first < N; first += P::width) {
        const int rows = N - first < P::width ? N - first : P::width;
        P sum(0);
        for (int r = 0; r < R; ++r) {
            const std::ptrdiff_t at = std::ptrdiff_t(r) * N + first;
            sum = multiply_add(P::load(scratch + at, rows) * P::load(cosine + at, rows), P(key_norm[r]), sum);
        }
        Real shrink[P::width];
        (-sum / P::load(row_norm + first, rows)).store(shrink, rows);
        for (int i = 0; i < rows; ++i) {
            const std::ptrdiff_t at = std::ptrdiff_t(first + i) * W;
            add_scaled(d_memory + at, shrink[i], memory + at, W);
        }
    }
}

/// read [R, W] = weight [R, N] M.
template <class Real>
void weighted_read(const Real* memory, int N, int W, const Real* weight, int R, Real* read) {
    weighted_rows<false>(weight, N, 1, R, memory, W, N, read, W, W);
}

/// From d_read [R, W]: adds to d_memory [N, W], stores d_weight [R, N].
template <class Real>
void weighted_read_gradient(const Real* memory, int N, int W, const Real* weight, int R, const Real* d_read,
                            Real* d_memory, Real* d_weight) {
    row_products(d_read, W, R, memory, W, N, W, d_weight, N);
    weighted_rows<true>(weight, 1, N, N, d_read, W, R, d_memory, W, W);
}

/// written [N, W] from memory [N, W] by H heads: weight [H, N], erase [H, W], add [H, W].
template <class Real>
void erase_and_add(const Real* memory, int N, int W, const Real* weight, const Real* erase, const Real* add, int H,
                   Real* written) {
    using P = pack<Real>;
    for (int n = 0; n < N; ++n)
        for (int i = 0; i < W; i += P::width) {
            const int count = W - i < P::width ? W - i : P::width;
            P kept = P::load(memory + std::ptrdiff_t(n) * W + i, count), added(0);
            for (int h = 0; h < H; ++h) {
                const P w(weight[std::ptrdiff_t(h) * N + n]);
                kept *= multiply_add(-w, P::load(erase + std::ptrdiff_t(h) * W + i, count), P(1));
                added = multiply_add(w, P::load(add + std::ptrdiff_t(h) * W + i, count), added);
            }
            (kept + added).store(written + std::ptrdiff_t(n) * W + i, count);
        }
}

/// From d_written [N, W]: adds to d_memory [N, W], stores d_weight [H, N], d_erase [H, W], d_add [H, W].
template <class Real>
void erase_and_add_gradient(const Real* memory, int N, int W, const Real* weight, const Real* erase, const Real* add,
                            int H, const Real* d_written, Real* d_memory, Real* d_weight, Real* d_erase, Real* d_add) {
    using P = pack<Real>;
    // The sums over n and over W that end in d_erase and d_weight stay in a fixed order: n outermost, then packs of W.
    for (std::ptrdiff_t i = 0; i < std::ptrdiff_t(H) * W; ++i) d_erase[i] = 0;
    row_products(add, W, H, d_written, W, N, W, d_weight, N);
    weighted_rows<false>(weight, N, 1, H, d_written, W, N, d_add, W, W);
    // A pack of rows at a time, so that one tree of pair sums finishes their weights.
    for (int first = 0; first < N; first += P::width)
        for (int h = 0; h < H; ++h) {
            const int rows = N - first < P::width ? N - first : P::width;
            P sum[P::width];
            for (P& s : sum) s = P(0);
            for (int i = 0; i < W; i += P::width) {
                const int count = W - i < P::width ? W - i : P::width;
                const P e = P::load(erase + std::ptrdiff_t(h) * W + i, count);
                Real* const to_erase = d_erase + std::ptrdiff_t(h) * W + i;
                P erased = P::load(to_erase, count);
                for (int k = 0; k < rows; ++k) {
                    const int n = first + k;
                    const P w(weight[std::ptrdiff_t(h) * N + n]);
                    const P row = P::load(memory + std::ptrdiff_t(n) * W + i, count);
                    const P d = P::load(d_written + std::ptrdiff_t(n) * W + i, count);
                    // A product over the other heads, not a quotient: a factor may be zero.
                    P others(1);
                    for (int other = 0; other < H; ++other)
                        if (other != h)
                            others *= multiply_add(P(-weight[std::ptrdiff_t(other) * N + n]),
                                                   P::load(erase + std::ptrdiff_t(other) * W + i, count), P(1));
                    const P pull = d * others;
                    if (h == 0)
                        multiply_add(pull, multiply_add(-w, e, P(1)),
                                     P::load(d_memory + std::ptrdiff_t(n) * W + i, count))
                            .store(d_memory + std::ptrdiff_t(n) * W + i, count);
                    const P reach = pull * row;
                    sum[k] = multiply_add(reach, e, sum[k]);
                    erased = multiply_add(-w, reach, erased);
                }
                erased.store(to_erase, count);
            }
            Real* const to = d_weight + std::ptrdiff_t(h) * N + first;
            (P::load(to, rows) - sums<P::width>(sum)).store(to, rows);
        }
}

}  // namespace engram
