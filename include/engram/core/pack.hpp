#pragma once
// SPDX-License-Identifier: MIT

// pack<Real>: as many numbers as one SIMD register holds, with the operators and the maths of a single number.
//
// A functor `auto operator()(auto x)` written with these names runs on floats, on packs, and on duals of both
// (core/dual.hpp). Float maths lives in core/float_maths.hpp; for double every lane calls the standard library, which
// is slow and accurate: double serves gradient checks.

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "engram/core/device.hpp"
#include "engram/core/float_maths.hpp"
#include "engram/core/rounding.hpp"

namespace engram {

/// Bytes of a pack: one register of the instruction set the translation unit is compiled for.
#if defined(__AVX512F__)
inline constexpr int pack_bytes = 64;
#elif defined(__AVX__)
inline constexpr int pack_bytes = 32;
#else
inline constexpr int pack_bytes = 16;
#endif

template <class Scalar>
concept arithmetic = std::is_arithmetic_v<Scalar>;

template <class Real>
struct pack;

/// Holds a vector in a register from here on, whatever memory it was loaded from.
template <class Native>
ENGRAM_SIMD void keep_in_register([[maybe_unused]] Native& lanes) {
#if defined(__x86_64__)
    asm("" : "+v"(lanes));
#elif defined(__aarch64__)
    asm("" : "+w"(lanes));
#endif
}

/// The outcome of a comparison of packs: a truth value for every lane.
template <class Real>
struct pack_mask {
    using lane = std::conditional_t<sizeof(Real) == 4, int, long long>;
    typedef lane native __attribute__((vector_size(pack_bytes)));
    native bits;  // all ones where true

    ENGRAM_SIMD bool operator[](int i) const { return bits[i] != 0; }
    friend ENGRAM_SIMD pack_mask operator&(pack_mask a, pack_mask b) { return {a.bits & b.bits}; }
    friend ENGRAM_SIMD pack_mask operator|(pack_mask a, pack_mask b) { return {a.bits | b.bits}; }
    friend ENGRAM_SIMD pack_mask operator!(pack_mask a) { return {~a.bits}; }
};

template <class Real>
struct pack {
    static constexpr int width = pack_bytes / static_cast<int>(sizeof(Real));
    typedef Real native __attribute__((vector_size(pack_bytes)));
    using mask = pack_mask<Real>;
    native lanes;

    pack() = default;
    template <arithmetic Scalar>
    ENGRAM_SIMD pack(Scalar s)
        : lanes(static_cast<Real>(s) - native{}) {}  // minus zero, unlike plus, keeps -0 and folds away
    ENGRAM_SIMD explicit pack(native v) : lanes(v) {}

    /// `width` numbers from any address.
    static ENGRAM_SIMD pack load(const Real* from) {
        native v;
        std::memcpy(&v, from, sizeof v);
        return pack(v);
    }

    /// The first `count` lanes (0 <= count <= width) from memory, the rest zero; touches no byte beyond them.
    static ENGRAM_SIMD pack load(const Real* from, int count) {
#if defined(__AVX512F__)
        if constexpr (sizeof(Real) == 4)
            return pack(native(_mm512_maskz_loadu_ps(first(count), from)));
        else
            return pack(native(_mm512_maskz_loadu_pd(first(count), from)));
#elif defined(__AVX__)
        if constexpr (sizeof(Real) == 4)
            return pack(native(_mm256_maskload_ps(from, first(count))));
        else
            return pack(native(_mm256_maskload_pd(from, first(count))));
#else
        native v{};
        for (int i = 0; i < count; ++i) v[i] = from[i];
        return pack(v);
#endif
    }

    /// Whoever reads this from now on reads a register, not again the memory that it was loaded from.
    ENGRAM_SIMD void keep_in_register() {
        engram::keep_in_register(lanes);
    }

    ENGRAM_SIMD void store(Real* to) const {
        std::memcpy(to, &lanes, sizeof lanes);
    }

    ENGRAM_SIMD void store(Real* to, int count) const {
#if defined(__AVX512F__)
        if constexpr (sizeof(Real) == 4)
            _mm512_mask_storeu_ps(to, first(count), lanes);
        else
            _mm512_mask_storeu_pd(to, first(count), lanes);
#elif defined(__AVX__)
        // By halves: some processors take a masked store apart into a hundred steps.
        if (count >= width) return store(to);
        if constexpr (sizeof(Real) == 4) {
            __m128 rest = _mm256_castps256_ps128(lanes);
            if (count & 4) {
                _mm_storeu_ps(to, rest);
                rest = _mm256_extractf128_ps(lanes, 1);
                to += 4;
            }
            if (count & 2) {
                _mm_storel_pi(reinterpret_cast<__m64*>(to), rest);
                rest = _mm_movehl_ps(rest, rest);
                to += 2;
            }
            if (count & 1) _mm_store_ss(to, rest);
        } else {
            __m128d rest = _mm256_castpd256_pd128(lanes);
            if (count & 2) {
                _mm_storeu_pd(to, rest);
                rest = _mm256_extractf128_pd(lanes, 1);
                to += 2;
            }
            if (count & 1) _mm_store_sd(to, rest);
        }
#else
        for (int i = 0; i < count; ++i) to[i] = lanes[i];
#endif
    }

    ENGRAM_SIMD Real operator[](int i) const {
        return lanes[i];
    }

    /// Sum of the lanes, halves added to halves: the same order whatever the compiler.
    ENGRAM_SIMD Real sum() const {
#if defined(__CUDACC__)
        // nvcc 13 has an internal error at a shuffle whose lanes are a pack of arguments; the bits are the same.
        Real part[width];
        store(part);
        for (int half = width / 2; half > 0; half /= 2)
            for (int i = 0; i < half; ++i) part[i] += part[i + half];
        return part[0];
#else
        return folded<width / 2>(lanes, std::make_integer_sequence<int, width>{})[0];
#endif
    }

    friend ENGRAM_SIMD pack operator+(pack a, pack b) {
        return pack(a.lanes + b.lanes);
    }
    friend ENGRAM_SIMD pack operator-(pack a, pack b) {
        return pack(a.lanes - b.lanes);
    }
    /// Rounded by itself: not fused with a sum that takes it.
    friend ENGRAM_SIMD pack operator*(pack a, pack b) {
        return pack(rounded_product(a.lanes, b.lanes));
    }
    friend ENGRAM_SIMD pack operator/(pack a, pack b) {
        return pack(a.lanes / b.lanes);
    }
    ENGRAM_SIMD pack operator-() const {
        return pack(-lanes);
    }
    ENGRAM_SIMD pack& operator+=(pack b) {
        return *this = *this + b;
    }
    ENGRAM_SIMD pack& operator-=(pack b) {
        return *this = *this - b;
    }
    ENGRAM_SIMD pack& operator*=(pack b) {
        return *this = *this * b;
    }
    ENGRAM_SIMD pack& operator/=(pack b) {
        return *this = *this / b;
    }

    friend ENGRAM_SIMD mask operator<(pack a, pack b) {
        return {a.lanes < b.lanes};
    }
    friend ENGRAM_SIMD mask operator<=(pack a, pack b) {
        return {a.lanes <= b.lanes};
    }
    friend ENGRAM_SIMD mask operator>(pack a, pack b) {
        return {a.lanes > b.lanes};
    }
    friend ENGRAM_SIMD mask operator>=(pack a, pack b) {
        return {a.lanes >= b.lanes};
    }
    friend ENGRAM_SIMD mask operator==(pack a, pack b) {
        return {a.lanes == b.lanes};
    }
    friend ENGRAM_SIMD mask operator!=(pack a, pack b) {
        return {a.lanes != b.lanes};
    }

    /// a b + c, rounded once where the processor can (core/rounding.hpp).
    friend ENGRAM_SIMD pack multiply_add(pack a, pack b, pack c) {
        return pack(multiply_add(a.lanes, b.lanes, c.lanes));
    }

    friend ENGRAM_SIMD pack abs(pack x) {
        return pack(__builtin_bit_cast(native, __builtin_bit_cast(typename mask::native, x.lanes) & magnitude));
    }
    /// Both propagate NaN from either side.
    friend ENGRAM_SIMD pack max(pack a, pack b) {
        return pack(((a.lanes < b.lanes) | (b.lanes != b.lanes)) ? b.lanes : a.lanes);
    }
    friend ENGRAM_SIMD pack min(pack a, pack b) {
        return pack(((a.lanes > b.lanes) | (b.lanes != b.lanes)) ? b.lanes : a.lanes);
    }
    friend ENGRAM_SIMD pack relu(pack x) {
        return pack(x.lanes < 0 ? native{} : x.lanes);
    }
    friend ENGRAM_SIMD pack square(pack x) {
        return x * x;
    }
    friend ENGRAM_SIMD pack reciprocal(pack x) {
        return pack(1 / x.lanes);
    }

    friend ENGRAM_SIMD pack sqrt(pack x) {
#if defined(__AVX512F__)
        if constexpr (sizeof(Real) == 4)
            return pack(native(_mm512_maskz_sqrt_ps(__mmask16(-1), x.lanes)));
        else
            return pack(native(_mm512_maskz_sqrt_pd(__mmask8(-1), x.lanes)));
#elif defined(__AVX__)
        if constexpr (sizeof(Real) == 4)
            return pack(native(_mm256_sqrt_ps(x.lanes)));
        else
            return pack(native(_mm256_sqrt_pd(x.lanes)));
#else
        for (int i = 0; i < width; ++i) x.lanes[i] = std::sqrt(x.lanes[i]);
        return x;
#endif
    }

    friend ENGRAM_SIMD pack exp(pack x) {
        return on_lanes(x, [](auto v) { return float_maths::exp(v); });
    }
    friend ENGRAM_SIMD pack log(pack x) {
        return on_lanes(x, [](auto v) { return float_maths::log(v); });
    }
    friend ENGRAM_SIMD pack tanh(pack x) {
        return on_lanes(x, [](auto v) { return float_maths::tanh(v); });
    }
    friend ENGRAM_SIMD pack logistic(pack x) {
        return on_lanes(x, [](auto v) { return float_maths::logistic(v); });
    }
    friend ENGRAM_SIMD pack softplus(pack x) {
        return on_lanes(x, [](auto v) { return float_maths::softplus(v); });
    }

private:
#if !defined(__CUDACC__)
    /// Lane i plus lane i + Half, then so with half of Half, down to one.
    template <int Half, int... I>
    static ENGRAM_SIMD native folded(native v, std::integer_sequence<int, I...> all) {
        if constexpr (Half == 0)
            return v;
        else
            return folded<Half / 2>(v + __builtin_shufflevector(v, v, ((I + Half) % width)...), all);
    }
#endif

    static constexpr typename mask::lane magnitude =
        static_cast<typename mask::lane>(~(std::size_t{1} << (8 * sizeof(Real) - 1)));

#if defined(__AVX512F__)
    static ENGRAM_SIMD auto first(int count) {
        using bits = std::conditional_t<sizeof(Real) == 4, __mmask16, __mmask8>;
        return static_cast<bits>((1u << count) - 1u);
    }
#elif defined(__AVX__)
    static ENGRAM_SIMD __m256i first(int count) {
        return _mm256_loadu_si256(
            reinterpret_cast<const __m256i*>(lanes_of_mask + (width - count) * static_cast<int>(sizeof(Real) / 4)));
    }
    /// From place 8 - n: n words of ones, then zeros.
    alignas(64) static constexpr int lanes_of_mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#endif

    /// Floats go through the vector body at once, doubles lane by lane; nvcc takes that body for one of the device,
    /// which has no vectors.
    template <class Maths>
    static ENGRAM_SIMD pack on_lanes(pack x, Maths maths) {
#if defined(__CUDACC__)
        constexpr bool at_once = false;
#else
        constexpr bool at_once = sizeof(Real) == 4;
#endif
        if constexpr (at_once) {
            return pack(maths(x.lanes));
        } else {
            for (int i = 0; i < width; ++i) x.lanes[i] = maths(static_cast<Real>(x.lanes[i]));
            return x;
        }
    }
};

/// Whether any lane is true.
template <class Real>
ENGRAM_SIMD bool any(pack_mask<Real> mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask.bits, (__m512i)mask.bits) != 0;
#elif defined(__AVX__)
    return !_mm256_testz_si256((__m256i)mask.bits, (__m256i)mask.bits);
#else
    bool result = false;
    for (int i = 0; i < pack<Real>::width; ++i) result |= mask[i];
    return result;
#endif
}

/// Lane by lane `mask ? a : b`; a and b are packs or numbers.
template <class Real, std::convertible_to<pack<Real>> A, std::convertible_to<pack<Real>> B>
ENGRAM_SIMD pack<Real> select(pack_mask<Real> mask, A a, B b) {
    return pack<Real>(mask.bits ? pack<Real>(a).lanes : pack<Real>(b).lanes);
}

// The same names for one number. Templates, so that an unqualified call beside `using namespace engram` prefers ::exp.

template <arithmetic A, arithmetic B>
ENGRAM_HD constexpr std::common_type_t<A, B> select(bool condition, A a, B b) {
    using common = std::common_type_t<A, B>;
    return condition ? static_cast<common>(a) : static_cast<common>(b);
}

template <std::floating_point Real>
ENGRAM_HD Real exp(Real x) {
    return float_maths::exp(x);
}
template <std::floating_point Real>
ENGRAM_HD Real log(Real x) {
    return float_maths::log(x);
}
template <std::floating_point Real>
ENGRAM_HD Real tanh(Real x) {
    return float_maths::tanh(x);
}
template <std::floating_point Real>
ENGRAM_HD Real logistic(Real x) {
    return float_maths::logistic(x);
}
template <std::floating_point Real>
ENGRAM_HD Real softplus(Real x) {
    return float_maths::softplus(x);
}
template <std::floating_point Real>
ENGRAM_HD Real sqrt(Real x) {
    return std::sqrt(x);
}
template <std::floating_point Real>
ENGRAM_HD constexpr Real abs(Real x) {
    return x < 0 ? -x : x;
}
template <std::floating_point Real>
ENGRAM_HD constexpr Real relu(Real x) {
    return x < 0 ? Real(0) : x;
}
template <std::floating_point Real>
ENGRAM_HD constexpr Real square(Real x) {
    return x * x;
}
template <std::floating_point Real>
ENGRAM_HD constexpr Real reciprocal(Real x) {
    return 1 / x;
}
template <arithmetic A, arithmetic B>
ENGRAM_HD constexpr std::common_type_t<A, B> max(A a, B b) {
    using common = std::common_type_t<A, B>;
    const common x = static_cast<common>(a), y = static_cast<common>(b);
    return x < y || y != y ? y : x;
}
template <arithmetic A, arithmetic B>
ENGRAM_HD constexpr std::common_type_t<A, B> min(A a, B b) {
    using common = std::common_type_t<A, B>;
    const common x = static_cast<common>(a), y = static_cast<common>(b);
    return x > y || y != y ? y : x;
}

/// The number itself, without its derivatives; a number that is no dual is its own value.
template <class Number>
ENGRAM_HD constexpr Number value(const Number& x) {
    return x;
}

}  // namespace engram
