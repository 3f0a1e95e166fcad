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

    bfloat16_pairs() = default;
    ENGRAM_SIMD explicit bfloat16_pairs(native b) : bits(b) {}
    /// One word in every lane.
    ENGRAM_SIMD explicit bfloat16_pairs(std::uint32_t word) : bits(word + native{}) {}

    static ENGRAM_SIMD bfloat16_pairs load(const std::uint32_t* from) {
        bfloat16_pairs result;
        std::memcpy(&result.bits, from, sizeof result.bits);
        return result;
    }
    ENGRAM_SIMD void store(std::uint32_t* to) const { std::memcpy(to, &bits, sizeof bits); }
    /// As that of pack.
    ENGRAM_SIMD void keep_in_register() { engram::keep_in_register(bits); }

    /// The nearest pairs; what is beyond the largest bfloat16 becomes infinity, a NaN anything at all.
    static ENGRAM_SIMD bfloat16_pairs nearest(floats low, floats high) {
        return bfloat16_pairs((rounded(bits_of(low)) >> 16) | (rounded(bits_of(high)) & upper));
    }
    /// The same of two numbers, as a word.
    static ENGRAM_SIMD std::uint32_t word(float low, float high) {
        return (rounded(__builtin_bit_cast(std::uint32_t, low)) >> 16) |
               (rounded(__builtin_bit_cast(std::uint32_t, high)) & upper);
    }
    ENGRAM_SIMD floats low() const { return floats(__builtin_bit_cast(floats::native, bits << 16)); }
    ENGRAM_SIMD floats high() const { return floats(__builtin_bit_cast(floats::native, bits & upper)); }

private:
    static constexpr std::uint32_t upper = 0xffff0000u;

    static ENGRAM_SIMD native bits_of(floats x) { return __builtin_bit_cast(native, x.lanes); }
    /// Adds half a unit of the upper half, less a little where that is even.
    template <class Bits>
    static ENGRAM_SIMD Bits rounded(Bits v) {
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
