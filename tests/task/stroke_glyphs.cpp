// SPDX-License-Identifier: MIT
#include "engram/task/stroke_glyphs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

using namespace engram;

namespace {

int distinct_images(const glyph_set& set) {
    std::set<std::vector<std::uint8_t>> distinct;
    for (int id = 0; id < set.size(); ++id) distinct.emplace(set.image(id).begin(), set.image(id).end());
    return static_cast<int>(distinct.size());
}

/// The class of the nearest of the known images. Each pixel counts with its neighbours, so that a shift by one is not
/// everything.
struct nearest_neighbour {
    int side;
    std::vector<std::vector<int>> known{};
    std::vector<int> labels{};

    std::vector<int> blurred(std::span<const std::uint8_t> image) const {
        std::vector<int> out(image.size());
        for (int y = 0; y < side; ++y)
            for (int x = 0; x < side; ++x)
                for (int v = std::max(0, y - 1); v <= std::min(side - 1, y + 1); ++v)
                    for (int u = std::max(0, x - 1); u <= std::min(side - 1, x + 1); ++u)
                        out[static_cast<std::size_t>(y * side + x)] += image[static_cast<std::size_t>(v * side + u)];
        return out;
    }
    void learn(std::span<const std::uint8_t> image, int label) {
        known.push_back(blurred(image));
        labels.push_back(label);
    }
    int of(std::span<const std::uint8_t> image) const {
        const auto wanted = blurred(image);
        double best = 1e300;
        int label = -1;
        for (std::size_t i = 0; i < known.size(); ++i) {
            double square = 0;
            for (std::size_t k = 0; k < wanted.size(); ++k) {
                const double d = wanted[k] - known[i][k];
                square += d * d;
            }
            if (square < best) {
                best = square;
                label = labels[i];
            }
        }
        return label;
    }
};

}  // namespace

TEST_CASE("the built-in digits have ten classes in two splits that share no image") {
    const auto set = builtin_digits(14);
    CHECK(set.source() == "builtin");
    CHECK(set.classes() == 10);
    CHECK(set.count(split::train) == 10000);
    CHECK(set.count(split::holdout) == 2000);
    CHECK(distinct_images(set) == 12000);
    for (int digit = 0; digit < 10; ++digit) {
        CHECK(set.of(split::train, digit).size() == 1000);
        CHECK(set.of(split::holdout, digit).size() == 200);
    }
    CHECK(builtin_digits(28, 5, 5).image_size() == 784);
}

TEST_CASE("built-in glyphs are the same for everyone, whatever their number, and follow the seed") {
    const auto few = builtin_digits(14, 3, 2), many = builtin_digits(14, 9, 9), other = builtin_digits(14, 3, 2, 1);
    for (int digit = 0; digit < 10; ++digit)
        for (const split s : {split::train, split::holdout})
            for (std::size_t i = 0; i < few.of(s, digit).size(); ++i) {
                const auto image = few.image(few.of(s, digit)[i]);
                CHECK(std::ranges::equal(image, many.image(many.of(s, digit)[i])));
                CHECK_FALSE(std::ranges::equal(image, other.image(other.of(s, digit)[i])));
            }
    const auto two = builtin_characters(14, 2), three = builtin_characters(14, 3);
    for (int i = 0; i < two.count(split::train); ++i) CHECK(std::ranges::equal(two.image(i), three.image(i)));
}

// Chance is 10 %. What is wrong here would be two templates that look alike, or jitter that drowns them.
TEST_CASE("a digit looks like the other drawings of its class") {
    for (const int side : {14, 28}) {
        const auto set = builtin_digits(side, 20, 20);
        nearest_neighbour classifier{side};
        for (int id = 0; id < set.count(split::train); ++id) classifier.learn(set.image(id), set.label(id));
        int right = 0;
        for (int id = set.first(split::holdout); id < set.size(); ++id)
            right += classifier.of(set.image(id)) == set.label(id);
        MESSAGE("side " << side << ": " << right << " of 200 digits are nearest to a drawing of their class");
        CHECK(right > 190);
    }
}

TEST_CASE("of every alphabet three characters are held out, all their drawings") {
    const auto set = builtin_characters(14);
    CHECK(set.classes() == 1000);
    CHECK(distinct_images(set) == set.size());
    CHECK(set.size() > 19900);  // two characters may be the same to the pixel in some drawings
    for (int label = 0; label < 1000; ++label) {
        const bool held = label % 20 >= 17;
        CHECK(set.of(held ? split::train : split::holdout, label).empty());
        CHECK(set.of(held ? split::holdout : split::train, label).size() >= 15);
    }
}

// Chance is 0.7 % (150 characters). One known drawing of each: one-shot classification must be far better than that,
// and not perfect, or a drawing would be a copy.
TEST_CASE("characters differ more than the drawings of one") {
    const auto set = builtin_characters(14);
    nearest_neighbour classifier{14};
    int right = 0, asked = 0;
    for (int label = 0; label < 1000; ++label) {
        const auto ids = set.of(split::holdout, label);
        if (!ids.empty()) classifier.learn(set.image(ids[0]), label);
    }
    for (int label = 0; label < 1000; ++label) {
        const auto ids = set.of(split::holdout, label);
        for (std::size_t i = 1; i < ids.size(); ++i, ++asked) right += classifier.of(set.image(ids[i])) == label;
    }
    MESSAGE(right << " of " << asked << " drawings are nearest to the one known drawing of their character");
    CHECK(right > asked / 3);
    CHECK(right < asked);
}

TEST_CASE("every built-in drawing has ink, and is not a blot") {
    for (const auto& set : {builtin_digits(14, 100, 100), builtin_characters(14)})
        for (int id = 0; id < set.size(); ++id) {
            int ink = 0;
            for (const auto pixel : set.image(id)) ink += pixel;
            const double share = ink / 255.0 / 196;
            CHECK(share > 0.02);
            CHECK(share < 0.5);
        }
}
