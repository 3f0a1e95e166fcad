// SPDX-License-Identifier: MIT
// Asynchronous training on a device, here an emulated one: actors and learner with programs and weights of their own
// see what they see on the host.

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include <engram/device/operations.hpp>
#include <engram/train/asynchronous_update.hpp>

#include "../train/same_file.hpp"
#include "../train/small_agent.hpp"

using namespace small;

namespace {

using device = emulated<float>;

acting_settings settings(double rate) {
    acting_settings s;
    s.rollout = {.environments = 4, .unroll = 7};
    s.optimiser.learning_rate = rate;
    return s;
}

template <class Backend>
struct run {
    explicit run(double rate, int threads = 2, std::uint64_t seed = 1)
        : a(trace_smaller<Backend>(seed)), t({3, threads, 10000}, a, maker(), settings(rate)) {}
    safetensors saved() { return ::saved(t); }
    void fill_queue() {
        t->start();
        for (int i = 0; i < 5000 && t->queued() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        REQUIRE(t->queued() == 2);
    }
    traced_agent<Backend> a;
    training_loop<asynchronous_update<Backend>> t;
};

std::vector<float> weights_of(const parameters<float>& store) {
    return {store.flat().begin(), store.flat().end()};
}

}  // namespace

// One actor takes its two groups in turn and nothing is learnt, so both backends must give the learner the same.
TEST_CASE("with a learning rate of zero a device's learner replays what its actors did, as on the host") {
    run<backend> host(0);
    run<device> there(0);
    const auto first = weights_of(*there.a.store);
    for (int i = 0; i < 16; ++i) {  // 56 steps a group: past the end of an episode
        host.t.iterate();
        there.t.iterate();
        REQUIRE(there.t->group_learnt_from() == i % 2);
        for (const char* name : {"observation", "last_action", "last_reward", "reset", "action", "reward", "continues"})
            CHECK(largest_difference(host.t->learner().input(name), there.t->learner().input(name)) == 0);
        for (const char* name : {"bootstrap", "behaviour_log_probability", "memory.stored"})
            CHECK(largest_difference(host.t->learner().input(name), there.t->learner().input(name)) < 1e-5);
        const auto a = host.t.take_window(), b = there.t.take_window();
        CHECK(b.loss == doctest::Approx(a.loss).epsilon(1e-3));
        CHECK(b.gradient_norm == doctest::Approx(a.gradient_norm).epsilon(1e-3));
        CHECK(a.episodes == b.episodes);
    }
    CHECK(there.t.updates() == 16);
    CHECK(weights_of(*there.a.store) == first);
}

// The queue is filled with the first weights: two updates then have no lag to depend on.
TEST_CASE("updates of a device from the same unrolls are the host's") {
    run<backend> host(1e-3);
    run<device> there(1e-3), begun(1e-3);
    for (int i = 0; i < 2; ++i) {
        if (i == 0) host.fill_queue(), there.fill_queue();
        host.t.iterate();
        there.t.iterate();
    }
    CHECK(largest_difference(host.a.store->flat(), there.a.store->flat()) < 1e-5);
    CHECK(largest_difference(begun.a.store->flat(), there.a.store->flat()) > 1e-3);
}

TEST_CASE("a checkpoint of asynchronous training moves between a device and the host without losing a bit") {
    run<device> there(1e-3, 3);
    for (int i = 0; i < 5; ++i) there.t.iterate();
    const auto file = there.saved();
    run<backend> here(1e-3, 3, 9);
    here.t.load(file);
    CHECK(same(here.saved(), file));
    for (int i = 0; i < 3; ++i) here.t.iterate();
    const auto later = here.saved();
    run<device> back(1e-3, 3, 7);
    back.t.load(later);
    CHECK(same(back.saved(), later));
    // Where actors run already they go on at once, so only what the learner alone writes can be compared.
    run<device> busy(1e-3, 3, 11);
    busy.t.iterate();
    busy.t.load(later);
    CHECK(weights_of(*busy.a.store) == weights_of(*back.a.store));
    for (auto* r : {&back, &busy}) {
        for (int i = 0; i < 3; ++i) r->t.iterate();
        CHECK(r->t.updates() == 11);
    }
}
