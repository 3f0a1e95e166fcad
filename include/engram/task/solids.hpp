#pragma once
// SPDX-License-Identifier: MIT

// Where a line of sight meets an upright ball, box, cone or cylinder: exact solids, so that they hide each other and
// are hidden by walls at every pixel.
//
// Sight is (t dx, t dy, t slope) from the eye, where t is the distance along the camera's axis. What concerns only the
// column of pixels, (dx, dy), is worked out once by `facing`; `meet` then answers for each slope.

#include <cmath>

#include "engram/core/device.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// A direction of unit length.
struct unit_vector {
    float x = 0, y = 0, z = 1;
};

struct solid_in_sight {
    static constexpr float never = 1e30f;

    shape form = shape::none;
    rgb paint{};
    float x = 0, y = 0, low = 0, high = 0, radius = 0, lift = 0;  // relative to the eye, in cells
    float dx = 0, dy = 0;
    float enter = 0, leave = 0;              // between these t the column is inside the upright prism around the solid
    float shade_enter = 0, shade_leave = 0;  // between these t the ground lies in the widened circle
    unit_vector front{};                     // of the box's face that is met at `enter`

    /// Prepares the object for a column of sight from an eye at (ex, ey, ez); false: the column passes it by, or the
    /// eye is in its circle, where it is not drawn. `margin` widens the circle, for what lies around the solid.
    ENGRAM_HD_CALL bool facing(const room_object& o, float ex, float ey, float ez, float dx_, float dy_, float margin) {
        constexpr float unit = 1.0f / cell_length;
        form = o.form;
        paint = o.paint.light();
        dx = dx_, dy = dy_;
        x = static_cast<float>(o.x) * unit - ex, y = static_cast<float>(o.y) * unit - ey;
        low = static_cast<float>(o.base) * unit - ez, high = low + static_cast<float>(o.height) * unit;
        radius = static_cast<float>(o.radius) * unit, lift = static_cast<float>(o.base) * unit;
        if (form == shape::none) return false;
        const float a = dx * dx + dy * dy, nearest = (x * dx + y * dy) / a;
        const float across = x * dy - y * dx, gap = across * across / a, wide = margin * radius;
        if (gap >= wide * wide || nearest <= 0 || x * x + y * y <= radius * radius) return false;
        const float half = std::sqrt((radius * radius > gap ? radius * radius - gap : 0) / a);
        enter = nearest - half, leave = nearest + half;
        const float shaded = std::sqrt((wide * wide - gap) / a);
        shade_enter = nearest - shaded, shade_leave = nearest + shaded;
        if (form == shape::box) face_box(o.heading);
        return true;
    }

    /// Sight that is steeper or flatter than these slopes misses the solid.
    ENGRAM_HD float highest() const { return high > 0 ? high / positive(enter) : high / leave; }
    ENGRAM_HD float lowest() const { return low < 0 ? low / positive(enter) : low / leave; }

    /// The distance to the surface, and where it looks; `never` if sight of this slope misses it.
    ENGRAM_HD_CALL float meet(float slope, unit_vector& surface) const {
        if (!(enter < leave)) return never;
        switch (form) {
            case shape::ball:
                return meet_ball(slope, surface);
            case shape::cone:
                return meet_cone(slope, surface);
            default:
                return meet_prism(slope, surface);
        }
    }

    /// What is left of the ground's light at distance t: less near the circle of a solid that stands low.
    ENGRAM_HD float shadow(float t, float reach) const {
        const float px = t * dx - x, py = t * dy - y, away = std::sqrt(px * px + py * py) / radius;
        const float close = clamp01((reach - away) / (reach - 0.7f));
        return 1 - (lift < radius ? 0.45f * close * close * (1 - lift / radius) : 0.0f);
    }

private:
    ENGRAM_HD static float positive(float t) { return t > 1e-4f ? t : 1e-4f; }

    /// Narrows [enter, leave] from the circle to the square in it.
    ENGRAM_HD void face_box(int heading) {
        constexpr float unit = 1.0f / full_turn;
        const float c = static_cast<float>(cosine(heading)) * unit, s = static_cast<float>(sine(heading)) * unit;
        const float half = 0.70710678f * radius;
        float from = -1e30f, to = 1e30f;
        for (int axis = 0; axis < 2; ++axis) {
            const float nx = axis == 0 ? c : -s, ny = axis == 0 ? s : c;  // across this pair of sides
            const float speed = nx * dx + ny * dy, centre = nx * x + ny * y;
            if (std::fabs(speed) < 1e-6f) {
                if (std::fabs(centre) > half) to = -1e30f;
                continue;
            }
            const float first = (centre - (speed > 0 ? half : -half)) / speed;
            const float last = (centre + (speed > 0 ? half : -half)) / speed;
            const float sign = speed > 0 ? -1.0f : 1.0f;
            if (first > from) from = first, front = {sign * nx, sign * ny, 0};
            if (last < to) to = last;
        }
        enter = from, leave = to;
    }

    /// The flat ends, or the wall between them.
    ENGRAM_HD float meet_prism(float slope, unit_vector& surface) const {
        const float z = slope * enter;
        if (z < low || z > high) return meet_end(slope, surface);
        surface = front;
        if (form == shape::cylinder) surface = {(enter * dx - x) / radius, (enter * dy - y) / radius, 0};
        return enter;
    }

    ENGRAM_HD float meet_end(float slope, unit_vector& surface) const {
        const bool above = slope * enter > high && slope < 0 && form != shape::cone;
        const bool below = slope * enter < low && slope > 0;
        if (!above && !below) return never;
        const float t = (above ? high : low) / slope;
        if (t > leave) return never;
        surface = {0, 0, above ? 1.0f : -1.0f};
        return t;
    }

    ENGRAM_HD float meet_ball(float slope, unit_vector& surface) const {
        const float middle = 0.5f * (low + high), k = 2 * radius / (high - low), k2 = k * k;
        const float a = dx * dx + dy * dy + k2 * slope * slope, b = x * dx + y * dy + k2 * slope * middle;
        const float inside = b * b - a * (x * x + y * y + k2 * middle * middle - radius * radius);
        if (inside <= 0) return never;
        const float t = (b - std::sqrt(inside)) / a;
        if (t <= 0) return never;
        const float nx = t * dx - x, ny = t * dy - y, nz = k2 * (t * slope - middle);
        const float scale = 1 / std::sqrt(nx * nx + ny * ny + nz * nz);
        surface = {scale * nx, scale * ny, scale * nz};
        return t;
    }

    ENGRAM_HD float meet_cone(float slope, unit_vector& surface) const {
        const float m = radius / (high - low), m2 = m * m;
        const float a = dx * dx + dy * dy - m2 * slope * slope, b = x * dx + y * dy - m2 * high * slope;
        const float inside = b * b - a * (x * x + y * y - m2 * high * high);
        // Sight that is flatter than the side enters at the first root. Steeper sight enters the mirrored cone above
        // the tip first and this one at the second root, which is the same formula with a < 0; from below it meets the
        // base.
        const float t = inside > 0 && std::fabs(a) > 1e-9f ? (b - std::sqrt(inside)) / a : -1.0f, z = t * slope;
        if (t <= 0 || z < low || z > high) return meet_end(slope, surface);
        const float nx = t * dx - x, ny = t * dy - y, nz = m2 * (high - z);
        const float scale = 1 / std::sqrt(nx * nx + ny * ny + nz * nz + 1e-20f);
        surface = {scale * nx, scale * ny, scale * nz};
        return t;
    }
};

}  // namespace engram
