// SPDX-License-Identifier: MIT

// The files of MNIST and Omniglot as they are distributed; skipped where they are not.

#include "real_data.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "engram/io/idx.hpp"
#include "engram/io/omniglot.hpp"

using namespace engram;

TEST_CASE("MNIST itself") {
    const std::string folder = real_data("mnist") + "/";
    const auto set = read_idx_images(folder + "t10k-images-idx3-ubyte.gz");
    CHECK(set.count == 10000);
    CHECK(set.rows == 28);
    double sum = 0;
    for (const auto p : set.pixels) sum += p;
    CHECK(sum / 255 / 7840000 == doctest::Approx(0.1325).epsilon(0.0005));
    const auto labels = read_idx_labels(folder + "t10k-labels-idx1-ubyte.gz");
    CHECK(labels.size() == 10000);
    CHECK(bytes(labels.begin(), labels.begin() + 10) == bytes{7, 2, 1, 0, 4, 1, 4, 9, 5, 9});
}

TEST_CASE("Omniglot itself") {
    const omniglot_archive archive(real_data("omniglot") + "/images_evaluation.zip");
    CHECK(archive.drawings().size() == 13180);
    std::set<std::string> alphabets;
    std::set<int> characters;
    for (const auto& d : archive.drawings()) {
        alphabets.insert(d.alphabet);
        characters.insert(d.character);
    }
    CHECK(alphabets.size() == 20);
    CHECK(characters.size() == 659);
    CHECK(*characters.begin() == 965);
    for (int i = 0; i < 13180; i += 997) {
        const auto image = archive.image(i);
        const auto ink = std::count(image.pixels.begin(), image.pixels.end(), 0);
        CHECK(ink > 50);
        CHECK(ink < 2000);
    }
}
