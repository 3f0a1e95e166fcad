// Training that never leaves an emulated device: the host's episodes, updates and weights, and its checkpoints.

#include "training.hpp"

#include "../train/same_file.hpp"

using namespace training_test;
using device = engram::emulated<float>;

namespace {

history trained_on_the_host(const acting_settings& s, int threads) {
    const auto agent = traced<cpu<float>>();
    auto loop = host_loop(agent, s, seed, threads);
    return history_of(agent, loop);
}

}  // namespace

TEST_CASE("training on the device is the host's training") {
    are_the_same(trained_on<device>(), trained_on_the_host(settings(), 1));
}

TEST_CASE("several shards, passes and minibatches on the device are the host's") {
    acting_settings s = settings();
    s.optimiser.learning_rate = 1e-3;
    s.rollout.shards = 3;
    are_the_same(trained_on<device>(s, 2), trained_on_the_host(s, 2));
    s.rollout.epochs = 2;
    s.rollout.minibatches = 2;
    are_the_same(trained_on<device>(s, 1), trained_on_the_host(s, 1));
}

TEST_CASE("an agent learns a T-Maze without leaving the device") {
    an_agent_learns<device>();
}

TEST_CASE("a run goes on from a checkpoint wherever its environments are, with the same bits") {
    const auto agent = traced<device>();
    auto whole = resident_loop(agent, settings(), seed);
    for (int i = 0; i < 3; ++i) whole.iterate();
    const auto half = saved(whole);
    CHECK(same(saved(whole), half));  // looking changes nothing
    for (int i = 0; i < 3; ++i) whole.iterate();
    const auto end = saved(whole);

    const auto other = traced<device>();
    auto there = resident_loop(other, settings(), seed);
    there.iterate();  // what it did before leaves no trace
    there.load(half);
    CHECK(same(saved(there), half));
    for (int i = 0; i < 3; ++i) there.iterate();
    CHECK(same(saved(there), end));

    const auto third = traced<device>();
    auto here = host_loop(third, settings(), seed);
    here.load(half);
    CHECK(same(saved(here), half));
    for (int i = 0; i < 3; ++i) here.iterate();
    CHECK(same(saved(here), end));
    there.load(half);
    for (int i = 0; i < 3; ++i) there.iterate();
    CHECK(same(saved(there), end));
}

TEST_CASE("states of another level are refused, and nothing changes") {
    const auto agent = traced<device>();
    auto loop = resident_loop(agent, settings(), seed);
    loop.iterate();
    const auto before = saved(loop);
    auto damaged = before;
    auto& last = damaged.tensors.at("shard.0.environment.5").data;
    std::fill(last.begin(), last.begin() + 8, std::uint8_t(255));
    loop.iterate();
    loop.load(before);
    CHECK_THROWS_WITH_AS(loop.load(damaged), doctest::Contains("saved state"), engram::error);
    CHECK(same(saved(loop), before));
}

TEST_CASE("a policy that is not a number ends a run on the device") {
    const auto agent = traced<device>();
    auto loop = resident_loop(agent, settings(), seed);
    loop.iterate();
    loop.sync_weights();
    for (float& weight : agent.store->edit().flat()) weight = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS_WITH_AS(loop.iterate(), doctest::Contains("stopped"), engram::error);
}
