#pragma once
// Training that never leaves the device: the host's episodes, updates and weights.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/device_trainer.hpp>
#include <engram/train/trainer.hpp>

namespace training_test {

using namespace engram;

using model = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;

model::settings small() {
    model::settings s;
    s.encoder.layers = {8};
    s.controller.hidden = 6;
    s.memory.slots = 8;
    s.memory.key = 4;
    s.memory.neighbours = 3;
    s.memory.epsilon = 0.1;
    return s;
}

task_options corridor() {
    task_options options;
    options.length = 3;
    options.length_spread = 2;
    return options;
}

template <class Backend>
traced_agent<Backend> traced() {
    const task_info info = t_maze::describe(corridor());
    return model::trace<Backend>(
        small(), {{info.observation.height, info.observation.width, info.observation.channels}, info.actions}, 5);
}

// In float, as the host acts: rounding is carried on by twenty updates, and flips no action here.
template <class Device>
void training_is_the_hosts() {
    trainer_settings s;
    s.rollout.environments = 6;
    s.rollout.unroll = 7;
    s.optimiser.learning_rate = 3e-3;
    s.optimiser.clip = 1;
    const auto here = traced<cpu<float>>();
    const auto there = traced<Device>();
    const environment_maker make = [](int count, int first_row) {
        return std::make_unique<batch_of<t_maze>>("train", count, 9, static_cast<std::uint32_t>(first_row), corridor(),
                                                  nullptr);
    };
    const int iterations = 20;
    trainer<cpu<float>> host(here, make, s, 9, 1, iterations * 42);
    device_trainer<Device, t_maze> device(there, "train", s, 9, iterations * 42, corridor());
    int finished = 0;
    for (int i = 0; i < iterations; ++i) {
        host.iterate();
        device.iterate();
        const auto seen = host.take_window();
        const auto told = device.take_window();
        double reward = 0;
        for (const double r : seen.episodes) reward += r;
        REQUIRE(told.episodes == static_cast<int>(seen.episodes.size()));
        if (told.episodes > 0) CHECK(told.episode_reward == doctest::Approx(reward / told.episodes));
        CHECK(told.loss == doctest::Approx(seen.loss).epsilon(2e-3));
        CHECK(told.gradient_norm == doctest::Approx(seen.gradient_norm).epsilon(2e-3));
        finished += told.episodes;
    }
    CHECK(finished > 60);
    CHECK(device.steps() == host.steps());
    device.fetch_weights();
    double moved = 0;
    const auto fresh = traced<cpu<float>>();
    for (std::size_t i = 0; i < here.store->flat().size(); ++i) {
        CHECK(there.store->flat()[i] == doctest::Approx(here.store->flat()[i]).epsilon(1e-3).scale(1));
        moved = std::max(moved, static_cast<double>(std::abs(fresh.store->flat()[i] - here.store->flat()[i])));
    }
    CHECK(moved > 0.01);
}

template <class Device>
void an_agent_learns() {
    trainer_settings s;
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
