#pragma once
// SPDX-License-Identifier: MIT

// Colours and procedural textures of the 3D tasks.
//
// A texture is 12 bytes (pattern, repeats, two colours, seed) and a pure function of (u, v), in cells along and up the
// wall: nothing is stored. It is asked for its mean over a box du x dv, the footprint of a sample. Stripes, bands and
// checks have that mean in closed form, the others fade to their own mean, so that far walls are calm at 32 x 32 pixels
// instead of shimmering.

#include <cmath>
#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/core/philox.hpp"

namespace engram {

/// Light, 0 to 1 a channel.
struct rgb {
    float r = 0, g = 0, b = 0;
    ENGRAM_HD friend rgb operator+(rgb p, rgb q) { return {p.r + q.r, p.g + q.g, p.b + q.b}; }
    ENGRAM_HD friend rgb operator*(float s, rgb p) { return {s * p.r, s * p.g, s * p.b}; }
};

/// a where t = 0, b where t = 1.
ENGRAM_HD rgb blend(rgb a, rgb b, float t) {
    return (1 - t) * a + t * b;
}

ENGRAM_HD float clamp01(float x) {
    return x > 1 ? 1.0f : x > 0 ? x : 0.0f;  // NaN becomes 0
}

/// The largest whole number not above x, for |x| < 2^31. Through an integer: loops with std::floor are not vectorised.
ENGRAM_HD float whole(float x) {
    const float towards_zero = static_cast<float>(static_cast<int>(x));
    return x < towards_zero ? towards_zero - 1 : towards_zero;
}

/// A colour as it is stored.
struct colour {
    std::uint8_t r = 0, g = 0, b = 0;
    ENGRAM_HD rgb light() const {
        return (1.0f / 255) * rgb{static_cast<float>(r), static_cast<float>(g), static_cast<float>(b)};
    }
    bool operator==(const colour&) const = default;
};

/// Once around the colour circle in 1536 hues: red 0, yellow 256, green 512, cyan 768, blue 1024, magenta 1280. The
/// darkest channel is `low`, the brightest `high`.
ENGRAM_HD_CALL colour from_hue(int hue, int low, int high) {
    const auto channel = [&](int shifted) {
        const int h = (shifted % 1536 + 1536) % 1536;
        const int ramp = h < 256 ? h : h < 768 ? 256 : h < 1024 ? 1024 - h : 0;
        return static_cast<std::uint8_t>(low + (high - low) * ramp / 256);
    };
    return {channel(hue + 512), channel(hue), channel(hue - 512)};
}

/// 32 bits that look random, for lattices: the finaliser of MurmurHash3 (A. Appleby, public domain) over the numbers.
ENGRAM_HD std::uint32_t scramble(std::uint32_t seed, int x, int y) {
    std::uint32_t h =
        seed ^ (static_cast<std::uint32_t>(x) * 0x9E3779B1u) ^ (static_cast<std::uint32_t>(y) * 0x85EBCA77u);
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    return h ^ (h >> 16);
}

enum class pattern : std::uint8_t { plain, stripes, bands, checks, bricks, tiles, dots, noise, emblem };
constexpr int pattern_count = 9;

template <pattern Kind>
struct known_pattern {
    ENGRAM_HD constexpr pattern operator()() const { return Kind; }
};

/// `repeats` periods of the pattern to a cell, at least 1; an emblem is one sign that fills the cell.
struct texture {
    pattern kind = pattern::plain;
    std::uint8_t repeats = 1;
    colour first{}, second{};
    std::uint32_t seed = 0;

    /// Calls f with the pattern as a compile-time constant.
    template <class F>
    ENGRAM_HD static auto with_pattern(pattern kind, const F& f) {
        switch (kind) {
            case pattern::plain:
                return f(known_pattern<pattern::plain>{});
            case pattern::stripes:
                return f(known_pattern<pattern::stripes>{});
            case pattern::bands:
                return f(known_pattern<pattern::bands>{});
            case pattern::checks:
                return f(known_pattern<pattern::checks>{});
            case pattern::bricks:
                return f(known_pattern<pattern::bricks>{});
            case pattern::tiles:
                return f(known_pattern<pattern::tiles>{});
            case pattern::dots:
                return f(known_pattern<pattern::dots>{});
            case pattern::noise:
                return f(known_pattern<pattern::noise>{});
            case pattern::emblem:
                break;
        }
        return f(known_pattern<pattern::emblem>{});
    }

    /// The mean colour over the box du x dv around (u, v).
    ENGRAM_HD_CALL rgb mean(float u, float v, float du, float dv) const {
        return with_pattern(kind, [&](auto known) { return mean_of<known()>(u, v, du, dv); });
    }

    /// The same where the pattern is known: no branches that depend on the place, so that a loop over places can be
    /// vectorised (but for dots, noise and emblems).
    template <pattern Known>
    ENGRAM_HD rgb mean_of(float u, float v, float du, float dv) const {
        const float n = repeats;
        const rgb a = first.light(), b = second.light();
        if constexpr (Known == pattern::plain) {
            return a;
        } else if constexpr (Known == pattern::stripes) {
            return blend(a, b, share(n * u, n * du, 0.5f));
        } else if constexpr (Known == pattern::bands) {
            return blend(a, b, share(n * v, n * dv, 0.5f));
        } else if constexpr (Known == pattern::checks) {
            const float x = share(0.5f * n * u, 0.5f * n * du, 0.5f), y = share(0.5f * n * v, 0.5f * n * dv, 0.5f);
            return blend(a, b, x + y - 2 * x * y);
        } else if constexpr (Known == pattern::bricks) {
            return masonry(n * u, 2 * n * v, n * du, 2 * n * dv, 0.5f);
        } else if constexpr (Known == pattern::tiles) {
            return masonry(n * u, n * v, n * du, n * dv, 0);
        } else if constexpr (Known == pattern::dots) {
            return dots(n * u, n * v, larger(n * du, n * dv));
        } else if constexpr (Known == pattern::noise) {
            return noise(n * u, n * v, n * larger(du, dv));
        } else {
            return sign(u - whole(u) - 0.5f, v - whole(v) - 0.5f, larger(larger(du, dv), 1e-3f));
        }
    }

private:
    ENGRAM_HD static float larger(float a, float b) { return a > b ? a : b; }
    ENGRAM_HD static float smaller(float a, float b) { return a < b ? a : b; }

    /// The share of [x - width / 2, x + width / 2] whose fractional part is below `duty`.
    ENGRAM_HD static float share(float x, float width, float duty) {
        const float w = larger(width, 1e-3f), from = x - 0.5f * w, to = x + 0.5f * w;
        const float start = whole(from), a = from - start, b = to - start, turns = whole(b), rest = b - turns;
        const float before = a < duty ? a : duty, after = turns * duty + (rest < duty ? rest : duty);
        return clamp01((after - before) / w);
    }

    /// Stones of size 1 x 1 with joints of the second colour; every other row moved by `bond`. Stones differ a little.
    ENGRAM_HD rgb masonry(float x, float y, float dx, float dy, float bond) const {
        const float row = whole(y), moved = x + bond * (row - 2 * whole(0.5f * row));
        const float across = share(moved, dx, 0.08f), level = share(y, dy, 0.12f);
        const std::uint32_t stone = scramble(seed, static_cast<int>(whole(moved)), static_cast<int>(row));
        const float tint = (static_cast<float>(stone >> 8) * 0x1p-24f - 0.5f) * clamp01(1.5f - larger(dx, dy));
        return blend((1 + 0.35f * tint) * first.light(), second.light(), across + level - across * level);
    }

    /// Discs in the middle of each 1 x 1.
    ENGRAM_HD_CALL rgb dots(float u, float v, float width) const {
        const float x = u - whole(u) - 0.5f, y = v - whole(v) - 0.5f, keep = clamp01(2 - 2 * width);
        const float inside = clamp01(0.5f + (0.33f - std::sqrt(x * x + y * y)) / larger(width, 1e-3f));
        constexpr float mean = 0.342f;  // pi 0.33^2, the share of the dots
        return blend(first.light(), second.light(), mean + keep * (inside - mean));
    }

    /// Two octaves of smooth noise.
    ENGRAM_HD_CALL rgb noise(float u, float v, float width) const {
        const float coarse = clamp01(1.5f - width), fine = 0.6f * clamp01(1.5f - 3 * width);
        float t = 0.5f;
        if (coarse > 0) t += coarse * (lattice(u, v, seed) - 0.5f);
        if (fine > 0) t += fine * (lattice(3 * u, 3 * v, seed + 1) - 0.5f);
        return blend(first.light(), second.light(), clamp01(t));
    }

    /// Smooth noise in [0, 1] with one random number to each whole (x, y).
    ENGRAM_HD static float lattice(float x, float y, std::uint32_t seed) {
        const float fx = whole(x), fy = whole(y);
        const int ix = static_cast<int>(fx), iy = static_cast<int>(fy);
        const auto at = [&](int i, int j) { return static_cast<float>(scramble(seed, i, j) >> 8) * 0x1p-24f; };
        float s = x - fx, t = y - fy;
        s = s * s * (3 - 2 * s), t = t * t * (3 - 2 * t);
        const float top = at(ix, iy) + s * (at(ix + 1, iy) - at(ix, iy));
        const float low = at(ix, iy + 1) + s * (at(ix + 1, iy + 1) - at(ix, iy + 1));
        return top + t * (low - top);
    }

    /// One of eight signs on the square [-0.5, 0.5]^2, in the second colour, its edge `width` wide.
    ENGRAM_HD_CALL rgb sign(float x, float y, float width) const {
        const float ax = std::fabs(x), ay = std::fabs(y), round = std::sqrt(x * x + y * y);
        const float p = 0.7071f * std::fabs(x + y), q = 0.7071f * std::fabs(x - y);
        const auto bar = [](float a, float b) { return larger(a - 0.4f, b - 0.11f); };
        float edge = 0;  // signed distance, negative inside
        switch (seed & 7) {
            case 0:
                edge = round - 0.34f;
                break;
            case 1:
                edge = std::fabs(round - 0.27f) - 0.09f;
                break;
            case 2:
                edge = smaller(bar(ax, ay), bar(ay, ax));
                break;
            case 3:
                edge = smaller(bar(p, q), bar(q, p));
                break;
            case 4:
                edge = 0.7071f * (ax + ay - 0.42f);
                break;
            case 5:
                edge = larger(-0.3f - y, 0.894f * ax + 0.447f * y - 0.17f);
                break;
            case 6:
                edge = std::fabs(larger(ax, ay) - 0.27f) - 0.08f;
                break;
            default:
                edge = std::fabs(y + 0.12f - 1.5f * ax * (1 - ax)) - 0.11f;
                break;
        }
        return blend(first.light(), second.light(), clamp01(0.5f - edge / width));
    }
};

/// A texture in random colours.
ENGRAM_HD_CALL texture random_texture(pattern kind, philox& random) {
    const int hue = random.below(1536), low = 50 + random.below(80), high = 160 + random.below(70);
    texture t{kind, 2, from_hue(hue, low, high), from_hue(hue + 384 + random.below(768), 60, 220), random.next()};
    const std::uint8_t grey = static_cast<std::uint8_t>(150 + random.below(90));
    if (kind == pattern::bricks || kind == pattern::tiles) t.second = {grey, grey, grey};
    if (kind == pattern::noise) t.second = from_hue(hue + 100, low / 3, high / 2);
    if (kind == pattern::emblem) t.second = from_hue(hue + 512 + random.below(512), 0, 120);
    if (kind != pattern::bricks) t.repeats = static_cast<std::uint8_t>(2 + random.below(3));
    return t;
}

}  // namespace engram
