#pragma once
// SPDX-License-Identifier: MIT

// Optimiser steps as one pass over flat spans of parameters, gradients and moments.
//
//   g = grad_scale * grad   (grad_scale carries the clipping by the global norm)
//   Adam     m <- beta1 m + (1 - beta1) g,  v <- beta2 v + (1 - beta2) g^2,
//            p <- p - lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + epsilon),  step = 1, 2, ...
//   RMSProp  ms <- decay ms + (1 - decay) g^2,  mom <- momentum mom + lr g / sqrt(ms + epsilon),  p <- p - mom
//            (epsilon inside the root, as IMPALA's published settings assume)
//
// The updates treat every number alone, so that cutting a span changes no bit; the order of squared_norm depends on the
// length of its span.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "engram/kernels/rows.hpp"

namespace engram {

/// Applies body(count, offset) to spans of at most one pack that cover n numbers.
template <class Real, class Body>
ENGRAM_SIMD void for_packs(std::ptrdiff_t n, Body body) {
    constexpr int width = pack<Real>::width;
    std::ptrdiff_t i = 0;
    for (; i + width <= n; i += width) body(width, i);
    if (i < n) body(static_cast<int>(n - i), i);
}

/// How many of n numbers squared_norm() adds up before the others: all of at most 1024, else about half, in whole
/// blocks of 1024.
inline std::ptrdiff_t first_half(std::ptrdiff_t n) {
    constexpr std::ptrdiff_t block = 1024;
    return n <= block ? n : (n + 2 * block - 1) / (2 * block) * block;
}

/// The tree of squared_norm() down to `depth`: leaf(x, n) is the sum of what lies below.
template <class Real, class Leaf>
Real tree_of_squares(const Real* x, std::ptrdiff_t n, int depth, Leaf& leaf) {
    const std::ptrdiff_t half = first_half(n);
    if (depth == 0 || half == n) return leaf(x, n);
    const Real first = tree_of_squares(x, half, depth - 1, leaf);
    return first + tree_of_squares(x + half, n - half, depth - 1, leaf);
}

/// sum_i x_i^2: blocks of 1024 numbers, added in a balanced tree; the order depends on n alone.
template <class Real>
Real squared_norm(const Real* x, std::ptrdiff_t n) {
    auto block = [](const Real* from, std::ptrdiff_t count) {
        return count > 0 ? dot(from, from, static_cast<int>(count)) : Real(0);
    };
    return tree_of_squares(x, n, std::numeric_limits<int>::max(), block);
}

/// One Adam step; `step` counts from 1.
template <class Real>
void adam_update(Real* param, const Real* grad, Real* m, Real* v, std::ptrdiff_t n, Real lr, Real beta1, Real beta2,
                 Real epsilon, std::int64_t step, Real grad_scale) {
    using P = pack<Real>;
    // In double: 1 - 0.999 in float has lost three digits before the moments have even begun.
    const double count = static_cast<double>(step);
    const P rate(lr / (1 - std::pow(double(beta1), count)));
    const P unbias(1 / (1 - std::pow(double(beta2), count)));
    const P b1(beta1), c1(1 - double(beta1)), b2(beta2), c2(1 - double(beta2)), eps(epsilon), scale(grad_scale);
    for_packs<Real>(n, [&](int lanes, std::ptrdiff_t i) {
        const P g = scale * P::load(grad + i, lanes);
        const P first = multiply_add(b1, P::load(m + i, lanes), c1 * g);
        const P second = multiply_add(b2, P::load(v + i, lanes), c2 * (g * g));
        first.store(m + i, lanes);
        second.store(v + i, lanes);
        (P::load(param + i, lanes) - rate * first / (sqrt(second * unbias) + eps)).store(param + i, lanes);
    });
}

/// One RMSProp step with momentum.
template <class Real>
void rmsprop_update(Real* param, const Real* grad, Real* ms, Real* mom, std::ptrdiff_t n, Real lr, Real decay,
                    Real epsilon, Real momentum, Real grad_scale) {
    using P = pack<Real>;
    const P keep(decay), fresh(1 - double(decay)), eps(epsilon), rate(lr), inertia(momentum), scale(grad_scale);
    for_packs<Real>(n, [&](int lanes, std::ptrdiff_t i) {
        const P g = scale * P::load(grad + i, lanes);
        const P square_mean = multiply_add(keep, P::load(ms + i, lanes), fresh * (g * g));
        const P velocity = multiply_add(inertia, P::load(mom + i, lanes), rate * g / sqrt(square_mean + eps));
        square_mean.store(ms + i, lanes);
        velocity.store(mom + i, lanes);
        (P::load(param + i, lanes) - velocity).store(param + i, lanes);
    });
}

/// Index of the first number that is NaN or infinite, -1 if there is none.
template <class Real>
std::ptrdiff_t first_non_finite(const Real* x, std::ptrdiff_t n) {
    using P = pack<Real>;
    constexpr std::ptrdiff_t block = 4 * P::width;
    const P largest(std::numeric_limits<Real>::max());
    std::ptrdiff_t i = 0;
    for (; i + block <= n; i += block) {
        auto bad = !(abs(P::load(x + i)) <= largest);
        for (int part = 1; part < 4; ++part) bad = bad | !(abs(P::load(x + i + part * P::width)) <= largest);
        if (any(bad)) break;
    }
    for (; i < n; ++i)
        if (!std::isfinite(x[i])) return i;
    return -1;
}

}  // namespace engram
