// Between two steps of acting: actions are drawn as often as their policy says, and an episode's end is told as a
// start.

#include "engram/train/told.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace engram;

TEST_CASE("actions have the shares of the uniform numbers that their policy gives them") {
    const std::array<double, 4> policy{0.5, 0.125, 0.0, 0.375};
    std::array<double, 4> log_policy{};
    for (std::size_t a = 0; a < 4; ++a) log_policy[a] = std::log(policy[a]);
    std::array<int, 4> drawn{};
    const int draws = 8000;
    for (int i = 0; i < draws; ++i) {
        const auto [action, finite] = draw_action(log_policy.data(), 4, (i + 0.5) / draws);
        REQUIRE(finite);
        ++drawn[static_cast<std::size_t>(action)];
    }
    for (std::size_t a = 0; a < 4; ++a) CHECK(drawn[a] == policy[a] * draws);
    CHECK(draw_action(log_policy.data(), 1, 0.99).action == 0);
}

TEST_CASE("a policy that is not finite is told of where it was read") {
    const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    CHECK(!draw_action(std::array{nan, 0.0f}.data(), 2, 0.5).finite);
    CHECK(!draw_action(std::array{infinity, 0.0f}.data(), 2, 0.5).finite);
    const std::array certain{0.0f, nan, nan};  // nobody looks behind the action
    CHECK(draw_action(certain.data(), 3, 0.5).finite);
    CHECK(draw_action(certain.data(), 3, 0.5).action == 0);
}

TEST_CASE("what is told after an action, and after the last of an episode") {
    const auto next = told_after(2.0, -0.5, false);
    CHECK(next.last_action == 2);
    CHECK(next.last_reward == -0.5);
    CHECK(next.reset == 0);
    for (const auto& start : {told_after(2.0, -0.5, true), told<double>{}}) {
        CHECK(start.last_action == -1);
        CHECK(start.last_reward == 0);
        CHECK(start.reset == 1);
    }
}
