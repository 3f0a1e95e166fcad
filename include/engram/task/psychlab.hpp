#pragma once
// SPDX-License-Identifier: MIT

// The course of a trial in the PsychLab tasks (facts 2.3), at both fidelities.
//
//   gap -> fixate -> the task's own phases, the last one `respond` -> feedback -> gap of the next trial
//
//   phase      shows                          paper: lasts                              small: agent steps
//   gap        an empty panel                 1 frame                                   0
//   fixate     a red cross                    until gazed at                            0
//   show       what is to be remembered       its frames                                1
//   wait       an empty panel                 its frames                                max(1, ceil(frames / 16))
//   centre     a dot                          until gazed at                            0
//   respond    buttons, after its frames      until one is gazed at                     1: the action is the button
//   feedback   that button green or red       until the gaze leaves it: the reward      0: the reward comes at once
//
// Paper fidelity: frames of 1/60 s, four an agent step, five actions (gaze.hpp). An episode starts at a yaw within 45
// degrees, and ends with its last trial, by its timeout, or after more than 300 frames in a row off the panel. Small
// fidelity: no gaze, no timeout. A task says what its phases are, what is shown in them, and which button is right.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/first_person.hpp"
#include "engram/task/gaze.hpp"
#include "engram/task/panel.hpp"

namespace engram {

enum class phase_kind : std::int32_t { gap, fixate, show, wait, centre, respond, feedback };
constexpr int phase_kinds = 7;

struct phase {
    phase_kind kind;
    std::int32_t frames = 0;

    /// Agent steps at small fidelity.
    ENGRAM_HD int steps() const {
        return kind == phase_kind::wait ? (frames <= 16 ? 1 : (frames + 15) / 16) : kind != phase_kind::centre;
    }
};

/// What is seen at paper fidelity, pixels.
constexpr int psychlab_view_height = 72, psychlab_view_width = 96;

/// What the tasks have in common in each of their levels. No padding.
struct psychlab_level {
    std::int32_t trials = 0, timeout = 0;         // timeout in frames
    std::int32_t first = 0, count = 0, side = 0;  // ids of the stimuli to draw from, and their side in pixels
    std::int32_t holdout = 0, paper = 0, unused = 0;
    bool operator==(const psychlab_level&) const = default;

    static bool held_out(const std::string& level) { return level != "train"; }

    static psychlab_level make(const std::string& level, int trials, int seconds, const task_options& options) {
        return {trials, seconds * frames_per_second, 0, 0, 0, held_out(level), pace::paper_fidelity(options), 0};
    }

    /// Takes the stimuli of the level's split, of which an episode needs so many.
    psychlab_level& show(const std::string& task, const std::string& level, int needed, const stimulus_set* stimuli) {
        require(stimuli != nullptr, task, ": needs a set of stimuli");
        const split s = holdout ? split::holdout : split::train;
        require(stimuli->count(s) >= needed, task, ": the ", stimuli->source(), " set has ", stimuli->count(s),
                " images for level '", level, "', expected at least ", needed);
        first = stimuli->first(s), count = stimuli->count(s), side = stimuli->side();
        return *this;
    }
};

/// The delays of a level, in frames (facts 2.2, errata M5, M7); every trial draws its own.
struct delay_list {
    std::int32_t count = 0, frames[5]{};
    bool operator==(const delay_list&) const = default;

    ENGRAM_HD int draw(philox& random) const { return frames[random.below(count)]; }
    bool has(int delay) const { return std::find(frames, frames + count, delay) != frames + count; }
    int longest() const { return *std::max_element(frames, frames + count); }
};

/// The levels of all four tasks.
inline constexpr const char* psychlab_levels[] = {"train", "holdout_interpolate", "holdout_extrapolate"};

/// What tasks on this state machine have in common.
inline task_info psychlab_info(const std::string& task, int buttons, const task_options& options) {
    const bool paper = pace::paper_fidelity(options);
    return {.name = task,
            .observation = paper ? observation_shape{psychlab_view_height, psychlab_view_width, 3}
                                 : observation_shape{panel::coarse_side, panel::coarse_side, 3},
            .actions = paper ? looking_actions : buttons};
}

/// A level in which a trial takes at most so many steps at small fidelity; chance is the share of trials that random
/// buttons get right.
inline level_info psychlab_level_info(const std::string& name, const psychlab_level& level, int steps, float chance) {
    const auto most = static_cast<float>(level.trials);
    return {name, most, level.paper ? std::numeric_limits<float>::quiet_NaN() : chance * most,
            level.paper ? (level.timeout + 3) / 4 : level.trials * steps};
}

/// Where an episode is. No padding.
struct psychlab_clock {
    std::int32_t trial;
    phase_kind kind;
    std::int32_t index;          // among the task's own phases
    std::int32_t time;           // frames (small: steps) since the phase began
    std::int32_t elapsed, away;  // frames since the episode began, and in a row off the panel
    std::int32_t response;       // the button gazed at last
    std::int32_t unused;
    gaze eye;
};

/// The least that a task has to say: level (with the common part as `rules`), clock, random; `phases` own phases,
/// plan(index); the number of buttons, their faces, the answer; conclude(right, last), which keeps account of a trial
/// and, unless it was the last, draws the next; what is drawn in show, respond and feedback; the panel's ground;
/// whether the buttons of the small panel are low.
template <class T>
concept psychlab_task = requires(T t, const T seen, const panel& on, const float* images, bool yes) {
    { T::phases } -> std::convertible_to<int>;
    { T::ground } -> std::convertible_to<shade>;
    { T::low_buttons } -> std::convertible_to<bool>;
    { seen.rules() } -> std::convertible_to<const psychlab_level&>;
    { t.clock } -> std::same_as<psychlab_clock&>;
    { t.random } -> std::same_as<philox&>;
    { seen.plan(0) } -> std::same_as<phase>;
    { seen.buttons() } -> std::same_as<int>;
    { seen.face(0) } -> std::same_as<button>;
    { seen.answer() } -> std::same_as<int>;
    { t.conclude(yes, yes) } -> std::same_as<void>;
    { seen.draw(on, images) } -> std::same_as<void>;
};

/// Begins an own phase; small fidelity leaves out those that take no step.
template <class Task>
ENGRAM_HD_CALL void enter_phase(Task& task, int index) {
    while (!task.rules().paper && task.plan(index).steps() == 0) ++index;
    task.clock.index = index;
    task.clock.kind = task.plan(index).kind;
    task.clock.time = 0;
}

/// Begins a trial, at paper fidelity with the phase `first`.
template <class Task>
ENGRAM_HD_CALL void begin_trial(Task& task, phase_kind first) {
    if (!task.rules().paper) return enter_phase(task, 0);
    task.clock.kind = first;
    task.clock.index = task.clock.time = 0;
}

/// Call it at the end of a task's reset.
template <class Task>
ENGRAM_HD void psychlab_reset(Task& task) {
    task.clock = {};
    if (task.rules().paper) task.clock.eye.yaw = task.random.below(full_turn / 4 + 1) - full_turn / 8;
    begin_trial(task, phase_kind::fixate);
}

/// Ends a trial: its reward, and whether the episode is over.
template <class Task>
ENGRAM_HD outcome conclude_trial(Task& task) {
    const bool right = task.clock.response == task.answer(), last = ++task.clock.trial == task.rules().trials;
    task.conclude(right, last);
    if (!last) begin_trial(task, phase_kind::gap);
    return {right ? 1.0f : 0.0f, last};
}

/// One frame at paper fidelity.
template <class Task>
ENGRAM_HD_CALL outcome psychlab_frame(Task& task, int action) {
    psychlab_clock& now = task.clock;
    now.eye.move(action);
    const ray seen = now.eye.direction();
    constexpr panel_box cross = cross_zone, dot = dot_zone;  // a device has no address of the others
    outcome got;
    switch (now.kind) {
        case phase_kind::gap:
            now.kind = phase_kind::fixate;
            break;
        case phase_kind::fixate:
            if (seen.on(cross)) enter_phase(task, 0);
            break;
        case phase_kind::centre:
            if (seen.on(dot)) enter_phase(task, now.index + 1);
            break;
        case phase_kind::show:
        case phase_kind::wait:
            if (++now.time >= task.plan(now.index).frames) enter_phase(task, now.index + 1);
            break;
        case phase_kind::respond:
            if (now.time < task.plan(now.index).frames) {
                ++now.time;
                break;
            }
            for (int d = 0; d < task.buttons(); ++d)
                if (seen.on(button_zone(d))) now.response = d, now.kind = phase_kind::feedback;
            break;
        case phase_kind::feedback:
            if (!seen.on(button_zone(now.response))) got = conclude_trial(task);
            break;
    }
    now.away = seen.on() ? 0 : now.away + 1;
    ++now.elapsed;
    got.done = got.done || now.away > 300 || now.elapsed >= task.rules().timeout;
    return got;
}

/// One agent step.
template <class Task>
ENGRAM_HD outcome psychlab_step(Task& task, int action) {
    psychlab_clock& now = task.clock;
    if (!task.rules().paper) {
        if (now.kind == phase_kind::respond) {
            now.response = action;
            return conclude_trial(task);
        }
        if (++now.time >= task.plan(now.index).steps()) enter_phase(task, now.index + 1);
        return {};
    }
    outcome total;
    for (int frame = 0; frame < 4 && !total.done; ++frame) {
        const outcome got = psychlab_frame(task, action);
        total.reward += got.reward;
        total.done = got.done;
    }
    return total;
}

/// Draws what the panel shows in this phase.
template <class Task>
ENGRAM_HD_CALL void draw_panel(const Task& task, const panel& on, const float* images) {
    const psychlab_clock& now = task.clock;
    constexpr shade ground = Task::ground;
    on.fill(ground);
    if (now.kind == phase_kind::fixate) on.cross();
    if (now.kind == phase_kind::centre) on.dot({1 - ground.r, 1 - ground.g, 1 - ground.b});
    const bool response = now.kind == phase_kind::respond, feedback = now.kind == phase_kind::feedback;
    if (now.kind != phase_kind::show && !response && !feedback) return;
    task.draw(on, images);
    const bool ready = feedback || (response && (!task.rules().paper || now.time >= task.plan(now.index).frames));
    for (int d = 0; ready && d < task.buttons(); ++d)
        on.press(d,
                 !feedback || d != now.response ? task.face(d)
                 : d == task.answer()           ? button::bright_green
                                                : button::bright_red,
                 Task::low_buttons);
}

/// What the agent sees: the panel, or at paper fidelity the panel from where it looks.
template <class Task>
ENGRAM_HD void psychlab_observe(const Task& task, const float* images, float* pixels) {
    if (!task.rules().paper) return draw_panel(task, panel{{pixels, panel::coarse_side}}, images);
    float texels[panel::fine_size];
    const panel on{{texels, panel::fine_side}};
    draw_panel(task, on, images);
    view_panel(on, task.clock.eye, psychlab_view_height, psychlab_view_width, pixels);
}

/// Looks at what is wanted now; small: the answer.
template <class Task>
int psychlab_oracle(const Task& task) {
    const psychlab_clock& now = task.clock;
    if (!task.rules().paper) return now.kind == phase_kind::respond ? task.answer() : 0;
    return now.kind == phase_kind::respond ? look_at_button(now.eye, task.answer()) : look_at_middle(now.eye);
}

/// Whether the clock can be that of an episode of this task, whose own numbers are valid.
template <class Task>
bool psychlab_valid(const Task& task) {
    const psychlab_clock& now = task.clock;
    const psychlab_level& rules = task.rules();
    if (now.trial < 0 || now.trial >= rules.trials || now.index < 0 || now.index >= Task::phases || now.time < 0 ||
        now.response < 0 || now.response >= task.buttons())
        return false;
    const phase own = task.plan(now.index);
    if (!rules.paper) return now.kind == own.kind && own.steps() > 0 && now.time < own.steps();
    if (now.elapsed < 0 || now.elapsed >= rules.timeout || now.away < 0 || now.away > 300 || !now.eye.valid())
        return false;
    switch (now.kind) {
        case phase_kind::gap:
        case phase_kind::fixate:
            return now.index == 0 && now.time == 0;
        case phase_kind::show:
        case phase_kind::wait:
            return own.kind == now.kind && now.time < own.frames;
        case phase_kind::centre:
            return own.kind == now.kind && now.time == 0;
        case phase_kind::respond:
            return own.kind == now.kind && now.time <= own.frames;
        case phase_kind::feedback:
            return own.kind == phase_kind::respond && now.time == own.frames;
        default:
            return false;
    }
}

}  // namespace engram
