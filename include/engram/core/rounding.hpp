#pragma once
// SPDX-License-Identifier: MIT

// How a product and a sum are rounded, whatever a compiler makes of a * b + c.
//
//   multiply_add(a, b, c)   a b + c: rounded once where the processor has the instruction (`fuses`), twice elsewhere
//   rounded_product(a, b)   a b, rounded by itself: never fused with a sum that takes it
//
// Compilers contract products and sums by taste: by flag (-ffp-contract), by level, by the processor they tune for (g++
// for AMD's avoids chains of fused operations), by what is inlined around them. Equal rows would then give unequal bits
// in a batch and alone. So what promises bits says which of the two it means. For one number and for a vector register.

#include <concepts>
#include <type_traits>

#if defined(__AVX__) || defined(__FMA__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "engram/core/device.hpp"

namespace engram {

/// Whether multiply_add on the host is one instruction that rounds once.
#if defined(__FMA__) || defined(__AVX512F__) || defined(__FP_FAST_FMAF) || defined(__aarch64__)
inline constexpr bool fuses = true;
#else
inline constexpr bool fuses = false;
#endif

/// One number.
template <std::floating_point Real>
ENGRAM_HD constexpr Real multiply_add(Real a, Real b, Real c) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(Real) == 4)
        return __fmaf_rn(a, b, c);
    else
        return __fma_rn(a, b, c);
#else
    if constexpr (!fuses)
        return a * b + c;
    else if constexpr (sizeof(Real) == 4)
        return __builtin_fmaf(a, b, c);
    else
        return __builtin_fma(a, b, c);
#endif
}

/// A register of numbers: a vector type of g++ and clang.
template <class Vector>
concept vector_register = !std::is_arithmetic_v<Vector> && !std::is_class_v<Vector> && requires(Vector v) {
    v[0] * v;
};

/// A register of numbers, lane by lane.
template <vector_register Vector>
ENGRAM_SIMD Vector multiply_add(Vector a, Vector b, Vector c) {
    using lane = std::remove_cvref_t<decltype(a[0])>;
    [[maybe_unused]] constexpr bool single = std::is_same_v<lane, float>;
#if defined(__AVX512F__)
    if constexpr (sizeof(Vector) == 64 && single)
        return Vector(_mm512_fmadd_ps(a, b, c));
    else if constexpr (sizeof(Vector) == 64)
        return Vector(_mm512_fmadd_pd(a, b, c));
    else
#endif
#if defined(__FMA__)
        if constexpr (sizeof(Vector) == 32 && single)
        return Vector(_mm256_fmadd_ps(a, b, c));
    else if constexpr (sizeof(Vector) == 32)
        return Vector(_mm256_fmadd_pd(a, b, c));
    else if constexpr (single)
        return Vector(_mm_fmadd_ps(a, b, c));
    else
        return Vector(_mm_fmadd_pd(a, b, c));
#elif defined(__ARM_NEON) && defined(__aarch64__)
    if constexpr (single)
        return Vector(vfmaq_f32(c, a, b));
    else
        return Vector(vfmaq_f64(c, a, b));
#else
    if constexpr (fuses) {
        for (unsigned i = 0; i < sizeof(Vector) / sizeof(lane); ++i)
            c[i] = multiply_add(lane(a[i]), lane(b[i]), lane(c[i]));
        return c;
    } else {
        return a * b + c;
    }
#endif
}

namespace internal {

/// An empty statement that a compiler cannot see through, and that costs nothing. g++'s own barrier takes vectors
/// apart; nvcc knows neither, and what it compiles acts and learns on the device.
template <class Number>
ENGRAM_SIMD Number opaque(Number x) {
#if defined(__CUDACC__)
#elif defined(__aarch64__)
    asm("" : "+w"(x));
#elif defined(__AVX512F__)
    asm("" : "+v"(x));
#elif defined(__SSE2__)
    asm("" : "+x"(x));
#elif !defined(__clang__)
    if constexpr (std::floating_point<Number>) x = __builtin_assoc_barrier(x);
#endif
    return x;
}

}  // namespace internal

/// One number.
template <std::floating_point Real>
ENGRAM_HD Real rounded_product(Real a, Real b) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(Real) == 4)
        return __fmul_rn(a, b);
    else
        return __dmul_rn(a, b);
#else
    return internal::opaque(a * b);
#endif
}

/// A register of numbers.
template <vector_register Vector>
ENGRAM_SIMD Vector rounded_product(Vector a, Vector b) {
    return internal::opaque(a * b);
}

}  // namespace engram
