#pragma once
// SPDX-License-Identifier: MIT

// Draws a room as it is seen from a place in it: float RGB in [0, 1], [height, width, 3] row-major, channels last.
//
// A column of samples is one line of sight (sight.hpp); textures are asked for their mean over the footprint of a
// sample. A column depends on the room and the pose alone, so a CPU thread takes a frame, and a CUDA thread a column
// (train/device_environments.hpp).

#include <cmath>
#include <concepts>
#include <cstddef>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/task/gallery.hpp"
#include "engram/task/room.hpp"
#include "engram/task/sight.hpp"

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

/// Draws column `x` of the frame.
ENGRAM_HD void render_column(const room& in, const outlook& from, const lens& through, const gallery& images, int x,
                             float* pixels) {
    const int n = through.samples, rows = through.height * n;
    const float across = through.across(), up = through.up(), share = 1.0f / static_cast<float>(n * n);
    const float step_x = 2 * across / static_cast<float>(through.width * n), step_y = 2 * up / static_cast<float>(rows);
    const std::ptrdiff_t row = 3 * through.width;
    for (int i = 0; i < n; ++i) {
        const float offset = (static_cast<float>(x * n + i) + 0.5f) * step_x - across;
        const sight line(in, from, through.eye, images, offset, step_x, step_y);
        for (int start = 0; start < rows; start += sight::longest) {
            const int count = rows - start < sight::longest ? rows - start : sight::longest;
            sight::lights seen;
            line.look(up - (static_cast<float>(start) + 0.5f) * step_y, count, seen);
            if (n == 1) {
                float* p = pixels + start * row + 3 * x;
                for (int k = 0; k < count; ++k, p += row)
                    p[0] = clamp01(seen.r[k]), p[1] = clamp01(seen.g[k]), p[2] = clamp01(seen.b[k]);
                continue;
            }
            for (int k = 0; k < count; ++k) {
                float* p = pixels + (start + k) / n * row + 3 * x;
                const rgb before = i == 0 && (start + k) % n == 0 ? rgb{} : rgb{p[0], p[1], p[2]};
                p[0] = clamp01(before.r + share * seen.r[k]), p[1] = clamp01(before.g + share * seen.g[k]);
                p[2] = clamp01(before.b + share * seen.b[k]);
            }
        }
    }
}

/// The same, called: each inlined copy could fuse its products differently, and all callers are to get the same bits.
ENGRAM_HD_CALL void draw_column(const room& in, const outlook& from, const lens& through, const gallery& images, int x,
                                float* pixels) {
    render_column(in, from, through, images, x, pixels);
}

/// Draws a frame of a room that is known to be valid, from a free place in it: what an environment calls, whose state
/// is checked where it comes from.
ENGRAM_HD_CALL void draw_frame(const room& in, const pose& from, const lens& through, const gallery& images,
                               float* pixels) {
    const outlook view(in, from);
    for (int column = 0; column < through.width; ++column) draw_column(in, view, through, images, column, pixels);
}

/// A frame to be drawn: of what room, from where, through what.
struct room_view {
    const room* in = nullptr;
    pose from{};
    lens through{};

    ENGRAM_HD void draw(float* pixels) const { draw_frame(*in, from, through, {}, pixels); }
};

/// An environment that shows a view of a room and says of which: one of its own, or one that it puts up in `spare`.
template <class E>
concept shows_a_room = requires(const E seen, room& spare) {
    { seen.view(spare) } -> std::same_as<room_view>;
};

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
