#pragma once
// SPDX-License-Identifier: MIT

// Draws a room as it is seen from a place in it: float RGB in [0, 1], [height, width, 3] row-major, channels last.
//
// Every column of samples is one walk through the grid (Amanatides and Woo, "A fast voxel traversal algorithm", 1987)
// to the first solid cell, at distance z along the camera's axis: walls are perspective-correct, and one of height h is
// h f / z pixels tall, f = (height / 2) / tan(half the vertical field of view). Ground, objects and sky are met sample
// by sample, the nearest wins; textures are asked for their mean over the footprint of the sample. A column depends on
// the room and the pose alone, so a CPU thread takes a frame, and a CUDA thread a column or a frame.

#include <cmath>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/task/gallery.hpp"
#include "engram/task/room.hpp"
#include "engram/task/solids.hpp"
#include "engram/task/texture.hpp"

namespace engram {

/// The camera's own numbers. Pixels are square unless `aspect`, width / height of what is seen, says otherwise.
struct lens {
    int height = 72, width = 96;
    float field_of_view = 1.4f;  // from left to right, radians
    float aspect = 0;            // 0: width / height
    float eye = 0.5f;            // above the ground, in cells
    int samples = 1;             // along each side of a pixel

    /// The slopes of sight at the right and at the upper edge.
    ENGRAM_HD float across() const { return std::tan(0.5f * field_of_view); }
    ENGRAM_HD float up() const {
        return across() / (aspect > 0 ? aspect : static_cast<float>(width) / static_cast<float>(height));
    }
};

/// The first solid cell on a ray and the side that it shows; `distance` is in lengths of the ray's direction.
struct wall_hit {
    bool found = false;
    int x = 0, y = 0;
    face side = face::east;
    float distance = 1e30f;
};

/// Walks from (x, y), in cells, towards (dx, dy); nothing is found where the ray leaves the grid.
ENGRAM_HD wall_hit first_wall(const room& in, float x, float y, float dx, float dy) {
    wall_hit at;
    at.x = static_cast<int>(std::floor(x)), at.y = static_cast<int>(std::floor(y));
    const float per_x = dx != 0 ? 1 / std::fabs(dx) : 1e30f, per_y = dy != 0 ? 1 / std::fabs(dy) : 1e30f;
    const float cell_x = static_cast<float>(at.x), cell_y = static_cast<float>(at.y);
    float next_x = dx != 0 ? (dx > 0 ? cell_x + 1 - x : x - cell_x) * per_x : 1e30f;
    float next_y = dy != 0 ? (dy > 0 ? cell_y + 1 - y : y - cell_y) * per_y : 1e30f;
    while (in.inside(at.x, at.y)) {
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

/// Everything that is seen along one vertical line of sight.
class sight {
public:
    /// `offset` is the slope to the right of the camera's axis; a sample is step_x wide and step_y tall, in slopes.
    ENGRAM_HD sight(const room& in, const pose& from, float eye, const gallery& images, float offset, float step_x,
                    float step_y)
        : in_(in), images_(images), eye_(eye), step_x_(step_x), step_y_(step_y) {
        constexpr float length = 1.0f / cell_length, turn = 1.0f / full_turn;
        const float c = static_cast<float>(cosine(from.heading)) * turn,
                    s = static_cast<float>(sine(from.heading)) * turn;
        x_ = static_cast<float>(from.x) * length, y_ = static_cast<float>(from.y) * length;
        dx_ = c - offset * s, dy_ = s + offset * c;
        right_x_ = -s, right_y_ = c;
        const int sun = in.above.sun_heading;
        const float slope = in.above.sun_slope ? static_cast<float>(in.above.sun_slope) / 256 : 1.0f;
        const float scale = 1 / std::sqrt(1 + slope * slope);
        sun_ = {scale * turn * static_cast<float>(cosine(sun)), scale * turn * static_cast<float>(sine(sun)),
                scale * slope};
        wall_ = first_wall(in, x_, y_, dx_, dy_);
        if (wall_.found) prepare_wall();
        for (int i = 0; i < in.objects_used; ++i)
            if (solids_[solid_count_].facing(in.objects[i], x_, y_, eye, dx_, dy_, shadow_reach)) ++solid_count_;
        if (in.above.hill_slope)
            hill_ = hill_at(6.2831853f * turn * static_cast<float>(from.heading & (full_turn - 1)) + std::atan(offset));
    }

    /// The light that comes down this slope.
    ENGRAM_HD rgb look(float slope) const {
        float z = 1e30f;
        const float height = eye_ + wall_.distance * slope;
        const bool wall = wall_.found && height >= 0 && height <= wall_top_;
        const bool ground = !wall && slope < -1e-4f;  // nearer to the horizon, numbers grow too large
        if (wall) z = wall_.distance;
        if (ground) z = -eye_ / slope;
        int seen = -1;
        unit_vector surface;
        for (int i = 0; i < solid_count_; ++i) {
            unit_vector candidate;
            const float t = solids_[i].meet(slope, candidate);
            if (t < z) z = t, seen = i, surface = candidate;
        }
        if (seen >= 0) return through_fog(lit(surface) * solids_[seen].paint, z);
        if (wall) return through_fog(wall_light_ * wall_colour(height), z);
        return ground ? through_fog(ground_colour(z), z) : sky_colour(slope);
    }

private:
    static constexpr float shadow_reach = 1.5f;  // of a solid on the ground, in its radii

    ENGRAM_HD float lit(unit_vector n) const { return 0.75f + 0.25f * (n.x * sun_.x + n.y * sun_.y + n.z * sun_.z); }

    ENGRAM_HD rgb through_fog(rgb c, float z) const {
        const float half = in_.above.fog;
        return half > 0 ? blend(c, in_.above.horizon.light(), z * z / (z * z + half * half)) : c;
    }

    ENGRAM_HD void prepare_wall() {
        const bool along_y = wall_.side == face::east || wall_.side == face::west;
        const bool forwards = wall_.side == face::west || wall_.side == face::south;
        const float along = along_y ? y_ + wall_.distance * dy_ : x_ + wall_.distance * dx_;
        const float n = wall_.side == face::east || wall_.side == face::south ? 1.0f : -1.0f;
        u_ = forwards ? along : -along;  // grows to the right for whoever looks at the face
        du_ = wall_.distance * step_x_ / (std::fabs(along_y ? dx_ : dy_) + 1e-6f);
        dv_ = wall_.distance * step_y_;
        wall_light_ = lit(along_y ? unit_vector{n, 0, 0} : unit_vector{0, n, 0});
        wall_top_ = static_cast<float>(in_.wall_height) / cell_length;
        picture_ = in_.picture_on(wall_.x, wall_.y, wall_.side);
    }

    /// The skin, and on it the picture with its frame; a picture takes 0.7 of the cell.
    ENGRAM_HD rgb wall_colour(float v) const {
        const rgb bare = in_.skins[in_.at(wall_.x, wall_.y).skin].mean(u_, v, du_, dv_);
        if (!picture_) return bare;
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

    ENGRAM_HD rgb ground_colour(float z) const {
        const float x = x_ + z * dx_, y = y_ + z * dy_;
        const float ahead = z * z * step_y_ / eye_, beside = z * step_x_;
        const int cx = static_cast<int>(std::floor(x)), cy = static_cast<int>(std::floor(y));
        const bool pad = in_.inside(cx, cy) && in_.at(cx, cy).kind == cell_kind::pad;
        const texture& skin = in_.skins[pad ? in_.at(cx, cy).skin : in_.ground_skin];
        const rgb bare = skin.mean(x, y, std::fabs(dx_) * ahead + std::fabs(right_x_) * beside,
                                   std::fabs(dy_) * ahead + std::fabs(right_y_) * beside);
        float light = lit({0, 0, 1});
        for (int i = 0; i < solid_count_; ++i) light *= solids_[i].shadow(z, shadow_reach);
        return light * bare;
    }

    ENGRAM_HD rgb sky_colour(float slope) const {
        const sky& over = in_.above;
        rgb c = blend(over.horizon.light(), over.zenith.light(), 1.6f * slope / (0.6f + 1.6f * slope));
        if (over.sun_slope) {
            const float scale = 1 / std::sqrt(dx_ * dx_ + dy_ * dy_ + slope * slope);
            const float towards = scale * (dx_ * sun_.x + dy_ * sun_.y + slope * sun_.z);
            const float angle = std::sqrt(2 * (towards < 1 ? 1 - towards : 0.0f));  // for small angles
            c = blend(c, {1, 0.95f, 0.75f}, 0.6f / (1 + 30 * angle * angle));
            c = blend(c, {1, 1, 0.9f}, clamp01(0.5f + (0.09f - angle) / (step_y_ + 0.02f)));
        }
        return over.hill_slope ? blend(c, over.hill.light(), clamp01(0.5f + (hill_ - slope) / step_y_)) : c;
    }

    /// The slope of the hills' edge: three waves around the horizon.
    ENGRAM_HD float hill_at(float azimuth) const {
        const float phase = 6.2831853f / 65536 * static_cast<float>(in_.above.hill_seed);
        const float wave = 0.5f + 0.25f * std::sin(3 * azimuth + phase) + 0.15f * std::sin(7 * azimuth + 5 * phase) +
                           0.1f * std::sin(17 * azimuth + 23 * phase);
        return wave * static_cast<float>(in_.above.hill_slope) / 256;
    }

    const room& in_;
    const gallery& images_;
    float eye_, step_x_, step_y_, x_ = 0, y_ = 0, dx_ = 1, dy_ = 0, right_x_ = 0, right_y_ = 1;
    unit_vector sun_{};
    wall_hit wall_{};
    float u_ = 0, du_ = 0, dv_ = 0, wall_light_ = 1, wall_top_ = 0, hill_ = 0;
    const wall_picture* picture_ = nullptr;
    int solid_count_ = 0;
    solid_in_sight solids_[room::object_capacity];
};

/// Draws column `x` of the frame.
ENGRAM_HD void render_column(const room& in, const pose& from, const lens& through, const gallery& images, int x,
                             float* pixels) {
    const int n = through.samples, rows = through.height * n;
    const float across = through.across(), up = through.up(), share = 1.0f / static_cast<float>(n * n);
    const float step_x = 2 * across / static_cast<float>(through.width * n), step_y = 2 * up / static_cast<float>(rows);
    for (int i = 0; i < n; ++i) {
        const float offset = (static_cast<float>(x * n + i) + 0.5f) * step_x - across;
        const sight line(in, from, through.eye, images, offset, step_x, step_y);
        for (int y = 0; y < through.height; ++y) {
            rgb sum;
            for (int j = 0; j < n; ++j) sum = sum + line.look(up - (static_cast<float>(y * n + j) + 0.5f) * step_y);
            float* p = pixels + (y * through.width + x) * 3;
            const rgb before = i == 0 ? rgb{} : rgb{p[0], p[1], p[2]};
            p[0] = clamp01(before.r + share * sum.r), p[1] = clamp01(before.g + share * sum.g);
            p[2] = clamp01(before.b + share * sum.b);
        }
    }
}

/// Draws a frame of a room that is known to be valid, from a free place in it: what an environment calls, whose state
/// is checked where it comes from. Never inlined: each inlined copy could fuse its products differently, and all
/// callers are to get the same bits.
[[gnu::noinline]] inline void draw_frame(const room& in, const pose& from, const lens& through, const gallery& images,
                                         float* pixels) {
    for (int column = 0; column < through.width; ++column) render_column(in, from, through, images, column, pixels);
}

/// Draws a frame. Throws where there is nothing sensible to see: a room that is not valid, an eye outside the grid,
/// inside something solid, or not between the ground and the top of the walls, a lens out of range.
inline void render(const room& in, const pose& from, const lens& through, const gallery& images, float* pixels) {
    const auto cells = [](std::int32_t length) { return static_cast<double>(length) / cell_length; };
    require(through.height >= 1 && through.width >= 1 && through.height <= 4096 && through.width <= 4096,
            "ray caster: a frame of ", through.height, " x ", through.width, " pixels, expected 1 to 4096 of each");
    require(through.field_of_view > 0.05f && through.field_of_view < 3, "ray caster: a field of view of ",
            through.field_of_view, " radians, expected 0.05 to 3");
    require(through.aspect >= 0 && through.aspect <= 100, "ray caster: an aspect of ", through.aspect,
            ", expected width / height, or 0 for square pixels");
    require(through.samples >= 1 && through.samples <= 16, "ray caster: ", through.samples,
            " samples along each side of a pixel, expected 1 to 16");
    require(in.valid(), "ray caster: the room is not valid; its sizes, kinds or skins are out of range");
    require(through.eye > 0 && through.eye < cells(in.wall_height), "ray caster: the eye is ", through.eye,
            " cells above the ground, expected to be between the ground and the top of the walls at ",
            cells(in.wall_height));
    const int x = from.x >> 16, y = from.y >> 16;
    require(in.inside(x, y), "ray caster: the camera stands at (", cells(from.x), ", ", cells(from.y),
            "), outside the grid of ", int{in.width}, " x ", int{in.height}, " cells");
    require(!in.at(x, y).solid(), "ray caster: the camera stands inside the solid cell (", x, ", ", y, ")");
    draw_frame(in, from, through, images, pixels);
}

}  // namespace engram
