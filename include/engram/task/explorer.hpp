#pragma once
// SPDX-License-Identifier: MIT

// A player who forgets nothing of an episode and knows nothing beforehand: what the oracle earns, who is told where the
// goal is, no agent can; what the explorer earns, a careful one does. For tasks that seek a goal, where bodies walk
// whole cells (pace of the small fidelity).
//
// It goes to the nearest cell that it has to look into, by cells that are not known to be solid, turning as it goes so
// that it sees what lies ahead; once the goal was seen, straight there. It always knows where it stands: that a body
// put elsewhere has to find its bearings again is not counted. Nearest first is a rule and no optimum, so the explorer
// is no bound; a map drawn by heart is what it has before every agent. Host only; O(cells) a call.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engram/task/first_person.hpp"
#include "engram/task/grid_path.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// Cells of a room, marked or not.
struct marked_cells {
    std::array<bool, room::longest_side * room::longest_side> marks{};  // row-major, rows of room::longest_side

    bool& at(int x, int y) { return marks[static_cast<std::size_t>(y * room::longest_side + x)]; }
    bool at(int x, int y) const { return marks[static_cast<std::size_t>(y * room::longest_side + x)]; }
};

/// Marks every cell that a ray of the view meets, the walls that end it included.
inline void look(const room& in, const pose& who, const lens& through, marked_cells& seen) {
    constexpr int rays = 129, steps_each = 32;
    seen.at(who.x >> 16, who.y >> 16) = true;
    const double ahead = who.heading * 6.283185307179586 / full_turn;
    for (int k = 0; k < rays; ++k) {
        const double angle = ahead + (2.0 * k / (rays - 1) - 1) * 0.5 * static_cast<double>(through.field_of_view);
        const double dx = std::cos(angle) / steps_each, dy = std::sin(angle) / steps_each;
        double x = who.x / static_cast<double>(cell_length), y = who.y / static_cast<double>(cell_length);
        for (int n = 0; n < steps_each * room::longest_side; ++n) {
            x += dx, y += dy;
            const int cx = static_cast<int>(std::floor(x)), cy = static_cast<int>(std::floor(y));
            if (!in.inside(cx, cy)) break;
            seen.at(cx, cy) = true;
            if (in.at(cx, cy).solid()) break;
        }
    }
}

/// What was seen of an episode's room.
struct explored {
    marked_cells seen;      // cells of which it is known whether they are solid
    marked_cells searched;  // cells of which it is known whether the goal is there
    bool goal = false;      // it is known where it is

    /// What the view adds. A cell is searched by standing there, or, where the goal `shows`, by seeing it.
    void look_around(const room& in, const pose& who, const lens& through, bool shows, int goal_x, int goal_y) {
        marked_cells now;
        look(in, who, through, now);
        for (std::size_t i = 0; i < now.marks.size(); ++i) {
            seen.marks[i] = seen.marks[i] || now.marks[i];
            searched.marks[i] = searched.marks[i] || (shows && now.marks[i]);
        }
        searched.at(who.x >> 16, who.y >> 16) = true;
        goal = goal || searched.at(goal_x, goal_y);
    }
};

/// The action that brings a body that walks whole cells nearer to the nearest cell of which wanted(x, y) is true,
/// through those of which passable(x, y) is. It turns to where it goes; backward only into a cell that was seen. Where
/// no such cell is left, it looks around.
template <class Passable, class Wanted>
int explore_action(const room& in, const pose& who, const marked_cells& seen, Passable passable, Wanted wanted) {
    constexpr int across[] = {1, 0, -1, 0}, down[] = {0, 1, 0, -1};
    constexpr walking ways[] = {walking::forward, walking::look_right_forward, walking::backward,
                                walking::look_left_forward};
    const int quarter = who.heading / (full_turn / 4);
    // The way by which each cell was come to first, from 1; straight on before aside before back.
    std::array<std::uint8_t, room::longest_side * room::longest_side> first{};
    std::vector<std::array<int, 2>> queue{{who.x >> 16, who.y >> 16}};
    const auto way = [&](int x, int y) -> std::uint8_t& { return first[static_cast<std::size_t>(y * in.width + x)]; };
    way(queue[0][0], queue[0][1]) = 5;
    for (std::size_t next = 0; next < queue.size(); ++next) {
        const auto [x, y] = queue[next];
        if (next > 0 && wanted(x, y)) {
            const int k = way(x, y) - 1, back = (quarter + 2) % 4;
            if (k == 2 && !seen.at(queue[0][0] + across[back], queue[0][1] + down[back]))
                return static_cast<int>(walking::look_left);
            return static_cast<int>(ways[k]);
        }
        for (const int k : {0, 1, 3, 2}) {
            const int nx = x + across[(quarter + k) % 4], ny = y + down[(quarter + k) % 4];
            if (!in.inside(nx, ny) || way(nx, ny) || !passable(nx, ny)) continue;
            way(nx, ny) = next == 0 ? static_cast<std::uint8_t>(k + 1) : way(x, y);
            queue.push_back({nx, ny});
        }
    }
    return static_cast<int>(walking::look_left);
}

}  // namespace engram
