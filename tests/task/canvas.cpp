// SPDX-License-Identifier: MIT
#include "engram/task/canvas.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

using namespace engram;

namespace {

struct picture_of {
    explicit picture_of(int side_) : side(side_), texels(static_cast<std::size_t>(side * side * 3)) {}
    canvas on() { return {texels.data(), side}; }
    std::array<float, 3> at(int x, int y) const {
        const auto i = static_cast<std::size_t>((y * side + x) * 3);
        return {texels[i], texels[i + 1], texels[i + 2]};
    }
    int side;
    std::vector<float> texels;
};

constexpr int height = 72, width = 96;

std::vector<float> view(picture_of& panel, const gaze& from) {
    std::vector<float> pixels(height * width * 3);
    view_panel(panel.on(), from, height, width, pixels.data());
    return pixels;
}

float red(const std::vector<float>& pixels, int x, int y) {
    return pixels[static_cast<std::size_t>((y * width + x) * 3)];
}

}  // namespace

TEST_CASE("boxes fill their texels, images keep theirs, and smaller ones are enlarged smoothly") {
    picture_of small(4);
    small.on().fill({1, 0.5f, 0});
    small.on().box(1, 2, 2, 1, {0, 0, 1});
    CHECK(small.at(0, 0) == std::array{1.0f, 0.5f, 0.0f});
    CHECK(small.at(1, 2) == std::array{0.0f, 0.0f, 1.0f});
    CHECK(small.at(2, 2) == std::array{0.0f, 0.0f, 1.0f});
    CHECK(small.at(3, 2) == std::array{1.0f, 0.5f, 0.0f});
    CHECK(small.at(1, 3) == std::array{1.0f, 0.5f, 0.0f});

    picture_of large(12);
    large.on().image(small.texels.data(), 4, 3, 5, 4);
    for (int y = 0; y < 4; ++y)
        for (int x = 0; x < 4; ++x) CHECK(large.at(3 + x, 5 + y) == small.at(x, y));
    CHECK(large.at(2, 5) == std::array{0.0f, 0.0f, 0.0f});
    CHECK(large.at(7, 5) == std::array{0.0f, 0.0f, 0.0f});

    picture_of ramp(2);  // 0 on the left, 1 on the right
    for (int y = 0; y < 2; ++y) ramp.on().box(1, y, 1, 1, {1, 1, 1});
    large.on().image(ramp.texels.data(), 2, 0, 0, 8);
    const float expected[] = {0, 0, 0.125f, 0.375f, 0.625f, 0.875f, 1, 1};
    for (int x = 0; x < 8; ++x)
        for (int y : {0, 3, 7}) CHECK(large.at(x, y)[0] == doctest::Approx(expected[x]));
}

TEST_CASE("gazed at in its middle the panel fills the height, between walls of two greys") {
    picture_of panel(80);
    panel.on().fill({1, 1, 1});
    const auto seen = view(panel, {});
    for (int y = 0; y < height; ++y) {
        for (int x = 12; x < 84; ++x) REQUIRE(red(seen, x, y) == 1);
        for (int x = 0; x < 12; ++x) REQUIRE(red(seen, x, y) < 0.9f);
        for (int x = 84; x < width; ++x) REQUIRE(red(seen, x, y) < 0.9f);
    }
    // Upright, and not mirrored.
    panel.on().box(0, 0, 40, 40, {0, 0, 0});
    const auto turned = view(panel, {});
    CHECK(red(turned, 30, 20) == 0);
    CHECK(red(turned, 70, 20) == 1);
    CHECK(red(turned, 30, 60) == 1);
}

TEST_CASE("what is gazed at lies in the middle of the view") {
    for (int d = 0; d < 4; ++d) {
        picture_of panel(80);
        panel.on().fill({1, 1, 1});
        const panel_box zone = button_zone(d);
        panel.on().box(zone.left * 80 / 1000, zone.top * 80 / 1000, 8, 8, {0, 0, 0});
        gaze eye;
        while (!eye.on({zone.left + 20, zone.top + 20, zone.right - 20, zone.bottom - 20})) eye.move(d);
        const auto seen = view(panel, eye);
        CHECK(red(seen, 48, 36) < 0.1f);
        CHECK(red(seen, 47, 35) < 0.1f);
        const auto from_middle = view(panel, {});
        CHECK(red(from_middle, 48, 36) == 1);
    }
}

TEST_CASE("away from the panel each side of the room has its own grey") {
    picture_of panel(80);
    panel.on().fill({1, 0, 0});
    const auto middle = [&](int yaw, int pitch) { return red(view(panel, {yaw, pitch}), 48, 36); };
    std::array greys{middle(full_turn / 4, 0), middle(-full_turn / 4, 0), middle(-full_turn / 2, 0),
                     middle(0, gaze::highest), middle(0, -gaze::highest)};
    CHECK(greys[4] < greys[3]);
    std::sort(greys.begin(), greys.end());
    CHECK(std::adjacent_find(greys.begin(), greys.end()) == greys.end());
    CHECK(greys.front() > 0);
    CHECK(greys.back() < 1);
    for (const float seen : view(panel, {20000, 4 * 383})) CHECK((seen > 0 && seen < 1));  // no red is left
}
