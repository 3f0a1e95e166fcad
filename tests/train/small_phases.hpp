#pragma once
// SPDX-License-Identifier: MIT

// A small agent that acts on a trained memory in a T-Maze, and a run of its phases on any backend.

#include "engram/train/memup_phases.hpp"

#include <memory>
#include <string>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/evaluate/levels.hpp>
#include <engram/learner/memup_ppo.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/played_episodes.hpp>
#include <engram/task/t_maze.hpp>

#include "same_file.hpp"

namespace small_phases {

using namespace engram;
using model = agent<mlp, lstm, no_memory, no_auxiliary, memup_ppo>;

struct sizes {
    int length = 8, units = 16, rows = 8;
    std::int64_t detector = 400, memory = 400, policy = 400;
    std::uint64_t seed = 1;
    int threads = 1, shards = 0;
    std::string uncertainty = "quantiles";
    bool joint = false;
};

inline model::settings settings_of(const sizes& z) {
    model::settings s;
    s.encoder.layers = {z.units / 2};
    s.encoder.centre = false;
    s.controller.hidden = z.units;
    s.learner.hidden = s.learner.detector_hidden = s.learner.memory.context = s.learner.memory.hidden = z.units;
    s.learner.memory.uncertainty = {"uncertainty", z.uncertainty};
    s.learner.detector.atoms = 20;
    return s;
}

/// A run and all that it is made of.
template <class Backend>
struct phase_run {
    explicit phase_run(const sizes& z, processes* others = nullptr)
        : options(options_of(z)), policy(trace(z, purpose::learning)) {
        phase_parts<Backend> parts;
        parts.trace = [z](purpose why) { return trace(z, why); };
        parts.environments = [this, z](int count, int first) -> std::unique_ptr<batch_environment> {
            return std::make_unique<batch_of<t_maze>>("train", count, z.seed, static_cast<std::uint32_t>(first),
                                                      options, nullptr);
        };
        parts.play = std::make_shared<played_episodes>(
            t_maze::describe(options),
            [o = options](const std::string& level, std::uint64_t seed, std::uint32_t stream) {
                return std::make_unique<batch_of<t_maze>>(level, 1, seed, stream, o, nullptr);
            },
            0);
        parts.detects = z.uncertainty == "quantiles";
        phase_settings phases;
        phases.joint = z.joint;
        phases.detector_steps = z.detector;
        phases.detector.environments = phases.detector.batch = phases.memory.batch = z.rows;
        phases.detector.start = z.detector / 10;
        phases.detector.target_period = 20 * z.rows;
        phases.detector.replay.capacity = z.detector;
        phases.detector.optimiser.learning_rate = 2e-3;
        phases.memory.steps = z.memory;
        phases.memory.optimiser.learning_rate = 1e-3;
        acting_settings t;
        t.rollout = {.environments = z.rows, .unroll = 5, .epochs = 4, .minibatches = 4, .shards = z.shards};
        t.optimiser = {.learning_rate = 1e-3, .final_fraction = 0, .epsilon = 1e-8, .clip = 1};
        trainer = std::make_unique<memup_phases<Backend>>(
            loop_settings{z.seed, z.threads,
                          z.joint ? z.policy : (z.uncertainty == "errors" ? 0 : z.detector) + z.memory + z.policy,
                          others},
            policy, parts, phases, t);
    }
    static task_options options_of(const sizes& z) {
        task_options o;
        o.length = z.length, o.length_spread = z.length < 20 ? 3 : 10;
        return o;
    }
    static traced_agent<Backend> trace(const sizes& z, purpose why) {
        return model::trace<Backend>(settings_of(z), {{1, 1, 3}, 2}, z.seed, why);
    }
    void until(const std::string& wanted) {
        while (trainer->phase() != wanted) trainer->iterate();
    }
    safetensors saved() { return ::saved(*trainer); }
    double score(int episodes) {
        return evaluate_level<Backend>(
                   policy, policy.store,
                   [this](const std::string& level, int count, std::uint64_t seed, int first) {
                       return std::make_unique<batch_of<t_maze>>(level, count, seed, static_cast<std::uint32_t>(first),
                                                                 options, nullptr);
                   },
                   "train", episodes, 1)
            .mean;
    }

    task_options options;
    traced_agent<Backend> policy;
    std::unique_ptr<memup_phases<Backend>> trainer;
};

}  // namespace small_phases
