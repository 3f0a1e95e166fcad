#pragma once
// SPDX-License-Identifier: MIT

// The temporal link matrix L [N, N] of one row of a batch and one write head of a DNC: L_ij says how much slot i was
// written right after slot j (facts 4.6).
//
//   update     L'_ij = (1 - w_i - w_j) L_ij + w_i p_j,  L'_ii = 0     write weights w [N], precedence before it p [N]
//   forward    f_ri = sum_j L'_ij v_rj                                read weights v [R, N] of the step before
//   backward   b_rj = sum_i v_ri L'_ij
//
// All dense. The gradient needs L before the update alone: L' is computed again. O(R N^2); allocates nothing.

#include <algorithm>
#include <cstddef>

#include "engram/kernels/rows.hpp"

namespace engram {

/// updated [N, N] from link [N, N]; both may be one and the same.
template <class Real>
void link_update(const Real* link, const Real* written, const Real* precedence, int N, Real* updated) {
    using P = pack<Real>;
    for (int i = 0; i < N; ++i) {
        const std::ptrdiff_t row = std::ptrdiff_t(i) * N;
        const P here(written[i]), rest = P(1) - here, diagonal(i);
        for (int j = 0; j < N; j += P::width) {
            const int count = N - j < P::width ? N - j : P::width;
            const P kept = (rest - P::load(written + j, count)) * P::load(link + row + j, count);
            const P next = multiply_add(here, P::load(precedence + j, count), kept);
            // Not a number stored into what was just stored: whoever loads the pack next would wait for both.
            select(indices<Real>(j) == diagonal, 0, next).store(updated + row + j, count);
        }
    }
}

/// forward and backward, rows of N numbers that lie `stride` apart, from an updated link and read [R, N].
template <class Real>
void link_read(const Real* link, int N, const Real* read, int R, Real* forward, Real* backward, std::ptrdiff_t stride) {
    row_products(read, N, R, link, N, N, N, forward, stride);
    weighted_rows<false>(read, N, 1, R, link, N, N, backward, stride, N);
}

/// From d_forward and d_backward (null: zero) and d_link [N, N], the gradient that comes back from later steps: leaves
/// in d_link the gradient of the link before the update, stores d_written [N], d_precedence [N] and d_read [R, N].
/// `scratch` [N, N].
template <class Real>
void link_gradient(const Real* link, const Real* written, const Real* precedence, int N, const Real* read, int R,
                   const Real* d_forward, const Real* d_backward, std::ptrdiff_t stride, Real* d_link, Real* d_written,
                   Real* d_precedence, Real* d_read, Real* scratch) {
    using P = pack<Real>;
    link_update(link, written, precedence, N, scratch);
    if (d_backward)
        row_products(d_backward, stride, R, scratch, N, N, N, d_read, N);
    else
        std::fill_n(d_read, std::ptrdiff_t(R) * N, Real(0));
    if (d_forward) {
        weighted_rows<true>(d_forward, stride, 1, R, scratch, N, N, d_read, N, N);
        weighted_rows<true>(d_forward, 1, stride, N, read, N, R, d_link, N, N);
    }
    if (d_backward) weighted_rows<true>(read, 1, N, N, d_backward, stride, R, d_link, N, N);
    std::fill_n(d_written, N, Real(0));
    std::fill_n(d_precedence, N, Real(0));
    // A pack of rows at a time: their sums are finished by one tree, and those of the columns wait in registers.
    for (int first = 0; first < N; first += P::width) {
        const int rows = N - first < P::width ? N - first : P::width;
        P sum[P::width];
        for (P& s : sum) s = P(0);
        for (int j = 0; j < N; j += P::width) {
            const int count = N - j < P::width ? N - j : P::width;
            const P there = P::load(written + j, count), before = P::load(precedence + j, count);
            P down = P::load(d_written + j, count), forth = P::load(d_precedence + j, count);
            for (int i = 0; i < rows; ++i) {
                Real* const to = d_link + std::ptrdiff_t(first + i) * N + j;
                const P here(written[first + i]);
                // The diagonal is a constant.
                const P d = select(indices<Real>(j) == P(first + i), 0, P::load(to, count));
                const P lost = d * P::load(link + std::ptrdiff_t(first + i) * N + j, count);
                sum[i] += multiply_add(d, before, -lost);
                down -= lost;
                forth = multiply_add(here, d, forth);
                (d * (P(1) - here - there)).store(to, count);
            }
            down.store(d_written + j, count);
            forth.store(d_precedence + j, count);
        }
        (P::load(d_written + first, rows) + sums<P::width>(sum)).store(d_written + first, rows);
    }
}

}  // namespace engram
