// SPDX-License-Identifier: MIT
#include "engram/task/stimulus.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace engram;

TEST_CASE("the built-in splits have the size asked for, pixels in range, and share no image") {
    const auto set = builtin_stimuli();
    CHECK(set.count(split::train) == 1200);
    CHECK(set.count(split::holdout) == 1200);
    CHECK(set.first(split::holdout) == 1200);
    CHECK(set.pixels().size() == 2400u * 432u);
    const auto [low, high] = std::minmax_element(set.pixels().begin(), set.pixels().end());
    CHECK(*low >= 0.0f);
    CHECK(*high <= 1.0f);
    std::set<std::vector<float>> distinct;
    for (int id = 0; id < set.size(); ++id) distinct.emplace(set.image(id).begin(), set.image(id).end());
    CHECK(distinct.size() == 2400);
}

TEST_CASE("built-in images are the same for everyone, whatever their number, and follow seed and side") {
    const auto few = builtin_stimuli(10), many = builtin_stimuli(40), other = builtin_stimuli(10, 12, 1);
    for (int i = 0; i < 10; ++i) {
        CHECK(std::ranges::equal(few.image(i), many.image(i)));
        CHECK(std::ranges::equal(few.image(10 + i), many.image(40 + i)));
        CHECK_FALSE(std::ranges::equal(few.image(i), other.image(i)));
    }
    CHECK(builtin_stimuli(2, 24).image_shape() == 24 * 24 * 3);
}

// Two images of uniform noise differ by a root mean square of 0.41 a number, one image and a version of it with noise
// of 1/255 by 0.004. Far apart means: even the nearest of 200 neighbours is ten times that noise away.
TEST_CASE("built-in images are far apart") {
    const auto set = builtin_stimuli(100);
    double sum = 0, nearest = 1;
    int pairs = 0;
    for (int i = 0; i < set.size(); ++i)
        for (int j = 0; j < i; ++j) {
            double square = 0;
            for (std::size_t k = 0; k < 432; ++k) {
                const double d = set.image(i)[k] - set.image(j)[k];
                square += d * d;
            }
            const double distance = std::sqrt(square / 432);
            sum += distance;
            nearest = std::min(nearest, distance);
            ++pairs;
        }
    MESSAGE("mean distance " << sum / pairs << ", nearest pair " << nearest);
    CHECK(sum / pairs > 0.25);
    CHECK(nearest > 0.04);
}

TEST_CASE("a collector refuses an image it has, in either split") {
    stimulus_collector images(4);
    const std::vector<float> white(48, 1.0f), grey(48, 0.5f), nearly(48, 0.999f);
    CHECK(images.add(split::train, white));
    CHECK_FALSE(images.add(split::train, white));
    CHECK_FALSE(images.add(split::holdout, white));
    CHECK_FALSE(images.add(split::holdout, nearly));  // the same once rounded to 1/255
    CHECK(images.add(split::holdout, grey));
    const auto set = std::move(images).finish("test");
    CHECK(set.size() == 2);
    CHECK(set.image(1)[0] == doctest::Approx(0.5).epsilon(0.005));
    CHECK_THROWS_WITH_AS((void)set.image(2), "stimulus 2 does not exist; the test set has 2", error);
}
