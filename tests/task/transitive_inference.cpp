// SPDX-License-Identifier: MIT
#include "engram/task/transitive_inference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace engram;

namespace {

constexpr const char* fidelities[] = {"small", "paper"};
const std::vector<std::pair<std::string, int>> lengths{
    {"train_small", 5}, {"holdout_interpolate", 6}, {"train_large", 7}, {"holdout_extrapolate", 8}};

transitive_inference episode(const std::string& level, const std::string& fidelity, std::uint64_t seed) {
    task_options options;
    options.fidelity = fidelity;
    auto e = transitive_inference::make(level, options, nullptr);
    e.random = philox(seed, 1);
    e.reset();
    return e;
}

using paint = std::array<int, 3>;
paint paint_of(const room_object& o) {
    return {o.paint.r, o.paint.g, o.paint.b};
}

/// A colour of the chain as this episode shows it.
paint paint_of(const transitive_inference& e, int rank) {
    const colour named = inference_colour(e.level.base.holdout, e.chain[rank]);
    return paint_of({.paint = e.shade ? shade_of(named, e.shade, e.chain[rank]) : named});
}

/// Goes on to the next pair that is asked.
void see_demonstration(transitive_inference& e) {
    while (e.told()) {
        const outcome got = e.step(static_cast<int>(walking::strafe_left));
        CHECK((got.reward == 0 && !got.done));
    }
}

/// Walks into the box, 0 left or 1 right, and gives what the choice gave.
outcome choose(transitive_inference& e, int box, int* steps = nullptr) {
    transitive_inference pretended = e;
    const int frames = e.level.time.ticks * e.level.time.frames;
    for (int i = 1; i < 1000; ++i) {
        pretended = e;
        pretended.higher_right = box;
        const pose before = e.who;
        const outcome got = e.step(pretended.oracle());
        const bool back = e.who == e.level.start() && (before != e.level.start() || e.level.time.whole);
        if (steps) *steps = i;
        if (got.done) return got;
        if (back) return got;
        REQUIRE(got.reward == 0);
        REQUIRE(e.frame % frames == 0);
    }
    FAIL("the box was not reached");
    return {};
}

}  // namespace

TEST_CASE("whoever knows the order gets a point a pair and five for the last, at every level and fidelity") {
    for (const char* fidelity : fidelities)
        for (const auto& [level, n] : lengths) {
            const std::string where = level;  // clang before 16 captures no binding
            CAPTURE(where);
            task_options options;
            options.fidelity = fidelity;
            batch_of<transitive_inference> batch(level, 1, 7, 0, options, nullptr);
            const int most = (std::string(fidelity) == "small" ? 2 : 1) * (n - 1) + 5;
            CHECK(batch.info().maximum_reward(level) == most);
            CHECK(std::isnan(batch.info().level(level).random_reward));
            for (int i = 0; i < 40; ++i) {
                float total = 0;
                int steps = 0;
                for (bool done = false; !done; ++steps) {
                    const outcome got = batch.step(0, batch.oracle(0));
                    total += got.reward;
                    done = got.done;
                }
                CHECK(total == most);
                CHECK(steps < batch.info().level(level).longest_episode);
            }
        }
    CHECK(transitive_inference::describe({}).maximum_reward("train") == 15);
    CHECK(transitive_inference::describe({.fidelity = "paper"}).maximum_reward("train") == 10);
}

TEST_CASE(
    "at small fidelity pairs are shown up the chain and asked at once, then in another order, then the challenge") {
    std::set<std::vector<int>> orders;
    for (const auto& [level, n] : lengths)
        for (std::uint64_t seed = 0; seed < 30; ++seed) {
            auto e = episode(level, "small", seed);
            CHECK(e.count == n);
            std::map<paint, int> rank;
            for (int i = 0; i < n; ++i) rank[paint_of(e, i)] = i;
            CHECK(rank.size() == n);
            CHECK(e.challenge() == 3 * (n - 1));
            std::vector<int> again;
            for (int trial = 0; trial <= e.challenge(); ++trial) {
                const int left = rank.at(paint_of(e.here.objects[0])), right = rank.at(paint_of(e.here.objects[1]));
                CHECK(e.here.objects[0].y < e.here.objects[1].y);  // looking east, north is left
                CHECK((right > left) == (e.higher_right == 1));
                const bool last = trial == e.challenge(), shown = trial < 2 * (n - 1) && trial % 2 == 0;
                CHECK(e.told() == shown);
                if (last) {
                    CHECK(std::pair(std::min(left, right), std::max(left, right)) == std::pair(1, n - 2));
                } else {
                    CHECK(std::abs(left - right) == 1);
                    if (trial < 2 * (n - 1))
                        CHECK(std::min(left, right) == trial / 2);
                    else
                        again.push_back(std::min(left, right));
                }
                const int higher = e.here.objects[right > left].height, lower_one = e.here.objects[right < left].height;
                CHECK((shown ? lower_one < higher : lower_one == higher));
                const outcome got = shown ? e.step(static_cast<int>(walking::strafe_left)) : choose(e, right > left);
                CHECK(got.reward == (shown ? 0.0f : last ? 5.0f : 1.0f));
                CHECK(got.done == last);
                if (!last) CHECK(e.who == e.level.start());
            }
            orders.insert(again);
            std::sort(again.begin(), again.end());
            for (int i = 0; i < n - 1; ++i) CHECK(again[static_cast<std::size_t>(i)] == i);
        }
    CHECK(orders.size() > 80);
}

TEST_CASE("at paper fidelity the pairs come once, and pay") {
    for (const auto& [level, n] : lengths) {
        auto e = episode(level, "paper", 3);
        for (int trial = 0; trial < n; ++trial) {
            CHECK(e.challenge() == n - 1);
            const outcome got = choose(e, e.higher_right);
            CHECK(got.reward == (trial < n - 1 ? 1.0f : 5.0f));
            CHECK(got.done == (trial == n - 1));
        }
    }
}

TEST_CASE("after the lower box the pair comes again with nothing won, its sides drawn anew; the challenge comes once") {
    std::map<bool, int> sides;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        auto e = episode("train_small", "paper", seed);
        const auto shown = [&] { return std::set{paint_of(e.here.objects[0]), paint_of(e.here.objects[1])}; };
        const auto pair = shown();
        for (int i = 0; i < 3; ++i) {
            const outcome got = choose(e, 1 - e.higher_right);
            CHECK(got.reward == 0);
            CHECK_FALSE(got.done);
            CHECK(e.trial == 0);
            CHECK(shown() == pair);
            CHECK(e.who == e.level.start());
            ++sides[e.higher_right == 1];
        }
        for (int trial = 0; trial < e.count - 1; ++trial) {
            if (trial) CHECK(shown() != pair);
            CHECK(choose(e, e.higher_right).reward == 1);
        }
        const outcome last = choose(e, 1 - e.higher_right);
        CHECK(last.reward == 0);
        CHECK(last.done);
    }
    CHECK(std::abs(sides[true] - 60) < 5 * 5.5);  // of 120; standard deviation 5.5
}

TEST_CASE("at small fidelity a pair is asked once, whatever is chosen, on sides of its own") {
    std::map<bool, int> sides;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        auto e = episode("train_small", "small", seed);
        std::map<int, int> right_when_shown;
        for (int asked = 0; e.trial < e.challenge(); ++asked) {
            for (; e.told(); e.step(0)) right_when_shown[e.lower_rank()] = e.higher_right;
            ++sides[right_when_shown.at(e.lower_rank()) == e.higher_right];
            const bool right = asked % 2 == 0;
            CHECK(choose(e, right ? e.higher_right : 1 - e.higher_right).reward == (right ? 1 : 0));
        }
        const outcome last = choose(e, 1 - e.higher_right);
        CHECK(last.reward == 0);
        CHECK(last.done);
    }
    CHECK(std::abs(sides[true] - 160) < 5 * 9);  // of 320; standard deviation 9
}

TEST_CASE("a choice takes one agent step at small fidelity, and both boxes are in sight") {
    for (const char* fidelity : fidelities) {
        auto e = episode("train", fidelity, 3);
        for (int box = 0; box < 2; ++box) {
            int steps = 0;
            see_demonstration(e);
            choose(e, box, &steps);
            if (std::string(fidelity) == "small") CHECK(steps == 1);
            const room_object& o = e.here.objects[box];
            const double widest = std::atan(view_lens(e.level.time, e.level.height_px, e.level.width_px).across());
            CHECK(std::abs(std::atan2(o.y - e.who.y, o.x - e.who.x)) < 0.9 * widest);
        }
    }
}

TEST_CASE("colours are of the split and differ within a chain; all come") {
    for (const bool holdout : {false, true}) {
        std::set<paint> seen, other;
        for (int i = 0; i < inference_colours; ++i) other.insert(paint_of({.paint = inference_colour(!holdout, i)}));
        CHECK(other.size() == inference_colours);
        auto e = episode(holdout ? "holdout_extrapolate" : "extrapolate", "paper", 3);
        for (int i = 0; i < 200; ++i, e.reset()) {
            CHECK(e.shade == 0);
            CHECK(paint_of(e.here.objects[0]) != paint_of(e.here.objects[1]));
            for (int k = 0; k < 2; ++k) seen.insert(paint_of(e.here.objects[k]));
        }
        CHECK(seen.size() == inference_colours);
        for (const paint& c : seen) CHECK_FALSE(other.contains(c));
    }
}

TEST_CASE("at small fidelity colours are seen in a light of the episode's own") {
    auto e = episode("extrapolate", "small", 3);
    std::set<paint> seen;
    for (int i = 0; i < 200; ++i, e.reset()) {
        CHECK(e.shade > 0);
        for (int k = 0; k < 2; ++k)
            CHECK(paint_of(e.here.objects[k]) == paint_of(e, k == e.higher_right ? e.higher_rank() : e.lower_rank()));
        seen.insert(paint_of(e.here.objects[0]));
    }
    CHECK(seen.size() > 150);
}

// Five standard deviations of 6000 draws.
TEST_CASE(
    "the order of the chain, the first pair to come again and the better side are uniform; training mixes two "
    "lengths") {
    constexpr int draws = 6000;
    auto e = episode("extrapolate", "small", 5);
    std::map<int, int> top, first, side, length;
    for (int i = 0; i < draws; ++i, e.reset()) ++top[e.chain[7]], ++first[e.again[0]], ++side[e.higher_right];
    auto mixed = episode("train", "small", 5);
    for (int i = 0; i < draws; ++i, mixed.reset()) ++length[mixed.count];
    const auto uniform = [](const std::map<int, int>& counts, int n) {
        CHECK(counts.size() == n);
        const double p = 1.0 / n;
        for (const auto& [value, count] : counts)
            CHECK(std::abs(count - draws * p) < 5 * std::sqrt(draws * p * (1 - p)));
    };
    uniform(top, inference_colours), uniform(first, 7), uniform(side, 2), uniform(length, 2);
    CHECK(length.contains(5));
    CHECK(length.contains(7));
}

TEST_CASE("time ends an episode, also one of many choices") {
    for (const char* fidelity : fidelities) {
        task_options options;
        options.fidelity = fidelity;
        const int expected = std::string(fidelity) == "paper" ? 3000 : 120;
        CHECK(transitive_inference::describe(options).level("train").longest_episode == expected);
        auto idle = episode("train", fidelity, 2), stubborn = idle;
        for (int i = 1; i <= expected; ++i) {
            const outcome got = idle.step(static_cast<int>(walking::look_left));
            CHECK(got.done == (i == expected));
            CHECK(got.reward == 0);
            if (idle.level.time.whole) continue;  // there a pair comes once
            auto pretended = stubborn;            // always into the lower box
            pretended.higher_right = 1 - stubborn.higher_right;
            CHECK(stubborn.trial == 0);
            CHECK(stubborn.step(pretended.oracle()).done == (i == expected));
        }
    }
}

TEST_CASE("random walks stay inside, gain what is possible, and see colours; the same seed walks the same") {
    for (const char* fidelity : fidelities) {
        auto e = episode("train", fidelity, 6), twin = episode("train", fidelity, 6);
        std::vector<float> pixels(static_cast<std::size_t>(e.level.height_px * e.level.width_px * 3));
        philox random(8, 8);
        float total = 0;
        for (int i = 0; i < 20000; ++i) {
            const int action = random.below(walking_actions);
            const outcome got = e.step(action);
            twin.step(action);
            CHECK(std::memcmp(&e, &twin, sizeof(e)) == 0);
            total += got.reward;
            CHECK(total <= e.challenge() + 5);
            CHECK((got.done || e.valid()));
            if (got.done) e.reset(), twin.reset(), total = 0;
            if (i % 97) continue;
            e.observe(nullptr, pixels.data());
            const auto [low, high] = std::minmax_element(pixels.begin(), pixels.end());
            CHECK(*low >= 0);
            CHECK(*high <= 1);
            CHECK(*low < *high);
        }
    }
}

TEST_CASE("bytes that are no episode are refused, and what is accepted can be played") {
    const auto whole = [] {
        auto e = episode("holdout_large", "small", 4);
        see_demonstration(e);
        return e;
    }();
    REQUIRE(whole.valid());
    const auto refused = [&](auto damage) {
        auto e = whole;
        damage(e);
        return !e.valid();
    };
    using task = transitive_inference;
    CHECK(refused([](task& e) { e.count = task::capacity + 1; }));
    CHECK(refused([](task& e) { e.trial = e.challenge() + 1; }));
    CHECK(refused([](task& e) { e.again[0] = e.again[1]; }));
    CHECK(refused([](task& e) { e.trial = 2; }));  // shown, but with boxes of one height
    CHECK(refused([](task& e) { e.shade = 0; }));
    CHECK(refused([](task& e) { ++e.shade; }));
    CHECK(refused([](task& e) { e.unused = 1; }));
    CHECK(refused([](task& e) { std::swap(e.pairs[0], e.pairs[1]); }));
    CHECK(refused([](task& e) { e.trial = -1; }));
    CHECK(refused([](task& e) { e.chain[0] = inference_colours; }));
    CHECK(refused([](task& e) { e.chain[0] = e.chain[1]; }));
    CHECK(refused([](task& e) { e.pairs[0] = e.count - 1; }));
    CHECK(refused([](task& e) { e.pairs[0] = e.pairs[1]; }));
    CHECK(refused([](task& e) { e.higher_right = 1 - e.higher_right; }));
    CHECK(refused([](task& e) { e.higher_right = 2; }));
    CHECK(refused([](task& e) { e.frame = e.level.limit; }));
    CHECK(refused([](task& e) { e.who.heading = -1; }));
    CHECK(refused([](task& e) { e.who.x = 0x7fffffff; }));
    CHECK(refused([](task& e) { e.who.y = cell_length; }));
    CHECK(refused([](task& e) { e.who.x = e.here.objects[0].x, e.who.y = e.here.objects[0].y; }));
    CHECK(refused([](task& e) { e.here.objects_used = 200; }));

    philox random(7, 7);
    std::vector<float> pixels(12 * 16 * 3);
    for (int i = 0; i < 20000; ++i) {
        auto e = whole;
        auto* bytes = reinterpret_cast<unsigned char*>(&e);
        // The level is compared before the state is looked at; most of the rest is the room.
        const int from = static_cast<int>(sizeof(inference_level)),
                  to = static_cast<int>(i % 4 ? sizeof(e) - sizeof(room) : sizeof(e));
        const int hits = 1 + random.below(3);
        for (int k = 0; k < hits; ++k) {
            const int at = from + random.below(to - from);
            bytes[at] = static_cast<unsigned char>(random.below(i % 3 ? 256 : 8));
        }
        if (!e.valid()) continue;
        e.observe(nullptr, pixels.data());
        for (int k = 0; k < 3 && !e.step(e.oracle()).done; ++k) continue;
    }
}
