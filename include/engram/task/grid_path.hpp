#pragma once
// SPDX-License-Identifier: MIT

// The shortest way of a body through a room, and the action that takes it there: the oracle of the navigation tasks.
//
// A grid search from the goal gives every free cell its way to go (to eight neighbours, diagonally only between free
// ones); a body goes straight to the farthest place on that way which it can reach without touching anything, and
// from there along the grid. All eight actions are tried. Of those that shorten the way by a fifth of a stride or more
// the best is taken, with a little weight on a heading from which one of the four ways to walk leads straight on: to
// walk sideways is as good as to turn. Host only; O(cells) a call.
//
// A place that can only just be seen through a gap is lost from sight with the next step, and either rule, to shorten
// the way or to come nearer to the place seen first, can circle there. They do so at different places: used by turns,
// five and three of eight agent steps, they always arrived, in some 100000 ways through arenas and mazes.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engram/task/first_person.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// Whether a disc can be moved along the straight line from one place to the other; tried every 8th of a cell.
inline bool free_line(const room& in, int from_x, int from_y, int to_x, int to_y, int radius) {
    const std::int64_t dx = to_x - from_x, dy = to_y - from_y;
    const std::int64_t wide = dx < 0 ? -dx : dx, tall = dy < 0 ? -dy : dy;
    const std::int64_t pieces = (wide > tall ? wide : tall) / (cell_length / 8) + 1;
    for (std::int64_t k = 0; k <= pieces; ++k)
        if (collides(in, static_cast<int>(from_x + dx * k / pieces), static_cast<int>(from_y + dy * k / pieces),
                     radius))
            return false;
    return true;
}

/// The ways from everywhere to one place of a room, which has to outlive it. Lengths in units of 1/65536 cell.
class grid_path {
public:
    static constexpr double unreachable = 1e18;

    /// What is left to go: its length, and the place to go to first.
    struct remaining {
        double length = unreachable;
        int x = 0, y = 0;
    };

    grid_path(const room& in, int goal_x, int goal_y, int radius)
        : in_(in), goal_x_(goal_x), goal_y_(goal_y), radius_(radius) {
        to_go_.fill(unreachable);
        const int x = goal_x >> 16, y = goal_y >> 16;
        if (!in.inside(x, y) || in.at(x, y).solid()) return;
        to_go_[index(x, y)] = apart(centre(x), centre(y), goal_x, goal_y);
        // First in, first out: a cell comes again when a shorter way to it is found.
        std::vector<std::array<int, 2>> queue{{x, y}};
        for (std::size_t next = 0; next < queue.size(); ++next) {
            const auto [cx, cy] = queue[next];
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx) {
                    if (!passable(cx, cy, dx, dy)) continue;
                    const double way = to_go_[index(cx, cy)] + (dx && dy ? std::sqrt(2.0) : 1.0) * cell_length;
                    if (way + 1 >= to_go_[index(cx + dx, cy + dy)]) continue;
                    to_go_[index(cx + dx, cy + dy)] = way;
                    queue.push_back({cx + dx, cy + dy});
                }
        }
    }

    /// From a place where the body stands free.
    remaining from(int x, int y) const {
        if (free_line(in_, x, y, goal_x_, goal_y_, radius_)) return {apart(x, y, goal_x_, goal_y_), goal_x_, goal_y_};
        int cx = x >> 16, cy = y >> 16;
        if (!in_.inside(cx, cy)) return {};
        remaining best = by_way_of(x, y, cx, cy);  // a way straight to the middle of one's own cell is always free
        for (int k = 0; k < room::longest_side * room::longest_side && (cx != goal_x_ >> 16 || cy != goal_y_ >> 16);
             ++k) {
            int next_x = cx, next_y = cy;
            for (int dy = -1; dy <= 1; ++dy)
                for (int dx = -1; dx <= 1; ++dx)
                    if (passable(cx, cy, dx, dy) && to_go_[index(cx + dx, cy + dy)] < to_go_[index(next_x, next_y)])
                        next_x = cx + dx, next_y = cy + dy;
            if ((next_x == cx && next_y == cy) || !free_line(in_, x, y, centre(next_x), centre(next_y), radius_)) break;
            cx = next_x, cy = next_y;
            best = by_way_of(x, y, cx, cy);
        }
        return best;
    }

private:
    static int centre(int c) { return (c << 16) + cell_length / 2; }
    static double apart(int ax, int ay, int bx, int by) { return std::hypot(ax - bx, ay - by); }
    std::size_t index(int x, int y) const { return static_cast<std::size_t>(y * in_.width + x); }
    bool open(int x, int y) const { return in_.inside(x, y) && !in_.at(x, y).solid(); }
    bool passable(int x, int y, int dx, int dy) const {
        return (dx != 0 || dy != 0) && open(x + dx, y + dy) && open(x + dx, y) && open(x, y + dy);
    }
    remaining by_way_of(int x, int y, int cx, int cy) const {
        return {apart(x, y, centre(cx), centre(cy)) + to_go_[index(cx, cy)], centre(cx), centre(cy)};
    }

    const room& in_;
    int goal_x_, goal_y_, radius_;
    std::array<double, room::longest_side * room::longest_side> to_go_{};
};

/// Whether (x, y) is at most `reach` from where somebody stands.
ENGRAM_HD bool within_reach(const pose& who, int x, int y, int reach) {
    const std::int64_t dx = who.x - x, dy = who.y - y;
    return dx * dx + dy * dy <= std::int64_t{reach} * reach;
}

/// One agent step; true: it came within `reach` of the goal after one of its ticks, and stopped there.
ENGRAM_HD_CALL bool walk_to_goal(const pace& step, const room& in, pose& who, int action, int radius, int goal_x,
                                 int goal_y, int reach) {
    for (int tick = 0; tick < step.ticks; ++tick) {
        step.move(in, who, action, radius);
        if (within_reach(who, goal_x, goal_y, reach)) return true;
    }
    return false;
}

/// For bodies that walk whole cells: the action that brings one a cell nearer to the middle of cell (x, y) through
/// cells of which free(x, y) is true, without turning; where there is no way, or nothing to go, forward.
template <class Free>
int cell_way_action(const room& in, const pose& who, int x, int y, Free free) {
    constexpr int across[] = {1, 0, -1, 0}, down[] = {0, 1, 0, -1};
    std::array<std::int16_t, room::longest_side * room::longest_side> to_go{};  // 0: not found; 1: the goal
    const auto at = [&](int cx, int cy) -> std::int16_t& {
        return to_go[static_cast<std::size_t>(cy * in.width + cx)];
    };
    std::vector<std::array<int, 2>> queue{{x, y}};
    at(x, y) = 1;
    for (std::size_t next = 0; next < queue.size(); ++next)
        for (int k = 0; k < 4; ++k) {
            const int cx = queue[next][0] + across[k], cy = queue[next][1] + down[k];
            if (!in.inside(cx, cy) || in.at(cx, cy).solid() || at(cx, cy) || !free(cx, cy)) continue;
            at(cx, cy) = static_cast<std::int16_t>(at(queue[next][0], queue[next][1]) + 1);
            queue.push_back({cx, cy});
        }
    constexpr walking ways[] = {walking::forward, walking::strafe_right, walking::backward, walking::strafe_left};
    const int quarter = who.heading / (full_turn / 4), cx = who.x >> 16, cy = who.y >> 16;
    int least = at(cx, cy) ? at(cx, cy) : 1 << 14, best = 0;
    for (int k = 0; k < 4; ++k) {
        const int turned = (quarter + k) % 4, nx = cx + across[turned], ny = cy + down[turned];
        if (in.inside(nx, ny) && at(nx, ny) && at(nx, ny) < least) least = at(nx, ny), best = static_cast<int>(ways[k]);
    }
    return best;
}

/// The best action of a body that wants to come within `reach` of a place, at an agent step of its episode. Ways are
/// found for a body a quarter thinner: along a corner that it touches, the real one slides.
inline int shortest_way_action(const pace& step, const room& in, const pose& who, int radius, int goal_x, int goal_y,
                               int reach, int time) {
    if (step.whole)
        return cell_way_action(in, who, goal_x >> 16, goal_y >> 16, [&](int x, int y) {
            return !collides(in, x * cell_length + cell_length / 2, y * cell_length + cell_length / 2, radius);
        });
    const grid_path ways(in, goal_x, goal_y, 3 * radius / 4);
    const double stride = static_cast<double>(step.stride) * step.ticks;
    const double turn = static_cast<double>(step.turn) * step.ticks;
    const grid_path::remaining now = ways.from(who.x, who.y);
    const bool nearer = (time & 7) >= 5;  // to the place seen first; otherwise to the goal
    const auto length = [&](const pose& p) { return std::hypot(now.x - p.x, now.y - p.y); };
    const double before = nearer ? length(who) : now.length;
    // Where nothing helps, a random action; random by time, so that a state that comes back is left another way.
    int best = static_cast<int>(scramble(0, time, who.x) % walking_actions);
    double least = 1e30;
    for (int action = 0; action < walking_actions; ++action) {
        pose then = who;
        if (walk_to_goal(step, in, then, action, radius, goal_x, goal_y, reach)) return action;
        const grid_path::remaining rest =
            nearer ? grid_path::remaining{length(then), now.x, now.y} : ways.from(then.x, then.y);
        if (rest.length > before - 0.2 * stride) continue;
        const double wanted = std::atan2(rest.y - then.y, rest.x - then.x) / 6.283185307 * full_turn;
        const double missing = std::fabs(std::remainder(wanted - then.heading, full_turn / 4));
        const double left = rest.length / stride + 0.25 * missing / turn;
        if (left < least) least = left, best = action;
    }
    return best;
}

}  // namespace engram
