// SPDX-License-Identifier: MIT
#include "engram/evaluate/goal_times.hpp"

#include <doctest/doctest.h>

using namespace engram;

TEST_CASE("steps are counted from one goal to the next, and from the start of every episode") {
    goal_clock clock(2);
    // Row 0 reaches the goal at its steps 3 and 5 of 6; row 1 at step 1, and in a second episode never.
    for (int t = 1; t <= 6; ++t) clock.step(0, t == 3 || t == 5, t == 6);
    for (int t = 1; t <= 4; ++t) clock.step(1, t == 1, t == 4);
    for (int t = 1; t <= 4; ++t) clock.step(1, false, t == 4);
    // A third one, to see that nothing of the second is left.
    clock.step(1, false, false);
    clock.step(1, true, true);
    const auto times = clock.times();
    CHECK(times.steps == std::vector<double>{2, 2});  // (3 + 1 + 2) / 3, 2
    CHECK(times.episodes == std::vector<int>{3, 1});
    CHECK(times.of_most(4) == std::vector<double>{2});
    CHECK(times.of_most(2) == std::vector<double>{2, 2});
    CHECK(times.of_most(7).empty());
    CHECK(goal_clock(3).times().steps.empty());
}

TEST_CASE("of an episode that goes on and on the first twenty times count") {
    goal_clock clock(1);
    for (int t = 1; t <= 1000; ++t) clock.step(0, t % 7 == 0, t == 1000);
    const auto times = clock.times();
    CHECK(times.steps == std::vector<double>(20, 7.0));
    CHECK(times.episodes == std::vector<int>(20, 1));
}
