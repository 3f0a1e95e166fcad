#pragma once
// SPDX-License-Identifier: MIT

// A small run of every Update whose bits do not hang on time, of eight shards: what the tests of their laws share.

#include <memory>

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/train/truncated_update.hpp>

#include "generated_echo.hpp"
#include "small_phases.hpp"
#include "small_run.hpp"
#include "unrolled_copy.hpp"

namespace every_update {

using namespace engram;
using backend = cpu<float>;

constexpr int shards = 8;

/// A training and the models it refers to.
struct one_run {
    std::shared_ptr<void> models;
    std::unique_ptr<training> loop;
};

inline void iterate(training& t, int n) {
    for (int i = 0; i < n; ++i) t.iterate();
}

/// One pass over an unroll, or as many passes over as many minibatches.
inline one_run acting(const loop_settings& loop, int epochs) {
    auto model = std::make_shared<traced_agent<backend>>(small::trace());
    acting_settings s;
    s.rollout = {.environments = 16, .unroll = 7, .epochs = epochs, .minibatches = epochs, .shards = shards};
    s.optimiser.learning_rate = 1e-3;
    return {model, std::make_unique<training_loop<acting_update<backend>>>(loop, *model, small::maker(), s)};
}

/// The same of PPO, whose policy is held near the behaviour's by a weight that is adapted.
inline one_run held_near(const loop_settings& loop) {
    auto model = std::make_shared<traced_agent<backend>>(small::trace_held_near<backend>());
    acting_settings a;
    a.rollout = {.environments = 16, .unroll = 7, .epochs = 2, .minibatches = 2, .shards = shards};
    a.optimiser.learning_rate = 1e-2;
    return {model, std::make_unique<training_loop<acting_update<backend>>>(loop, *model, small::maker(), a)};
}

inline one_run sequences(const loop_settings& loop) {
    using model_type = device_run::generative<mlp, ntm>;
    auto model = std::make_shared<traced_agent<backend>>(
        model_type::trace<backend>(device_run::small_settings<model_type>(), shape_of(device_run::task->info()), 1));
    return {model, std::make_unique<training_loop<sequence_update<backend>>>(
                       loop, *model, device_run::task, sequence_settings{.batch = 12, .shards = shards},
                       optimiser_settings{})};
}

inline one_run unrolls(const loop_settings& loop) {
    const auto source = device_run::copying();
    auto model = std::make_shared<traced_agent<backend>>(
        device_run::truncated::trace<backend>(device_run::unrolled(), shape_of(source->info()), 1));
    return {model, std::make_unique<training_loop<truncated_update<backend>>>(
                       loop, *model, source, sequence_settings{.batch = 12, .shards = shards}, optimiser_settings{})};
}

/// Detector, memory and policy. In phases of 13 updates each, about.
inline one_run phases(const loop_settings& loop, bool joint) {
    small_phases::sizes z{.rows = 32, .shards = shards, .joint = joint};
    z.detector = z.memory = 400, z.policy = 3200;
    z.seed = loop.seed, z.threads = loop.threads;
    auto run = std::make_shared<small_phases::phase_run<backend>>(z, loop.others);
    return {run, std::unique_ptr<training>(run->trainer.release())};
}

}  // namespace every_update
