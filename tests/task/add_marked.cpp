// SPDX-License-Identifier: MIT
#include "engram/task/add_marked.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "../io/temporary.hpp"
#include "coded_glyphs.hpp"

using namespace engram;

// All 56 triples of 8 steps among 11200 sequences, 200 each: chi squared with 55 degrees of freedom exceeds 103 with
// probability 1e-4. Squared errors of the guess 1 have mean 1/6 and variance 7/180: within 4.2 standard errors, 0.008.
TEST_CASE("the sum of two flagged numbers is asked for at the third flag") {
    const add_marked task({.steps = 8});
    std::vector<int> triples(512);
    double guess = 0;
    for (std::uint64_t index = 0; index < 11200; ++index) {
        const drawn_sequence drawn(task, "train", 2, index);
        double sum = 0;
        int flags = 0, triple = 0;
        for (int t = 0; t < 8; ++t) {
            const auto at = static_cast<std::size_t>(t);
            const float u = drawn.observation[2 * at], flag = drawn.observation[2 * at + 1];
            CHECK((flag == 0 || flag == 1));
            CHECK(u >= 0);
            CHECK(u < 1);
            const bool asks = flag == 1 && flags == 2;
            CHECK(drawn.query[at] == asks);
            CHECK(drawn.target[at] == doctest::Approx(asks ? sum : 0.0));
            CHECK(drawn.weight[at] == 1);
            if (asks) guess += (sum - 1) * (sum - 1) / 11200;
            if (flag == 1) {
                triple = 8 * triple + t;
                ++flags;
                sum += static_cast<double>(u);
            }
        }
        REQUIRE(flags == 3);
        ++triples[static_cast<std::size_t>(triple)];
    }
    double chi = 0;
    for (int a = 0; a < 8; ++a)
        for (int b = a + 1; b < 8; ++b)
            for (int c = b + 1; c < 8; ++c) {
                const double off = triples[static_cast<std::size_t>(64 * a + 8 * b + c)] - 200.0;
                chi += off * off / 200;
            }
    CHECK(chi < 103);
    CHECK(guess == doctest::Approx(1.0 / 6).epsilon(0.05));
}

TEST_CASE("sizes") {
    CHECK(add_marked({}).info().steps == 100);
    CHECK(add_marked({}).info().classes == 0);
    CHECK(add_marked({}).info().numbers);
    CHECK(sentence([] { add_marked({.steps = 2}); }) == "add: 2 steps were asked for; expected at least 3");
}
