#pragma once
// SPDX-License-Identifier: MIT

// The random numbers of one sequence: a stream of its own for every (seed, task, level, index), any 64-bit index.
//
//   {seed', stream'} = philox4x32(counter {index (2 x 32 bits), task and level, "sequence"}, key = seed)
//
// The map from counter to {seed', stream'} is a bijection under a seed, so no two sequences of a run share a stream;
// another level gives other sequences even where both draw from the same images.

#include <cstdint>
#include <string>

#include "engram/core/philox.hpp"

namespace engram {

/// The random numbers of one sequence: a function of these four alone.
inline philox sequence_stream(const std::string& task, const std::string& level, std::uint64_t seed,
                              std::uint64_t index) {
    const auto of_level = static_cast<std::uint32_t>(stream_id(task + "/" + level, 0) >> 32);
    const std::uint64_t of_sequences = stream_id("sequence", of_level);
    const philox_block mixed =
        philox4x32({{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                     static_cast<std::uint32_t>(of_sequences), static_cast<std::uint32_t>(of_sequences >> 32)}},
                   static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    return {std::uint64_t{mixed.word[1]} << 32 | mixed.word[0], std::uint64_t{mixed.word[3]} << 32 | mixed.word[2]};
}

}  // namespace engram
