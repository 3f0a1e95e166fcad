// SPDX-License-Identifier: MIT
#include "engram/core/philox.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <type_traits>
#include <vector>

using engram::philox;
using engram::philox4x32;

static_assert(std::is_trivially_copyable_v<philox>);
static_assert(std::has_unique_object_representations_v<philox>);

namespace {

void check_block(engram::philox_block got, engram::philox_block expected) {
    for (int i = 0; i < 4; ++i) CHECK(got.word[i] == expected.word[i]);
}

}  // namespace

TEST_CASE("philox4x32 gives the known answers of Random123") {
    check_block(philox4x32({{0, 0, 0, 0}}, 0, 0), {{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}});
    check_block(philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u), {{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}});
    check_block(philox4x32({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u, 0x299f31d0u),
                {{0xd16cfe09u, 0x94fdcceb, 0x5001e420u, 0x24126ea1u}});
}

TEST_CASE("a stream is the sequence of its blocks") {
    philox random(0x123456789abcdef0u, 0xfedcba9876543210u);
    for (std::uint32_t block = 0; block < 3; ++block) {
        const auto expected = philox4x32({{block, 0, 0x76543210u, 0xfedcba98u}}, 0x9abcdef0u, 0x12345678u);
        for (int i = 0; i < 4; ++i) CHECK(random.next() == expected.word[i]);
    }
}

TEST_CASE("words filled at once are those of one after the other, and leave the same stream") {
    for (int before = 0; before < 9; ++before)
        for (const int count : {0, 1, 2, 3, 4, 5, 26, 29, 31, 32, 33, 64, 104}) {
            CAPTURE(before);
            CAPTURE(count);
            philox one_by_one(7, engram::stream_id("environment", 3));
            for (int i = 0; i < before; ++i) one_by_one.next();
            philox at_once = one_by_one;
            std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
            at_once.fill(words.data(), count);
            int unlike = 0;
            for (const auto word : words) unlike += one_by_one.next() != word;
            CHECK(unlike == 0);
            CHECK(std::memcmp(&one_by_one, &at_once, sizeof(philox)) == 0);
        }
}

TEST_CASE("a copy continues where the original stands") {
    philox random(1, 2);
    for (int i = 0; i < 5; ++i) random.next();
    unsigned char saved[sizeof(philox)];
    std::memcpy(saved, &random, sizeof saved);
    std::vector<std::uint32_t> ahead;
    for (int i = 0; i < 9; ++i) ahead.push_back(random.next());
    philox restored;
    std::memcpy(static_cast<void*>(&restored), saved, sizeof saved);
    for (const auto word : ahead) CHECK(restored.next() == word);
}

TEST_CASE("seeds and streams differ, and so do purposes") {
    CHECK(philox(1, 0).next() != philox(2, 0).next());
    CHECK(philox(1, 0).next() != philox(1, 1).next());
    CHECK(engram::stream_id("environment", 3) != engram::stream_id("action", 3));
    CHECK((engram::stream_id("environment", 3) & 0xffffffffu) == 3);
}

// Tolerances are five standard errors of the estimate for the number of draws; the seed is fixed.
TEST_CASE("uniform, below and normal have the moments of their laws") {
    constexpr int n = 200000;
    philox random(7, 7);
    double mean = 0;
    for (int i = 0; i < n; ++i) {
        const float u = random.uniform();
        REQUIRE(u >= 0.0f);
        REQUIRE(u < 1.0f);
        mean += u;
    }
    CHECK(mean / n == doctest::Approx(0.5).epsilon(5 * 0.2887 / 447 / 0.5));

    std::vector<int> count(6);
    for (int i = 0; i < n; ++i) ++count.at(static_cast<std::size_t>(random.below(6)));
    for (const int c : count) CHECK(c / double(n) == doctest::Approx(1 / 6.0).epsilon(5 * 0.3727 / 447 * 6));
    CHECK(random.below(1) == 0);

    double first = 0, second = 0;
    for (int i = 0; i < n; ++i) {
        const double x = random.normal();
        first += x;
        second += x * x;
    }
    CHECK(std::abs(first / n) < 5.0 / 447);
    CHECK(std::abs(second / n - 1) < 5 * 1.4142 / 447);
}
