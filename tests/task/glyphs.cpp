// SPDX-License-Identifier: MIT
#include "engram/task/glyphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

using namespace engram;

namespace {

std::vector<std::uint8_t> grey(int value) {
    return std::vector<std::uint8_t>(16, static_cast<std::uint8_t>(value));
}

}  // namespace

TEST_CASE("a set knows its images, labels, splits and classes, and keeps no image twice") {
    glyph_collector glyphs(4, 3);
    glyphs.add(split::holdout, 2, grey(50));
    glyphs.add(split::train, 0, grey(10));
    glyphs.add(split::train, 1, grey(20));
    glyphs.add(split::train, 2, grey(10));    // again, whatever its label
    glyphs.add(split::holdout, 1, grey(20));  // again, in the other split
    glyphs.add(split::train, 0, grey(30));
    glyphs.add(split::holdout, 2, grey(51));
    const auto set = std::move(glyphs).finish("test");
    CHECK(set.source() == "test");
    CHECK(set.side() == 4);
    CHECK(set.classes() == 3);
    CHECK(set.size() == 5);
    CHECK(set.count(split::train) == 3);
    CHECK(set.count(split::holdout) == 2);
    CHECK(set.first(split::train) == 0);
    CHECK(set.first(split::holdout) == 3);
    const std::vector<int> inks{10, 20, 30, 50, 51}, labels{0, 1, 0, 2, 2};
    for (int id = 0; id < 5; ++id) {
        CHECK(std::ranges::equal(set.image(id), grey(inks[static_cast<std::size_t>(id)])));
        CHECK(set.label(id) == labels[static_cast<std::size_t>(id)]);
    }
    CHECK(std::ranges::equal(set.of(split::train, 0), std::vector<int>{0, 2}));
    CHECK(std::ranges::equal(set.of(split::train, 1), std::vector<int>{1}));
    CHECK(set.of(split::train, 2).empty());
    CHECK(set.of(split::holdout, 1).empty());
    CHECK(std::ranges::equal(set.of(split::holdout, 2), std::vector<int>{3, 4}));
    std::vector<float> written(17, -1);
    set.write(4, written.data());
    CHECK(written[0] == 0.2f);
    CHECK(written[15] == 0.2f);
    CHECK(written[16] == -1);
}

TEST_CASE("what does not fit a set is one sentence") {
    glyph_collector glyphs(4, 3);
    CHECK_THROWS_WITH_AS(glyphs.add(split::train, 3, grey(1)), "glyphs: class 3, expected 0 to 2", error);
    CHECK_THROWS_WITH_AS(glyphs.add(split::train, 0, std::vector<std::uint8_t>(15)),
                         "glyphs: an image of 15 pixels, expected 16", error);
    CHECK_THROWS_WITH_AS(glyph_collector(2, 1), "glyphs: a side of 2 pixels was asked for; expected 4 to 256", error);
    glyphs.add(split::train, 0, grey(1));
    const auto set = std::move(glyphs).finish("test");
    CHECK_THROWS_WITH_AS((void)set.image(1), "glyph 1 does not exist; the test set has 1", error);
    CHECK_THROWS_WITH_AS((void)set.label(-1), "glyph -1 does not exist; the test set has 1", error);
    CHECK_THROWS_WITH_AS((void)set.of(split::train, 3), "glyph class 3 does not exist; the test set has 3", error);
}
