// SPDX-License-Identifier: MIT
#include "engram/task/played_episodes.hpp"

#include <doctest/doctest.h>

#include <set>

#include "engram/task/t_maze.hpp"

using namespace engram;

namespace {

played_episodes mazes(double discount, int length = 5, int spread = 3, bool with_reward = false) {
    task_options options;
    options.length = length, options.length_spread = spread;
    return {t_maze::describe(options),
            [options](const std::string& level, std::uint64_t seed, std::uint32_t stream) {
                return std::make_unique<batch_of<t_maze>>(level, 1, seed, stream, options, nullptr);
            },
            discount, with_reward};
}

struct drawn {
    std::vector<float> observation, target, weight;
    drawn(const played_episodes& from, std::uint64_t seed, std::uint64_t index, std::ptrdiff_t rows = 1)
        : observation(static_cast<std::size_t>(from.info().steps * 7 * rows), -9.0f),
          target(static_cast<std::size_t>(from.info().steps * rows), -9.0f),
          weight(target.size(), -9.0f) {
        from.draw("train", seed, index,
                  {.observation = observation.data(), .target = target.data(), .weight = weight.data(), .rows = rows});
    }
    bool operator==(const drawn&) const = default;
};

}  // namespace

TEST_CASE("a T-Maze under random actions: what is seen, both actions, and the reward of the corner") {
    const auto play = mazes(0);
    CHECK(play.info().steps == 8);
    CHECK(play.info().observation.size() == 7);
    CHECK(play.info().numbers);
    std::set<int> lengths;
    int left = 0, right = 0, won = 0;
    for (std::uint64_t index = 0; index < 300; ++index) {
        const drawn d(play, 1, index);
        const int n = play.length("train", 1, index);
        lengths.insert(n);
        const auto at = [&](int t, int column) { return d.observation[static_cast<std::size_t>(7 * t + column)]; };
        for (int t = 0; t < 8; ++t) {
            const bool there = t < n;
            REQUIRE(d.weight[static_cast<std::size_t>(t)] == (there ? 1.0f : 0.0f));
            REQUIRE((at(t, 0) != 0) == (t == 0));
            REQUIRE(at(t, 1) == (t == n - 1 ? 1.0f : 0.0f));
            REQUIRE(at(t, 5) + at(t, 6) == (there ? 1.0f : 0.0f));
            for (const int a : {0, 1}) REQUIRE(at(t, 3 + a) == (t > 0 && there ? at(t - 1, 5 + a) : 0.0f));
            (at(t, 5) > 0 ? left : right) += there;
            const bool matches = (at(0, 0) > 0 ? 1 : 0) == (at(t, 6) > 0 ? 1 : 0);
            REQUIRE(d.target[static_cast<std::size_t>(t)] == (t == n - 1 ? (matches ? 4.0f : -3.0f) : 0.0f));
            won += t == n - 1 && matches;
        }
    }
    CHECK(lengths == std::set<int>{5, 6, 7, 8});
    CHECK(std::abs(left - right) < 5 * std::sqrt(300 * 6.5));
    CHECK(std::abs(won - 150) < 45);  // five deviations
}

TEST_CASE("returns are discounted from the end") {
    const auto whole = mazes(0.5);
    const drawn d(whole, 1, 4), plain(mazes(0), 1, 4);
    const int n = whole.length("train", 1, 4);
    double sum = 0;
    for (int t = n - 1; t >= 0; --t) {
        sum = static_cast<double>(plain.target[static_cast<std::size_t>(t)]) + 0.5 * sum;
        CHECK(d.target[static_cast<std::size_t>(t)] == doctest::Approx(sum));
    }
    CHECK(d.target[0] != 0);
    CHECK_THROWS_WITH_AS(mazes(1.5), "random play: expected a discount in 0..1, got 1.5", error);
}

TEST_CASE("an episode is a function of seed and index, wherever its row lies") {
    const auto play = mazes(0);
    CHECK(drawn(play, 1, 7) == drawn(mazes(0), 1, 7));
    CHECK_FALSE(drawn(play, 1, 7) == drawn(play, 1, 8));
    CHECK_FALSE(drawn(play, 1, 7) == drawn(play, 2, 7));
    const drawn one(play, 3, 5), among(play, 3, 5, 4);
    for (std::size_t t = 0; t < 8; ++t)
        for (std::size_t f = 0; f < 7; ++f) CHECK(among.observation[t * 28 + f] == one.observation[t * 7 + f]);
}

// A T-Maze pays at its last step alone, so the reward before is one of a task that pays on the way.
TEST_CASE("the reward of the step before is one column more, where it is asked for") {
    struct paying final : batch_environment {
        paying() : inner("train", 1, 3, 0, options(), nullptr) {}
        static task_options options() {
            task_options o;
            o.length = 6, o.length_spread = 0;
            return o;
        }
        int size() const override { return 1; }
        const task_info& info() const override { return inner.info(); }
        void reset(int first, int count) override { inner.reset(first, count); }
        void observe(int row, float* pixels) const override { inner.observe(row, pixels); }
        outcome step(int row, int action) override {
            outcome o = inner.step(row, action);
            o.reward = static_cast<float>(10 * ++paid);
            return o;
        }
        std::optional<trial_event> event(int row) const override { return inner.event(row); }
        int oracle(int row) const override { return inner.oracle(row); }
        std::span<const std::byte> state(int row) const override { return inner.state(row); }
        void restore(int row, std::span<const std::byte> saved) override { inner.restore(row, saved); }
        batch_of<t_maze> inner;
        int paid = 0;
    };
    const auto info = t_maze::describe(paying::options());
    const single_maker make = [](const std::string&, std::uint64_t, std::uint32_t) {
        return std::make_unique<paying>();
    };
    const played_episodes with(info, make, 0, true), without(info, make, 0);
    CHECK(with.info().observation.size() == 8);
    CHECK(without.info().observation.size() == 7);
    std::vector<float> o(8 * 6), plain(7 * 6);
    with.draw("train", 1, 0, {.observation = o.data()});
    without.draw("train", 1, 0, {.observation = plain.data()});
    for (std::size_t t = 0; t < 6; ++t) {
        CHECK(o[8 * t + 7] == 10.0f * static_cast<float>(t));
        CHECK(std::equal(o.begin() + static_cast<std::ptrdiff_t>(8 * t),
                         o.begin() + static_cast<std::ptrdiff_t>(8 * t + 7),
                         plain.begin() + static_cast<std::ptrdiff_t>(7 * t)));
    }
}
