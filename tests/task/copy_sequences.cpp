// SPDX-License-Identifier: MIT
#include "engram/task/copy_sequences.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../io/temporary.hpp"
#include "coded_glyphs.hpp"

using namespace engram;

namespace {

/// What a sequence must be, written down from the digits it shows and the steps that ask.
template <bool Scattered>
void check(const copy_task<Scattered>& task, int n, bool distinct, std::uint64_t index, std::vector<int>& digit_count,
           std::vector<int>& asked_at) {
    const drawn_sequence drawn(task, "train", 3, index);
    const int T = task.info().steps;
    std::vector<int> asks;
    for (int t = 0; t < T; ++t)
        if (drawn.query[static_cast<std::size_t>(t)] == 1) asks.push_back(t);
    REQUIRE(static_cast<int>(asks.size()) == n);
    std::vector<float> token(static_cast<std::size_t>(T), 0), target(token);
    std::vector<int> origin(static_cast<std::size_t>(T), -1), query(static_cast<std::size_t>(T), 0);
    for (int j = 0; j < n; ++j) {
        const float digit = drawn.observation[static_cast<std::size_t>(j)];
        REQUIRE(digit >= 2);
        REQUIRE(digit <= 9);
        ++digit_count[static_cast<std::size_t>(digit) - 2];
        const auto at = static_cast<std::size_t>(asks[static_cast<std::size_t>(j)]);
        ++asked_at[at];
        token[static_cast<std::size_t>(j)] = digit;
        token[at] = distinct ? static_cast<float>(10 + j) : 1.0f;
        target[at] = digit;
        origin[at] = j;
        query[at] = 1;
    }
    CHECK(drawn.observation == token);
    CHECK(drawn.target == target);
    CHECK(drawn.origin == origin);
    CHECK(drawn.query == query);
    CHECK(drawn.weight == std::vector<float>(static_cast<std::size_t>(T), 1));
    if (!Scattered) CHECK(asks.front() == T - n);
}

}  // namespace

// Per digit 10000 of 80000: chi squared with 7 degrees of freedom exceeds 29.9 with probability 1e-4.
TEST_CASE("copy: digits, filler, queries at the end") {
    for (const bool distinct : {false, true}) {
        const copy_task<false> task({.items = 5, .steps = 30, .markers = distinct ? "distinct" : "one"});
        CHECK(task.info().tokens == (distinct ? 15 : 10));
        CHECK(task.info().classes == 10);
        std::vector<int> digits(8), asked(30);
        for (std::uint64_t i = 0; i < 16000; ++i) check(task, 5, distinct, i, digits, asked);
        double chi = 0;
        for (const int count : digits) chi += (count - 10000.0) * (count - 10000.0) / 10000.0;
        CHECK(chi < 29.9);
    }
}

// 4 of 16 places a sequence, 4000 sequences: a place is asked 1000 times with variance 750. The counts have a fixed
// sum, so their squared deviations over 750 x 16 / 15 = 800 are chi squared with 15 degrees of freedom; 44.3 has
// probability 1e-4.
TEST_CASE("scattered copy: queries anywhere behind the digits, every place alike") {
    const copy_task<true> task({.items = 4, .steps = 20});
    std::vector<int> digits(8), asked(20);
    for (std::uint64_t i = 0; i < 4000; ++i) check(task, 4, false, i, digits, asked);
    double chi = 0;
    for (int t = 0; t < 20; ++t) {
        if (t < 4) CHECK(asked[static_cast<std::size_t>(t)] == 0);
        if (t >= 4)
            chi += (asked[static_cast<std::size_t>(t)] - 1000.0) * (asked[static_cast<std::size_t>(t)] - 1000.0);
    }
    CHECK(chi / 800 < 44.3);
}

TEST_CASE("own sizes, the paper's lengths, and what cannot be made") {
    CHECK(copy_task<false>({}).info().steps == 120);
    for (const int T : {120, 520, 1020, 5020}) {
        const copy_task<true> task({.steps = T});
        const drawn_sequence drawn(task, "holdout_interpolate", 1, 0);
        int asked = 0;
        for (const int q : drawn.query) asked += q;
        CHECK(asked == 10);
    }
    CHECK(sentence([] { copy_task<false>({.steps = 19}); }) ==
          "copy: 19 steps were asked for; expected at least 20 for 10 digits and as many queries");
    CHECK(sentence([] { copy_task<true>({.markers = "distnct"}); }).find("did you mean 'distinct'") !=
          std::string::npos);
    CHECK(sentence([] { copy_task<false>({}).draw("tain", 1, 1, {}); }).find("did you mean 'train'") !=
          std::string::npos);
}
