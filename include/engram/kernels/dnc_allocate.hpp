#pragma once
// SPDX-License-Identifier: MIT

// Where a DNC writes when it wants a free slot: weights a [N] from usage u [N] in [0, 1] (facts 4.6).
//
//   u'_n = e + (1 - e) u_n,  e = 1e-6;   phi = slots by ascending u', ties by slot
//   a_phi(j) = (1 - u'_phi(j)) prod_{i < j} u'_phi(i)
//
// The order is a constant for the gradient. With P_j the product above and f = 1 - u',
//
//   dL/du'_phi(j) = P_j (Q_j - g_j),   Q_{j-1} = g_j f_j + u'_phi(j) Q_j,   g_j = dL/da_phi(j),   Q_{N-1} = 0
//
// so nothing is divided and usages of exactly 0 and 1 are like any other. O(N log N); allocates nothing. A usage that
// is not a number is sorted behind all others and spoils what comes after it.

#include <algorithm>
#include <cstddef>

#include <engram/version.hpp>

namespace engram {

inline constexpr double allocation_epsilon = 1e-6;

/// allocation [N] and the order of the slots [N]. `scratch` [N].
template <class Real>
void dnc_allocate(const Real* usage, int N, int* order, Real* allocation, Real* scratch) {
    constexpr Real epsilon = static_cast<Real>(allocation_epsilon);
    for (int n = 0; n < N; ++n) {
        const Real used = epsilon + (1 - epsilon) * usage[n];
        scratch[n] = used == used ? used : Real(2);  // a comparison with NaN would not be an order
        order[n] = n;
    }
    std::sort(order, order + N,
              [scratch](int a, int b) { return scratch[a] != scratch[b] ? scratch[a] < scratch[b] : a < b; });
    Real product = 1;
    for (int j = 0; j < N; ++j) {
        const int n = order[j];
        allocation[n] = (1 - epsilon) * (1 - usage[n]) * product;
        product *= epsilon + (1 - epsilon) * usage[n];
    }
}

/// Stores d_usage [N] from d_allocation [N]. `scratch` [N].
template <class Real>
void dnc_allocate_gradient(const Real* usage, int N, const int* order, const Real* d_allocation, Real* d_usage,
                           Real* scratch) {
    constexpr Real epsilon = static_cast<Real>(allocation_epsilon);
    Real product = 1;
    for (int j = 0; j < N; ++j) {
        scratch[j] = product;
        product *= epsilon + (1 - epsilon) * usage[order[j]];
    }
    Real behind = 0;
    for (int j = N; j-- > 0;) {
        const int n = order[j];
        d_usage[n] = (1 - epsilon) * scratch[j] * (behind - d_allocation[n]);
        behind = d_allocation[n] * (1 - epsilon) * (1 - usage[n]) + (epsilon + (1 - epsilon) * usage[n]) * behind;
    }
}

}  // namespace engram
