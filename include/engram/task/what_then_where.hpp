#pragma once
// SPDX-License-Identifier: MIT

// What then where (facts 2.3): a digit is shown for 25 frames; after a delay four different digits, it among them, at
// the four edges for 25 frames; after a second delay and a look at a white dot, press the button where it was. +1 if
// right, 0 otherwise. 50 trials, 600 s; white on black. The source's extrapolate level is built from the paper's list
// (errata M45).
//
// Digits 0 to 4 are trained on, 5 to 9 held out, one fixed image a class (errata M46): training images of MNIST, or
// drawn with a pen where there is no data. A digit is 0.25 of the panel, the four are laid out over 0.95 of it.
//
// Small fidelity (ours): a digit of 6 x 6 pixels of 16 x 16 is drawn dark on a card. The four cards of a trial have
// hues a quarter of their circle apart, from one that is drawn anew for each trial: what was shown is told by being
// alike, where five images, always the same, were learnt by heart and new ones not recognised. Hues are drawn alike at
// all levels, so what is new at holdout are the shapes and the delays.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engram/io/file.hpp"
#include "engram/io/idx.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/psychlab.hpp"
#include "engram/task/stimulus_data.hpp"
#include "engram/task/stroke_glyphs.hpp"
#include "engram/task/texture.hpp"

namespace engram {

/// Ten images, white ink on black: the id is the digit. `stimuli` mnist, or auto where the data folder has mnist/,
/// takes the source's MNIST images; builtin, or auto without them, draws.
inline stimulus_set fixed_digits(const task_options& options) {
    require_known("stimuli", options.stimuli, std::vector<std::string>{"auto", "builtin", "mnist", "omniglot"});
    require(options.stimuli != "omniglot",
            "what_then_where: stimuli 'omniglot' do not serve, the task shows digits; expected builtin or mnist");
    require(options.stimuli != "auto" || options.data.empty() || folder_on_disk(options.data),
            "what_then_where: data folder '", options.data, "' does not exist");
    const std::string folder = options.data + "/mnist";
    const bool found = !options.data.empty() && folder_on_disk(folder);
    require(found || options.stimuli != "mnist",
            "what_then_where: stimuli 'mnist' need a data folder that holds mnist/");
    const int side = pace::paper_fidelity(options) ? 20 : 6;
    stimulus_collector images(side);
    const auto add = [&](int digit, std::span<const std::uint8_t> plane, int side_in) {
        const std::vector<float> ink = reduce_area(plane, side_in, side);
        const float most = std::max(1e-6f, *std::max_element(ink.begin(), ink.end()));
        std::vector<float> image;
        for (const float x : ink) image.insert(image.end(), 3, x / most);
        require(images.add(digit < 5 ? split::train : split::holdout, image), "what_then_where: digit ", digit,
                " looks like one before it");
    };
    if (!found || options.stimuli == "builtin") {
        const glyph_set drawn = builtin_digits(28, 1, 1);
        for (int digit = 0; digit < 10; ++digit) add(digit, drawn.image(drawn.of(split::train, digit)[0]), 28);
        return std::move(images).finish("builtin");
    }
    constexpr int numbers[] = {39824, 41968, 1439, 40746, 56827, 3454, 42499, 57610, 41348, 43831};  // from 1
    std::string path = folder + "/train-images-idx3-ubyte";
    if (!exists_on_disk(path)) path += ".gz";
    const idx_images digits = read_idx_images(path);
    require(digits.rows == digits.columns && digits.rows >= side, path, ": images of ", digits.rows, " x ",
            digits.columns, ", expected a square of at least ", side);
    require(digits.count >= 60000, path, ": ", digits.count, " images, expected the 60000 of MNIST");
    for (int digit = 0; digit < 10; ++digit) add(digit, digits.image(numbers[digit] - 1), digits.rows);
    return std::move(images).finish("mnist");
}

struct what_then_where_level {
    psychlab_level base;
    delay_list delays;
    bool operator==(const what_then_where_level&) const = default;

    static what_then_where_level make(const std::string& name, const task_options& options) {
        return {psychlab_level::make(name, 50, 600, options), name == "train" ? delay_list{4, {4, 8, 32, 128}}
                                                              : name == "holdout_interpolate"
                                                                  ? delay_list{2, {16, 64}}
                                                                  : delay_list{4, {132, 156, 200, 256}}};
    }
};

struct what_then_where {
    static constexpr bool uses_stimuli = true, low_buttons = false;
    static constexpr std::array reads{"fidelity", "data", "stimuli"};
    static constexpr int phases = 6, classes = 5, hues = 1536;
    static constexpr shade ground{0, 0, 0};

    what_then_where_level level;
    philox random;
    psychlab_clock clock;
    int delay[2];
    int where;     // the edge of the digit
    int unused;    // keeps the state free of padding
    int digit[4];  // at the left, right, upper, lower edge; 0 to 4 of the split
    int hue[4];    // of their cards (texture.hpp), at small fidelity; else 0

    static std::shared_ptr<const stimulus_set> load_stimuli(const task_options& options) {
        return std::make_shared<const stimulus_set>(fixed_digits(options));
    }

    static task_info describe(const task_options& options) {
        task_info info = psychlab_info("what_then_where", 4, options);
        info.revision = revision_of(options, 2);  // digits were white before
        for (const char* name : psychlab_levels) {
            const auto level = what_then_where_level::make(name, options);
            const int steps = 3 + 2 * phase{phase_kind::wait, level.delays.longest()}.steps();
            info.add_level(psychlab_level_info(name, level.base, steps, 0.25f));
        }
        return info;
    }

    static what_then_where make(const std::string& name, const task_options& options, const stimulus_set* stimuli) {
        what_then_where fresh{};
        fresh.level = what_then_where_level::make(name, options);
        fresh.level.base.show("what_then_where", name, classes, stimuli);
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        choose();
        psychlab_reset(*this);
    }

    ENGRAM_HD_CALL outcome step(int action) { return psychlab_step(*this, action); }
    ENGRAM_HD_CALL void observe(const float* images, float* pixels) const { psychlab_observe(*this, images, pixels); }

    std::optional<trial_event> event() const {
        if (clock.kind != phase_kind::respond) return std::nullopt;
        return trial_event{clock.trial, level.base.first + digit[where], false, where};
    }

    int oracle() const { return psychlab_oracle(*this); }

    bool valid() const {
        bool good = where >= 0 && where < 4 && level.delays.has(delay[0]) && level.delays.has(delay[1]);
        for (const int d : digit) good = good && d >= 0 && d < classes;
        for (const int i : hue) good = good && i >= 0 && i < (level.base.paper ? 1 : hues);
        return good && psychlab_valid(*this);
    }

    ENGRAM_HD const psychlab_level& rules() const { return level.base; }
    ENGRAM_HD phase plan(int i) const {
        switch (i) {
            case 0:
            case 2:
                return {phase_kind::show, 25};
            case 1:
                return {phase_kind::wait, delay[0]};
            case 3:
                return {phase_kind::wait, delay[1]};
            case 4:
                return {phase_kind::centre};
            default:
                return {phase_kind::respond};
        }
    }
    ENGRAM_HD int buttons() const { return 4; }
    ENGRAM_HD int answer() const { return where; }
    ENGRAM_HD button face(int) const { return button::white; }
    ENGRAM_HD void conclude(bool, bool last) {
        if (!last) choose();
    }

    ENGRAM_HD_CALL void draw(const panel& on, const float* images) const {
        const int size = on.fine() ? 20 : 6, edge = on.fine() ? 2 : 0, middle = (on.side - size) / 2;
        const int far = on.side - size - edge;
        const auto lay = [&](int which, int left, int top) {
            const std::ptrdiff_t image = level.base.first + digit[which];
            on.image(images + image * (level.base.side * level.base.side * 3), level.base.side, left, top, size);
            if (on.fine()) return;
            const colour paint = from_hue(hue[which], 0, 255);
            const float light[] = {unit(paint.r), unit(paint.g), unit(paint.b)};
            for (int y = top; y < top + size; ++y)
                for (int i = 3 * left; i < 3 * (left + size); ++i) {
                    float& texel = on.texels[y * on.side * 3 + i];
                    texel = light[i % 3] * (1 - 0.6f * texel);
                }
        };
        if (clock.kind != phase_kind::show) return;
        if (clock.index == 0) return lay(where, middle, middle);
        lay(0, edge, middle), lay(1, far, middle), lay(2, middle, edge), lay(3, middle, far);
    }

private:
    ENGRAM_HD static float unit(std::uint8_t x) { return static_cast<float>(x) / 255.0f; }

    /// The numbers below `Count` in random order.
    template <int Count>
    ENGRAM_HD_CALL void shuffle(int* order) {
        for (int i = 0; i < Count; ++i) {  // inside out
            const int j = random.below(i + 1);
            order[i] = order[j];
            order[j] = i;
        }
    }

    ENGRAM_HD_CALL void choose() {
        for (int& each : delay) each = level.delays.draw(random);
        int order[classes];
        shuffle<classes>(order);
        for (int edge = 0; edge < 4; ++edge) digit[edge] = order[edge];
        where = random.below(4);
        if (level.base.paper) return;
        int turn[4];  // a quarter of the circle apart
        shuffle<4>(turn);
        const int first = random.below(hues / 4);
        for (int edge = 0; edge < 4; ++edge) hue[edge] = first + turn[edge] * (hues / 4);
    }
};

static_assert(environment<what_then_where> && psychlab_task<what_then_where>);

}  // namespace engram
