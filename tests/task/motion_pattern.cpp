// SPDX-License-Identifier: MIT
#include "engram/task/motion_pattern.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

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

namespace {

int held(int k) {
    return held_out_path(static_cast<motion>(motions_per_split + k));
}

}  // namespace

TEST_CASE("four looks tell the holdout patterns apart, and lines lead where their names say") {
    for (int k = 0; k < motions_per_split; ++k) {
        CAPTURE(k);
        CHECK(held(k) >= 0);
        CHECK(held(k) < motion_paths);
        for (int look = 0; look < motion_looks; ++look) {
            const displacement at = motion_at_look(held(k), look);
            CHECK(at == motion_at_look(held(k), look + 3 * motion_looks));
            for (const int by : {at.x, at.y}) CHECK((by >= -1 && by <= 1));
        }
        for (int j = 0; j < k; ++j) CHECK(looks_alike(held(k), held(j)) <= 1);
    }
    for (int look = 0; look < motion_looks; ++look) {
        CHECK(motion_at_look(held_out_path(motion::none), look) == displacement{});
        CHECK(motion_at_look(held_out_path(motion::linear_y), look).x == 0);
        const auto down = motion_at_look(held_out_path(motion::linear_falling), look);
        CHECK(down.x == down.y);
    }
}

TEST_CASE("every path is told by its four looks, and no other has them") {
    std::set<std::array<int, 2 * motion_looks>> seen;
    for (int path = 0; path < motion_paths; ++path) {
        std::array<int, 2 * motion_looks> places{};
        for (int look = 0; look < motion_looks; ++look) {
            const displacement at = motion_at_look(path, look);
            places[static_cast<std::size_t>(2 * look)] = at.x, places[static_cast<std::size_t>(2 * look + 1)] = at.y;
        }
        seen.insert(places);
        CHECK(looks_alike(path, path) == motion_looks);
    }
    CHECK(seen.size() == motion_paths);
}

TEST_CASE("paths of training are not near those held out, and have as many stops as is said") {
    philox random(3, 3);
    std::set<int> held_used;
    for (int stops = 1; stops <= motion_looks; ++stops) {
        std::set<int> used;
        for (int i = 0; i < 2000; ++i) {
            const int path = draw_motion_path(random, false, stops);
            used.insert(path);
            CHECK(motion_in_split(path, false));
            CHECK_FALSE(motion_in_split(path, true));
            for (int k = 0; k < motions_per_split; ++k) CHECK(looks_alike(path, held(k)) <= 2);
            int all = 1;
            for (int look = 1; look < motion_looks; ++look)
                all += !(motion_at_look(path, look) == motion_at_look(path, look - 1));
            CHECK(all == stops);
        }
        CAPTURE(stops);
        // At rest anywhere but where the block of the pattern without motion is.
        if (stops == 1) CHECK(used.size() == motion_places - 1);
        if (stops > 1) CHECK(used.size() > 100);
        const int other = draw_motion_path(random, true, stops);
        held_used.insert(other);
        CHECK(motion_in_split(other, true));
        CHECK_FALSE(motion_in_split(other, false));
    }
    for (int i = 0; i < 200; ++i) held_used.insert(draw_motion_path(random, true, 1));
    CHECK(held_used.size() == motions_per_split);
}
