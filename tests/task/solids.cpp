// SPDX-License-Identifier: MIT
#include "engram/task/solids.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace engram;

namespace {

constexpr double unit = cell_length;

/// How deep a point is inside an object, in cells; negative outside. Restated from what the shapes are.
double depth(const room_object& o, double x, double y, double z) {
    const double r = o.radius / unit, height = o.height / unit, low = o.base / unit;
    const double px = x - o.x / unit, py = y - o.y / unit, away = std::hypot(px, py);
    const double level = std::min(z - low, low + height - z);
    if (o.form == shape::cylinder) return std::min(level, r - away);
    if (o.form == shape::cone) return std::min(level, (r * (low + height - z) / height - away));
    if (o.form == shape::ball) return 1 - std::hypot(away / r, (z - low - height / 2) / (height / 2));
    const double angle = 2 * 3.14159265358979 * o.heading / full_turn, half = r / std::sqrt(2.0);
    const double along = std::fabs(px * std::cos(angle) + py * std::sin(angle));
    const double across = std::fabs(py * std::cos(angle) - px * std::sin(angle));
    return std::min(level, half - std::max(along, across));
}

room_object random_object(shape form, philox& random) {
    room_object o;
    o.form = form;
    o.x = static_cast<int>((1.2f + 3 * random.uniform()) * unit),
    o.y = static_cast<int>((random.uniform() - 0.5f) * unit);
    o.base = random.below(2) ? 0 : static_cast<int>(random.uniform() * unit);
    o.height = static_cast<int>((0.2f + random.uniform()) * unit);
    o.radius = static_cast<int>((0.15f + 0.6f * random.uniform()) * unit);
    o.heading = static_cast<std::uint16_t>(random.below(full_turn));
    return o;
}

}  // namespace

// Sight is followed in steps of 1e-3 until a point is inside. The first such point lies at most one step behind the
// surface, so t differs by at most 1e-3, plus 2e-3 for float quadratics near the outline; rays that touch less than
// three steps' worth of the solid may be missed by either and are left out.
TEST_CASE("sight meets every solid where a march along it does") {
    philox random(11, 12);
    constexpr float far = solid_in_sight::never;
    constexpr double stride = 1e-3;
    for (const shape form : {shape::ball, shape::box, shape::cone, shape::cylinder}) {
        CAPTURE(static_cast<int>(form));
        int met = 0, missed = 0, wrong = 0, outwards = 0;
        for (int trial = 0; trial < 2000; ++trial) {
            const room_object o = random_object(form, random);
            const float eye = 0.1f + 2 * random.uniform();
            // Aimed at a box around the solid that is half as large again.
            const float at = static_cast<float>(o.x / unit), tall = static_cast<float>(o.height / unit);
            const float aside = static_cast<float>(o.y / unit + 1.5 * o.radius / unit * (2 * random.uniform() - 1));
            const float up = static_cast<float>(o.base / unit) + tall * (1.5f * random.uniform() - 0.25f);
            const float dy = aside / at, slope = (up - eye) / at;
            double first = -1;
            int inside = 0;
            for (double t = stride; t < 7; t += stride)
                if (depth(o, t, t * dy, eye + t * slope) > 0) {
                    ++inside;
                    if (first < 0) first = t;
                }
            if (inside > 0 && inside < 3) continue;
            solid_in_sight seen;
            unit_vector surface;
            const float t = seen.facing(o, 0, 0, eye, 1, dy, 1) ? seen.meet(slope, surface) : far;
            if (inside == 0) {
                // A march may step over a sliver: what it misses must still be on the surface.
                if (t < far) wrong += std::fabs(depth(o, t, t * dy, eye + t * slope)) > 5e-3;
                ++missed;
                continue;
            }
            ++met;
            wrong += !(std::fabs(t - first) <= 3e-3);
            const float length = surface.x * surface.x + surface.y * surface.y + surface.z * surface.z;
            CHECK(length == doctest::Approx(1).epsilon(1e-3));
            outwards += surface.x + surface.y * dy + surface.z * slope < 1e-3f;  // the surface looks at the eye
        }
        CHECK(wrong == 0);
        CHECK(outwards == met);
        CHECK(met > 300);
        CHECK(missed > 300);
    }
}

TEST_CASE("solids behind, beside and around the eye are passed by") {
    room_object o;
    o.form = shape::ball, o.x = -3 * cell_length, o.height = cell_length, o.radius = cell_length / 2;
    solid_in_sight seen;
    CHECK_FALSE(seen.facing(o, 0, 0, 0.5f, 1, 0, 1));
    CHECK(seen.facing(o, 0, 0, 0.5f, -1, 0, 1));
    o.x = 3 * cell_length, o.y = 2 * cell_length;
    CHECK_FALSE(seen.facing(o, 0, 0, 0.5f, 1, 0, 1));
    CHECK(seen.facing(o, 0, 0, 0.5f, 1, 0, 5));  // what lies within five radii
    unit_vector surface;
    CHECK(seen.meet(0, surface) == solid_in_sight::never);
    o.x = o.y = cell_length / 8;
    CHECK_FALSE(seen.facing(o, 0, 0, 0.5f, 1, 0, 1));
    o.x = 3 * cell_length, o.form = shape::none;
    CHECK_FALSE(seen.facing(o, 0, 0, 0.5f, 1, 0, 1));
}
