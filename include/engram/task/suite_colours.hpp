#pragma once
// SPDX-License-Identifier: MIT

// The colour sets of the suite's 3D tasks by name (facts 2.2, errata M10). Names are the paper's; the values are ours,
// the web's where a name is one of its own, moved apart where two were hard to tell under shading.

#include "engram/core/device.hpp"
#include "engram/task/texture.hpp"

namespace engram {

/// Spot the difference (basic, passive, multi-object): five to train on, five held out.
inline constexpr int difference_colours = 5;
ENGRAM_HD_CALL colour difference_colour(bool holdout, int i) {
    constexpr colour train[] = {
        {220, 30, 30}, {40, 170, 50}, {40, 70, 220}, {245, 245, 245}, {95, 110, 130}};  // red green blue white slate
    constexpr colour held[] = {{240, 225, 40},
                               {120, 70, 25},
                               {255, 130, 180},
                               {255, 140, 0},
                               {140, 40, 170}};  // yellow brown pink orange purple
    return holdout ? held[i] : train[i];
}

/// Transitive inference: ten to train on, ten held out.
inline constexpr int inference_colours = 10;
/// Colour i of those that transitive inference trains on, or holds out.
ENGRAM_HD_CALL colour inference_colour(bool holdout, int i) {
    constexpr colour train[] = {{220, 30, 30},   {40, 170, 50}, {40, 70, 220},  {245, 245, 245}, {25, 25, 25},
                                {255, 130, 180}, {255, 140, 0}, {140, 40, 170}, {128, 128, 128}, {210, 180, 140}};
    // slate yellow brown lime magenta mint navy olive teal turquoise
    constexpr colour held[] = {{95, 110, 130},  {240, 225, 40}, {120, 70, 25},  {160, 250, 40}, {240, 40, 220},
                               {170, 250, 200}, {15, 15, 110},  {130, 140, 10}, {0, 110, 110},  {60, 225, 220}};
    return holdout ? held[i] : train[i];
}

/// A colour as an episode shows it that has drawn `episode`: in a light of the episode's own, 0.5 to 1.2 in each
/// channel, and for each `which` up to `shade_reach` beside that. Where five colours would be five labels, this asks
/// whether two things look alike. What is held out are the colours; in a light, a white wall of training can be as
/// yellow as one of them.
inline constexpr int shade_reach = 24;
ENGRAM_HD_CALL colour shade_of(colour paint, int episode, int which) {
    const auto moved = [&](int channel, int from) {
        const auto drawn = [&](int about, int below) {
            return static_cast<int>(scramble(static_cast<std::uint32_t>(episode), about, channel) %
                                    static_cast<std::uint32_t>(below));
        };
        const int light = 128 + drawn(-1, 180);  // times 256
        const int to = from * light / 256 + drawn(which, 2 * shade_reach + 1) - shade_reach;
        return static_cast<std::uint8_t>(to < 0 ? 0 : to > 255 ? 255 : to);
    };
    return {moved(0, paint.r), moved(1, paint.g), moved(2, paint.b)};
}

}  // namespace engram
