#pragma once
// SPDX-License-Identifier: MIT

// Continuous recognition (facts 2.3): a row of images; after each, say whether it was shown before in this episode.
// The first trial is new, later ones are new with probability 1/2, else one of the images shown so far, uniformly.
// Action 0 (left) = new, 1 (right) = old (errata M8); +1 if right, 0 otherwise; two neutral buttons, so that nothing on
// the panel tells the answer. One step a trial (see panel.hpp).

#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/panel.hpp"

namespace engram {

struct continuous_recognition {
    static constexpr bool uses_stimuli = true;
    static constexpr int capacity = 75;

    panel_level level;
    int trial;
    philox random;
    int known;    // images shown before this trial
    int current;  // index of the image of this trial; `known` if it is new
    int unused;   // keeps the state free of padding
    int image[capacity];

    static task_info describe(const task_options& options) {
        return panel_level::describe("continuous_recognition", 2, 0.5f, options);
    }

    static continuous_recognition make(const std::string& name, const task_options& options,
                                       const stimulus_set* stimuli) {
        continuous_recognition fresh{};
        fresh.level = panel_level::make("continuous_recognition", name, options, stimuli);
        return fresh;
    }

    ENGRAM_HD void reset() {
        trial = known = 0;
        choose();
    }

    ENGRAM_HD outcome step(int action) {
        const bool right = action == answer();
        if (current == known) ++known;
        const bool done = ++trial == level.trials;
        if (!done) choose();
        return {right ? 1.0f : 0.0f, done};
    }

    ENGRAM_HD void observe(const float* images, float* pixels) const {
        const button buttons[4] = {button::black, button::black, button::absent, button::absent};
        panel::draw(images + static_cast<std::ptrdiff_t>(image[current]) * (panel::image_side * panel::image_side * 3),
                    buttons, level.height, level.width, pixels);
    }

    std::optional<trial_event> event() const { return trial_event{trial, image[current], current < known, answer()}; }

    int oracle() const { return answer(); }

    bool valid() const {
        bool good =
            trial >= 0 && trial < level.trials && known >= 0 && known <= trial && current >= 0 && current <= known;
        for (int i = 0; good && i <= current; ++i)
            good = image[i] >= level.first && image[i] < level.first + level.count;
        for (int i = 0; good && i < known; ++i) good = image[i] >= level.first && image[i] < level.first + level.count;
        return good;
    }

private:
    ENGRAM_HD int answer() const { return current < known ? 1 : 0; }

    ENGRAM_HD void choose() {
        if (known > 0 && random.below(2) == 1) {
            current = random.below(known);
        } else {
            current = known;
            image[known] = fresh_image(level, random, image, known);
        }
    }
};

static_assert(environment<continuous_recognition>);

}  // namespace engram
