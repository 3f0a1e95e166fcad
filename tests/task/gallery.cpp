// SPDX-License-Identifier: MIT
#include "engram/task/gallery.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace engram;

// Float sums of at most 36 texels in [0, 1], and 1e-6 that each touched texel counts more than it covers.
TEST_CASE("the mean over a box weighs each texel by the share that is covered") {
    constexpr int side = 6;
    std::vector<float> pixels(2 * side * side * 3);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 37 % 101) / 101;
    const gallery images{pixels.data(), side, 2};
    const auto texel = [&](int image, int y, int x) { return pixels[((image * side + y) * side + x) * 3]; };
    for (int image = 0; image < 2; ++image) {
        float all = 0;
        for (int y = 0; y < side; ++y)
            for (int x = 0; x < side; ++x) {
                all += texel(image, y, x) / (side * side);
                const float u = (static_cast<float>(x) + 0.5f) / side, v = (static_cast<float>(y) + 0.5f) / side;
                CHECK(images.mean(image, u, v, 0.01f, 0.01f).r == doctest::Approx(texel(image, y, x)).epsilon(1e-4));
                CHECK(images.mean(image, u, v, 0, 0).r == doctest::Approx(texel(image, y, x)).epsilon(1e-4));
            }
        CHECK(images.mean(image, 0.5f, 0.5f, 1, 1).r == doctest::Approx(all).epsilon(1e-4));
        CHECK(images.mean(image, 0.5f, 0.5f, 9, 9).r == doctest::Approx(all).epsilon(1e-4));  // outside does not count
        // A box over a quarter of texel (2, 1) and three quarters of its right neighbour, in one row.
        const float mixed = 0.25f * texel(image, 2, 1) + 0.75f * texel(image, 2, 2);
        CHECK(images.mean(image, 2.25f / side, 2.5f / side, 1.0f / side, 0.5f / side).r ==
              doctest::Approx(mixed).epsilon(1e-4));
        const float stacked = 0.3f * texel(image, 1, 4) + 0.7f * texel(image, 2, 4);
        CHECK(images.mean(image, 4.5f / side, 2.2f / side, 0.5f / side, 1.0f / side).r ==
              doctest::Approx(stacked).epsilon(1e-4));
        CHECK(images.mean(image, 1e20f, 1e20f, 0.1f, 0.1f).r == doctest::Approx(texel(image, 5, 5)).epsilon(1e-4));
        CHECK(images.mean(image, -1, -1, 0.1f, 0.1f).r == doctest::Approx(texel(image, 0, 0)).epsilon(1e-4));
        CHECK(images.mean(image, 2, 2, 0.1f, 0.1f).r == doctest::Approx(texel(image, 5, 5)).epsilon(1e-4));
    }
}
