// SPDX-License-Identifier: MIT
#include "engram/task/strokes.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

using namespace engram;

TEST_CASE("a path goes through its points, straight or smooth, and a smooth one bends") {
    const std::vector<stroke_point> points{{0.1f, 0.1f}, {0.9f, 0.1f}, {0.9f, 0.9f}, {0.2f, 0.5f}};
    CHECK(stroke{false, points}.path().size() == 4);
    const auto path = stroke{true, points}.path();
    for (const auto p : points) {
        float nearest = 1;
        for (const auto q : path) nearest = std::min(nearest, std::hypot(p.x - q.x, p.y - q.y));
        CHECK(nearest < 1e-6f);
    }
    float highest = 0;
    for (const auto q : path) highest = std::max(highest, q.x);
    CHECK(highest > 0.92f);  // it swings out at a corner
    CHECK(stroke{true, {{0, 0}, {1, 1}}}.path().size() == 2);
}

// A straight line of length d under a pen of half width w covers 2 w d + pi w^2. The pen varies by up to 30 %, the
// scale by 15 % around 0.97: together at most a factor of 1.6 from what the middle values give.
TEST_CASE("a drawing has the ink of its strokes, is the same for the same stream, and never the same for two") {
    const stroke_figure line{{false, {{0.2f, 0.5f}, {0.8f, 0.5f}}}};
    std::vector<std::vector<std::uint8_t>> seen;
    const double expected = 2 * 0.046 * 0.6 * 0.97 + 3.14159 * 0.046 * 0.046;
    double mean = 0;
    for (std::uint32_t i = 0; i < 200; ++i) {
        const auto image = draw_strokes(line, 28, philox(1, i));
        CHECK(image == draw_strokes(line, 28, philox(1, i)));
        const double ink = std::accumulate(image.begin(), image.end(), 0.0) / 255 / 784;
        CHECK(ink > expected / 1.6);
        CHECK(ink < expected * 1.6);
        mean += ink / 200;
        CHECK(std::find(seen.begin(), seen.end(), image) == seen.end());
        seen.push_back(image);
    }
    // A standard deviation of 17 % by the pen and 9 % by the scale, over sqrt(200): the mean is known to 1.4 %.
    CHECK(mean == doctest::Approx(expected).epsilon(0.05));
    CHECK(draw_strokes(line, 14, philox(1, 0)).size() == 196);
}

TEST_CASE("a figure that leaves the square is cut off") {
    const auto image = draw_strokes({{false, {{-5, -5}, {9, 9}}}, {false, {{3, 3}, {4, 4}}}}, 14, philox(1, 0));
    CHECK(image.size() == 196);
    CHECK(*std::max_element(image.begin(), image.end()) > 128);
    CHECK(*std::min_element(image.begin(), image.end()) == 0);
}
