// SPDX-License-Identifier: MIT
#include "engram/task/glyph_sequence.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "coded_glyphs.hpp"

using namespace engram;

TEST_CASE("fresh frames are never shown before, and come from their split and class") {
    const auto glyphs = coded_glyphs(30, 20);
    for (std::uint32_t i = 0; i < 50; ++i) {
        glyph_sequence sequence(*glyphs, split::holdout, philox(1, i));
        for (int t = 0; t < 18; ++t) sequence.fresh();
        sequence.repeat(4);
        std::vector<float> frames(19 * 196);
        std::vector<int> origin(19), label(19);
        sequence.write({.observation = frames.data(), .origin = origin.data(), .label = label.data()});
        std::set<int> seen;
        for (std::size_t t = 0; t < 19; ++t) {
            const int id = glyph_of(std::span(frames).subspan(196 * t, 196));
            CHECK(id >= 30);
            CHECK(label[t] == id % 10);
            CHECK(origin[t] == (t < 18 ? -1 : 4));
            if (t < 18) CHECK(seen.insert(id).second);
        }
        CHECK(std::equal(frames.begin() + 18 * 196, frames.end(), frames.begin() + 4 * 196));
    }
    for (std::uint32_t i = 0; i < 50; ++i) {
        glyph_sequence sequence(*glyphs, split::train, philox(2, i));
        for (int t = 0; t < 3; ++t) sequence.fresh(7);  // all three of the class
        for (int t = 0; t < 3; ++t) CHECK(sequence.label(t) == 7);
    }
}

// 6000 draws of 30 images: 200 each. Chi squared with 29 degrees of freedom exceeds 67 with probability 1e-4 (for fixed
// seeds the test gives the same number always).
TEST_CASE("fresh frames are uniform") {
    const auto glyphs = coded_glyphs(30, 20);
    std::vector<int> count(30);
    for (std::uint32_t i = 0; i < 6000; ++i) {
        glyph_sequence sequence(*glyphs, split::train, philox(3, i));
        sequence.fresh();
        sequence.fresh();
        std::vector<float> frames(2 * 196);
        sequence.write({.observation = frames.data()});
        ++count[static_cast<std::size_t>(glyph_of(std::span(frames).subspan(196)))];
    }
    double chi = 0;
    for (const int n : count) chi += (n - 200.0) * (n - 200.0) / 200;
    CHECK(chi < 67);
}

TEST_CASE("levels and sets that do not fit are one sentence") {
    const auto glyphs = coded_glyphs(30, 20);
    const sequence_info info{.name = "a task", .observation = {14, 14, 1}};
    CHECK(split_of(info, "train") == split::train);
    CHECK(split_of(info, "holdout_interpolate") == split::holdout);
    CHECK_THROWS_WITH_AS(split_of(info, "holdout"),
                         "unknown a task level 'holdout'; did you mean 'holdout_interpolate'?", error);
    CHECK_NOTHROW(require_glyphs(*glyphs, info, 20));
    CHECK_THROWS_WITH_AS(require_glyphs(*glyphs, info, 21),
                         "a task: a sequence shows up to 21 images, but the coded set has 20 to hold out", error);
    CHECK_THROWS_WITH_AS(require_glyphs(*glyphs, {.name = "a task", .observation = {28, 28, 1}}, 2),
                         "a task: glyphs of 14 pixels, expected 28", error);
}
