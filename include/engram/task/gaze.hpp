#pragma once
// SPDX-License-Identifier: MIT

// Where the agent of a PsychLab task looks, and what it looks at (facts 2.3).
//
// The eye stands before the middle of a square panel, at a distance that lets the panel just fill the height of a
// 72 x 96 view with a horizontal field of 90 degrees: half a side is 0.75 of the distance (ours). A look turns the gaze
// by 20 pixel-units a frame (IMPALA's look, facts 2.1) = 2.105 degrees, along the yaw or the pitch. The pitch stops at
// 36 frames of looking, 75.7 degrees, and so stays on its lattice.
//
//   direction = (sin yaw cos pitch, -sin pitch, cos yaw cos pitch)     x right, y down, z towards the panel
//   place on the panel, in sides from its upper left corner = 1/2 + (x, y) / z / 1.5
//
// Four frames, an agent step, are 8.42 degrees; a button is 5.9 degrees wide seen sideways and 8.58 seen from the
// middle, the cross's zone 4.3. So from every heading all of them are met, in passing or at rest. Everything that
// decides is compared in whole numbers.

#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// The five actions (facts 2.1); the first four are also the order of the buttons.
enum class looking : int { left, right, up, down, nothing };
constexpr int looking_actions = 5;

/// A part of the panel, in thousandths of its side, from its upper left corner.
struct panel_box {
    std::int32_t left = 0, top = 0, right = 1000, bottom = 1000;
};

/// Where the cross is fixated: the middle 0.05; where the dot is: 21 of 256 pixels.
inline constexpr panel_box cross_zone{475, 475, 525, 525}, dot_zone{459, 459, 541, 541};

/// The button of a direction: 0.1 of the side, at the middle of an edge.
ENGRAM_HD panel_box button_zone(int direction) {
    switch (direction) {
        case 0:
            return {0, 450, 100, 550};
        case 1:
            return {900, 450, 1000, 550};
        case 2:
            return {450, 0, 550, 100};
        default:
            return {450, 900, 550, 1000};
    }
}

/// A direction: x right, y down, z towards the panel.
struct ray {
    std::int64_t x, y, z;

    /// Whether it meets that part of the panel: 1/2 + x / z / 1.5 against thousandths.
    ENGRAM_HD_CALL bool on(const panel_box& part = {}) const {
        return z > 0 && 3 * (part.left - 500) * z <= 2000 * x && 2000 * x <= 3 * (part.right - 500) * z &&
               3 * (part.top - 500) * z <= 2000 * y && 2000 * y <= 3 * (part.bottom - 500) * z;
    }
};

struct gaze {
    static constexpr std::int32_t step = 383;           // a frame of looking
    static constexpr std::int32_t highest = 36 * step;  // pitch, up and down

    std::int32_t yaw = 0, pitch = 0;  // to the right, up; headings (room.hpp), yaw within half a turn

    /// One frame of an action.
    ENGRAM_HD_CALL void move(int action) {
        constexpr int half = full_turn / 2;
        switch (static_cast<looking>(action)) {
            case looking::left:
                yaw -= step;
                break;
            case looking::right:
                yaw += step;
                break;
            case looking::up:
                pitch = pitch + step > highest ? highest : pitch + step;
                break;
            case looking::down:
                pitch = pitch - step < -highest ? -highest : pitch - step;
                break;
            default:
                return;
        }
        yaw = ((yaw + half) & (full_turn - 1)) - half;
    }

    /// Towards what: the direction above, times 2^32.
    ENGRAM_HD_CALL ray direction() const {
        const std::int64_t flat = cosine(pitch);
        return {sine(yaw) * flat, -std::int64_t{sine(pitch)} * full_turn, cosine(yaw) * flat};
    }
    ENGRAM_HD bool on(const panel_box& part = {}) const { return direction().on(part); }

    bool valid() const { return yaw >= -full_turn / 2 && yaw < full_turn / 2 && pitch >= -highest && pitch <= highest; }
};

/// The action that brings a gaze nearer to the middle of the panel: level first, then across it, where it rests if it
/// can and passes to and fro if it cannot. For oracles.
inline int look_at_middle(const gaze& now) {
    if (now.pitch > 2 * gaze::step) return static_cast<int>(looking::down);
    if (now.pitch < -2 * gaze::step) return static_cast<int>(looking::up);
    if (now.on(cross_zone)) return static_cast<int>(looking::nothing);
    return static_cast<int>(now.yaw > 0 ? looking::left : looking::right);
}

/// The action that brings it nearer to the button of a direction; who has gone beyond it comes back.
inline int look_at_button(const gaze& now, int direction) {
    if (now.on(button_zone(direction))) return static_cast<int>(looking::nothing);
    const bool level = now.pitch <= 2 * gaze::step && now.pitch >= -2 * gaze::step;
    // Above and below, the column of the lattice that is nearest to the middle.
    const bool straight = now.yaw <= 2 * gaze::step && now.yaw >= -2 * gaze::step;
    if (!level && (direction < 2 || !straight)) return look_at_middle(now);
    if (direction >= 2 && !straight) return static_cast<int>(now.yaw > 0 ? looking::left : looking::right);
    const int beyond = 40 * full_turn / 360, turned = direction < 2 ? now.yaw : -now.pitch;
    const int backwards = direction % 2 == 0 ? direction + 1 : direction - 1;
    return (direction % 2 == 0 ? -turned : turned) > beyond ? backwards : direction;
}

}  // namespace engram
