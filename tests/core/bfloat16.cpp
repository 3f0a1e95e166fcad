// Pairs of bfloat16 against arithmetic on the bits of one float.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engram/core/bfloat16.hpp"

using namespace engram;

namespace {

constexpr int words = bfloat16_pairs::words, width = bfloat16_pairs::width;

/// The float nearest to x whose lower sixteen bits are zero, to the even one where two are as near.
float nearest(float x) {
    const auto below = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xffff0000u);
    const auto above = std::bit_cast<float>(std::bit_cast<std::uint32_t>(below) + 0x10000u);
    const double down = std::abs(double(x) - double(below)), up = std::abs(double(above) - double(x));
    if (down != up) return down < up ? below : above;
    return std::bit_cast<std::uint32_t>(below) & 0x10000u ? above : below;
}

bfloat16_pairs pairs_of(const std::vector<float>& x) {
    return bfloat16_pairs::nearest(pack<float>::load(x.data()), pack<float>::load(x.data() + words));
}

}  // namespace

TEST_CASE("the nearest, ties to even, subnormals and infinities too") {
    std::mt19937 rng(1);
    std::vector<float> x(width), y(width);
    for (int c = 0; c < 20000; ++c) {
        for (float& v : x) {
            do {
                auto bits = std::uint32_t(rng());
                if (c % 3 == 0) bits = (bits & 0xffff0000u) | 0x8000u;               // a tie
                if (c % 3 == 1) bits = (bits & 0xffff0000u) | (0x7fffu + bits % 3);  // nearly one
                if (c % 5 == 0) bits &= 0x807fffffu;                                 // subnormal
                v = std::bit_cast<float>(bits);
            } while (std::isnan(v) || std::abs(v) > 0x1.fep127f);
        }
        std::uint32_t stored[words];
        pairs_of(x).store(stored);
        const auto pairs = bfloat16_pairs::load(stored);
        pairs.low().store(y.data());
        pairs.high().store(y.data() + words);
        int different = 0;
        for (std::size_t i = 0; i < width; ++i)
            different += std::bit_cast<std::uint32_t>(y[i]) != std::bit_cast<std::uint32_t>(nearest(x[i]));
        REQUIRE(different == 0);
    }
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> huge(width, std::numeric_limits<float>::max()), endless(width, -infinity);
    CHECK(pairs_of(huge).low()[0] == infinity);
    CHECK(pairs_of(endless).high()[words - 1] == -infinity);
}

TEST_CASE("products of pairs are summed in their lane, with and without the instruction") {
    std::mt19937 rng(2);
    std::normal_distribution<float> draw;
    std::vector<float> x(width), y(width), z(words);
    for (int c = 0; c < 1000; ++c) {
        for (auto* v : {&x, &y, &z})
            for (float& n : *v) n = nearest(draw(rng));
        const auto sum = multiply_add(pairs_of(x), pairs_of(y), pack<float>::load(z.data()));
        for (int i = 0; i < words; ++i) {
            const auto low = std::size_t(i), high = low + words;
            const double a = double(x[low]) * double(y[low]), b = double(x[high]) * double(y[high]), c0 = z[low];
            REQUIRE(std::abs(sum[i] - (a + b + c0)) <= 0x1p-22 * (std::abs(a) + std::abs(b) + std::abs(c0)));
        }
    }
}
