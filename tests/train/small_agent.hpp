#pragma once
// A small agent with every kind of state (LSTM, k-NN memory) on visuomotor mapping, for the tests of training.

#include <memory>
#include <string>
#include <vector>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/arbitrary_visuomotor_mapping.hpp>

namespace small {

using namespace engram;
using backend = cpu<float>;
using model = agent<mlp, lstm, fifo_knn, no_auxiliary, vtrace>;
using task = arbitrary_visuomotor_mapping;

inline task_options options() {
    task_options o;
    o.stimulus_count = 100;
    return o;
}

/// With a discount of 0: what is shown next does not depend on what was done.
inline traced_agent<backend> trace(std::uint64_t seed = 1, int hidden = 16, double discount = 0) {
    model::settings s;
    s.encoder.layers = {32};
    s.controller.hidden = hidden;
    s.memory.slots = 32;
    s.memory.key = 16;
    s.memory.neighbours = 4;
    s.learner.discount = discount;
    return model::trace<backend>(s, shape_of(task::describe(options())), seed);
}

/// A smaller one on any backend, to be emulated.
template <class Backend>
traced_agent<Backend> trace_smaller(std::uint64_t seed = 1) {
    model::settings s;
    s.encoder.layers = {12};
    s.controller.hidden = 8;
    s.memory.slots = 16, s.memory.key = 6, s.memory.neighbours = 3;
    return model::trace<Backend>(s, shape_of(task::describe(options())), seed);
}

/// As small, with PPO, whose policy is held near the behaviour's by a weight that is adapted.
template <class Backend>
traced_agent<Backend> trace_held_near(std::uint64_t seed = 1) {
    using held = model::with<ppo>;
    held::settings s;
    s.encoder.layers = {12};
    s.controller.hidden = 8;
    s.memory.slots = 16, s.memory.key = 6, s.memory.neighbours = 3;
    s.learner.divergence_cost = 0.2;
    return held::trace<Backend>(s, shape_of(task::describe(options())), seed);
}

inline std::shared_ptr<const stimulus_set> images() {
    static const auto set = std::make_shared<const stimulus_set>(builtin_stimuli(options().stimulus_count));
    return set;
}

inline auto maker(const std::string& level = "train") {
    return [level](int count, int first_row) -> std::unique_ptr<batch_environment> {
        return std::make_unique<batch_of<task>>(level, count, 7, static_cast<std::uint32_t>(first_row), options(),
                                                images());
    };
}

inline std::vector<float> weights(const traced_agent<backend>& a) {
    return {a.store->flat().begin(), a.store->flat().end()};
}

template <class Real>
std::vector<Real> copy(std::span<Real> s) {
    return {s.begin(), s.end()};
}

}  // namespace small
