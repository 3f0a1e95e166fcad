// SPDX-License-Identifier: MIT

// Training with products in bfloat16: it learns as in float does, a resumed run is the run that was never stopped, and
// what is kept of the weights are floats.

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "same_file.hpp"
#include "small_run.hpp"

using namespace small;

namespace {

traced_agent<backend> with(product_precision products, std::uint64_t seed = 1) {
    auto a = trace(seed);
    a.store->set_products(products);
    return a;
}

struct run : small_training<backend> {
    explicit run(int threads, std::uint64_t seed = 1)
        : small_training(with(product_precision::bfloat16, seed), threads) {}
};

/// Mean reward of the last 200 episodes of 120,000 steps; random actions earn 12.5 of 50.
double learnt(product_precision products, std::uint64_t seed) {
    const auto a = with(products, seed);
    acting_settings s;
    s.rollout = {.environments = 32, .unroll = 10};
    s.optimiser.learning_rate = 3e-3;
    const std::int64_t steps = 120000;
    training_loop<acting_update<backend>> t({3, 1, steps}, a, maker(), s);
    std::vector<double> episodes;
    while (t.steps() < steps) {
        t.iterate();
        const auto w = t.take_window();
        episodes.insert(episodes.end(), w.episodes.begin(), w.episodes.end());
    }
    REQUIRE(episodes.size() > 1000);
    return std::accumulate(episodes.end() - 200, episodes.end(), 0.0) / 200;
}

}  // namespace

TEST_CASE("an agent with an LSTM and a k-NN memory learns as it does in float") {
    for (const std::uint64_t seed : {1u, 2u}) {
        const double full = learnt(product_precision::full, seed), rounded = learnt(product_precision::bfloat16, seed);
        MESSAGE("mean reward of the last 200 episodes: ", full, " in float, ", rounded, " in bfloat16");
        CHECK(full != rounded);
        CHECK(full > 18);
        CHECK(rounded > 18);
    }
}

TEST_CASE("a resumed run equals the uninterrupted one bit for bit, and its weights are floats") {
    for (const int threads : {1, 2}) {
        CAPTURE(threads);
        run whole(threads);
        whole.iterate(5);
        const auto file = whole.saved();
        run resumed(threads, 99);
        resumed.t.load(file);
        whole.iterate(4);
        resumed.iterate(4);
        CHECK(same(resumed.saved(), whole.saved()));
        int fine = 0;
        for (const float w : weights(whole.a)) fine += (std::bit_cast<std::uint32_t>(w) & 0xffffu) != 0;
        CHECK(fine > 1000);
    }
}
