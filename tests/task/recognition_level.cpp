// SPDX-License-Identifier: MIT
#include "engram/task/recognition_level.hpp"

#include <doctest/doctest.h>

using namespace engram;

TEST_CASE("levels follow the paper's trials, splits and timeouts, and need enough images") {
    const auto set = builtin_stimuli(80);
    CHECK(recognition_level("t", "train", {}, &set) == psychlab_level{50, 18000, 0, 80, 12, 0, 0, 0});
    CHECK(recognition_level("t", "holdout_interpolate", {}, &set) == psychlab_level{40, 18000, 80, 80, 12, 1, 0, 0});
    task_options paper;
    paper.fidelity = "paper";
    const auto large = builtin_stimuli(80, 24);
    CHECK(recognition_level("t", "holdout_extrapolate", paper, &large) ==
          psychlab_level{75, 27000, 80, 80, 24, 1, 1, 0});
    CHECK_THROWS_WITH_AS(recognition_level("t", "train", {}, &large), "t: stimuli of side 24, expected 12", error);
    CHECK_THROWS_WITH_AS(recognition_level("t", "train", {}, nullptr), "t: needs a set of stimuli", error);
    const auto few = builtin_stimuli(74);
    CHECK_THROWS_WITH_AS(recognition_level("t", "train", {}, &few),
                         "t: the builtin set has 74 images for level 'train', expected at least 75", error);
}

TEST_CASE("a fresh image is one of the level that was not used") {
    const psychlab_level level{3, 0, 10, 4, 12, 0, 0, 0};
    const int used[] = {10, 12, 13};
    philox random(1, 1);
    for (int i = 0; i < 20; ++i) CHECK(fresh_image(level, random, used, 3) == 11);
}
