#pragma once
// SPDX-License-Identifier: MIT

// Noisy T-Maze LNR (facts 3.7): a corridor whose first step shows the side of the reward, and whose end asks for it.
// Observation (hint, corner, noise): hint = -1 (left) or +1 (right) at the first step and 0 after it; corner = 1 at the
// last step and 0 before it; noise = -1 or +1 at every step. The agent moves on by itself; the action at the corner
// (0 left, 1 right) ends the episode with +4 if it matches the hint and -3 otherwise; all other rewards are 0.
//
// The length is L + uniform {0, ..., spread}: `length` 100 and `length_spread` 10 by default, as the authors' program
// has it; their text says 9 (errata U18). Level `holdout_extrapolate` is twice as long (ours).

#include <array>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"

namespace engram {

struct t_maze_level {
    int length = 0, spread = 0;
    bool operator==(const t_maze_level&) const = default;
};

struct t_maze {
    static constexpr bool uses_stimuli = false;
    static constexpr std::array reads{"length", "length_spread"};

    t_maze_level level;
    philox random;
    int length, time, side, noise;  // side: 0 left, 1 right

    static task_info describe(const task_options& options) {
        require(options.length >= 2 && options.length <= 1000000, "t_maze: a length of ", options.length,
                " was asked for; expected 2 to 1000000");
        require(options.length_spread >= 0 && options.length_spread <= 1000000, "t_maze: a length_spread of ",
                options.length_spread, " was asked for; expected 0 to 1000000");
        task_info info{.name = "t_maze", .observation = {1, 1, 3}, .lowest = -1, .actions = 2};
        info.add_level({"train", 4, 0.5f, options.length + options.length_spread});
        info.add_level({"holdout_extrapolate", 4, 0.5f, 2 * options.length + options.length_spread});
        return info;
    }

    static t_maze make(const std::string& name, const task_options& options, const stimulus_set*) {
        t_maze fresh{};
        fresh.level = {name == "train" ? options.length : 2 * options.length, options.length_spread};
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        time = 0;
        length = level.length + random.below(level.spread + 1);
        side = random.below(2);
        noise = random.below(2);
    }

    ENGRAM_HD_CALL outcome step(int action) {
        if (++time == length) return {action == side ? 4.0f : -3.0f, true};
        noise = random.below(2);
        return {0.0f, false};
    }

    ENGRAM_HD void observe(const float*, float* features) const {
        features[0] = time > 0 ? 0.0f : side == 1 ? 1.0f : -1.0f;
        features[1] = time == length - 1 ? 1.0f : 0.0f;
        features[2] = noise == 1 ? 1.0f : -1.0f;
    }

    /// Nothing is recalled before the corner.
    std::optional<trial_event> event() const {
        if (time < length - 1) return std::nullopt;
        return trial_event{0, side, true, side};
    }

    int oracle() const { return side; }

    bool valid() const {
        return length >= level.length && length <= level.length + level.spread && time >= 0 && time < length &&
               (side == 0 || side == 1);
    }
};

static_assert(environment<t_maze>);

}  // namespace engram
