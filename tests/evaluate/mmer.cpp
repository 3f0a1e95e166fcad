// SPDX-License-Identifier: MIT
#include "engram/evaluate/mmer.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace engram;

namespace {

std::optional<double> of(const std::string& rows) {
    return mmer(parse_metrics("step,episodes,reward\n" + rows, "metrics.csv"));
}

}  // namespace

TEST_CASE("MMER: the best iteration's mean over its episodes") {
    // Two rows an iteration; the third iteration is not whole.
    CHECK(of("32768,100,0.1\n65536,300,0.4\n98304,400,0.2\n131072,500,0.3\n163840,600,0.9\n") ==
          doctest::Approx((100 * 0.1 + 200 * 0.4) / 300));
    CHECK(of("65536,200,-0.5\n131072,400,-0.25\n196608,600,-0.75\n") == doctest::Approx(-0.25));
    // Rows that do not divide an iteration: it ends with the row that completes it.
    CHECK(of("50000,100,0.1\n100000,200,0.3\n150000,300,0.9\n200000,400,0.5\n") == doctest::Approx(0.7));
}

TEST_CASE("MMER: fewer than a hundred episodes are filled up with the most recent older ones") {
    // 60 of the second iteration, and 40 of the 90 before them.
    CHECK(of("65536,90,0.5\n131072,150,1\n") == doctest::Approx((60 * 1 + 40 * 0.5) / 100));
    // An iteration without an episode has those of before.
    CHECK(of("65536,100,0.5\n131072,100,\n") == doctest::Approx(0.5));
}

TEST_CASE("MMER: short runs, repeated rows, and runs without episodes") {
    CHECK(of("1000,20,0.25\n2000,60,0.5\n") == doctest::Approx((20 * 0.25 + 40 * 0.5) / 60));
    CHECK(of("65536,200,0.25\n131072,400,0.5\n65536,200,0.9\n131072,400,0.9\n") == doctest::Approx(0.5));
    CHECK(!of("65536,0,\n131072,0,\n"));
    CHECK(!of(""));
    CHECK(!mmer(parse_metrics("step,loss\n65536,1\n", "metrics.csv")));
}
