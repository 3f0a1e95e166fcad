#pragma once
// SPDX-License-Identifier: MIT

// Bytes times whole numbers of sixteen bits, four products summed in every lane of 32 bits.
//
// Words of four bytes, one a lane, meet the same four numbers in every lane. The sums are exact modulo 2^32. AVX-512
// VNNI sums four products of bytes by one instruction, so that a number is two bytes there; other x86 processors sum
// two products of sixteen bits.

#include <cstdint>
#include <cstring>

#include "engram/core/pack.hpp"

#if defined(__SSE2__) && !defined(__AVX__)
#include <emmintrin.h>
#endif

namespace engram {

/// How many products one instruction sums.
enum class byte_instruction { one, two, four };

/// The best of this translation unit. A template argument wherever code depends on it, so that translation units of
/// several kinds may be linked together.
#if defined(__AVX512VNNI__)
inline constexpr byte_instruction best_byte_instruction = byte_instruction::four;
#elif defined(__AVX512BW__) || (defined(__AVX2__) && !defined(__AVX512F__)) || (defined(__SSE2__) && !defined(__AVX__))
inline constexpr byte_instruction best_byte_instruction = byte_instruction::two;
#else
inline constexpr byte_instruction best_byte_instruction = byte_instruction::one;
#endif

template <byte_instruction By = best_byte_instruction>
struct byte_products {
    typedef std::uint32_t native __attribute__((vector_size(pack_bytes)));
    /// Numbers lie between -most and most.
    static constexpr int most = 32639;
    native first, second;

    ENGRAM_SIMD byte_products() : first(all(0)), second(all(0)) {}

    /// The two words by which four numbers are multiplied.
    static void split(const int* numbers, std::uint32_t* words) {
        words[0] = words[1] = 0;
        for (int i = 0; i < 4; ++i)
            if constexpr (By == byte_instruction::four) {
                // high * 256 + low, both from -128 to 127.
                const int high = (numbers[i] + 128) >> 8;
                words[0] |= std::uint32_t(high & 255) << (8 * i);
                words[1] |= std::uint32_t((numbers[i] - 256 * high) & 255) << (8 * i);
            } else {
                words[i % 2] |= std::uint32_t(numbers[i] & 0xffff) << (i / 2 * 16);
            }
    }

    /// In every lane the sum of byte_i * number_i, where byte 0 is the lowest of a word.
    ENGRAM_SIMD void add(const std::uint32_t* packed, const std::uint32_t* words) {
        native lanes;
        std::memcpy(&lanes, packed, sizeof lanes);
        if constexpr (By == byte_instruction::four) {
            first = sum_of_four(lanes, words[0], first);
            second = sum_of_four(lanes, words[1], second);
        } else {
            typedef std::uint16_t halves __attribute__((vector_size(pack_bytes)));
            const auto odd = __builtin_bit_cast(native, __builtin_bit_cast(halves, lanes) >> 8);
            first += sum_of_two(lanes & 0x00ff00ffu, words[0]) + sum_of_two(odd, words[1]);
        }
    }
    ENGRAM_SIMD native total() const { return By == byte_instruction::four ? (first << 8) + second : first; }

private:
    static ENGRAM_SIMD native all(std::uint32_t word) { return word - native{}; }

    static ENGRAM_SIMD native sum_of_four([[maybe_unused]] native lanes, [[maybe_unused]] std::uint32_t word,
                                          native sum) {
#if defined(__AVX512VNNI__)
        return native(_mm512_dpbusd_epi32(__m512i(sum), __m512i(lanes), __m512i(all(word))));
#else
        return sum;
#endif
    }
    static ENGRAM_SIMD native sum_of_two(native halves, std::uint32_t word) {
        if constexpr (By == byte_instruction::two) {
#if defined(__AVX512BW__)
            return native(_mm512_madd_epi16(__m512i(halves), __m512i(all(word))));
#elif defined(__AVX2__) && !defined(__AVX512F__)
            return native(_mm256_madd_epi16(__m256i(halves), __m256i(all(word))));
#elif defined(__SSE2__) && !defined(__AVX__)
            return native(_mm_madd_epi16(__m128i(halves), __m128i(all(word))));
#endif
        }
        const auto number = [word](int i) { return std::uint32_t(std::int16_t(word >> (16 * i))); };
        return (halves & 0xffffu) * number(0) + (halves >> 16) * number(1);
    }
};

}  // namespace engram
