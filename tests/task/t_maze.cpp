// SPDX-License-Identifier: MIT
#include "engram/task/t_maze.hpp"

#include <doctest/doctest.h>

#include <array>
#include <set>

using namespace engram;
using maze = batch_of<t_maze>;

TEST_CASE("the hint comes first, the corner last, and the hint is what is rewarded") {
    task_options options;
    options.length = 5;
    options.length_spread = 3;
    maze batch("train", 1, 2, 0, options, nullptr);
    std::set<int> lengths, sides, noises;
    for (int episode = 0; episode < 300; ++episode) {
        const bool obey = episode % 2 == 0;
        int hint = 0, time = 0;
        for (bool done = false; !done; ++time) {
            std::array<float, 3> seen{};
            batch.observe(0, seen.data());
            if (time == 0) hint = static_cast<int>(seen[0]);
            CHECK((seen[0] == 0) == (time > 0));
            CHECK(std::abs(seen[2]) == 1.0f);
            noises.insert(static_cast<int>(seen[2]));
            const bool corner = seen[1] == 1.0f;
            const int side = hint > 0 ? 1 : 0;
            const auto got = batch.step(0, obey ? side : 1 - side);
            CHECK(got.done == corner);
            CHECK(got.reward == (corner ? obey ? 4.0f : -3.0f : 0.0f));
            done = got.done;
        }
        lengths.insert(time);
        sides.insert(hint);
    }
    CHECK(lengths == std::set<int>{5, 6, 7, 8});
    CHECK(sides == std::set<int>{-1, 1});
    CHECK(noises == std::set<int>{-1, 1});
}

TEST_CASE("the default is the authors' program, 100 to 110 steps; extrapolation is twice as long") {
    const auto info = t_maze::describe({});
    CHECK(info.level("train").longest_episode == 110);
    CHECK(info.level("holdout_extrapolate").longest_episode == 210);
    task_options options;
    options.length = 1;
    CHECK_THROWS_WITH_AS(t_maze::describe(options), "t_maze: a length of 1 was asked for; expected 2 to 1000000",
                         error);
}

TEST_CASE("lengths of the scaling study, and one without a spread") {
    for (const auto& [length, spread] : {std::pair{20000, 9}, {2, 0}, {500, 0}}) {
        task_options options;
        options.length = length, options.length_spread = spread;
        maze batch("train", 1, 3, 0, options, nullptr);
        for (int episode = 0; episode < 5; ++episode) {
            int steps = 1;
            for (outcome got = batch.step(0, batch.oracle(0)); !got.done; ++steps) {
                REQUIRE(got.reward == 0);
                got = batch.step(0, batch.oracle(0));
                if (got.done) CHECK(got.reward == 4);
            }
            CHECK(steps >= length);
            CHECK(steps <= length + spread);
        }
    }
}
