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
        const P here(written[i]), rest = P(1) - here;
        for (int j = 0; j < N; j += P::width) {
            const int count = N - j < P::width ? N - j : P::width;
            const P kept = (rest - P::load(written + j, count)) * P::load(link + row + j, count);
            multiply_add(here, P::load(precedence + j, count), kept).store(updated + row + j, count);
        }
        updated[row + i] = 0;
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
    for (int i = 0; i < N; ++i) {
        const std::ptrdiff_t row = std::ptrdiff_t(i) * N;
        d_link[row + i] = 0;  // the diagonal is a constant
        const P here(written[i]), rest = P(1) - here;
        P sum(0);
        for (int j = 0; j < N; j += P::width) {
            const int count = N - j < P::width ? N - j : P::width;
            const P d = P::load(d_link + row + j, count), lost = d * P::load(link + row + j, count);
            sum += d * P::load(precedence + j, count) - lost;
            (P::load(d_written + j, count) - lost).store(d_written + j, count);
            multiply_add(here, d, P::load(d_precedence + j, count)).store(d_precedence + j, count);
            (d * (rest - P::load(written + j, count))).store(d_link + row + j, count);
        }
        d_written[i] += sums<1>(&sum)[0];
    }
}

}  // namespace engram
