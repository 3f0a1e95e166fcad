// SPDX-License-Identifier: MIT
#include "engram/task/panel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

using namespace engram;

TEST_CASE("an enlarged panel shows the same area of every colour") {
    std::vector<float> image(432, 0.5f), small(768), large(72 * 96 * 3);
    const button buttons[4] = {button::green, button::red, button::black, button::absent};
    panel::draw(image.data(), buttons, small.data());
    panel::draw(image.data(), buttons, 72, 96, large.data());
    const auto share = [](const std::vector<float>& pixels, float r, float g, float b) {
        int count = 0;
        for (std::size_t i = 0; i < pixels.size(); i += 3)
            count += pixels[i] == r && pixels[i + 1] == g && pixels[i + 2] == b;
        return 3.0 * count / static_cast<double>(pixels.size());
    };
    CHECK(share(small, 0.75f, 0, 0) == doctest::Approx(8 / 256.0));
    CHECK(share(small, 0, 0.75f, 0) == doctest::Approx(8 / 256.0));
    CHECK(share(small, 0, 0, 0) == doctest::Approx(8 / 256.0));
    CHECK(share(small, 0.5f, 0.5f, 0.5f) == doctest::Approx(144 / 256.0));
    // 72 rows are 4.5 for each of 16, so an area of 4 rows is 18 of 72 or, at the edges, 9 of 72 for 2
    CHECK(share(large, 0.75f, 0, 0) == doctest::Approx(8 / 256.0));
    CHECK(share(large, 0.5f, 0.5f, 0.5f) == doctest::Approx(144 / 256.0));
    CHECK(share(large, 1, 1, 1) == doctest::Approx(share(small, 1, 1, 1)));
}

TEST_CASE("levels follow the paper's trials and splits, and need enough images of the right side") {
    const auto set = builtin_stimuli(80);
    CHECK(panel_level::make("t", "train", {}, &set) == panel_level{50, 0, 80, 16, 16});
    CHECK(panel_level::make("t", "holdout_interpolate", {}, &set) == panel_level{40, 80, 80, 16, 16});
    task_options paper;
    paper.frame = "paper";
    CHECK(panel_level::make("t", "holdout_extrapolate", paper, &set) == panel_level{75, 80, 80, 72, 96});
    const auto large = builtin_stimuli(80, 24);
    CHECK_THROWS_WITH_AS(panel_level::make("t", "train", {}, &large), "t: stimuli of side 24, expected 12", error);
    CHECK_THROWS_WITH_AS(panel_level::make("t", "train", {}, nullptr), "t: needs a set of stimuli", error);
}

TEST_CASE("a fresh image is one of the level that was not used") {
    const panel_level level{3, 10, 4, 16, 16};
    const int used[] = {10, 12, 13};
    philox random(1, 1);
    for (int i = 0; i < 20; ++i) CHECK(fresh_image(level, random, used, 3) == 11);
}
