#pragma once
// SPDX-License-Identifier: MIT

// cosine and sine of a number, a pack or a dual: what a complex factor of length r and angle a is made of, r (cos a + i
// sin a). Floats have them from core/float_maths.hpp, doubles and far angles from the standard library.

#include <cmath>
#include <concepts>

#include <engram/core/dual.hpp>
#include <engram/core/pack.hpp>

namespace engram {

namespace internal {

/// The sine of x and `Quarters` quarter turns more.
template <int Quarters, std::floating_point Real>
ENGRAM_HD Real circular(Real x) {
    if constexpr (sizeof(Real) == 4)
        if (std::fabs(x) <= float_maths::farthest_angle) return float_maths::circular<Quarters>(x);
    return Quarters == 0 ? std::sin(x) : std::cos(x);
}

template <int Quarters, class Real>
ENGRAM_SIMD pack<Real> circular(pack<Real> x) {
#if !defined(__CUDACC__)
    if constexpr (sizeof(Real) == 4)
        if (!any(!(abs(x) <= pack<Real>(float_maths::farthest_angle))))
            return pack<Real>(float_maths::circular<Quarters>(x.lanes));
#endif
    for (int i = 0; i < pack<Real>::width; ++i) x.lanes[i] = circular<Quarters>(static_cast<Real>(x.lanes[i]));
    return x;
}

}  // namespace internal

/// The cosine of an angle.
template <std::floating_point Real>
ENGRAM_HD Real cosine(Real x) {
    return internal::circular<1>(x);
}
/// The sine of an angle.
template <std::floating_point Real>
ENGRAM_HD Real sine(Real x) {
    return internal::circular<0>(x);
}

/// The same of every lane.
template <class Real>
ENGRAM_SIMD pack<Real> cosine(pack<Real> x) {
    return internal::circular<1>(x);
}
/// The same of every lane.
template <class Real>
ENGRAM_SIMD pack<Real> sine(pack<Real> x) {
    return internal::circular<0>(x);
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
