#pragma once
// SPDX-License-Identifier: MIT

// What data a process has, in a few words that other processes can compare with theirs.

#include <zlib.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <engram/task/sequence.hpp>
#include <engram/task/stimulus.hpp>

namespace engram {

/// Of all images of a set; null: the task shows none.
inline std::string data_checksum(const stimulus_set* images) {
    if (!images) return "none";
    const auto pixels = std::as_bytes(images->pixels());
    return message(images->source(), ", ", images->size(), " images, checksum ",
                   ::crc32_z(0, reinterpret_cast<const Bytef*>(pixels.data()), pixels.size()));
}

/// Of the first sequences of every level: other images, or others at other places, are other sequences.
inline std::string data_checksum(const sequence_source& source) {
    const auto& info = source.info();
    const auto T = static_cast<std::size_t>(info.steps), frame = static_cast<std::size_t>(info.observation.size());
    constexpr std::size_t most = 4'000'000;  // numbers, tens of milliseconds
    const int count = static_cast<int>(std::clamp<std::size_t>(most / (T * frame), 1, 256));
    std::vector<float> seen(T * frame), target(T * static_cast<std::size_t>(info.targets));
    unsigned long sum = 0;
    const auto add = [&](const std::vector<float>& numbers) {
        const auto part = std::as_bytes(std::span(numbers));
        // Without an address zlib begins anew.
        if (!part.empty()) sum = ::crc32_z(sum, reinterpret_cast<const Bytef*>(part.data()), part.size());
    };
    for (const auto& level : info.levels)
        for (int i = 0; i < count; ++i) {
            std::fill(seen.begin(), seen.end(), 0.0f);
            std::fill(target.begin(), target.end(), 0.0f);
            sequence_place to;
            to.observation = seen.data();
            if (info.targets > 0) to.target = target.data();
            source.draw(level, 0, static_cast<std::uint64_t>(i), to);
            add(seen);
            add(target);
        }
    return message(info.name, ", ", count, " sequences a level, checksum ", sum);
}

}  // namespace engram
