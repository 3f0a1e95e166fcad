#pragma once
// SPDX-License-Identifier: MIT

// Observations as pictures.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <engram/io/png.hpp>
#include <engram/task/environment.hpp>

namespace engram {

/// What is drawn of an observation: features without places become a row of grey pixels.
inline observation_shape picture_shape(const observation_shape& seen) {
    return seen.height == 1 && seen.width == 1 ? observation_shape{1, seen.channels, 1} : seen;
}

/// An observation as a picture, every number scaled from the task's range to a byte, every pixel `scale` times as
/// large.
inline picture observation_picture(const task_info& info, const std::vector<float>& observation, int scale = 1) {
    const auto shape = picture_shape(info.observation);
    const int channels = shape.channels == 3 ? 3 : 1;
    picture image{shape.height * scale, shape.width * scale, channels, {}};
    image.pixels.reserve(static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width * channels));
    const float range = info.highest > info.lowest ? info.highest - info.lowest : 1.0f;
    for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x)
            for (int c = 0; c < channels; ++c) {
                const auto at = static_cast<std::size_t>(((y / scale) * shape.width + x / scale) * shape.channels + c);
                const float v = std::clamp((observation[at] - info.lowest) / range, 0.0f, 1.0f);
                image.pixels.push_back(static_cast<std::uint8_t>(std::lround(255.0f * v)));
            }
    return image;
}

/// How large a pixel of an observation has to be for its longer side to fill about `wanted` pixels.
inline int picture_scale(const observation_shape& seen, int wanted) {
    const auto shape = picture_shape(seen);
    return std::max(1, wanted / std::max(shape.height, shape.width));
}

/// Hundredths of a second for which a film shows a step: at paper fidelity four frames of 1/60 s, otherwise ours.
inline int film_delay(const task_options& options) {
    return options.fidelity == "paper" ? 7 : 15;
}

/// Copies a picture into a larger one of three channels, its upper left corner at (top, left), stretched to
/// height x width by the nearest pixel.
inline void paste(picture& to, const picture& from, int top, int left, int height, int width) {
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            for (int c = 0; c < 3; ++c) {
                const int v = y * from.height / height, u = x * from.width / width;
                to.pixels[static_cast<std::size_t>(((top + y) * to.width + left + x) * 3 + c)] =
                    from.pixels[static_cast<std::size_t>((v * from.width + u) * from.channels +
                                                         (from.channels == 3 ? c : 0))];
            }
}

}  // namespace engram
