#pragma once
// SPDX-License-Identifier: MIT

// A square picture that is drawn texel by texel, and how it looks as a panel in a plain room: float RGB in [0, 1],
// [height, width, 3] row-major, channels last. At small fidelity the canvas is what the agent sees; at paper fidelity
// it is seen in perspective (gaze.hpp), sampled bilinearly, before walls of several greys that tell where the panel
// went.

#include <cmath>
#include <cstddef>

#include "engram/core/device.hpp"
#include "engram/task/gaze.hpp"

namespace engram {

/// A colour of floats in [0, 1].
struct shade {
    float r = 0, g = 0, b = 0;
    bool operator==(const shade&) const = default;
};

/// [side, side, 3], the memory is the caller's.
struct canvas {
    float* texels;
    int side;

    ENGRAM_HD void fill(const shade& paint) const {
        for (int i = 0; i < side * side; ++i) put(texels + 3 * i, paint);
    }

    ENGRAM_HD_CALL void box(int left, int top, int width, int height, const shade& paint) const {
        for (int y = top; y < top + height; ++y)
            for (int x = left; x < left + width; ++x) put(texels + 3 * (y * side + x), paint);
    }

    /// Lays an image [from_side, from_side, 3] into a square: as it is where it fits, else bilinearly.
    ENGRAM_HD_CALL void image(const float* from, int from_side, int left, int top, int size) const {
        if (from_side == size) {
            for (int y = 0; y < size; ++y)
                for (int i = 0; i < size * 3; ++i) texels[((top + y) * side + left) * 3 + i] = from[y * size * 3 + i];
            return;
        }
        const float scale = static_cast<float>(from_side) / static_cast<float>(size);
        for (int y = 0; y < size; ++y)
            for (int x = 0; x < size; ++x)
                sample(from, from_side, (static_cast<float>(x) + 0.5f) * scale, (static_cast<float>(y) + 0.5f) * scale,
                       texels + ((top + y) * side + left + x) * 3);
    }

    /// Writes the colour of a picture [side, side, 3] at (x, y), in texels from its upper left corner; outside, the
    /// edge goes on.
    ENGRAM_HD static void sample(const float* from, int side, float x, float y, float* to) {
        const auto last = static_cast<float>(side - 1);
        const float u = x < 0.5f          ? 0
                        : x - 0.5f > last ? last
                                          : x - 0.5f,
                    v = y < 0.5f          ? 0
                        : y - 0.5f > last ? last
                                          : y - 0.5f;
        const int left = static_cast<int>(u), top = static_cast<int>(v);
        const int right = left + 1 < side ? 3 : 0, below = top + 1 < side ? 3 * side : 0;
        const float s = u - static_cast<float>(left), t = v - static_cast<float>(top);
        const float* at = from + 3 * (top * side + left);
        for (int c = 0; c < 3; ++c) {
            const float over = at[c] + s * (at[c + right] - at[c]);
            const float under = at[c + below] + s * (at[c + below + right] - at[c + below]);
            to[c] = over + t * (under - over);
        }
    }

    ENGRAM_HD static void put(float* to, const shade& paint) { to[0] = paint.r, to[1] = paint.g, to[2] = paint.b; }
};

/// The wall, floor or ceiling that a ray (x right, y down, z ahead) meets in a cube around the eye.
ENGRAM_HD float grey_of(float x, float y, float z) {
    const float wide = std::fabs(x), tall = std::fabs(y), deep = std::fabs(z);
    if (tall > wide && tall > deep) return y > 0 ? 0.25f : 0.8f;
    if (wide > deep) return x > 0 ? 0.65f : 0.5f;
    return z > 0 ? 0.58f : 0.4f;
}

/// Rows [first, last) of the panel as it is seen, [last - first, width, 3]: a field of 90 degrees across, square
/// pixels.
ENGRAM_HD_CALL void view_panel_rows(const canvas& panel, const gaze& from, int first, int last, int height, int width,
                                    float* pixels) {
    constexpr float unit = 1.0f / full_turn;
    const float sy = static_cast<float>(sine(from.yaw)) * unit, cy = static_cast<float>(cosine(from.yaw)) * unit;
    const float sp = static_cast<float>(sine(from.pitch)) * unit, cp = static_cast<float>(cosine(from.pitch)) * unit;
    const float pitch = 2.0f / static_cast<float>(width), texels = static_cast<float>(panel.side);
    for (int row = first; row < last; ++row) {
        const float down = (static_cast<float>(row) + 0.5f - 0.5f * static_cast<float>(height)) * pitch;
        const float forward = cp + down * sp, y = down * cp - sp;
        for (int column = 0; column < width; ++column, pixels += 3) {
            const float right = (static_cast<float>(column) + 0.5f) * pitch - 1;
            const float x = sy * forward + right * cy, z = cy * forward - right * sy;
            if (z > 0 && std::fabs(x) <= 0.75f * z && std::fabs(y) <= 0.75f * z) {
                const float scale = texels / (1.5f * z);
                canvas::sample(panel.texels, panel.side, 0.5f * texels + x * scale, 0.5f * texels + y * scale, pixels);
            } else {
                pixels[0] = pixels[1] = pixels[2] = grey_of(x, y, z);
            }
        }
    }
}

/// All of them, [height, width, 3].
ENGRAM_HD void view_panel(const canvas& panel, const gaze& from, int height, int width, float* pixels) {
    view_panel_rows(panel, from, 0, height, height, width, pixels);
}

}  // namespace engram
