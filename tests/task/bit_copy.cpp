// SPDX-License-Identifier: MIT
#include "engram/task/bit_copy.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "../io/temporary.hpp"
#include "coded_glyphs.hpp"

using namespace engram;

namespace {

/// Checks the layout of one sequence and gives its length.
int check_layout(const drawn_sequence& drawn, int longest) {
    const int steps = 2 * longest + 2;
    const auto seen = [&](int t, int c) { return drawn.observation[static_cast<std::size_t>(10 * t + c)]; };
    const auto wanted = [&](int t, int b) { return drawn.target[static_cast<std::size_t>(8 * t + b)]; };
    int n = 0;
    for (int t = 0; t < steps; ++t)
        if (seen(t, 9) == 1) n = t - 1;
    REQUIRE(n >= 1);
    REQUIRE(n <= longest);
    for (int t = 0; t < steps; ++t) {
        const bool row = t >= 1 && t <= n, output = t >= n + 2 && t <= 2 * n + 1;
        CHECK(seen(t, 8) == (t == 0 ? 1 : 0));
        CHECK(seen(t, 9) == (t == n + 1 ? 1 : 0));
        for (int b = 0; b < 8; ++b) {
            if (row)
                CHECK((seen(t, b) == 0 || seen(t, b) == 1));
            else
                CHECK(seen(t, b) == 0);
            CHECK(wanted(t, b) == (output ? seen(t - n - 1, b) : 0));
        }
        const auto at = static_cast<std::size_t>(t);
        CHECK(drawn.weight[at] == (output ? 1 : 0));
        CHECK(drawn.origin[at] == (output ? t - n - 1 : -1));
        CHECK(drawn.label[at] == -1);
    }
    return n;
}

}  // namespace

// 4000 lengths over 20 values, 200 each: chi squared with 19 degrees of freedom exceeds 50.8 with probability 1e-4. Of
// the bits, about 336000, half are set within 4 standard deviations of 0.00086.
TEST_CASE("rows come back in order, lengths and bits are uniform") {
    const bit_copy task({});
    CHECK(task.info().name == "bit_copy");
    CHECK(task.info().steps == 42);
    CHECK(task.info().observation == observation_shape{1, 10, 1});
    CHECK(task.info().targets == 8);
    CHECK(task.info().actions == 0);
    CHECK(task.info().recall == -1);
    std::vector<int> count(21);
    double ones = 0, bits = 0;
    for (std::uint64_t index = 0; index < 4000; ++index) {
        const drawn_sequence drawn(task, "train", 1, index);
        const int n = check_layout(drawn, 20);
        ++count[static_cast<std::size_t>(n)];
        for (const float bit : drawn.target) ones += bit;
        bits += 8 * n;
    }
    double chi = 0;
    for (std::size_t n = 1; n <= 20; ++n) chi += (count[n] - 200.0) * (count[n] - 200.0) / 200;
    CHECK(chi < 50.8);
    CHECK(std::abs(ones / bits - 0.5) < 4 * 0.5 / std::sqrt(bits));
    CHECK(is_pure(task));
    CHECK(batch_equals_singles(task, "train"));
}

TEST_CASE("a level asks for one length, and the option for the longest") {
    const bit_copy task({.items = 6});
    CHECK(task.info().steps == 14);
    CHECK(task.info().levels ==
          std::vector<std::string>{"train", "length_1", "length_2", "length_3", "length_4", "length_5", "length_6"});
    for (int n = 1; n <= 6; ++n)
        for (std::uint64_t index = 0; index < 20; ++index)
            CHECK(check_layout({task, "length_" + std::to_string(n), 1, index}, 6) == n);
    CHECK(batch_equals_singles(task, "length_4"));
    CHECK(sentence([&] { task.draw("length_7", 1, 1, {}); }) ==
          "unknown bit_copy level 'length_7'; did you mean 'length_1'?");
    CHECK(sentence([] { bit_copy({.items = -1}); }) == "bit_copy: -1 items were asked for; expected 1 to 1000");
    CHECK(bit_copy({.items = 1}).info().steps == 4);
}
