#pragma once
// Training that never leaves a device, and what another one or the host must agree with.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/device_trainer.hpp>

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
    const task_info info = t_maze::describe(corridor());
    return model::trace<Backend>(
        small(), {{info.observation.height, info.observation.width, info.observation.channels}, info.actions}, 5);
}

/// What the iterations of a run told, and the weights that it left.
struct history {
    std::vector<int> episodes;
    std::vector<double> reward, loss, norm;
    std::vector<float> first, weights;
};

template <class Device>
history trained_on() {
    const auto agent = traced<Device>();
    history told;
    told.first.assign(agent.store->flat().begin(), agent.store->flat().end());
    device_trainer<Device, t_maze> trainer(agent, "train", settings(), seed, iterations * environments * unroll,
                                           corridor());
    for (int i = 0; i < iterations; ++i) {
        trainer.iterate();
        const auto now = trainer.take_window();
        told.episodes.push_back(now.episodes);
        told.reward.push_back(now.episode_reward);
        told.loss.push_back(now.loss);
        told.norm.push_back(now.gradient_norm);
    }
    CHECK(trainer.steps() == iterations * environments * unroll);
    trainer.fetch_weights();
    told.weights.assign(agent.store->flat().begin(), agent.store->flat().end());
    return told;
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
    device_trainer<Device, t_maze> device(agent, "train", s, 3, 0, corridor());
    double first = 0, last = 0;
    for (int i = 0; i < 160; ++i) {
        device.iterate();
        if (i == 19) first = device.take_window().episode_reward;
        if (i == 139) device.take_window();
    }
    last = device.take_window().episode_reward;
    INFO("episode reward of the first and the last twenty updates: ", first, " and ", last);
    CHECK(first < 2);
    CHECK(last > 3);  // chance is 0.5, the most is 4
}

}  // namespace training_test
