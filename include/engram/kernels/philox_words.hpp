#pragma once
// SPDX-License-Identifier: MIT

// The words of many Philox blocks at once (core/philox.hpp), on the host: block i of {c0, c1, first + i, c3} in words
// 4 i ... 4 i + 3 of the result, the same bits as one call a block.
//
// nvcc, whose front end knows no shuffles of vectors, compiles the calls one by one.
//
// A lane of 64 bits holds one word of one block, since the rounds multiply 32 by 32 bits into 64. Upper halves are left
// to hold whatever they hold: the products do not read them.

#include <cstdint>
#include <cstring>
#include <utility>

#include "engram/core/pack.hpp"
#include "engram/core/philox.hpp"

namespace engram {

/// Blocks that are drawn at once.
inline constexpr int philox_lanes = pack_bytes / 8;

#if !defined(__CUDACC__)
namespace internal {

typedef std::uint64_t philox_words_lanes __attribute__((vector_size(pack_bytes)));

/// Lower half times lower half.
ENGRAM_HD philox_words_lanes multiply_halves(philox_words_lanes a, philox_words_lanes b) {
#if defined(__AVX512F__)
    return (philox_words_lanes)_mm512_maskz_mul_epu32(__mmask8(-1), (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (philox_words_lanes)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#else
    constexpr std::uint64_t lower = 0xFFFFFFFFu;
    return (a & lower) * (b & lower);
#endif
}

/// Lanes of a and b in turn: a0, b0, a1, b1, ...
template <int... I>
ENGRAM_HD void store_in_turn(philox_words_lanes a, philox_words_lanes b, std::uint32_t* to,
                             std::integer_sequence<int, I...>) {
    constexpr int n = philox_lanes;
    const philox_words_lanes first = __builtin_shufflevector(a, b, (I / 2 + I % 2 * n)...),
                             second = __builtin_shufflevector(a, b, (n / 2 + I / 2 + I % 2 * n)...);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + 2 * n, &second, sizeof second);
}

}  // namespace internal
#endif

/// `to` has 4 philox_lanes words.
inline void philox_words(philox_block counter, std::uint32_t key0, std::uint32_t key1, std::uint32_t* to) {
#if defined(__CUDACC__)
    for (int i = 0; i < philox_lanes; ++i) {
        philox_block c = counter;
        c.word[2] += static_cast<std::uint32_t>(i);
        std::memcpy(to + 4 * i, philox4x32(c, key0, key1).word, 4 * sizeof *to);
    }
#else
    using lanes = internal::philox_words_lanes;
    const auto all = [](std::uint64_t word) { return word - lanes{}; };
    lanes c0 = all(counter.word[0]), c1 = all(counter.word[1]), c2 = all(counter.word[2]), c3 = all(counter.word[3]);
    for (int i = 0; i < philox_lanes; ++i) c2[i] += static_cast<std::uint64_t>(i);
    for (int round = 0; round < 10; ++round) {
        const lanes p0 = internal::multiply_halves(all(0xD2511F53u), c0);
        const lanes p1 = internal::multiply_halves(all(0xCD9E8D57u), c2);
        c0 = (p1 >> 32) ^ c1 ^ all(key0);
        c1 = p1;
        c2 = (p0 >> 32) ^ c3 ^ all(key1);
        c3 = p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    // Two words of a block side by side, lower half first.
    constexpr std::uint64_t lower = 0xFFFFFFFFu;
    internal::store_in_turn((c0 & lower) | (c1 << 32), (c2 & lower) | (c3 << 32), to,
                            std::make_integer_sequence<int, philox_lanes>{});
#endif
}

}  // namespace engram
