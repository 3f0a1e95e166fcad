#pragma once
// SPDX-License-Identifier: MIT

// cosine and sine of a number, a pack or a dual: what a complex factor of length r and angle a is made of, r (cos a + i
// sin a). They call the standard library, lane by lane: few numbers of a model are angles, and those of its parameters.

#include <cmath>

#include <engram/core/dual.hpp>
#include <engram/core/pack.hpp>

namespace engram {

/// The cosine of an angle.
template <std::floating_point Real>
ENGRAM_HD Real cosine(Real x) {
    return std::cos(x);
}
/// The sine of an angle.
template <std::floating_point Real>
ENGRAM_HD Real sine(Real x) {
    return std::sin(x);
}

/// The same, lane by lane.
template <class Real>
ENGRAM_SIMD pack<Real> cosine(pack<Real> x) {
    for (int i = 0; i < pack<Real>::width; ++i) x.lanes[i] = std::cos(static_cast<Real>(x.lanes[i]));
    return x;
}
/// The same, lane by lane.
template <class Real>
ENGRAM_SIMD pack<Real> sine(pack<Real> x) {
    for (int i = 0; i < pack<Real>::width; ++i) x.lanes[i] = std::sin(static_cast<Real>(x.lanes[i]));
    return x;
}

/// The same with its derivatives.
template <class V, unsigned A>
ENGRAM_HD constexpr auto cosine(const dual<V, A>& x) {
    return chain(V(cosine(x.primal)), V(-sine(x.primal)), x);
}
/// The same with its derivatives.
template <class V, unsigned A>
ENGRAM_HD constexpr auto sine(const dual<V, A>& x) {
    return chain(V(sine(x.primal)), V(cosine(x.primal)), x);
}

}  // namespace engram
