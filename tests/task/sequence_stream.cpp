// SPDX-License-Identifier: MIT
#include "engram/task/sequence_stream.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

using namespace engram;

TEST_CASE("every sequence has a stream of its own: task, level, seed and all 64 bits of the index count") {
    std::set<std::pair<std::uint64_t, std::uint64_t>> streams;
    int asked = 0;
    for (const std::string task : {"perfect_recall", "mnist_map"})
        for (const std::string level : {"train", "holdout_interpolate"})
            for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
                for (std::uint64_t index = 0; index < 1000; ++index, ++asked) {
                    const philox random = sequence_stream(task, level, seed, index);
                    streams.emplace(random.seed, random.stream);
                }
                for (int bit = 10; bit < 64; ++bit, ++asked) {
                    const philox random = sequence_stream(task, level, seed, std::uint64_t{1} << bit);
                    streams.emplace(random.seed, random.stream);
                }
            }
    CHECK(static_cast<int>(streams.size()) == asked);
    philox once = sequence_stream("a", "b", 1, 2), again = sequence_stream("a", "b", 1, 2);
    for (int i = 0; i < 8; ++i) CHECK(once.next() == again.next());
}

// The first numbers of neighbouring sequences: 10000 uniform ones have a mean within 4 / sqrt(12 * 10000) = 0.0115 of
// 1/2, and neighbours are uncorrelated to 4 / sqrt(10000) = 0.04, both with probability 0.99994.
TEST_CASE("the first numbers of successive sequences are uniform and unrelated") {
    double sum = 0, product = 0, last = 0;
    for (std::uint64_t index = 0; index < 10000; ++index) {
        const double x = sequence_stream("perfect_recall", "train", 1, index).uniform();
        sum += x;
        if (index > 0) product += (x - 0.5) * (last - 0.5) * 12;
        last = x;
    }
    CHECK(std::abs(sum / 10000 - 0.5) < 0.0115);
    CHECK(std::abs(product / 9999) < 0.04);
}
