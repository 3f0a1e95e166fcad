#pragma once
// SPDX-License-Identifier: MIT

// exp, log, tanh, logistic, softplus, sine and cosine for float, written once for a single number and for a SIMD
// register of them (a GCC/clang vector type): no branches, no table, no library call. For double they call the standard
// library.
//
// Largest errors against double (tests/core/pack.cpp): tanh 4e-7 and logistic 3e-7 absolute; exp and log 3e-7 relative
// (log near 1: absolute); softplus 4e-7 relative to max(1, result); sine and cosine 4e-7 absolute, of angles up to
// farthest_angle. NaN gives NaN; exp runs to 0 and infinity, tanh and logistic stay in [-1, 1] and [0, 1].
//
// tanh(x) = x P(x^2) / Q(x^2) on [-8, 8], degrees 5 and 3: a weighted least squares fit, iterated to the smallest
// maximal error.
//
// Every product that is added to something is a multiply_add (core/rounding.hpp), so that a lane has the bits of a
// single number.

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "engram/core/device.hpp"
#include "engram/core/rounding.hpp"

namespace engram::float_maths {

/// The same bits seen as another type of the same size.
template <class To, class From>
ENGRAM_HD To as(const From& from) {
    return __builtin_bit_cast(To, from);
}

/// The integers with as many bits: int for float, a vector of int for a vector of float.
template <class Float>
struct integers {
    using type = decltype(Float{} < Float{});
};
template <>
struct integers<float> {
    using type = std::int32_t;
};

ENGRAM_HD double exp(double x) {
    return std::exp(x);
}
ENGRAM_HD double log(double x) {
    return std::log(x);
}
ENGRAM_HD double tanh(double x) {
    return std::tanh(x);
}
ENGRAM_HD double logistic(double x) {
    const double e = std::exp(-std::fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}
ENGRAM_HD double softplus(double x) {
    return (x > 0 ? x : 0 * x) + std::log1p(std::exp(-std::fabs(x)));
}

/// The number in every lane.
template <class Float>
ENGRAM_HD Float all(float number) {
    return Float{} + number;
}

/// The polynomial in x with these coefficients, that of the highest power first.
template <class Float, class... Coefficients>
ENGRAM_HD Float polynomial(Float x, float highest, Coefficients... lower) {
    Float sum = all<Float>(highest);
    ((sum = multiply_add(sum, x, all<Float>(lower))), ...);
    return sum;
}

template <class Float>
ENGRAM_HD Float exp(Float x) {
    using integer = typename integers<Float>::type;
    // Compared this way round, NaN falls through both and stays.
    x = x > 89.0f ? all<Float>(89.0f) : x;
    // Nothing is left below, which is said and not computed: some processors take hundreds of cycles for a product that
    // vanishes, and a softmax has one for every place that is not there.
    const auto gone = x < -104.0f;
    x = gone ? all<Float>(-104.0f) : x;
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits.
    constexpr float round = 12582912.0f;
    const Float shifted = multiply_add(x, all<Float>(1.44269504f), all<Float>(round));
    const integer n = as<integer>(shifted) - std::bit_cast<std::int32_t>(round);
    const Float whole = shifted - round;
    Float r = multiply_add(whole, all<Float>(-0.693145752f), x);  // ln 2 in two parts: the first product is exact
    r = multiply_add(whole, all<Float>(-1.42860677e-6f), r);
    const Float p =
        polynomial(r, 1.98412698e-4f, 1.38888889e-3f, 8.33333333e-3f, 4.16666667e-2f, 1.66666667e-1f, 0.5f, 1.0f, 1.0f);
    // 2^n in two factors, since n runs beyond the exponents of normal numbers on both sides.
    const integer half = n >> 1;
    const Float first = as<Float>((half + 127) << 23);
    const Float second = as<Float>((n - half + 127) << 23);
    return rounded_product(Float(p * first), gone ? all<Float>(0.0f) : second);
}

template <class Float>
ENGRAM_HD Float log(Float x) {
    using integer = typename integers<Float>::type;
    const auto tiny = x < 1.17549435e-38f;
    const Float normal = tiny ? x * 8388608.0f : x;
    // Exponent counted so that the mantissa m lies in [sqrt(1/2), sqrt(2)).
    constexpr std::int32_t root_half = std::bit_cast<std::int32_t>(0.707106781f);
    const integer offset = as<integer>(normal) - root_half;
    const integer exponent = offset >> 23;
    const Float m = as<Float>((offset & 0x007fffff) + root_half);
    Float e;
    if constexpr (std::same_as<Float, float>)
        e = static_cast<float>(exponent);
    else
        e = __builtin_convertvector(exponent, Float);
    e = tiny ? e - 23.0f : e;
    // log m = f - s (f - r), s = f / (2 + f), r = 2 (s^2/3 + s^4/5 + ...): the leading term f is exact.
    const Float f = m - 1.0f;
    const Float s = f / (f + 2.0f);
    const Float z = s * s;
    const Float p = polynomial(z, 0.222222222f, 0.285714286f, 0.4f, 0.666666667f, 0.0f);
    const Float half_square = rounded_product(f, Float(f * 0.5f));
    const Float log_m = f - multiply_add(-s, half_square + p, half_square);
    Float y = multiply_add(e, all<Float>(0.693145752f), multiply_add(e, all<Float>(1.42860677e-6f), log_m));
    constexpr float infinity = __builtin_inff();
    y = x == 0.0f ? all<Float>(-infinity) : y;
    y = x < 0.0f ? all<Float>(__builtin_nanf("")) : y;
    return x < infinity ? y : x;  // infinity and NaN give themselves
}

template <class Float>
ENGRAM_HD Float tanh(Float x) {
    x = x > 8.0f ? all<Float>(8.0f) : x;
    x = x < -8.0f ? all<Float>(-8.0f) : x;
    const Float u = x * x;
    const Float p =
        polynomial(u, 2.35066133e-11f, -1.47034385e-8f, 9.8783903e-6f, 2.98583112e-3f, 1.29791945e-1f, 1.0f);
    const Float q = polynomial(u, 2.37199056e-4f, 2.40277965e-2f, 4.6312511e-1f, 1.0f);
    return x * p / q;
}

template <class Float>
ENGRAM_HD Float logistic(Float x) {
    return multiply_add(tanh<Float>(x * 0.5f), all<Float>(0.5f), all<Float>(0.5f));
}

/// log(1 + e^x) without overflow: max(x, 0) + log1p(e^-|x|).
template <class Float>
ENGRAM_HD Float softplus(Float x) {
    const Float e = exp<Float>(x < 0.0f ? x : -x);
    const Float one_and = e + 1.0f;
    // log1p from log: what 1 + e rounds away is put back to first order.
    const Float tail = log<Float>(one_and) + (e - (one_and - 1.0f)) / one_and;
    return (x < 0.0f ? Float{} : x) + tail;
}

/// Of larger angles not enough digits of pi are known here.
inline constexpr float farthest_angle = 8192;

/// The sine of x and `Quarters` quarter turns more, |x| up to farthest_angle.
template <int Quarters, class Float>
ENGRAM_HD Float circular(Float x) {
    using integer = typename integers<Float>::type;
    constexpr float round = 12582912.0f;
    const Float shifted = multiply_add(x, all<Float>(0.636619772f), all<Float>(round));
    const integer quarter = as<integer>(shifted) - (std::bit_cast<std::int32_t>(round) - Quarters);
    const Float turns = shifted - round;
    // pi / 2 in four parts, the first three of eleven bits, so that their products are exact.
    Float r = multiply_add(turns, all<Float>(-1.5703125f), x);
    r = multiply_add(turns, all<Float>(-4.837512969970703e-4f), r);
    r = multiply_add(turns, all<Float>(-7.549533620476723e-8f), r);
    r = multiply_add(turns, all<Float>(-2.56334407e-12f), r);
    // Both series within an eighth of a turn.
    const Float z = r * r;
    const Float odd =
        multiply_add(Float(r * z), polynomial(z, 2.75573192e-6f, -1.98412698e-4f, 8.33333333e-3f, -1.66666667e-1f), r);
    const Float even = polynomial(z, -2.75573192e-7f, 2.48015873e-5f, -1.38888889e-3f, 4.16666667e-2f, -0.5f, 1.0f);
    const Float y = (quarter & 1) != 0 ? even : odd;
    return (quarter & 2) != 0 ? -y : y;
}

}  // namespace engram::float_maths
