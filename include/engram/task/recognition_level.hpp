#pragma once
// SPDX-License-Identifier: MIT

// What arbitrary visuomotor mapping and continuous recognition have in common in each of their levels (facts 2.1, 2.2):
// 50 trials of train images, 40 and 75 trials of holdout images, 300 s or 450 s (extrapolate).

#include <string>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/psychlab.hpp"

namespace engram {

/// The trials of the two recognition tasks (facts 2.2, errata M6); no episode has more than 75.
inline int recognition_trials(const std::string& level) {
    return level == "train" ? 50 : level == "holdout_interpolate" ? 40 : 75;
}

/// The numbers of a level; throws for one that there is not.
inline psychlab_level recognition_level(const std::string& level, const task_options& options) {
    return psychlab_level::make(level, recognition_trials(level), level == "holdout_extrapolate" ? 450 : 300, options);
}

/// Takes at least `needed` images, at small fidelity of side 12.
inline psychlab_level recognition_level(const std::string& task, const std::string& level, const task_options& options,
                                        const stimulus_set* stimuli, int needed = 75) {
    psychlab_level made = recognition_level(level, options).show(task, level, needed, stimuli);
    const int image = panel::coarse_side * 3 / 4;
    require(made.paper || made.side == image, task, ": stimuli of side ", made.side, ", expected ", image);
    return made;
}

/// An id of the level that is not yet among `used`.
ENGRAM_HD_CALL int fresh_image(const psychlab_level& level, philox& random, const int* used, int count) {
    for (;;) {
        const int id = level.first + random.below(level.count);
        bool old = false;
        for (int i = 0; i < count; ++i) old = old || used[i] == id;
        if (!old) return id;
    }
}

}  // namespace engram
