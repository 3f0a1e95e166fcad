#pragma once
// SPDX-License-Identifier: MIT

// The motion patterns of spot the difference (facts 2.2): six to train on, six held out. A pattern is a closed path on
// the ground around a resting place, gone through once every four seconds (ours), and a pure function of the frame.
//
//   circle, figure-eight   (cos, sin) and (sin, sin of twice the angle): even in the angle
//   polygons               corners on a circle, first one north, even along the sides; the five-point star goes
//                          from corner to next corner but one
//   linear                 there and back like a pendulum: x along the way through the rooms (west to east), y across
//                          it; Y=X leads from south-west to north-east, Y=-X from north-west to south-east
//
// At small fidelity (ours) four looks, an agent step apart, show all of a path: each finds the block at rest or moved
// by `reach` along one axis or along both. No two patterns show the same at more than two of the four looks.

#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// Train patterns first, then the holdout ones, in the order of the facts.
enum class motion : std::int32_t {
    circle,
    square,
    star,
    hexagon,
    linear_x,
    linear_rising,  // Y=X
    none,
    triangle,
    pentagon,
    figure_eight,
    linear_y,
    linear_falling  // Y=-X
};
constexpr int motions_per_split = 6, motion_period = 240;  // frames

/// Where a block is, relative to its resting place.
struct displacement {
    std::int32_t x = 0, y = 0;
    bool operator==(const displacement&) const = default;
};

namespace internal {

/// A place on the unit circle, times 65536.
ENGRAM_HD_CALL displacement on_circle(int heading) {
    return {cosine(heading), sine(heading)};
}

/// The path through `corners` places on the circle, `skip` of them at a time.
ENGRAM_HD_CALL displacement on_polygon(int corners, int skip, int phase) {
    constexpr int north = 3 * full_turn / 4;
    const int way = phase * corners, side = way / motion_period, t = way % motion_period;
    const displacement from = on_circle(north + side * skip * full_turn / corners),
                       to = on_circle(north + (side + 1) * skip * full_turn / corners);
    return {from.x + (to.x - from.x) * t / motion_period, from.y + (to.y - from.y) * t / motion_period};
}

}  // namespace internal

/// The displacement at a frame, `reach` units of length at the most (at most 16 cells); a frame is not below 0.
ENGRAM_HD_CALL displacement motion_at(motion along, int frame, int reach) {
    const int phase = frame % motion_period, angle = phase * full_turn / motion_period;
    constexpr int half_root = 46341;  // sqrt(1/2), times 65536
    const auto scaled = [](std::int64_t unit, std::int64_t by) { return static_cast<std::int32_t>(unit * by >> 16); };
    displacement unit;
    switch (along) {
        case motion::circle:
            unit = internal::on_circle(angle);
            break;
        case motion::square:
            unit = internal::on_polygon(4, 1, phase);
            break;
        case motion::star:
            unit = internal::on_polygon(5, 2, phase);
            break;
        case motion::hexagon:
            unit = internal::on_polygon(6, 1, phase);
            break;
        case motion::triangle:
            unit = internal::on_polygon(3, 1, phase);
            break;
        case motion::pentagon:
            unit = internal::on_polygon(5, 1, phase);
            break;
        case motion::figure_eight:
            unit = {scaled(sine(angle), 58000), scaled(sine(2 * angle), 30000)};
            break;
        case motion::linear_x:
            unit.x = sine(angle);
            break;
        case motion::linear_y:
            unit.y = sine(angle);
            break;
        case motion::linear_rising:  // y grows to the south
            unit.x = scaled(sine(angle), half_root), unit.y = -unit.x;
            break;
        case motion::linear_falling:
            unit.x = unit.y = scaled(sine(angle), half_root);
            break;
        case motion::none:
            break;
    }
    return {scaled(unit.x, reach), scaled(unit.y, reach)};
}

/// Looks that show a whole pattern at small fidelity.
constexpr int motion_looks = 4;

/// The displacement at a look; a look is not below 0.
ENGRAM_HD_CALL displacement motion_at_look(motion along, int look, int reach) {
    constexpr signed char paths[2 * motions_per_split][motion_looks][2] = {
        {{1, 0}, {0, 1}, {-1, 0}, {0, -1}},    // circle
        {{1, -1}, {1, 1}, {-1, 1}, {-1, -1}},  // square
        {{0, -1}, {1, 1}, {-1, 0}, {1, 0}},    // star
        {{0, -1}, {1, 0}, {0, 1}, {-1, 0}},    // hexagon
        {{0, 0}, {1, 0}, {0, 0}, {-1, 0}},     // linear X
        {{0, 0}, {1, -1}, {0, 0}, {-1, 1}},    // Y=X
        {{0, 0}, {0, 0}, {0, 0}, {0, 0}},      // none
        {{0, -1}, {1, 1}, {-1, 1}, {0, 0}},    // triangle
        {{0, -1}, {1, 0}, {1, 1}, {-1, 1}},    // pentagon
        {{1, 0}, {0, 0}, {-1, 0}, {0, 0}},     // figure-eight
        {{0, 0}, {0, 1}, {0, 0}, {0, -1}},     // linear Y
        {{0, 0}, {1, 1}, {0, 0}, {-1, -1}},    // Y=-X
    };
    const auto& at = paths[static_cast<int>(along)][look % motion_looks];
    return {at[0] * reach, at[1] * reach};
}

}  // namespace engram
