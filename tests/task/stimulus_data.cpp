// SPDX-License-Identifier: MIT
#include "engram/task/stimulus_data.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "../io/temporary.hpp"
#include "../io/zip_writer.hpp"
#include "disjoint.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/registry.hpp"

using namespace engram;

namespace {

/// Images of 28 x 28; every fourth repeats its predecessor, and of the rest every third is the same in both files.
void write_idx(const std::string& path, std::uint32_t count, std::uint32_t seed) {
    bytes out;
    for (const std::uint32_t n : {2051u, count, 28u, 28u})
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(n >> shift));
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t drawn = i % 4 == 3 ? i - 1 : i;
        philox random(drawn % 3 == 0 ? 0 : seed, drawn);
        for (int p = 0; p < 784; ++p) out.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
    write_file(path, out);
}

}  // namespace

TEST_CASE("area averaging keeps constants and the mean, and copies when the sizes are equal") {
    const bytes full(105 * 105, 255);
    for (const float x : reduce_area(full, 105, 12)) CHECK(x == doctest::Approx(1).epsilon(1e-5));
    bytes noise(28 * 28);
    philox random(1, 1);
    double mean = 0;
    for (auto& p : noise) {
        p = static_cast<std::uint8_t>(random.below(256));
        mean += p / 255.0 / 784;
    }
    double reduced = 0;
    for (const float x : reduce_area(noise, 28, 12)) reduced += x / 144;
    CHECK(reduced == doctest::Approx(mean).epsilon(1e-5));
    const bytes small{0, 51, 102, 255};
    CHECK(reduce_area(small, 2, 2)[1] == doctest::Approx(0.2));
}

TEST_CASE("IDX files give both splits, and an image of one is never in the other") {
    const temporary_folder folder;
    write_idx(folder / "train-images-idx3-ubyte", 40, 1);
    write_idx(folder / "t10k-images-idx3-ubyte", 30, 2);
    const auto all = mnist_stimuli(folder.path, 0);
    check_disjoint(all);
    CHECK(all.count(split::train) == 30);
    CHECK(all.count(split::holdout) == 16);  // of 30, 7 repeat, and 0, 6, 9, 12, 18, 21 and 24 are in train
    const auto some = mnist_stimuli(folder.path, 10);
    CHECK(some.count(split::train) == 10);
    CHECK(some.count(split::holdout) == 10);
    check_disjoint(some);
    CHECK(has(sentence([&] { mnist_stimuli(folder.path, 31); }), "31 distinct images were asked for, but it has 30"));
    CHECK(has(sentence([&] { mnist_stimuli(folder.path, 41); }), "41 images were asked for, but it has 40"));
    std::filesystem::remove(folder / "t10k-images-idx3-ubyte");
    CHECK(has(sentence([&] { mnist_stimuli(folder.path, 10); }), "cannot read"));
}

TEST_CASE("archives of drawings give both splits") {
    const temporary_folder folder;
    int number = 0;
    for (const char* name : {"images_background", "images_evaluation"}) {
        zip_writer zip;
        for (int i = 1; i <= 9; ++i) {
            picture image{105, 105, 1, bytes(105 * 105, 255)};
            ++number;
            for (int x = 0; x < 5 * number; ++x) image.pixels[static_cast<std::size_t>(105 * 50 + x)] = 0;
            zip.add(std::string(name) + "/Greek/character01/0001_0" + std::to_string(i) + ".png", encode_png(image),
                    false);
        }
        write_file(folder / (std::string(name) + ".zip"), zip.finish());
    }
    const auto set = omniglot_stimuli(folder.path, 0);
    CHECK(set.count(split::train) == 9);
    CHECK(set.count(split::holdout) == 9);
    check_disjoint(set);
}
