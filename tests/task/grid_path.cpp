// SPDX-License-Identifier: MIT
#include "engram/task/grid_path.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace engram;

namespace {

constexpr int body = cell_length / 4;

int at(double cells) {
    return static_cast<int>(cells * cell_length);
}

room winding() {
    return room_from_plan({"#########", "#...#...#", "#.#.#.#.#", "#.#...#.#", "#.#####.#", "#.......#", "#########"});
}

/// Agent steps from one place to the other, -1: not within `most`.
int steps_to(const pace& step, const room& in, pose who, int x, int y, int reach, int most) {
    for (int time = 0; time < most; ++time)
        if (walk_to_goal(step, in, who, shortest_way_action(step, in, who, body, x, y, reach, time), body, x, y, reach))
            return time + 1;
    return -1;
}

}  // namespace

TEST_CASE("a line is free where a disc touches nothing on it") {
    const room in = winding();
    CHECK(free_line(in, at(1.5), at(1.5), at(3.5), at(1.5), body));
    CHECK(free_line(in, at(1.5), at(1.5), at(1.5), at(5.5), body));
    CHECK_FALSE(free_line(in, at(3.5), at(1.5), at(5.5), at(1.5), body));
    CHECK_FALSE(free_line(in, at(1.5), at(1.5), at(3.5), at(3.5), body));
    CHECK_FALSE(free_line(in, at(1.5), at(1.5), at(3.5), at(1.2), body));  // comes to touch the wall
    CHECK(free_line(in, at(1.5), at(1.5), at(3.5), at(1.2), cell_length / 8));
}

TEST_CASE("ways lead around walls, straight where they can, and there is none out of a closed cell") {
    const room in = winding();
    const grid_path ways(in, at(5.5), at(1.5), body);
    const auto direct = ways.from(at(7.5), at(1.5));
    CHECK(direct.length == 2 * cell_length);
    CHECK(direct.x == at(5.5));
    // From (3.5, 1.5): down 2, right 2, up 2.
    const auto around = ways.from(at(3.5), at(1.5));
    CHECK(around.length == 6 * cell_length);
    CHECK(around.x == at(3.5));
    CHECK(around.y == at(3.5));
    const room shut = room_from_plan({"#####", "#.#.#", "#####"});
    CHECK(grid_path(shut, at(3.5), at(1.5), body).from(at(1.5), at(1.5)).length >= grid_path::unreachable);
    // Diagonally between free cells only.
    const room corner = room_from_plan({"####", "#..#", "##.#", "####"});
    CHECK(grid_path(corner, at(2.5), at(2.5), body).from(at(1.5), at(1.5)).length == 2 * cell_length);
    const room open = room_from_plan({".....", ".....", ".....", "....."});
    const auto straight = grid_path(open, at(4.5), at(3.5), body).from(at(0.5), at(0.5));
    CHECK(std::fabs(straight.length - 5 * cell_length) < 2);
}

TEST_CASE("the oracle gets everywhere from everywhere, and about as fast as the way is long") {
    const room in = winding();
    philox random(1, 2);
    for (const char* fidelity : {"paper", "small"}) {
        task_options options;
        options.fidelity = fidelity;
        const pace step = pace::of(options, 3);
        const double stride = static_cast<double>(step.stride) * step.ticks;
        for (int trial = 0; trial < 150; ++trial) {
            const auto place = [&] {
                for (;;) {
                    const int x = random.below(in.width * cell_length);
                    const int y = random.below(in.height * cell_length);
                    pose found{x, y, random.below(full_turn)};
                    if (step.whole)
                        found = {(x >> 16) * cell_length + cell_length / 2, (y >> 16) * cell_length + cell_length / 2,
                                 found.heading / step.turn * step.turn};
                    if (!collides(in, found.x, found.y, body)) return found;
                }
            };
            const pose from = place(), to = place();
            const double length = grid_path(in, to.x, to.y, body).from(from.x, from.y).length;
            const int steps = steps_to(step, in, from, to.x, to.y, cell_length / 2, 1000);
            CAPTURE(fidelity);
            CAPTURE(length / cell_length);
            CHECK(steps >= 1);
            // In whole cells as many steps as there are to walk along the grid, which is less than sqrt(2) times the
            // length and a cell; one where it stands there already.
            if (step.whole) CHECK(steps <= 1.42 * length / stride + 2);
            // At worst walking 45 degrees aside all the way, and a turn or a detour at every corner.
            CHECK(steps <= 1.5 * length / stride + 25);
        }
    }
}
