// SPDX-License-Identifier: MIT
#include "engram/task/motion_pattern.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

using namespace engram;

namespace {
constexpr int patterns = 2 * motions_per_split, reach = cell_length;
}

TEST_CASE("a pattern is closed after four seconds, stays within its reach, and moves without jumps") {
    for (int p = 0; p < patterns; ++p) {
        CAPTURE(p);
        const auto along = static_cast<motion>(p);
        CHECK(motion_at(along, 0, reach) == motion_at(along, motion_period, reach));
        CHECK(motion_at(along, 17, reach) == motion_at(along, 17 + 5 * motion_period, reach));
        for (int frame = 0; frame < motion_period; ++frame) {
            const auto a = motion_at(along, frame, reach), b = motion_at(along, frame + 1, reach);
            CHECK(std::hypot(a.x, a.y) <= reach + 4);
            // The star is the longest: five chords of 2 sin(72 degrees) = 1.902 in 240 frames.
            CHECK(std::hypot(a.x - b.x, a.y - b.y) <= 5 * 1.903 * reach / motion_period + 4);
        }
    }
}

TEST_CASE("no two patterns are alike, and none is small but the one that stands still") {
    for (int p = 0; p < patterns; ++p) {
        CAPTURE(p);
        double widest = 0;
        for (int frame = 0; frame < motion_period; ++frame) {
            const auto at = motion_at(static_cast<motion>(p), frame, reach);
            widest = std::fmax(widest, std::hypot(at.x, at.y));
        }
        CHECK((widest == 0) == (static_cast<motion>(p) == motion::none));
        if (widest > 0) CHECK(widest > 0.85 * reach);
        for (int q = 0; q < p; ++q) {
            double apart = 0;
            for (int frame = 0; frame < motion_period; ++frame) {
                const auto a = motion_at(static_cast<motion>(p), frame, reach),
                           b = motion_at(static_cast<motion>(q), frame, reach);
                apart = std::fmax(apart, std::hypot(a.x - b.x, a.y - b.y));
            }
            CAPTURE(q);
            CHECK(apart > 0.15 * reach);  // pentagon and hexagon are nearest, each in its split
        }
    }
}

TEST_CASE("lines lead where their names say, and polygons have their corners") {
    for (int frame = 0; frame < motion_period; ++frame) {
        CHECK(motion_at(motion::linear_x, frame, reach).y == 0);
        CHECK(motion_at(motion::linear_y, frame, reach).x == 0);
        const auto up = motion_at(motion::linear_rising, frame, reach),
                   down = motion_at(motion::linear_falling, frame, reach);
        CHECK(std::abs(up.x + up.y) <= 1);  // y grows to the south
        CHECK(down.x == down.y);
    }
    const auto corners = [](motion along) {
        int found = 0;
        for (int frame = 0; frame < motion_period; ++frame) {
            const auto at = motion_at(along, frame, reach);
            found += std::hypot(at.x, at.y) > 0.9999 * reach;
        }
        return found;
    };
    CHECK(corners(motion::triangle) == 3);
    CHECK(corners(motion::square) == 4);
    CHECK(corners(motion::pentagon) == 5);
    CHECK(corners(motion::star) == 5);
    CHECK(corners(motion::hexagon) == 6);
    CHECK(corners(motion::circle) == motion_period);
}

TEST_CASE("four looks tell all patterns apart, and lines lead where their names say") {
    for (int p = 0; p < patterns; ++p) {
        CAPTURE(p);
        const auto along = static_cast<motion>(p);
        for (int look = 0; look < motion_looks; ++look) {
            const displacement at = motion_at_look(along, look, reach);
            CHECK(at == motion_at_look(along, look + 3 * motion_looks, reach));
            for (const int by : {at.x, at.y}) CHECK((by == 0 || by == reach || by == -reach));
        }
        for (int q = 0; q < p; ++q) {
            int alike = 0;
            for (int look = 0; look < motion_looks; ++look)
                alike += motion_at_look(along, look, reach) == motion_at_look(static_cast<motion>(q), look, reach);
            CAPTURE(q);
            CHECK(alike <= 2);
        }
    }
    for (int look = 0; look < motion_looks; ++look) {
        CHECK(motion_at_look(motion::none, look, reach) == displacement{});
        CHECK(motion_at_look(motion::linear_x, look, reach).y == 0);
        CHECK(motion_at_look(motion::linear_y, look, reach).x == 0);
        const auto up = motion_at_look(motion::linear_rising, look, reach),
                   down = motion_at_look(motion::linear_falling, look, reach);
        CHECK(up.x == -up.y);  // y grows to the south
        CHECK(down.x == down.y);
    }
}
