#pragma once
// SPDX-License-Identifier: MIT

// Arbitrary visuomotor mapping (facts 2.3): every image of an episode belongs to one of four directions, which cannot
// be told from the image. Its first showing reveals the direction (that button green, the others red), later ones do
// not (all black); +1 for the right action, 0 otherwise. One step a trial (see panel.hpp).
//
// Scheme `pool` (default): n images with independent uniform directions, each trial one of them, uniformly; n = 16 in
// 50 train trials, 12 in 40 (holdout_interpolate), 24 in 75 (holdout_extrapolate). An agent without memory gets the
// n (1 - (1 - 1/n)^T) first showings right and a quarter of the rest: 48 % of the maximum on train.
// Scheme `staircase` (the paper's): one association to start with; with K associations run K trials, each image once in
// fresh random order; if all were right, add one.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engram/task/environment.hpp"
#include "engram/task/panel.hpp"

namespace engram {

struct visuomotor_level {
    panel_level base;
    int associations = 0;  // of the pool; the staircase starts with 1
    int staircase = 0;     // 1: the paper's scheme
    int unused = 0;        // keeps the state free of padding
    bool operator==(const visuomotor_level&) const = default;
};

struct arbitrary_visuomotor_mapping {
    static constexpr bool uses_stimuli = true;
    static constexpr int capacity = 76;  // images an episode can show, at most one a trial

    visuomotor_level level;
    philox random;
    int trial, current, known, position, flawless, unused;
    int image[capacity], direction[capacity], order[capacity], shown[capacity];

    static task_info describe(const task_options& options) {
        return panel_level::describe("arbitrary_visuomotor_mapping", 4, 0.25f, options);
    }

    static arbitrary_visuomotor_mapping make(const std::string& name, const task_options& options,
                                             const stimulus_set* stimuli) {
        require_known("scheme", options.scheme, std::vector<std::string>{"pool", "staircase"});
        arbitrary_visuomotor_mapping fresh{};
        fresh.level.base = panel_level::make("arbitrary_visuomotor_mapping", name, options, stimuli);
        fresh.level.staircase = options.scheme == "staircase";
        fresh.level.associations = fresh.level.staircase           ? 1
                                   : name == "train"               ? 16
                                   : name == "holdout_interpolate" ? 12
                                                                   : 24;
        return fresh;
    }

    ENGRAM_HD void reset() {
        trial = position = known = 0;
        flawless = 1;
        for (int i = 0; i < level.associations; ++i) associate();
        choose();
    }

    ENGRAM_HD outcome step(int action) {
        const bool right = action == direction[current];
        shown[current] = 1;
        flawless &= right;
        const bool done = ++trial == level.base.trials;
        if (!done) {
            if (level.staircase && ++position == known) {
                if (flawless) associate();
                position = 0;
                flawless = 1;
            }
            choose();
        }
        return {right ? 1.0f : 0.0f, done};
    }

    ENGRAM_HD void observe(const float* images, float* pixels) const {
        button buttons[4];
        for (int d = 0; d < 4; ++d)
            buttons[d] = shown[current] ? button::black : d == direction[current] ? button::green : button::red;
        panel::draw(images + static_cast<std::ptrdiff_t>(image[current]) * (panel::image_side * panel::image_side * 3),
                    buttons, level.base.height, level.base.width, pixels);
    }

    std::optional<trial_event> event() const {
        return trial_event{trial, image[current], shown[current] == 1, direction[current]};
    }

    int oracle() const { return direction[current]; }

    bool valid() const {
        bool good = trial >= 0 && trial < level.base.trials && known > 0 && known < capacity && current >= 0 &&
                    current < known && position >= 0 && position < known;
        for (int i = 0; good && i < known; ++i)
            good = image[i] >= level.base.first && image[i] < level.base.first + level.base.count &&
                   direction[i] >= 0 && direction[i] < 4 && (!level.staircase || (order[i] >= 0 && order[i] < known));
        return good;
    }

private:
    ENGRAM_HD void associate() {
        image[known] = fresh_image(level.base, random, image, known);
        direction[known] = random.below(4);
        shown[known] = 0;
        ++known;
    }

    ENGRAM_HD void choose() {
        if (!level.staircase) {
            current = random.below(known);
            return;
        }
        if (position == 0)
            for (int i = 0; i < known; ++i) {  // a shuffle, inside out
                const int j = random.below(i + 1);
                order[i] = order[j];
                order[j] = i;
            }
        current = order[position];
    }
};

static_assert(environment<arbitrary_visuomotor_mapping>);

}  // namespace engram
