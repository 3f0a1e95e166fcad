#pragma once
// SPDX-License-Identifier: MIT

// Arbitrary visuomotor mapping (facts 2.3): every image of an episode belongs to one of four directions, which cannot
// be told from the image. Its first showing reveals the direction (that button green, the others red), later ones do
// not (all black); +1 for the right button, 0 otherwise. The course of a trial is psychlab.hpp's; at small fidelity it
// is one step.
//
// Scheme `pool` (default): n images with independent uniform directions, each trial one of them, uniformly; n = 16 in
// 50 train trials, 12 in 40 (holdout_interpolate), 24 in 75 (holdout_extrapolate). An agent without memory gets the
// n (1 - (1 - 1/n)^T) first showings right and a quarter of the rest: 48 % of the maximum on train.
// Scheme `staircase` (the paper's): one association to start with; with K associations run K trials, each image once in
// fresh random order; if all were right, add one.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engram/task/environment.hpp"
#include "engram/task/psychlab.hpp"
#include "engram/task/recognition_level.hpp"

namespace engram {

struct visuomotor_level {
    psychlab_level base;
    int associations = 0;  // of the pool; the staircase starts with 1
    int staircase = 0;     // 1: the paper's scheme
    bool operator==(const visuomotor_level&) const = default;
};

struct arbitrary_visuomotor_mapping {
    static constexpr bool uses_stimuli = true, low_buttons = false;
    static constexpr std::array reads{"fidelity", "scheme", "data", "stimuli", "stimulus_count"};
    static constexpr int capacity = 76;  // images an episode can show, at most one a trial
    static constexpr int phases = 1;
    static constexpr shade ground{1, 1, 1};

    visuomotor_level level;
    philox random;
    psychlab_clock clock;
    int current, known, position, flawless;
    int image[capacity], direction[capacity], order[capacity], shown[capacity];

    static task_info describe(const task_options& options) {
        task_info info = psychlab_info("arbitrary_visuomotor_mapping", 4, options);
        for (const char* level : psychlab_levels)
            info.add_level(psychlab_level_info(level, recognition_level(level, options), 1, 0.25f));
        return info;
    }

    static arbitrary_visuomotor_mapping make(const std::string& name, const task_options& options,
                                             const stimulus_set* stimuli) {
        require_known("scheme", options.scheme, std::vector<std::string>{"pool", "staircase"});
        arbitrary_visuomotor_mapping fresh{};
        fresh.level.base = recognition_level("arbitrary_visuomotor_mapping", name, options, stimuli);
        fresh.level.staircase = options.scheme == "staircase";
        fresh.level.associations = fresh.level.staircase           ? 1
                                   : name == "train"               ? 16
                                   : name == "holdout_interpolate" ? 12
                                                                   : 24;
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        position = known = 0;
        flawless = 1;
        for (int i = 0; i < level.associations; ++i) associate();
        choose();
        psychlab_reset(*this);
    }

    ENGRAM_HD_CALL outcome step(int action) { return psychlab_step(*this, action); }
    ENGRAM_HD_CALL void observe(const float* images, float* pixels) const { psychlab_observe(*this, images, pixels); }

    std::optional<trial_event> event() const {
        if (clock.kind != phase_kind::respond) return std::nullopt;
        return trial_event{clock.trial, image[current], shown[current] == 1, direction[current]};
    }

    int oracle() const { return psychlab_oracle(*this); }

    bool valid() const {
        bool good = known > 0 && known < capacity && current >= 0 && current < known && position >= 0 &&
                    position < known && psychlab_valid(*this);
        for (int i = 0; good && i < known; ++i)
            good = image[i] >= level.base.first && image[i] < level.base.first + level.base.count &&
                   direction[i] >= 0 && direction[i] < 4 && (!level.staircase || (order[i] >= 0 && order[i] < known));
        return good;
    }

    ENGRAM_HD const psychlab_level& rules() const { return level.base; }
    ENGRAM_HD phase plan(int) const { return {phase_kind::respond}; }
    ENGRAM_HD int buttons() const { return 4; }
    ENGRAM_HD int answer() const { return direction[current]; }
    ENGRAM_HD button face(int d) const {
        return shown[current] ? button::black : d == direction[current] ? button::green : button::red;
    }

    ENGRAM_HD void conclude(bool right, bool last) {
        shown[current] = 1;
        flawless &= right;
        if (last) return;
        if (level.staircase && ++position == known) {
            if (flawless) associate();
            position = 0;
            flawless = 1;
        }
        choose();
    }

    ENGRAM_HD_CALL void draw(const panel& on, const float* images) const {
        on.show(images + static_cast<std::ptrdiff_t>(image[current]) * (level.base.side * level.base.side * 3),
                level.base.side);
    }

private:
    ENGRAM_HD void associate() {
        image[known] = fresh_image(level.base, random, image, known);
        direction[known] = random.below(4);
        shown[known] = 0;
        ++known;
    }

    ENGRAM_HD_CALL void choose() {
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

static_assert(environment<arbitrary_visuomotor_mapping> && psychlab_task<arbitrary_visuomotor_mapping>);

}  // namespace engram
