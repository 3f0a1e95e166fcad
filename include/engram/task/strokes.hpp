#pragma once
// SPDX-License-Identifier: MIT

// Figures made of pen strokes on the unit square, and drawings of them. Two drawings of a figure differ as two hands
// do: every control point is moved a little, the whole is scaled, slanted, turned and shifted, the pen has another
// width.
//
//   ink(p) = clip(1/2 + (half width - distance(p, strokes)) * side, 0, 1), rounded to 1/255

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engram/core/philox.hpp"

namespace engram {

/// A point of the unit square, y downwards.
struct stroke_point {
    float x = 0, y = 0;
};

/// The path of a pen through its points: straight from one to the next, or smooth (Catmull and Rom).
struct stroke {
    bool smooth = false;
    std::vector<stroke_point> points;

    /// The path as short straight pieces.
    std::vector<stroke_point> path() const {
        if (!smooth || points.size() < 3) return points;
        constexpr int pieces = 6;
        std::vector<stroke_point> out{points.front()};
        const auto last = points.size() - 1;
        for (std::size_t i = 0; i < last; ++i) {
            const stroke_point a = points[i > 0 ? i - 1 : 0], b = points[i], c = points[i + 1],
                               d = points[std::min(i + 2, last)];
            for (int k = 1; k <= pieces; ++k) {
                const float t = static_cast<float>(k) / pieces;
                const auto along = [t](float p, float q, float r, float s) {
                    return 0.5f * (2 * q + t * (r - p + t * (2 * p - 5 * q + 4 * r - s + t * (3 * (q - r) + s - p))));
                };
                out.push_back({along(a.x, b.x, c.x, d.x), along(a.y, b.y, c.y, d.y)});
            }
        }
        return out;
    }
};

using stroke_figure = std::vector<stroke>;

/// One drawing of a figure, [side, side] bytes, 255 = ink; `pen` is the middle of half its width.
inline std::vector<std::uint8_t> draw_strokes(stroke_figure figure, int side, philox random, float pen = 0.046f) {
    const auto around = [&](float middle, float spread) { return middle + spread * (2 * random.uniform() - 1); };
    const float turn = around(0, 0.14f), slant = around(0.04f, 0.2f);
    const float wide = around(0.97f, 0.15f), high = around(0.97f, 0.1f);
    const float right = around(0, 0.05f), down = around(0, 0.05f), half_width = around(pen, 0.3f * pen);
    const float c = std::cos(turn), s = std::sin(turn), pixels = static_cast<float>(side);

    std::vector<float> ink(static_cast<std::size_t>(side * side)), middle(static_cast<std::size_t>(side));
    for (int i = 0; i < side; ++i) middle[static_cast<std::size_t>(i)] = (static_cast<float>(i) + 0.5f) / pixels;
    for (auto& each : figure) {
        for (auto& p : each.points) {
            const float y = high * (p.y - 0.5f), x = wide * (p.x - 0.5f) - slant * y;
            p = {0.5f + c * x - s * y + right, 0.5f + s * x + c * y + down};
            p.x = around(p.x, 0.022f);
            p.y = around(p.y, 0.022f);
        }
        const auto path = each.path();
        for (std::size_t i = 0; i + 1 < path.size(); ++i) {
            const stroke_point a = path[i], b = path[i + 1], ab{b.x - a.x, b.y - a.y};
            const float per_length = 1 / (ab.x * ab.x + ab.y * ab.y + 1e-12f), reach = half_width + 0.5f / pixels;
            const auto cell = [&](float at) { return std::clamp(static_cast<int>(at * pixels), 0, side - 1); };
            const int top = cell(std::min(a.y, b.y) - reach), bottom = cell(std::max(a.y, b.y) + reach);
            const int left = cell(std::min(a.x, b.x) - reach), end = cell(std::max(a.x, b.x) + reach);
            for (int y = top; y <= bottom; ++y)
                for (int x = left; x <= end; ++x) {
                    float& here = ink[static_cast<std::size_t>(y * side + x)];
                    if (here == 1) continue;
                    const stroke_point ap{middle[static_cast<std::size_t>(x)] - a.x,
                                          middle[static_cast<std::size_t>(y)] - a.y};
                    const float t = std::clamp((ap.x * ab.x + ap.y * ab.y) * per_length, 0.0f, 1.0f);
                    const float dx = ap.x - t * ab.x, dy = ap.y - t * ab.y;
                    // Products of floats are exact in double, where nothing overflows.
                    const auto away = static_cast<float>(std::sqrt(double{dx} * dx + double{dy} * dy));
                    here = std::max(here, std::clamp(0.5f + (half_width - away) * pixels, 0.0f, 1.0f));
                }
        }
    }
    std::vector<std::uint8_t> drawn(ink.size());
    std::transform(ink.begin(), ink.end(), drawn.begin(),
                   [](float x) { return x == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(std::lround(x * 255)); });
    return drawn;
}

}  // namespace engram
