#pragma once
// SPDX-License-Identifier: MIT

// The levels of the Memory Tasks Suite (facts 2.1, 2.2): how large an episode is, and which stimuli it shows.
//
//   train                 small or large, drawn 50 : 50 for each episode (errata M7)     train stimuli
//   holdout_interpolate   between the two                                                holdout stimuli
//   holdout_extrapolate   larger than both                                               holdout stimuli
//
// Further names, which the paper does not report: train_small, train_large, interpolate, extrapolate (train stimuli),
// holdout_small, holdout_large.

#include <array>
#include <cstdint>
#include <string>

#include "engram/core/device.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/stimulus.hpp"

namespace engram {

/// In the order of the columns of facts 2.2.
enum class scale : std::int32_t { small, interpolate, large, extrapolate, small_or_large };

struct suite_level {
    scale size = scale::small_or_large;
    std::int32_t holdout = 0;  // 1: holdout stimuli
    bool operator==(const suite_level&) const = default;

    /// The size of one episode: never `small_or_large`.
    ENGRAM_HD scale draw(philox& random) const {
        if (size != scale::small_or_large) return size;
        return random.below(2) == 0 ? scale::small : scale::large;
    }
    /// Whether an episode can have that size.
    bool draws(scale s) const {
        return size == scale::small_or_large ? s == scale::small || s == scale::large : s == size;
    }
    split stimuli() const { return holdout ? split::holdout : split::train; }
    bool valid() const {
        return size >= scale::small && size <= scale::small_or_large && (holdout == 0 || holdout == 1);
    }
};

struct named_level {
    const char* name;
    suite_level level;
    bool further;
};

/// All of them, the three that the paper reports first.
inline constexpr std::array<named_level, 9> suite_levels{{
    {"train", {scale::small_or_large, 0}, false},
    {"holdout_interpolate", {scale::interpolate, 1}, false},
    {"holdout_extrapolate", {scale::extrapolate, 1}, false},
    {"train_small", {scale::small, 0}, true},
    {"train_large", {scale::large, 0}, true},
    {"interpolate", {scale::interpolate, 0}, true},
    {"extrapolate", {scale::extrapolate, 0}, true},
    {"holdout_small", {scale::small, 1}, true},
    {"holdout_large", {scale::large, 1}, true},
}};

/// The level called `name`, which the task has to know.
inline suite_level find_suite_level(const task_info& info, const std::string& name) {
    require_known(info.name + " level", name, info.levels);
    for (const auto& each : suite_levels)
        if (each.name == name) return each.level;
    fail(info.name, ": level '", name, "' is not one of the suite's");
}

}  // namespace engram
