// SPDX-License-Identifier: MIT
#include "engram/task/digit_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "../io/temporary.hpp"
#include "coded_glyphs.hpp"

using namespace engram;

namespace {

/// The move that led to a step; -1 where the condition is all zero, -2 where it is no one-hot vector.
int move_of(const drawn_sequence& drawn, int t) {
    const auto at = drawn.condition.begin() + 4 * t;
    if (std::count(at, at + 4, 0.0f) == 4) return -1;
    if (std::count(at, at + 4, 0.0f) != 3 || std::count(at, at + 4, 1.0f) != 1) return -2;
    return static_cast<int>(std::find(at, at + 4, 1.0f) - at);
}

/// The places of the steps (y, x) from the first one, by the conditions alone.
std::vector<std::pair<int, int>> places(const drawn_sequence& drawn, int steps) {
    std::vector<std::pair<int, int>> found{{0, 0}};
    for (int t = 1; t < steps; ++t) {
        constexpr std::array<int, 4> down{-1, 1, 0, 0}, right{0, 0, -1, 1};
        const auto move = static_cast<std::size_t>(move_of(drawn, t));
        found.emplace_back(found.back().first + down[move], found.back().second + right[move]);
    }
    return found;
}

}  // namespace

TEST_CASE("a walk stays on a grid of 4 x 4 whose cells never change, and no two cells look alike") {
    const digit_map task({}, coded_glyphs());
    CHECK(task.info().name == "mnist_map");
    CHECK(task.info().steps == 25);
    CHECK(task.info().actions == 4);
    CHECK(task.info().recall == -1);
    int widest = 0, most = 0;
    for (const auto& level : task.info().levels)
        for (std::uint64_t index = 0; index < 500; ++index) {
            const drawn_sequence drawn(task, level, 4, index);
            const auto ids = drawn.glyphs();
            CHECK(move_of(drawn, 0) == -1);
            for (int t = 1; t < 25; ++t) REQUIRE(move_of(drawn, t) >= 0);
            const auto at = places(drawn, 25);
            std::map<std::pair<int, int>, int> digit, last;
            std::set<int> distinct;
            for (int t = 0; t < 25; ++t) {
                const auto i = static_cast<std::size_t>(t);
                const auto [place, fresh] = digit.emplace(at[i], ids[i]);
                CHECK(place->second == ids[i]);
                if (fresh) {
                    CHECK(distinct.insert(ids[i]).second);
                    CHECK(drawn.origin[i] == -1);
                } else {
                    CHECK(drawn.origin[i] == last[at[i]]);
                }
                last[at[i]] = t;
                CHECK(drawn.label[i] == ids[i] % 10);
                CHECK((ids[i] < 300) == (level == "train"));
            }
            const auto [low_y, high_y] = std::minmax_element(at.begin(), at.end());
            const auto [low_x, high_x] = std::minmax_element(
                at.begin(), at.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
            widest = std::max({widest, high_y->first - low_y->first, high_x->second - low_x->second});
            most = std::max(most, static_cast<int>(digit.size()));
        }
    CHECK(widest == 3);
    CHECK(most > 12);
    CHECK(most <= 16);
    CHECK(is_pure(task));
    CHECK(batch_equals_singles(task, "train"));
    CHECK(batch_equals_singles(task, "holdout_interpolate"));
}

// A long walk's whole extent tells where its steps are. 3000 starts over 16 cells, 187.5 each: chi squared with 15
// degrees of freedom exceeds 44.3 with probability 1e-4. Of the moves from a cell, n in all with m open, each share has
// a standard deviation of at most 1 / (2 sqrt(n)); four of them are allowed.
TEST_CASE("a walk begins anywhere, and goes every open way alike") {
    const digit_map task({.items = 200}, coded_glyphs());
    std::array<int, 16> starts{};
    std::array<std::array<int, 4>, 16> moves{};
    int whole = 0;
    for (std::uint64_t index = 0; index < 3000; ++index) {
        const drawn_sequence drawn(task, "train", 1, index);
        const auto at = places(drawn, 200);
        int top = 0, bottom = 0, left = 0, right = 0;
        for (const auto& [y, x] : at) {
            top = std::min(top, y);
            bottom = std::max(bottom, y);
            left = std::min(left, x);
            right = std::max(right, x);
        }
        if (bottom - top != 3 || right - left != 3) continue;
        ++whole;
        const auto cell = [&, top_ = top, left_ = left](std::size_t t) {
            return static_cast<std::size_t>((at[t].first - top_) * 4 + at[t].second - left_);
        };
        ++starts[cell(0)];
        for (std::size_t t = 1; t < 200; ++t)
            ++moves[cell(t - 1)][static_cast<std::size_t>(move_of(drawn, static_cast<int>(t)))];
    }
    CHECK(whole > 2900);
    double chi = 0;
    for (const int n : starts) chi += (n - whole / 16.0) * (n - whole / 16.0) / (whole / 16.0);
    CHECK(chi < 44.3);
    for (std::size_t cell = 0; cell < 16; ++cell) {
        const auto y = cell / 4, x = cell % 4;
        const std::array<bool, 4> open{y > 0, y<3, x> 0, x < 3};
        const auto ways = static_cast<double>(std::count(open.begin(), open.end(), true));
        double all = 0;
        for (const int n : moves[cell]) all += n;
        for (std::size_t m = 0; m < 4; ++m) {
            if (!open[m]) CHECK(moves[cell][m] == 0);
            if (open[m]) CHECK(std::abs(moves[cell][m] / all - 1 / ways) < 2 / std::sqrt(all));
        }
    }
}

TEST_CASE("walks that cannot be are one sentence") {
    CHECK(digit_map({.items = 1}, coded_glyphs()).info().steps == 1);
    CHECK(sentence([] { digit_map({.items = -2}, coded_glyphs()); }) ==
          "mnist_map: a walk of -2 steps was asked for; expected 1 to 100000");
    CHECK(sentence([] { digit_map({}, coded_glyphs(15, 20)); }) ==
          "mnist_map: a sequence shows up to 16 images, but the coded set has 15 to train on");
    CHECK(sentence([] { digit_map({.data = "/nowhere", .stimuli = "omniglot"}); }) ==
          "mnist_map: stimuli 'omniglot' do not serve, the task shows digits; expected builtin or mnist");
}
