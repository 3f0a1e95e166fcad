#pragma once
// SPDX-License-Identifier: MIT

// Least-recently-used access to a memory matrix M [N, W] of one row of a batch (facts 4.5, errata G26).
//
//   cosine   c_rn = k_r . M_n / sqrt(|k_r|^2 |M_n|^2 + e),  e = 1e-6: zero rows give 0, and their gradient is finite
//   rank     the n least used slots, by ascending usage, ties by slot: always n of them, which "all entries not above
//            the n-th smallest" are not when some are equal
//   write    M'_n = (0 if n is among the least used, else M_n) + sum_r w_rn a_r
//
// Shapes: keys and a [R, W], cosines, weights and marks [R, N], all dense; a mark is one at a slot to be cleared, zero
// elsewhere. Gradients: each comment says what is added to and what is stored. All allocate nothing.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <engram/core/flag.hpp>
#include <engram/kernels/rows.hpp>

namespace engram {

/// The epsilon of facts 4.5.
inline constexpr double joint_cosine_epsilon = 1e-6;

/// cosine [R, N]; keeps the squares of the keys, key_square [R], and of the rows, row_square [N].
template <class Real>
void joint_cosine(const Real* memory, int N, int W, const Real* keys, int R, Real* cosine, Real* key_square,
                  Real* row_square) {
    constexpr Real epsilon = static_cast<Real>(joint_cosine_epsilon);
    squares(memory, N, W, row_square);
    row_products(keys, W, R, memory, W, N, W, cosine, N);
    for (int r = 0; r < R; ++r) {
        const Real* key = keys + std::ptrdiff_t(r) * W;
        key_square[r] = dot(key, key, W);
        Real* row = cosine + std::ptrdiff_t(r) * N;
        for (int n = 0; n < N; ++n) row[n] /= std::sqrt(key_square[r] * row_square[n] + epsilon);
    }
}

/// From d_cosine [R, N]: adds to d_memory [N, W] and to d_keys [R, W]. `scratch` [2, R, N].
template <class Real>
void joint_cosine_gradient(const Real* memory, int N, int W, const Real* keys, int R, const Real* cosine,
                           const Real* key_square, const Real* row_square, const Real* d_cosine, Real* d_memory,
                           Real* d_keys, Real* scratch) {
    // With D = sqrt(|k|^2 |M|^2 + e):  dc/dk = M / D - c |M|^2 k / D^2,  dc/dM = k / D - c |k|^2 M / D^2.
    constexpr Real epsilon = static_cast<Real>(joint_cosine_epsilon);
    Real* const along = scratch + std::ptrdiff_t(R) * N;
    for (int r = 0; r < R; ++r) {
        const std::ptrdiff_t at = std::ptrdiff_t(r) * N;
        Real shrink = 0;
        for (int n = 0; n < N; ++n) {
            const Real square = key_square[r] * row_square[n] + epsilon;
            scratch[at + n] = d_cosine[at + n] / std::sqrt(square);
            along[at + n] = d_cosine[at + n] * cosine[at + n] / square;
            shrink += along[at + n] * row_square[n];
        }
        add_scaled(d_keys + std::ptrdiff_t(r) * W, -shrink, keys + std::ptrdiff_t(r) * W, W);
    }
    weighted_rows<true>(scratch, N, 1, R, memory, W, N, d_keys, W, W);
    weighted_rows<true>(scratch, 1, N, N, keys, W, R, d_memory, W, W);
    for (int n = 0; n < N; ++n) {
        Real shrink = 0;
        for (int r = 0; r < R; ++r) shrink += along[std::ptrdiff_t(r) * N + n] * key_square[r];
        add_scaled(d_memory + std::ptrdiff_t(n) * W, -shrink, memory + std::ptrdiff_t(n) * W, W);
    }
}

/// The smallest of `count` numbers; infinite if there are none.
template <class Real>
Real smallest(const Real* x, int count) {
    using P = pack<Real>;
    P least(std::numeric_limits<Real>::infinity());
    int n = 0;
    for (; n + P::width <= count; n += P::width) least = min(P::load(x + n), least);
    Real each[P::width];
    least.store(each);
    Real all = *std::min_element(each, each + P::width);
    for (; n < count; ++n) all = std::min(x[n], all);
    return all;
}

/// marks [count, N]: row r has its one at the slot of the (r + 1)-th smallest usage [N]. A usage that is not a number
/// counts as the largest.
template <class Real>
void mark_least_used(const Real* usage, int N, int count, Real* marks) {
    constexpr Real largest = std::numeric_limits<Real>::infinity();
    const auto row_of = [&](int r) { return marks + std::ptrdiff_t(r) * N; };
    // Until its turn comes the last row holds the usages of slots that have no mark yet.
    Real* left = row_of(count - 1);
    for (int n = 0; n < N; ++n) left[n] = usage[n] == usage[n] ? usage[n] : largest;
    for (int r = 0; r < count; ++r) {
        const Real least = smallest(left, N);
        const auto marked = [&](int n) {
            for (int before = 0; before < r; ++before)
                if (row_of(before)[n] == 1) return true;
            return false;
        };
        int best = 0;
        while (left[best] != least || (least == largest && marked(best))) ++best;
        left[best] = largest;
        std::fill_n(row_of(r), N, Real(0));
        row_of(r)[best] = 1;
    }
}

/// written [N, W] from memory [N, W]: cleared where a mark is one, then w_rn a_r added.
template <class Real>
void clear_and_add(const Real* memory, int N, int W, const Real* marks, const Real* weights, const Real* add, int R,
                   Real* written) {
    std::copy_n(memory, std::ptrdiff_t(N) * W, written);
    for (int r = 0; r < R; ++r)
        for (int n = 0; n < N; ++n)
            if (is_set(marks[std::ptrdiff_t(r) * N + n])) std::fill_n(written + std::ptrdiff_t(n) * W, W, Real(0));
    weighted_rows<true>(weights, 1, N, N, add, W, R, written, W, W);
}

/// From d_written [N, W]: adds to d_memory [N, W], stores d_weights [R, N] and d_add [R, W]. `kept` [N] is scratch.
template <class Real>
void clear_and_add_gradient(int N, int W, const Real* marks, const Real* weights, const Real* add, int R,
                            const Real* d_written, Real* d_memory, Real* d_weights, Real* d_add, Real* kept) {
    row_products(add, W, R, d_written, W, N, W, d_weights, N);
    weighted_rows<false>(weights, N, 1, R, d_written, W, N, d_add, W, W);
    std::fill_n(kept, N, Real(1));
    for (int r = 0; r < R; ++r)
        for (int n = 0; n < N; ++n)
            if (is_set(marks[std::ptrdiff_t(r) * N + n])) kept[n] = 0;
    for (int n = 0; n < N; ++n)
        if (kept[n] != 0) add_scaled(d_memory + std::ptrdiff_t(n) * W, Real(1), d_written + std::ptrdiff_t(n) * W, W);
}

}  // namespace engram
