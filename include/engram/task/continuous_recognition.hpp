#pragma once
// SPDX-License-Identifier: MIT

// Continuous recognition (facts 2.3): a row of images; after each, say whether it was shown before in this episode.
// The first trial is new, later ones are new with probability 1/2, else one of the images shown so far, uniformly.
// Button 0 (left) = new, 1 (right) = old (errata M8); +1 if right, 0 otherwise; two neutral buttons, so that nothing on
// the panel tells the answer. The course of a trial is psychlab.hpp's; at small fidelity it is one step.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/psychlab.hpp"
#include "engram/task/recognition_level.hpp"

namespace engram {

struct continuous_recognition {
    static constexpr bool uses_stimuli = true, low_buttons = false;
    static constexpr std::array reads{"fidelity", "data", "stimuli", "stimulus_count", "trials"};
    static constexpr int capacity = 800;  // images of an episode
    static constexpr int phases = 1;
    static constexpr shade ground{1, 1, 1};

    psychlab_level level;
    philox random;
    psychlab_clock clock;
    int known;    // images shown before this trial
    int current;  // index of the image of this trial; `known` if it is new
    int image[capacity];

    static task_info describe(const task_options& options) {
        task_info info = psychlab_info("continuous_recognition", 2, options);
        for (const char* level : psychlab_levels)
            info.add_level(psychlab_level_info(level, numbers(level, options), 1, 0.5f));
        return info;
    }

    static continuous_recognition make(const std::string& name, const task_options& options,
                                       const stimulus_set* stimuli) {
        continuous_recognition fresh{};
        const psychlab_level wanted = numbers(name, options);
        fresh.level = recognition_level("continuous_recognition", name, options, stimuli, std::max(75, wanted.trials));
        fresh.level.trials = wanted.trials, fresh.level.timeout = wanted.timeout;
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        known = 0;
        choose();
        psychlab_reset(*this);
    }

    ENGRAM_HD_CALL outcome step(int action) { return psychlab_step(*this, action); }
    ENGRAM_HD_CALL void observe(const float* images, float* pixels) const { psychlab_observe(*this, images, pixels); }

    std::optional<trial_event> event() const {
        if (clock.kind != phase_kind::respond) return std::nullopt;
        return trial_event{clock.trial, image[current], current < known, answer()};
    }

    int oracle() const { return psychlab_oracle(*this); }

    bool valid() const {
        bool good = psychlab_valid(*this) && known >= 0 && known <= clock.trial && current >= 0 && current <= known;
        for (int i = 0; good && i <= current; ++i) good = shows(image[i]);
        for (int i = 0; good && i < known; ++i) good = shows(image[i]);
        return good;
    }

    ENGRAM_HD const psychlab_level& rules() const { return level; }
    ENGRAM_HD phase plan(int) const { return {phase_kind::respond}; }
    ENGRAM_HD int buttons() const { return 2; }
    ENGRAM_HD int answer() const { return current < known ? 1 : 0; }
    ENGRAM_HD button face(int) const { return button::black; }

    ENGRAM_HD void conclude(bool, bool last) {
        if (current == known) ++known;
        if (!last) choose();
    }

    ENGRAM_HD_CALL void draw(const panel& on, const float* images) const {
        on.show(images + static_cast<std::ptrdiff_t>(image[current]) * (level.side * level.side * 3), level.side);
    }

private:
    /// With as many trials as the options ask for, and as much more time.
    static psychlab_level numbers(const std::string& name, const task_options& options) {
        require(options.trials >= 0 && options.trials <= capacity, "continuous_recognition: ", options.trials,
                " trials were asked for; expected 1 to ", capacity, ", or 0 for as many as the level has");
        psychlab_level made = recognition_level(name, options);
        if (options.trials > 0) {
            made.timeout = static_cast<int>(std::int64_t{made.timeout} * options.trials / made.trials);
            made.trials = options.trials;
        }
        return made;
    }

    bool shows(int id) const { return id >= level.first && id < level.first + level.count; }

    ENGRAM_HD_CALL void choose() {
        if (known > 0 && random.below(2) == 1) {
            current = random.below(known);
        } else {
            current = known;
            image[known] = fresh_image(level, random, image, known);
        }
    }
};

static_assert(environment<continuous_recognition> && psychlab_task<continuous_recognition>);

}  // namespace engram
