#pragma once
// SPDX-License-Identifier: MIT

// The white panel of the PsychLab tasks at the small fidelity: 16 x 16 x 3, the image in the middle 12 x 12 (0.75 of
// the side, facts 2.3), and a button at the middle of each edge, 4 pixels along it and 2 deep. One agent step is one
// trial: the fixation cross, gaze and timers of the original are left out. The paper's 72 x 96 x 3 frame shows the
// same panel, enlarged to the nearest pixel.

#include <span>
#include <string>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/stimulus.hpp"

namespace engram {

enum class button : int { absent, black, green, red };

struct panel {
    static constexpr int side = 16, image_side = 12, margin = 2;
    static constexpr int row = side * 3, size = side * row;

    /// Draws at the panel's own size; buttons are in the order of the actions: left, right, up, down.
    ENGRAM_HD static void draw(const float* image, const button (&buttons)[4], float* pixels) {
        for (int i = 0; i < size; ++i) pixels[i] = 1.0f;
        for (int y = 0; y < image_side; ++y)
            for (int i = 0; i < image_side * 3; ++i)
                pixels[(y + margin) * row + margin * 3 + i] = image[y * image_side * 3 + i];
        box(buttons[0], 6, 0, 4, 2, pixels);
        box(buttons[1], 6, side - 2, 4, 2, pixels);
        box(buttons[2], 0, 6, 2, 4, pixels);
        box(buttons[3], side - 2, 6, 2, 4, pixels);
    }

    /// Draws at height x width.
    ENGRAM_HD static void draw(const float* image, const button (&buttons)[4], int height, int width, float* pixels) {
        if (height == side && width == side) return draw(image, buttons, pixels);
        float small[size];
        draw(image, buttons, small);
        for (int y = 0, last = -1; y < height; ++y, pixels += width * 3) {
            const int from = y * side / height;
            if (from == last) {  // the row above once more
                for (int i = 0; i < width * 3; ++i) pixels[i] = pixels[i - width * 3];
                continue;
            }
            last = from;
            for (int x = 0; x < width; ++x)
                for (int c = 0; c < 3; ++c) pixels[x * 3 + c] = small[from * row + x * side / width * 3 + c];
        }
    }

private:
    ENGRAM_HD static void box(button b, int top, int left, int height, int width, float* pixels) {
        if (b == button::absent) return;
        const float colour[3] = {b == button::red ? 0.75f : 0.0f, b == button::green ? 0.75f : 0.0f, 0.0f};
        for (int y = top; y < top + height; ++y)
            for (int x = left; x < left + width; ++x)
                for (int c = 0; c < 3; ++c) pixels[y * row + x * 3 + c] = colour[c];
    }
};

/// What the two recognition tasks have in common in each of their levels (facts 2.2): 50 trials of train images, 40 and
/// 75 trials of holdout images.
struct panel_level {
    int trials = 0;
    int first = 0, count = 0;  // ids of the images to draw from
    int height = panel::side, width = panel::side;
    bool operator==(const panel_level&) const = default;

    static constexpr int longest = 75;

    static int trials_of(const std::string& level) {
        return level == "train" ? 50 : level == "holdout_interpolate" ? 40 : longest;
    }

    static panel_level make(const std::string& task, const std::string& level, const task_options& options,
                            const stimulus_set* stimuli) {
        require(stimuli != nullptr, task, ": needs a set of stimuli");
        require(stimuli->side() == panel::image_side, task, ": stimuli of side ", stimuli->side(), ", expected ",
                panel::image_side);
        const split s = level == "train" ? split::train : split::holdout;
        require(stimuli->count(s) >= longest, task, ": the ", stimuli->source(), " set has ", stimuli->count(s),
                " images for level '", level, "', expected at least ", longest);
        const observation_shape frame = frame_of(options);
        return {trials_of(level), stimuli->first(s), stimuli->count(s), frame.height, frame.width};
    }

    static observation_shape frame_of(const task_options& options) {
        require_known("fidelity", options.fidelity, std::vector<std::string>{"small", "paper"});
        return options.fidelity == "paper" ? observation_shape{72, 96, 3} : observation_shape{panel::side, panel::side, 3};
    }

    /// The description of a task of such levels; chance is the share of trials that random actions get right.
    static task_info describe(const std::string& task, int actions, float chance, const task_options& options) {
        task_info info{.name = task, .observation = frame_of(options), .actions = actions};
        for (const char* level : {"train", "holdout_interpolate", "holdout_extrapolate"}) {
            const auto trials = static_cast<float>(trials_of(level));
            info.add_level({level, trials, chance * trials, trials_of(level)});
        }
        return info;
    }
};

/// An id of the level that is not yet among `used`.
ENGRAM_HD int fresh_image(const panel_level& level, philox& random, const int* used, int count) {
    for (;;) {
        const int id = level.first + random.below(level.count);
        bool old = false;
        for (int i = 0; i < count; ++i) old = old || used[i] == id;
        if (!old) return id;
    }
}

}  // namespace engram
