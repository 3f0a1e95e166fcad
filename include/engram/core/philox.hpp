#pragma once
// SPDX-License-Identifier: MIT

// Philox4x32-10, a counter-based random generator (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
// 1, 2, 3", 2011). The n-th word of a stream is a pure function of (seed, stream, n): integer arithmetic only, so host
// and device give the same words, and how rows are divided among threads cannot change them.
//
//   key = seed (2 x 32 bits), counter = {block number (2 x 32 bits), stream (2 x 32 bits)}, 4 words a block

#include <cmath>
#include <cstdint>
#include <string_view>

#include "engram/core/device.hpp"

namespace engram {

/// Four random words, or a counter.
struct philox_block {
    std::uint32_t word[4];
};

/// The stateless bijection: ten rounds of the counter under the key.
ENGRAM_HD philox_block philox4x32(philox_block counter, std::uint32_t key0, std::uint32_t key1) {
    std::uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2], c3 = counter.word[3];
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
        c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ key0;
        c1 = static_cast<std::uint32_t>(p1);
        c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ key1;
        c3 = static_cast<std::uint32_t>(p0);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

/// The number of a stream: what it is for, and which one of them. Two purposes never share their numbers by accident,
/// for example the actions sampled in row 3 and the trials drawn in row 3.
constexpr std::uint64_t stream_id(std::string_view purpose, std::uint32_t index) {
    std::uint32_t hash = 2166136261u;
    for (const char c : purpose) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
    return (std::uint64_t{hash} << 32) | index;
}

/// A stream of random numbers. A plain value without padding: copying or saving its bytes saves the stream.
struct philox {
    std::uint64_t seed = 0, stream = 0;
    std::uint64_t drawn = 0;  // words given so far
    philox_block buffer{};    // the block of the last word given

    philox() = default;
    ENGRAM_HD philox(std::uint64_t seed_, std::uint64_t stream_) : seed(seed_), stream(stream_) {}

    /// 32 uniform bits.
    ENGRAM_HD std::uint32_t next() {
        const std::uint32_t lane = static_cast<std::uint32_t>(drawn & 3u);
        if (lane == 0) refill();
        ++drawn;
        return buffer.word[lane];
    }

    /// Draws the block of the next four words.
    ENGRAM_HD_CALL void refill() { buffer = block_at(drawn >> 2); }

    /// The next `count` words, as next() gives them. Eight blocks at a time are computed side by side, by packs.
    ENGRAM_HD_CALL void fill(std::uint32_t* words, int count) {
        constexpr int together = 8;
        for (int done = 0; done < count;) {
            std::uint32_t some[4 * together];
            for (int i = 0; i < together; ++i) {
                const philox_block one = block_at((drawn >> 2) + static_cast<std::uint64_t>(i));
                for (int lane = 0; lane < 4; ++lane) some[4 * i + lane] = one.word[lane];
            }
            const int first = static_cast<int>(drawn & 3u), left = count - done;
            const int last = left < 4 * together - first ? first + left : 4 * together;
            for (int i = first; i < last; ++i) words[done++] = some[i];
            for (int lane = 0; lane < 4; ++lane) buffer.word[lane] = some[(last - 1) / 4 * 4 + lane];
            drawn += static_cast<std::uint64_t>(last - first);
        }
    }

    /// Uniform in [0, 1), a multiple of 2^-24: exact in float on every device.
    ENGRAM_HD float uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }

    /// Uniform in {0, ..., n - 1} for n >= 1; no value is favoured by more than n / 2^32.
    ENGRAM_HD int below(int n) {
        return static_cast<int>((std::uint64_t{next()} * static_cast<std::uint32_t>(n)) >> 32);
    }

    /// Standard normal by Box and Muller, two words a number. Its last bit may differ between devices.
    ENGRAM_HD float normal() {
        const float radius = std::sqrt(-2.0f * std::log((static_cast<float>(next() >> 8) + 1.0f) * 0x1p-24f));
        return radius * std::cos(6.28318530718f * uniform());
    }

private:
    ENGRAM_HD philox_block block_at(std::uint64_t block) const {
        return philox4x32({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                            static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}},
                          static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    }
};

}  // namespace engram
