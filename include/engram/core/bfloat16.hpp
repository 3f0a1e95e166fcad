#pragma once
// SPDX-License-Identifier: MIT

// bfloat16 pairs: a register of numbers with eight significant bits and the range of a float, two in a lane.
//
// A word holds one number in its low half and one in its high half, each the upper half of the float nearest to what
// was stored (ties to even). On processors with AVX-512 BF16 two registers are multiplied and summed by one
// instruction, which takes subnormal numbers for zero and rounds each lane twice; elsewhere a shift makes floats of the
// halves.

#include <cstdint>
#include <cstring>

#include "engram/core/pack.hpp"

namespace engram {

/// Whether products of pairs are one instruction. nvcc's front end does not know it. A template argument wherever code
/// depends on it, so that translation units of both kinds may be linked together.
#if defined(__AVX512BF16__) && !defined(__CUDACC__)
inline constexpr bool bfloat16_products = true;
#else
inline constexpr bool bfloat16_products = false;
#endif

struct bfloat16_pairs {
    using floats = pack<float>;
    static constexpr int words = floats::width, width = 2 * words;
    typedef std::uint32_t native __attribute__((vector_size(pack_bytes)));
    native bits;

    static ENGRAM_SIMD bfloat16_pairs load(const std::uint32_t* from) {
        bfloat16_pairs result;
        std::memcpy(&result.bits, from, sizeof result.bits);
        return result;
    }
    ENGRAM_SIMD void store(std::uint32_t* to) const { std::memcpy(to, &bits, sizeof bits); }

    /// The nearest pairs; what is beyond the largest bfloat16 becomes infinity, a NaN anything at all.
    static ENGRAM_SIMD bfloat16_pairs nearest(floats low, floats high) {
        return {(rounded(low) >> 16) | (rounded(high) & upper)};
    }
    ENGRAM_SIMD floats low() const { return floats(__builtin_bit_cast(floats::native, bits << 16)); }
    ENGRAM_SIMD floats high() const { return floats(__builtin_bit_cast(floats::native, bits & upper)); }

private:
    static constexpr std::uint32_t upper = 0xffff0000u;

    /// Adds half a unit of the upper half, less a little where that is even.
    static ENGRAM_SIMD native rounded(floats x) {
        const auto v = __builtin_bit_cast(native, x.lanes);
        return v + 0x7fffu + ((v >> 16) & 1u);
    }
};

/// In every lane low * low + high * high + c, in one instruction: only where `bfloat16_products`.
template <bool = bfloat16_products>
ENGRAM_SIMD pack<float> multiply_add(bfloat16_pairs a, bfloat16_pairs b, pack<float> c) {
#if defined(__AVX512BF16__) && !defined(__CUDACC__)
    return pack<float>(pack<float>::native(
        _mm512_dpbf16_ps(__m512(c.lanes), __builtin_bit_cast(__m512bh, a.bits), __builtin_bit_cast(__m512bh, b.bits))));
#else
    return multiply_add(a.high(), b.high(), multiply_add(a.low(), b.low(), c));
#endif
}

}  // namespace engram
