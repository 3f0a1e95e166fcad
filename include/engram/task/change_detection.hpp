#pragma once
// SPDX-License-Identifier: MIT

// Change detection (facts 2.3): one to four objects are shown for 25 frames; after a delay, and a look at a black dot,
// they are shown again, half of the time with one of them changed. Button 0 (left) = different, 1 (right) = same
// (errata M8), 8 frames after the second array; +1 if right, 0 otherwise. 50 trials, 300 s.
//
// An object is the letter E or a square, in one of the split's five colours (errata M9), in one of nine cells: the
// middle row and the middle column of a 5 x 5 grid over 0.75 of the panel (ours), 1/6 of it in size. Domain of a trial,
// uniform:
//
//   0  E, any              colours and orientations vary     changes: colour, orientation, position
//   1  E, colour           colours vary, one orientation     changes: colour, position
//   2  E, orientation      one colour, orientations vary     changes: orientation, position
//   3  square, colour      colours vary                      changes: colour, position
//   4  all                 also E or square, 1 : 1           changes: shape, colour, position, an E's orientation
//
// The source fixes the domains' names and that a position may always change; attributes are drawn independently, cells
// without replacement, and the kind of change uniformly from those that the domain and the object allow (ours). At
// 16 x 16 an object is 3 x 3 pixels, an E a block with a notch on the side that it opens to, and the grid leaves room
// for the buttons only in the lower corners.

#include <array>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/psychlab.hpp"

namespace engram {

/// Train: Amethyst, Mallow, Jade, Caramel, Honeydew; holdout: Violet, Lime, Orange, Sky, Yellow.
ENGRAM_HD shade change_colour(bool holdout, int i) {
    constexpr float train[5][3] = {{240, 163, 255}, {194, 0, 136}, {148, 255, 181}, {153, 63, 0}, {255, 204, 153}};
    constexpr float held[5][3] = {{116, 10, 255}, {157, 204, 0}, {255, 164, 5}, {94, 241, 242}, {255, 255, 0}};
    const float* c = holdout ? held[i] : train[i];
    return {c[0] / 255, c[1] / 255, c[2] / 255};
}

/// Which way an E opens: right, down, left, up. Cells: the middle row from the left, then the rest of the middle column
/// from the top.
struct change_object {
    int cell = 0, colour = 0, opening = 0, square = 0;
    bool operator==(const change_object&) const = default;

    ENGRAM_HD int column() const { return cell < 5 ? cell : 2; }
    ENGRAM_HD int row() const { return cell < 5 ? 2 : cell < 7 ? cell - 5 : cell - 4; }
    bool valid() const {
        return cell >= 0 && cell < 9 && colour >= 0 && colour < 5 && opening >= 0 && opening < 4 &&
               (square == 0 || square == 1);
    }
};

enum class change_domain : int { letter, letter_colour, letter_opening, square_colour, all };

struct change_detection_level {
    psychlab_level base;
    delay_list delays;
    bool operator==(const change_detection_level&) const = default;

    static change_detection_level make(const std::string& name, const task_options& options) {
        return {psychlab_level::make(name, 50, 300, options), name == "train" ? delay_list{5, {2, 4, 8, 64, 128}}
                                                              : name == "holdout_interpolate"
                                                                  ? delay_list{2, {16, 32}}
                                                                  : delay_list{4, {130, 150, 200, 250}}};
    }
};

struct change_detection {
    static constexpr bool uses_stimuli = false, low_buttons = true;
    static constexpr std::array reads{"fidelity"};
    static constexpr int phases = 4, capacity = 4;
    static constexpr shade ground{1, 1, 1};

    change_detection_level level;
    philox random;
    psychlab_clock clock;
    int domain, delay, objects, different;
    change_object study[capacity], test[capacity];

    static task_info describe(const task_options& options) {
        task_info info = psychlab_info("change_detection", 2, options);
        for (const char* name : psychlab_levels) {
            const auto level = change_detection_level::make(name, options);
            const int steps = 2 + phase{phase_kind::wait, level.delays.longest()}.steps();
            info.add_level(psychlab_level_info(name, level.base, steps, 0.5f));
        }
        return info;
    }

    static change_detection make(const std::string& name, const task_options& options, const stimulus_set*) {
        change_detection fresh{};
        fresh.level = change_detection_level::make(name, options);
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        choose();
        psychlab_reset(*this);
    }

    ENGRAM_HD_CALL outcome step(int action) { return psychlab_step(*this, action); }
    ENGRAM_HD_CALL void observe(const float* images, float* pixels) const { psychlab_observe(*this, images, pixels); }

    /// `stimulus` is the domain.
    std::optional<trial_event> event() const {
        if (clock.kind != phase_kind::respond) return std::nullopt;
        return trial_event{clock.trial, domain, different == 0, answer()};
    }

    int oracle() const { return psychlab_oracle(*this); }

    bool valid() const {
        bool good = domain >= 0 && domain < 5 && level.delays.has(delay) && objects >= 1 && objects <= capacity &&
                    (different == 0 || different == 1);
        for (int i = 0; i < capacity; ++i) good = good && study[i].valid() && test[i].valid();
        return good && psychlab_valid(*this);
    }

    ENGRAM_HD const psychlab_level& rules() const { return level.base; }
    ENGRAM_HD phase plan(int i) const {
        switch (i) {
            case 0:
                return {phase_kind::show, 25};
            case 1:
                return {phase_kind::wait, delay};
            case 2:
                return {phase_kind::centre};
            default:
                return {phase_kind::respond, 8};
        }
    }
    ENGRAM_HD int buttons() const { return 2; }
    ENGRAM_HD int answer() const { return different ? 0 : 1; }
    ENGRAM_HD button face(int) const { return button::black; }
    ENGRAM_HD void conclude(bool, bool last) {
        if (!last) choose();
    }

    ENGRAM_HD_CALL void draw(const panel& on, const float*) const {
        const bool first = clock.kind == phase_kind::show;
        for (int i = 0; i < objects; ++i) draw(on, first ? study[i] : test[i]);
    }

private:
    ENGRAM_HD_CALL void choose() {
        domain = random.below(5);
        objects = 1 + random.below(capacity);
        delay = level.delays.draw(random);
        const int colour = random.below(5), opening = random.below(4);
        int cells[9];
        for (int i = 0; i < 9; ++i) {  // a shuffle, inside out
            const int j = random.below(i + 1);
            cells[i] = cells[j];
            cells[j] = i;
        }
        for (int i = 0; i < capacity; ++i) {
            change_object& made = study[i];
            made.cell = cells[i];
            made.colour = domain_is(change_domain::letter_opening) ? colour : random.below(5);
            made.opening = domain_is(change_domain::letter_colour) ? opening : random.below(4);
            made.square = domain_is(change_domain::square_colour) || (domain_is(change_domain::all) && random.below(2));
            test[i] = made;
        }
        different = random.below(2);
        if (different) change(test[random.below(objects)], cells[objects + random.below(9 - objects)]);
    }

    ENGRAM_HD bool domain_is(change_domain d) const { return domain == static_cast<int>(d); }

    ENGRAM_HD_CALL void change(change_object& what, int free_cell) {
        enum { position, colour, opening, form };
        int kinds[4] = {position}, count = 1;
        if (!domain_is(change_domain::letter_opening)) kinds[count++] = colour;
        const bool turns = domain_is(change_domain::letter) || domain_is(change_domain::letter_opening) ||
                           (domain_is(change_domain::all) && !what.square);
        if (turns) kinds[count++] = opening;
        if (domain_is(change_domain::all)) kinds[count++] = form;
        switch (kinds[random.below(count)]) {
            case position:
                what.cell = free_cell;
                break;
            case colour:
                what.colour = (what.colour + 1 + random.below(4)) % 5;
                break;
            case opening:
                what.opening = (what.opening + 1 + random.below(3)) % 4;
                break;
            default:
                what.square = !what.square;
        }
    }

    /// An E is a comb of `parts` x `parts` squares: its back and every second row.
    ENGRAM_HD_CALL void draw(const panel& on, const change_object& what) const {
        const int parts = on.fine() ? 5 : 3, unit = on.fine() ? 2 : 1;
        const int left = on.fine() ? 11 + 12 * what.column() : 3 * what.column();
        const int top = on.fine() ? 11 + 12 * what.row() : 3 * what.row();
        const shade paint = change_colour(level.base.holdout, what.colour);
        for (int y = 0; y < parts; ++y)
            for (int x = 0; x < parts; ++x) {
                const int along = what.opening == 0   ? x
                                  : what.opening == 1 ? y
                                                      : parts - 1 - (what.opening == 2 ? x : y);
                const int across = what.opening % 2 == 0 ? y : x;
                if (what.square || along == 0 || across % 2 == 0)
                    on.box(left + x * unit, top + y * unit, unit, unit, paint);
            }
    }
};

static_assert(environment<change_detection> && psychlab_task<change_detection>);

}  // namespace engram
