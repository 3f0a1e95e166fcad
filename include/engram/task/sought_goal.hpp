#pragma once
// SPDX-License-Identifier: MIT

// What rooms share in which a goal is looked for, found, and found again (facts 2.5), at small fidelity (ours).
//
// A visible goal is seen until it has been found, and not any more in that episode: in so small a room who walks on
// sees it again soon, and an agent without a memory came two thirds of the way (docs/decisions/0047). Who has found it
// stands there for one agent step more, on magenta ground, and so sees the place from it with the reward. Outer walls
// have a colour for each side and are turned in each episode; who is put elsewhere looks at the wall of the first.

#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/task/ray_caster.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// What has come of a goal that stays for an episode.
enum class goal_state : std::uint8_t {
    unknown,  // not found yet
    reached,  // the body stands there, to be put elsewhere
    known     // found before
};

/// After an agent step that reached the goal or did not.
ENGRAM_HD constexpr goal_state after_step(goal_state before, bool reached) {
    return reached ? goal_state::reached : before == goal_state::reached ? goal_state::known : before;
}

/// Whether a goal's state can be so; `there`: the body is within its reach. At paper fidelity it stays unknown.
ENGRAM_HD constexpr bool can_be(goal_state found, bool small_fidelity, bool there) {
    if (!small_fidelity) return found == goal_state::unknown;
    return found <= goal_state::known && (found == goal_state::reached) == there;
}

/// The room as it is seen, `spare` once the goal has been found: without objects, of which the goal is the only one,
/// and on magenta ground where it has been reached.
ENGRAM_HD_CALL const room& room_with_goal(const room& place, room& spare, goal_state found) {
    if (found == goal_state::unknown) return place;
    spare = place;
    spare.objects_used = 0, spare.objects[0] = {};
    if (found == goal_state::reached) spare.skins[0] = {pattern::plain, 1, {255, 40, 170}, {}, 0};
    return spare;
}

constexpr int room_sides = 4;

/// The side of the outer wall that a cell is in: north, east, south, west.
ENGRAM_HD constexpr int side_at(int x, int y, int width, int height) {
    return y == 0 ? 0 : x == width - 1 ? 1 : y == height - 1 ? 2 : 3;
}

/// The paint of an outer wall: north, east, south, west where nothing is turned.
ENGRAM_HD_CALL texture side_paint(int side) {
    constexpr colour paints[] = {{220, 40, 40}, {250, 220, 60}, {50, 90, 230}, {40, 180, 70}};
    return {pattern::plain, 1, paints[side], {}, 0};
}

/// Where the wall of the first colour is, as a heading, if all is turned by so many quarters.
ENGRAM_HD constexpr int first_side(int turned) {
    return (3 + turned) % room_sides * (full_turn / room_sides);
}

}  // namespace engram
