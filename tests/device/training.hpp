#pragma once
// Training that never leaves a device, and what another one or the host must agree with.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/acting_update.hpp>
#include <engram/train/rows_on_device.hpp>

namespace training_test {

using namespace engram;

using model = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;

constexpr int environments = 6, unroll = 7, iterations = 20, seed = 9;

inline model::settings small() {
    model::settings s;
    s.encoder.layers = {8};
    s.controller.hidden = 6;
    s.memory.slots = 8;
    s.memory.key = 4;
    s.memory.neighbours = 3;
    s.memory.epsilon = 0.1;
    return s;
}

inline task_options corridor() {
    task_options options;
    options.length = 3;
    options.length_spread = 2;
    return options;
}

inline acting_settings settings() {
    acting_settings s;
    s.rollout.environments = environments;
    s.rollout.unroll = unroll;
    s.optimiser.learning_rate = 3e-3;
    s.optimiser.clip = 1;
    return s;
}

template <class Backend>
traced_agent<Backend> traced() {
    return model::trace<Backend>(small(), shape_of(t_maze::describe(corridor())), 5);
}

/// What the iterations of a run told, and the weights that it left.
struct history {
    std::vector<int> episodes;
    std::vector<double> reward, loss, norm;
    std::vector<float> first, weights;
};

/// The task in a device's memory.
template <class Device>
resident_maker<Device> mazes(std::uint64_t from) {
    return [from](executor<Device>& on, int count, int first_row) {
        return std::make_unique<device_environments<Device, t_maze>>(
            on, "train", count, from, static_cast<std::uint32_t>(first_row), corridor(), nullptr);
    };
}
/// And on the host.
inline environment_maker mazes_on_host(std::uint64_t from) {
    return [from](int count, int first_row) {
        return std::make_unique<batch_of<t_maze>>("train", count, from, static_cast<std::uint32_t>(first_row),
                                                  corridor(), nullptr);
    };
}

/// Whatever acts, a loop learns from it.
template <class Backend>
using loop_of = training_loop<acting_update<Backend>>;

template <class Device>
loop_of<Device> resident_loop(const traced_agent<Device>& agent, const acting_settings& s, std::uint64_t from,
                              int threads = 1) {
    return loop_of<Device>({from, threads, iterations * environments * unroll}, agent,
                           on_device(agent, mazes<Device>(from), from), s);
}
template <class Backend>
loop_of<Backend> host_loop(const traced_agent<Backend>& agent, const acting_settings& s, std::uint64_t from,
                           int threads = 1) {
    return loop_of<Backend>({from, threads, iterations * environments * unroll}, agent, mazes_on_host(from), s);
}

template <class Backend>
history history_of(const traced_agent<Backend>& agent, loop_of<Backend>& loop) {
    history told;
    told.first.assign(agent.store->flat().begin(), agent.store->flat().end());
    for (int i = 0; i < iterations; ++i) {
        loop.iterate();
        const auto now = loop.take_window();
        const auto count = static_cast<int>(now.episodes.size());
        told.episodes.push_back(count);
        told.reward.push_back(count > 0 ? std::accumulate(now.episodes.begin(), now.episodes.end(), 0.0) / count : 0);
        told.loss.push_back(now.loss);
        told.norm.push_back(now.gradient_norm);
    }
    CHECK(loop.steps() == iterations * environments * unroll);
    loop.sync_weights();
    told.weights.assign(agent.store->flat().begin(), agent.store->flat().end());
    return told;
}

template <class Device>
history trained_on(const acting_settings& s = settings(), int threads = 1) {
    const auto agent = traced<Device>();
    auto loop = resident_loop(agent, s, seed, threads);
    return history_of(agent, loop);
}

/// In float: rounding is carried on by twenty updates, and flips no action here.
inline void are_the_same(const history& a, const history& b) {
    CHECK(a.episodes == b.episodes);
    int finished = 0;
    for (std::size_t i = 0; i < a.loss.size(); ++i) {
        CHECK(a.reward[i] == doctest::Approx(b.reward[i]));
        CHECK(a.loss[i] == doctest::Approx(b.loss[i]).epsilon(2e-3));
        CHECK(a.norm[i] == doctest::Approx(b.norm[i]).epsilon(2e-3));
        finished += a.episodes[i];
    }
    CHECK(finished > 60);
    REQUIRE(a.weights.size() == b.weights.size());
    float moved = 0;
    for (std::size_t i = 0; i < a.weights.size(); ++i) {
        CHECK(a.weights[i] == doctest::Approx(b.weights[i]).epsilon(1e-3).scale(1));
        moved = std::max(moved, std::abs(a.weights[i] - a.first[i]));
    }
    CHECK(moved > 0.01f);
}

template <class Device>
void an_agent_learns() {
    acting_settings s;
    s.rollout.environments = 16;
    s.rollout.unroll = 8;
    s.optimiser.learning_rate = 1e-2;
    const auto agent = traced<Device>();
    auto loop = loop_of<Device>({3, 1, 0}, agent, on_device(agent, mazes<Device>(3), 3), s);
    const auto reward = [&](int updates) {
        for (int i = 0; i < updates; ++i) loop.iterate();
        const auto now = loop.take_window();
        return std::accumulate(now.episodes.begin(), now.episodes.end(), 0.0) /
               static_cast<double>(now.episodes.size());
    };
    const double first = reward(20);
    (void)reward(120);
    const double last = reward(20);
    INFO("episode reward of the first and the last twenty updates: ", first, " and ", last);
    CHECK(first < 2);
    CHECK(last > 3);  // chance is 0.5, the most is 4
}

}  // namespace training_test
