#pragma once
// SPDX-License-Identifier: MIT

// What is seen along one vertical line of sight: the sky, the first wall, the ground before it, and the solids between.
//
// One walk through the grid (Amanatides and Woo, "A fast voxel traversal algorithm", 1987) finds the first solid cell,
// at distance z along the camera's axis: walls are perspective-correct, and one of height h is h f / z pixels tall, f =
// (height / 2) / tan(half the vertical field of view). Looking down, the samples are a run of sky, one of wall and one
// of ground, each a loop that a compiler can vectorise; solids then paint over what is farther away.

#include <bit>
#include <cmath>
#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/task/gallery.hpp"
#include "engram/task/room.hpp"
#include "engram/task/solids.hpp"
#include "engram/task/texture.hpp"

namespace engram {

/// The first solid cell on a ray and the side that it shows; `distance` is in lengths of the ray's direction, `pads`
/// says whether it passed over one.
struct wall_hit {
    bool found = false, pads = false;
    int x = 0, y = 0;
    face side = face::east;
    float distance = 1e30f;
};

/// Walks from (x, y), in cells, towards (dx, dy); nothing is found where the ray leaves the grid.
ENGRAM_HD_CALL wall_hit first_wall(const room& in, float x, float y, float dx, float dy) {
    wall_hit at;
    at.x = static_cast<int>(std::floor(x)), at.y = static_cast<int>(std::floor(y));
    const float per_x = dx != 0 ? 1 / std::fabs(dx) : 1e30f, per_y = dy != 0 ? 1 / std::fabs(dy) : 1e30f;
    const float cell_x = static_cast<float>(at.x), cell_y = static_cast<float>(at.y);
    float next_x = dx != 0 ? (dx > 0 ? cell_x + 1 - x : x - cell_x) * per_x : 1e30f;
    float next_y = dy != 0 ? (dy > 0 ? cell_y + 1 - y : y - cell_y) * per_y : 1e30f;
    while (in.inside(at.x, at.y)) {
        at.pads |= in.at(at.x, at.y).kind == cell_kind::pad;
        float distance;
        if (next_x < next_y) {
            distance = next_x, next_x += per_x;
            at.x += dx > 0 ? 1 : -1, at.side = dx > 0 ? face::west : face::east;
        } else {
            distance = next_y, next_y += per_y;
            at.y += dy > 0 ? 1 : -1, at.side = dy > 0 ? face::north : face::south;
        }
        if (in.inside(at.x, at.y) && in.at(at.x, at.y).solid()) {
            at.found = true, at.distance = distance;
            return at;
        }
    }
    return at;
}

/// 1 / sqrt(x) for x > 0 with a relative error below 1e-6, from plain arithmetic: a call of the library's root would
/// keep compilers from vectorising the loops below.
ENGRAM_HD float inverse_root(float x) {
    float y = std::bit_cast<float>(0x5f3759dfu - (std::bit_cast<std::uint32_t>(x) >> 1));
    for (int i = 0; i < 3; ++i) y = y * (1.5f - 0.5f * x * y * y);
    return y;
}

/// What all lines of sight of a frame share.
struct outlook {
    float x, y, cosine_of, sine_of;  // where the eye is, in cells, and where it looks
    unit_vector sun;
    float wave[3][2];  // cosine and sine of the phases of the hills

    ENGRAM_HD outlook(const room& in, const pose& from) {
        constexpr float length = 1.0f / cell_length, turn = 1.0f / full_turn;
        x = static_cast<float>(from.x) * length, y = static_cast<float>(from.y) * length;
        cosine_of = static_cast<float>(cosine(from.heading)) * turn;
        sine_of = static_cast<float>(sine(from.heading)) * turn;
        const int heading = in.above.sun_heading;
        const float slope = in.above.sun_slope ? static_cast<float>(in.above.sun_slope) / 256 : 1.0f;
        const float scale = inverse_root(1 + slope * slope);
        sun = {scale * turn * static_cast<float>(cosine(heading)), scale * turn * static_cast<float>(sine(heading)),
               scale * slope};
        constexpr int times[3] = {1, 5, 23};
        for (int i = 0; i < 3; ++i) {
            const int phase = in.above.hill_seed * times[i];
            wave[i][0] = static_cast<float>(cosine(phase)) * turn, wave[i][1] = static_cast<float>(sine(phase)) * turn;
        }
    }
};

/// Everything that is seen along one vertical line of sight. It is looked down in stretches: sky, wall and ground are
/// each one run of samples and one loop without branches; then the solids paint over what is behind them.
class sight {
public:
    static constexpr int longest = 96;  // samples of a stretch

    /// The light of one stretch.
    struct lights {
        float r[longest], g[longest], b[longest];
        ENGRAM_HD void set(int k, rgb c) { r[k] = c.r, g[k] = c.g, b[k] = c.b; }
    };

    /// `offset` is the slope to the right of the camera's axis; a sample is step_x wide and step_y tall, in slopes.
    ENGRAM_HD sight(const room& in, const outlook& from, float eye, const gallery& images, float offset, float step_x,
                    float step_y)
        : in_(in), images_(images), from_(from), eye_(eye), step_x_(step_x), step_y_(step_y) {
        dx_ = from.cosine_of - offset * from.sine_of, dy_ = from.sine_of + offset * from.cosine_of;
        wall_ = first_wall(in, from.x, from.y, dx_, dy_);
        // Nearer to the horizon than this, numbers on the ground grow too large.
        wall_from_ = wall_to_ = -1e-4f;
        if (wall_.found) prepare_wall();
        for (int i = 0; i < in.objects_used; ++i)
            if (solids_[solid_count_].facing(in.objects[i], from.x, from.y, eye, dx_, dy_, shadow_reach))
                ++solid_count_;
        if (in.above.hill_slope) hill_ = hill_edge();
    }

    /// The light that comes down `count` slopes, `first` and below it, step_y apart.
    ENGRAM_HD_CALL void look(float first, int count, lights& out) const {
        float z[longest];
        const int wall = above(first, wall_to_, count), ground = above(first, wall_from_, count);
        draw_sky(first, wall, z, out);
        for (int k = wall; k < ground; ++k) z[k] = wall_.distance;
        if (wall < ground) draw_wall(first, wall, ground, out);
        if (ground < count) draw_ground(first, ground, count, z, out);
        const haze air = fog();
        for (int i = 0; i < solid_count_; ++i) {
            const solid_in_sight solid = solids_[i];
            const int last = above(first, solid.lowest() - step_y_, count);
            for (int k = above(first, solid.highest() + step_y_, count); k < last; ++k) {
                unit_vector surface;
                const float t = solid.meet(first - static_cast<float>(k) * step_y_, surface);
                if (t < z[k]) z[k] = t, out.set(k, air.over(lit(surface) * solid.paint, t));
            }
        }
    }

private:
    static constexpr float shadow_reach = 1.5f;  // of a solid on the ground, in its radii

    /// How many of the samples look above this slope.
    ENGRAM_HD int above(float first, float slope, int count) const {
        const float rows = (first - slope) / step_y_;
        return rows <= 0 ? 0 : rows >= static_cast<float>(count) ? count : static_cast<int>(std::ceil(rows));
    }

    ENGRAM_HD float lit(unit_vector n) const {
        return 0.75f + 0.25f * (n.x * from_.sun.x + n.y * from_.sun.y + n.z * from_.sun.z);
    }

    /// Copies of what the loops read: bytes of the room could be what a float is stored over, and would be read again.
    struct haze {
        float half_squared;
        rgb horizon;
        ENGRAM_HD rgb over(rgb c, float z) const {
            const float square = z * z;
            return half_squared > 0 ? blend(c, horizon, square / (square + half_squared)) : c;
        }
    };
    ENGRAM_HD haze fog() const {
        const float half = in_.above.fog;
        return {half * half, in_.above.horizon.light()};
    }

    ENGRAM_HD_CALL void prepare_wall() {
        const bool along_y = wall_.side == face::east || wall_.side == face::west;
        const bool forwards = wall_.side == face::west || wall_.side == face::south;
        const float along = along_y ? from_.y + wall_.distance * dy_ : from_.x + wall_.distance * dx_;
        const float n = wall_.side == face::east || wall_.side == face::south ? 1.0f : -1.0f;
        u_ = forwards ? along : -along;  // grows to the right for whoever looks at the face
        du_ = wall_.distance * step_x_ / (std::fabs(along_y ? dx_ : dy_) + 1e-6f);
        dv_ = wall_.distance * step_y_;
        wall_light_ = lit(along_y ? unit_vector{n, 0, 0} : unit_vector{0, n, 0});
        wall_top_ = static_cast<float>(in_.wall_height) / cell_length;
        picture_ = in_.picture_on(wall_.x, wall_.y, wall_.side);
        const float near = wall_.distance > 1e-4f ? wall_.distance : 1e-4f;
        wall_to_ = (wall_top_ - eye_) / near, wall_from_ = -eye_ / near;
    }

    // The loops take everything by value: what lies in memory could be what they write to.
    template <pattern Kind>
    ENGRAM_HD_CALL static void fill_wall(texture skin, haze air, float light, float u, float top, float step, float du,
                                         float dv, float z, int from, int to, lights& out) {
        for (int k = from; k < to; ++k)
            out.set(k, air.over(light * skin.mean_of<Kind>(u, top - static_cast<float>(k) * step, du, dv), z));
    }

    ENGRAM_HD_CALL void draw_wall(float first, int from, int to, lights& out) const {
        const texture& skin = in_.skins[in_.at(wall_.x, wall_.y).skin];
        const haze air = fog();
        const float u = u_, du = du_, dv = dv_, z = wall_.distance, light = wall_light_, step = z * step_y_;
        const float top = eye_ + z * first;
        texture::with_pattern(
            skin.kind, [&](auto kind) { fill_wall<kind()>(skin, air, light, u, top, step, du, dv, z, from, to, out); });
        for (int k = from; picture_ && k < to; ++k) {
            const float v = top - static_cast<float>(k) * step;
            out.set(k, air.over(light * with_picture(skin.mean(u, v, du, dv), v), z));
        }
    }

    /// The picture with its frame on the bare wall; a picture takes 0.7 of the cell.
    ENGRAM_HD_CALL rgb with_picture(rgb bare, float v) const {
        const float place = wall_top_ < 1 ? wall_top_ : 1.0f, side = 0.7f * place;
        const float x = u_ - std::floor(u_) - 0.5f, y = v - 0.5f * place;
        const auto within = [&](float half) {
            return clamp01(0.5f + (half - std::fabs(x)) / du_) * clamp01(0.5f + (half - std::fabs(y)) / dv_);
        };
        const float framed = within(0.5f * side + 0.05f * place);
        if (framed <= 0) return bare;
        const rgb wood{0.16f, 0.1f, 0.06f};
        const float u = x / side + 0.5f, low = y / side + 0.5f;
        const rgb shown = picture_->image >= 0 && picture_->image < images_.count
                              ? images_.mean(picture_->image, u, 1 - low, du_ / side, dv_ / side)
                              : in_.skins[picture_->skin].mean(u, low, du_ / side, dv_ / side);
        return blend(bare, blend(wood, shown, within(0.5f * side)), framed);
    }

    /// Where sample k of a stretch meets the ground, and what it covers there.
    struct floor_in_sight {
        float first, step_y, step_x, eye, x, y, dx, dy, across_x, across_y;
        ENGRAM_HD float distance(int k) const { return eye / (static_cast<float>(k) * step_y - first); }
        ENGRAM_HD float at_x(float z) const { return x + z * dx; }
        ENGRAM_HD float at_y(float z) const { return y + z * dy; }
        /// What a sample covers along x and y.
        ENGRAM_HD float wide(float z) const { return z * (std::fabs(dx) * z * step_y / eye + across_x * step_x); }
        ENGRAM_HD float tall(float z) const { return z * (std::fabs(dy) * z * step_y / eye + across_y * step_x); }
    };

    template <pattern Kind>
    ENGRAM_HD_CALL static void fill_ground(texture skin, haze air, floor_in_sight below, const float* light, int from,
                                           int to, lights& out) {
        for (int k = from; k < to; ++k) {
            const float away = below.distance(k);
            out.set(k, air.over(light[k] * skin.mean_of<Kind>(below.at_x(away), below.at_y(away), below.wide(away),
                                                              below.tall(away)),
                                away));
        }
    }

    ENGRAM_HD_CALL void draw_ground(float first, int from, int to, float* z, lights& out) const {
        const floor_in_sight below{first,
                                   step_y_,
                                   step_x_,
                                   eye_,
                                   from_.x,
                                   from_.y,
                                   dx_,
                                   dy_,
                                   std::fabs(from_.sine_of),
                                   std::fabs(from_.cosine_of)};
        float light[longest];
        const float bright = lit({0, 0, 1});
        for (int k = from; k < to; ++k) z[k] = below.distance(k), light[k] = bright;
        for (int i = 0; i < solid_count_; ++i) {
            const solid_in_sight& solid = solids_[i];
            if (solid.lift >= solid.radius) continue;
            const int last = solid.shade_enter > 0 ? above(first, -eye_ / solid.shade_enter, to) : to;
            for (int k = larger(from, above(first, -eye_ / solid.shade_leave, to)); k < last; ++k)
                light[k] *= solid.shadow(z[k], shadow_reach);
        }
        const haze air = fog();
        const texture& skin = in_.skins[in_.ground_skin];
        texture::with_pattern(skin.kind,
                              [&](auto kind) { fill_ground<kind()>(skin, air, below, light, from, to, out); });
        for (int k = from; wall_.pads && k < to; ++k) {
            const int x = static_cast<int>(std::floor(below.at_x(z[k]))),
                      y = static_cast<int>(std::floor(below.at_y(z[k])));
            if (!in_.inside(x, y) || in_.at(x, y).kind != cell_kind::pad) continue;
            const texture& pad = in_.skins[in_.at(x, y).skin];
            const rgb paint = pad.mean(below.at_x(z[k]), below.at_y(z[k]), below.wide(z[k]), below.tall(z[k]));
            out.set(k, air.over(light[k] * paint, z[k]));
        }
    }

    ENGRAM_HD static int larger(int a, int b) { return a > b ? a : b; }

    ENGRAM_HD_CALL void draw_sky(float first, int count, float* z, lights& out) const {
        const rgb horizon = in_.above.horizon.light(), zenith = in_.above.zenith.light(),
                  hills = in_.above.hill.light();
        const bool sunny = in_.above.sun_slope != 0, hilly = in_.above.hill_slope != 0;
        const float across = dx_ * dx_ + dy_ * dy_, ahead = dx_ * from_.sun.x + dy_ * from_.sun.y, up = from_.sun.z;
        const float step = step_y_, hill = hill_, edge = 1 / step;
        constexpr float radius = 0.09f;
        const float rim = 1 / (2 * radius * (step + 0.02f));
        for (int k = 0; k < count; ++k) {
            const float slope = first - static_cast<float>(k) * step;
            rgb c = blend(horizon, zenith, 1.6f * slope / (0.6f + 1.6f * slope));
            if (sunny) {
                const float towards = inverse_root(across + slope * slope) * (ahead + slope * up);
                const float square = 2 * (towards < 1 ? 1 - towards : 0.0f);  // of the angle, where it is small
                c = blend(c, {1, 0.95f, 0.75f}, 0.6f / (1 + 30 * square));
                // radius - angle, near the edge of the disc
                c = blend(c, {1, 1, 0.9f}, clamp01(0.5f + (radius * radius - square) * rim));
            }
            z[k] = 1e30f, out.set(k, hilly ? blend(c, hills, clamp01(0.5f + (hill - slope) * edge)) : c);
        }
    }

    /// The slope of the hills' edge: waves with 3, 7 and 17 periods around the horizon, by the powers of e^(i azimuth).
    ENGRAM_HD float hill_edge() const {
        struct turn {
            float c, s;
            ENGRAM_HD turn operator*(turn o) const { return {c * o.c - s * o.s, c * o.s + s * o.c}; }
        };
        const float scale = inverse_root(dx_ * dx_ + dy_ * dy_);
        const turn one{scale * dx_, scale * dy_}, three = one * one * one, seven = three * three * one;
        const turn waves[3] = {three, seven, seven * seven * three};
        constexpr float size[3] = {0.25f, 0.15f, 0.1f};
        float height = 0.5f;
        for (int i = 0; i < 3; ++i) height += size[i] * (waves[i].s * from_.wave[i][0] + waves[i].c * from_.wave[i][1]);
        return height * static_cast<float>(in_.above.hill_slope) / 256;
    }

    const room& in_;
    const gallery& images_;
    const outlook& from_;
    float eye_, step_x_, step_y_, dx_ = 1, dy_ = 0;
    wall_hit wall_{};
    float wall_from_ = 0, wall_to_ = 0;  // slopes of the foot and the top of the wall; equal where there is none
    float u_ = 0, du_ = 0, dv_ = 0, wall_light_ = 1, wall_top_ = 0, hill_ = 0;
    const wall_picture* picture_ = nullptr;
    int solid_count_ = 0;
    solid_in_sight solids_[room::object_capacity];
};

}  // namespace engram
