#pragma once
// SPDX-License-Identifier: MIT

// Images to hang on the walls of a room: float RGB [count, side, side, 3], not owned.

#include "engram/core/device.hpp"
#include "engram/task/texture.hpp"

namespace engram {

struct gallery {
    const float* pixels = nullptr;
    int side = 0, count = 0;

    /// The mean of an image over the box of `wide` x `tall` around (u, v), from the upper left corner in [0, 1]; what
    /// lies outside the image does not count.
    ENGRAM_HD rgb mean(int image, float u, float v, float wide, float tall) const {
        const texels across = covered(u, wide), down = covered(v, tall);
        rgb sum;
        float total = 0;
        for (int y = down.first; y <= down.last; ++y)
            for (int x = across.first; x <= across.last; ++x) {
                const float* p = pixels + ((image * side + y) * side + x) * 3;
                const float share = across.share(x) * down.share(y);
                sum = sum + share * rgb{p[0], p[1], p[2]};
                total += share;
            }
        return (1 / total) * sum;
    }

private:
    /// The texels that a box touches along one side, and how much of each it covers.
    struct texels {
        float from, to;
        int first, last;
        ENGRAM_HD float share(int i) const {
            const float at = static_cast<float>(i);
            return clamp01(to - at) - clamp01(from - at) + 1e-6f;
        }
    };

    ENGRAM_HD texels covered(float at, float wide) const {
        const float n = static_cast<float>(side), from = (at - 0.5f * wide) * n, to = (at + 0.5f * wide) * n;
        const auto texel = [&](float x) {
            const int i = x > 0 ? static_cast<int>(x < n ? x : n) : 0;
            return i < side ? i : side - 1;
        };
        return {from, to, texel(from), texel(to)};
    }
};

}  // namespace engram
