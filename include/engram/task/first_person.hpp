#pragma once
// SPDX-License-Identifier: MIT

// What all 3D tasks of the suite share: eight actions, how they move a body, how time passes, and the camera.
//
// Time is counted in frames of 1/60 s. An agent step is `ticks` moves of `frames` frames each: at paper fidelity four
// of one frame (action repeat 4), at small fidelity one of fifteen (four agent steps a second). Rules are checked after
// every tick.
//
//   paper  turn: 20 pixel-units a frame (IMPALA's look, facts 2.1; 57 are 6 degrees) = 2.105 degrees, 8.4 an agent step
//          walk: a speed of the task, in cells a second; the body is a disc that slides along what is solid
//          view: 80 degrees from left to right
//   small  a board game (ours): a turn is a quarter, a walk one whole cell, to the middle of the next one, or none at
//          all where that is not free; so places and headings come back exactly. The view is 132 degrees wide: one look
//          shows what is ahead and to both sides, and what matters stands within a cell or two, several pixels wide

#include <cstdint>
#include <string>
#include <vector>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/ray_caster.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// In the order of the actions (facts 2.1).
enum class walking : int {
    forward,
    backward,
    strafe_left,
    strafe_right,
    look_left,
    look_right,
    look_left_forward,
    look_right_forward
};
constexpr int walking_actions = 8;

constexpr int frames_per_second = 60;

/// How an agent step passes. No padding.
struct pace {
    std::int32_t ticks = 1, frames = 15;
    std::int32_t turn = full_turn / 4;   // heading units a tick
    std::int32_t stride = cell_length;   // units of length a tick
    std::int32_t whole = 1, unused = 0;  // whole: only whole cells, along the grid
    bool operator==(const pace&) const = default;

    /// At paper fidelity at `speed` cells a second; at small fidelity a cell or a quarter turn an agent step.
    static pace of(const task_options& options, float speed) {
        if (!paper_fidelity(options)) return {};
        return {4, 1, 383, static_cast<std::int32_t>(speed * static_cast<float>(cell_length) / frames_per_second), 0};
    }

    static bool paper_fidelity(const task_options& options) {
        require_known("fidelity", options.fidelity, std::vector<std::string>{"small", "paper"});
        return options.fidelity == "paper";
    }

    /// Agent steps until so many seconds have passed.
    int steps(float seconds) const {
        const int each = ticks * frames, total = static_cast<int>(seconds * frames_per_second);
        return (total + each - 1) / each;
    }

    /// Whether a body that walks like this can have come to stand so: in the middle of a cell, where only whole ones
    /// are walked.
    ENGRAM_HD bool fits(const pose& who) const {
        constexpr int within = cell_length - 1, middle = cell_length / 2;
        return !whole || ((who.x & within) == middle && (who.y & within) == middle && who.heading % turn == 0);
    }

    /// One tick of an action.
    ENGRAM_HD_CALL void move(const room& in, pose& who, int action, int radius) const {
        const auto a = static_cast<walking>(action);
        if (a == walking::look_left || a == walking::look_left_forward)
            who.heading = (who.heading - turn) & (full_turn - 1);
        if (a == walking::look_right || a == walking::look_right_forward)
            who.heading = (who.heading + turn) & (full_turn - 1);
        const bool ahead = a == walking::forward || a == walking::look_left_forward || a == walking::look_right_forward;
        const int along = ahead ? stride : a == walking::backward ? -stride : 0;
        const int across = a == walking::strafe_right ? stride : a == walking::strafe_left ? -stride : 0;
        if (along == 0 && across == 0) return;
        if (!whole) return walk(in, who, along, across, radius);
        const int quarter = who.heading / (full_turn / 4), c = (quarter + 1) % 2 * (1 - quarter),
                  s = quarter % 2 * (2 - quarter);
        const int x = who.x + along * c - across * s, y = who.y + along * s + across * c;
        if (!collides(in, x, y, radius)) who.x = x, who.y = y;
    }
};

/// Of a task's episodes (task_info), which have changed at small fidelity more often than at the paper's.
inline int revision_of(const task_options& options, int small, int paper = 1) {
    return pace::paper_fidelity(options) ? paper : small;
}

/// What the 3D tasks show: 72 x 96 x 3 at paper fidelity, 12 x 16 x 3 at small fidelity.
inline observation_shape view_shape(const task_options& options) {
    return pace::paper_fidelity(options) ? observation_shape{72, 96, 3} : observation_shape{12, 16, 3};
}

/// The camera of a view of that shape, `eye` cells above the ground; who walks whole cells sees more at once.
ENGRAM_HD lens view_lens(const pace& step, int height, int width, float eye = 0.5f) {
    lens through;
    through.height = height, through.width = width, through.eye = eye;
    if (step.whole) through.field_of_view = 2.3f;
    return through;
}

/// The action that brings a body nearer to (x, y): it turns until the place lies within `tolerance` of straight ahead,
/// walking already while it is roughly there, then goes forward. For oracles.
inline int action_towards(const pose& who, std::int32_t x, std::int32_t y, int tolerance) {
    const std::int64_t c = cosine(who.heading), s = sine(who.heading);
    const std::int64_t dx = x - who.x, dy = y - who.y;
    const std::int64_t ahead = dx * c + dy * s, right = dy * c - dx * s;  // times 65536
    const std::int64_t aside = right < 0 ? -right : right;
    // aside / ahead against the tangent of the tolerance.
    if (ahead > 0 && aside * cosine(tolerance) <= ahead * sine(tolerance)) return static_cast<int>(walking::forward);
    const bool roughly = ahead > 0 && aside < ahead;
    if (right < 0) return static_cast<int>(roughly ? walking::look_left_forward : walking::look_left);
    return static_cast<int>(roughly ? walking::look_right_forward : walking::look_right);
}

}  // namespace engram
