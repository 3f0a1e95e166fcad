// SPDX-License-Identifier: MIT
#include "engram/task/texture.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace engram;

namespace {

float apart(rgb a, rgb b) {
    return std::max({std::fabs(a.r - b.r), std::fabs(a.g - b.g), std::fabs(a.b - b.b)});
}

/// The mean over a box by brute force: n x n points.
rgb average(const texture& t, float u, float v, float du, float dv, int n) {
    rgb sum;
    for (int j = 0; j < n; ++j)
        for (int i = 0; i < n; ++i) {
            const float x = (static_cast<float>(i) + 0.5f) / static_cast<float>(n) - 0.5f;
            const float y = (static_cast<float>(j) + 0.5f) / static_cast<float>(n) - 0.5f;
            sum = sum + t.mean(u + x * du, v + y * dv, 0, 0);
        }
    return (1.0f / static_cast<float>(n * n)) * sum;
}

}  // namespace

TEST_CASE("the hues go around the colour circle between the darkest and the brightest channel") {
    CHECK(from_hue(0, 10, 200) == colour{200, 10, 10});
    CHECK(from_hue(256, 10, 200) == colour{200, 200, 10});
    CHECK(from_hue(512, 10, 200) == colour{10, 200, 10});
    CHECK(from_hue(768, 10, 200) == colour{10, 200, 200});
    CHECK(from_hue(1024, 10, 200) == colour{10, 10, 200});
    CHECK(from_hue(1280, 10, 200) == colour{200, 10, 200});
    CHECK(from_hue(-1536 + 256, 10, 200) == from_hue(256, 10, 200));
    CHECK(from_hue(128, 0, 200) == colour{200, 100, 0});
}

// The points are `width / n` apart, and each edge in the box is misplaced by up to half of that: 200 points along a box
// of at most two periods err by at most 4 edges / 400 = 0.01 along each side, and checks mix both sides.
TEST_CASE("stripes, bands and checks give the exact mean over a box") {
    philox random(1, 2);
    for (const pattern kind : {pattern::stripes, pattern::bands, pattern::checks})
        for (int i = 0; i < 30; ++i) {
            texture t{kind, static_cast<std::uint8_t>(1 + random.below(4)), {255, 0, 128}, {0, 255, 0}};
            const float u = 32 * random.uniform() - 16, v = random.uniform();
            const float reach = 2 / static_cast<float>(t.repeats);
            const float du = reach * random.uniform(), dv = reach * random.uniform();
            CHECK(apart(t.mean(u, v, du, dv), average(t, u, v, du, dv, 200)) < 0.02f);
        }
}

TEST_CASE("the patterns are what their names say") {
    texture t{pattern::stripes, 2, {0, 0, 0}, {255, 255, 255}};
    const auto bright = [&](float u, float v) {
        const float r = t.mean(u, v, 0.01f, 0.01f).r;
        REQUIRE((r < 0.01f || r > 0.99f));
        return r > 0.5f;
    };
    CHECK(bright(0.1f, 0.2f));  // the second colour first
    CHECK_FALSE(bright(0.3f, 0.2f));
    CHECK(bright(0.1f, 0.4f));
    CHECK(bright(0.6f, 0.4f));
    t.kind = pattern::bands;
    CHECK(bright(0.3f, 0.1f));
    CHECK_FALSE(bright(0.1f, 0.3f));
    t.kind = pattern::checks;  // two fields to a cell
    CHECK_FALSE(bright(0.2f, 0.2f));
    CHECK(bright(0.7f, 0.2f));
    CHECK(bright(0.2f, 0.7f));
    CHECK_FALSE(bright(0.7f, 0.7f));
    t.kind = pattern::tiles;  // joints at the multiples of a half
    CHECK(bright(0.51f, 0.3f));
    CHECK(bright(0.3f, 0.52f));
    CHECK_FALSE(bright(0.3f, 0.3f));
    t.kind = pattern::bricks;  // half as high, every other row moved by half a brick
    CHECK(bright(0.51f, 0.15f));
    CHECK_FALSE(bright(0.51f, 0.4f));
    CHECK(bright(0.26f, 0.4f));
    CHECK(bright(0.4f, 0.26f));
    t.kind = pattern::dots;
    CHECK(bright(0.25f, 0.25f));
    CHECK_FALSE(bright(0.5f, 0.25f));
}

// Seen from far away every texture is one colour: its own mean. Bricks, tiles and noise have random tints of a
// standard deviation below 0.15, of which 16 cells average at least 64: 4 standard errors are 0.075.
TEST_CASE("from far away a texture is its mean colour") {
    philox random(3, 4);
    for (int kind = 0; kind < pattern_count; ++kind) {
        if (static_cast<pattern>(kind) == pattern::emblem) continue;  // seen as a picture, never as a wall
        CAPTURE(kind);
        texture t = random_texture(static_cast<pattern>(kind), random);
        t.first = {255, 255, 255}, t.second = {0, 0, 0};
        CHECK(apart(t.mean(2, 2, 40, 40), average(t, 2, 2, 4, 4, 400)) < 0.075f);
    }
}

TEST_CASE("a texture is a pure function with values between 0 and 1, and shows both of its colours") {
    philox random(5, 6);
    for (int i = 0; i < 200; ++i) {
        const texture t = random_texture(static_cast<pattern>(i % pattern_count), random);
        CAPTURE(i);
        float least = 1, most = 0;
        for (int k = 0; k < 200; ++k) {
            const float u = 64 * random.uniform() - 32, v = random.uniform(), w = random.uniform() * random.uniform();
            const rgb c = t.mean(u, v, 0.1f * w, 0.1f * w);
            // Two inlined copies may fuse their products differently.
            CHECK(apart(c, t.mean(u, v, 0.1f * w, 0.1f * w)) < 1e-6f);
            for (const float x : {c.r, c.g, c.b}) CHECK((x >= 0 && x <= 1.1f));  // a light stone may be over-exposed
            const float towards = apart(c, t.first.light());
            least = std::min(least, towards), most = std::max(most, towards);
        }
        const float contrast = apart(t.first.light(), t.second.light());
        if (t.kind == pattern::plain)
            CHECK(most == 0);
        else
            CHECK(most - least > 0.3f * contrast);
    }
}

TEST_CASE("the eight signs of emblems differ, and each is symmetric from left to right") {
    texture t{pattern::emblem, 1, {0, 0, 0}, {255, 255, 255}};
    for (std::uint32_t a = 0; a < 8; ++a) {
        t.seed = a;
        texture other = t;
        float inked = 0;
        for (int j = 0; j < 20; ++j)
            for (int i = 0; i < 20; ++i) {
                const float u = (static_cast<float>(i) + 0.5f) / 20, v = (static_cast<float>(j) + 0.5f) / 20;
                inked += t.mean(u, v, 0.01f, 0.01f).r / 400;
                CHECK(t.mean(u, v, 0.01f, 0.01f).r == doctest::Approx(t.mean(1 - u, v, 0.01f, 0.01f).r).epsilon(0.02));
            }
        CHECK(inked > 0.1f);
        CHECK(inked < 0.6f);
        for (std::uint32_t b = 0; b < a; ++b) {
            other.seed = b;
            float gap = 0;
            for (int j = 0; j < 20; ++j)
                for (int i = 0; i < 20; ++i) {
                    const float u = (static_cast<float>(i) + 0.5f) / 20, v = (static_cast<float>(j) + 0.5f) / 20;
                    gap += apart(t.mean(u, v, 0.01f, 0.01f), other.mean(u, v, 0.01f, 0.01f)) / 400;
                }
            CHECK(gap > 0.05f);
        }
    }
}
