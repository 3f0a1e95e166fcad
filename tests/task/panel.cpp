// SPDX-License-Identifier: MIT
#include "engram/task/panel.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace engram;

namespace {

struct drawn {
    explicit drawn(int side) : texels(static_cast<std::size_t>(side * side * 3)), on{{texels.data(), side}} {
        on.fill({1, 1, 1});
    }
    double share(const shade& paint) const {
        int count = 0;
        for (std::size_t i = 0; i < texels.size(); i += 3)
            count += shade{texels[i], texels[i + 1], texels[i + 2]} == paint;
        return 3.0 * count / static_cast<double>(texels.size());
    }
    shade at(int x, int y) const {
        const auto i = static_cast<std::size_t>((y * on.side + x) * 3);
        return {texels[i], texels[i + 1], texels[i + 2]};
    }
    std::vector<float> texels;
    panel on;
};

constexpr shade black{0, 0, 0}, white{1, 1, 1}, green{0, 0.75f, 0}, red{0.75f, 0, 0}, grey{0.5f, 0.5f, 0.5f};

}  // namespace

TEST_CASE("image and buttons take their share of the panel, at both sides") {
    const std::vector<float> image(12 * 12 * 3, 0.5f);
    for (const int side : {16, 80}) {
        drawn panel(side);
        panel.on.show(image.data(), 12);
        panel.on.press(0, button::green);
        panel.on.press(1, button::red);
        panel.on.press(2, button::black);
        panel.on.press(3, button::absent);
        const double share = side == 16 ? 8 / 256.0 : 0.01;
        CHECK(panel.share(green) == doctest::Approx(share));
        CHECK(panel.share(red) == doctest::Approx(share));
        CHECK(panel.share(black) == doctest::Approx(share));
        CHECK(panel.share(grey) == doctest::Approx(0.75 * 0.75));
        const int middle = side / 2, last = side - 1;
        CHECK(panel.at(0, middle) == green);
        CHECK(panel.at(last, middle) == red);
        CHECK(panel.at(middle, 0) == black);
        CHECK(panel.at(middle, last) == white);
        CHECK(panel.at(middle, middle) == grey);
    }
}

TEST_CASE("low buttons lie in the lower corners of the small panel only") {
    drawn small(16), large(80);
    for (const drawn* each : {&small, &large}) {
        each->on.press(0, button::black, true);
        each->on.press(1, button::black, true);
    }
    CHECK(small.at(0, 15) == black);
    CHECK(small.at(15, 15) == black);
    CHECK(small.at(0, 8) == white);
    CHECK(large.at(0, 40) == black);
    CHECK(large.at(0, 79) == white);
}

TEST_CASE("cross and dot lie in the middle, as large as what fixates them") {
    drawn panel(80);
    panel.on.cross();
    CHECK(panel.at(39, 39) == shade{1, 0, 0});
    CHECK(panel.at(40, 40) == shade{1, 0, 0});
    CHECK(panel.at(36, 40) == shade{1, 0, 0});
    CHECK(panel.at(43, 39) == shade{1, 0, 0});
    CHECK(panel.at(35, 40) == white);
    CHECK(panel.at(44, 40) == white);
    CHECK(panel.at(40, 36) == shade{1, 0, 0});
    CHECK(panel.at(37, 37) == white);
    drawn other(80);
    other.on.dot({0, 0, 0});
    CHECK(other.share(black) == doctest::Approx(36 / 6400.0));  // 21 of 256 is 6.6 of 80
    CHECK(other.at(37, 37) == black);
    CHECK(other.at(42, 42) == black);
}
