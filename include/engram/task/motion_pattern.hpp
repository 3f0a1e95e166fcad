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
// At small fidelity (ours) a path is what four looks show of it, an agent step apart: each finds the block at rest or
// moved along one axis or along both. Those held out are the six of the holdout patterns, no two of which show the same
// at more than one look. Those of training are drawn anew for each block and differ from each of the six at two looks
// or more: from six paths alone an agent learns those and not what a path is (docs/decisions/0046).

#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/core/philox.hpp"
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

/// Looks that show a whole path at small fidelity, where a block can be at each, and how many paths there are.
constexpr int motion_looks = 4, motion_places = 9, motion_paths = 9 * 9 * 9 * 9;

/// The place of a path at a look, as -1, 0 or 1 along each axis; a path is in [0, motion_paths), a look not below 0.
ENGRAM_HD_CALL displacement motion_at_look(int path, int look) {
    for (int i = look % motion_looks; i > 0; --i) path /= motion_places;
    return {path % motion_places % 3 - 1, path % motion_places / 3 - 1};
}

/// At how many looks two paths show the same.
ENGRAM_HD_CALL int looks_alike(int a, int b) {
    int alike = 0;
    for (int look = 0; look < motion_looks; ++look) alike += motion_at_look(a, look) == motion_at_look(b, look);
    return alike;
}

/// The path of a holdout pattern.
ENGRAM_HD_CALL int held_out_path(motion pattern) {
    constexpr signed char places[motions_per_split][motion_looks][2] = {
        {{0, 0}, {0, 0}, {0, 0}, {0, 0}},      // none
        {{0, -1}, {1, 1}, {-1, 1}, {0, -1}},   // triangle
        {{0, -1}, {1, 0}, {1, 1}, {-1, 1}},    // pentagon
        {{1, -1}, {1, 1}, {-1, -1}, {-1, 1}},  // figure-eight
        {{0, 1}, {0, -1}, {0, 1}, {0, -1}},    // linear Y
        {{1, 1}, {-1, -1}, {1, 1}, {-1, -1}},  // Y=-X
    };
    const auto& at = places[static_cast<int>(pattern) - motions_per_split];
    int path = 0;
    for (int look = motion_looks - 1; look >= 0; --look)
        path = motion_places * path + 3 * (at[look][1] + 1) + at[look][0] + 1;
    return path;
}

/// Whether a path is one of those held out, or one of those of training.
ENGRAM_HD_CALL bool motion_in_split(int path, bool holdout) {
    int nearest = 0;
    for (int k = motions_per_split; k < 2 * motions_per_split; ++k) {
        const int alike = looks_alike(path, held_out_path(static_cast<motion>(k)));
        nearest = alike > nearest ? alike : nearest;
    }
    return holdout ? nearest == motion_looks : nearest <= motion_looks - 2;
}

/// A path of the split; one of training has as many stops as is said.
ENGRAM_HD_CALL int draw_motion_path(philox& random, bool holdout, int stops) {
    if (holdout) return held_out_path(static_cast<motion>(motions_per_split + random.below(motions_per_split)));
    for (;;) {
        int place = random.below(motion_places), path = 0, moves = stops - 1;
        for (int look = 0; look < motion_looks; ++look) {
            if (look > 0 && random.below(motion_looks - look) < moves) {
                const int other = random.below(motion_places - 1);
                place = other + (other >= place), --moves;
            }
            path = motion_places * path + place;
        }
        if (motion_in_split(path, false)) return path;
    }
}

}  // namespace engram
