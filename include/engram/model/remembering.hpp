#pragma once
// SPDX-License-Identifier: MIT

// An agent that acts on a memory trained before it (facts 3.9): one graph a phase, each with a store of its own. Names
// below memory.* are the same in all that have a memory, so that its weights go from one store to the other.
//
//   detecting    inputs observation, last_action, action, target_atoms; watched "atoms" [T, B, A N] and
//                "uncertainty" [T, B, 1]
//   remembering  the memory over played rows (task/played_episodes.hpp), and the pairs, as model/predicting.hpp has
//                them
//   generating   the prediction of every step, of played rows
//   learning     the policy: m_t without a gradient, E'(o_t) and a_{t-1}, layers, the learner's heads

#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <engram/memory/no_memory.hpp>
#include <engram/model/predicting.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/receive_gradient.hpp>
#include <engram/operations/relu_layer.hpp>

namespace engram {

struct acts_on_memory {
    static constexpr bool controller_remembers = true;
    struct settings {
        bool last_action = true;    // memory, detector and policy see the action before (facts 3.8, 3.9)
        bool last_reward = false;   // the memory sees the reward before too (the authors' code, errata U23)
        bool memory_alone = false;  // the policy sees m_t and neither o_t nor the action before (theirs, errata U24)
    };
};

namespace internal {

/// One phase's graph under construction.
template <class Backend, class Agent>
struct phase_tracer {
    using variable = var<Backend>;
    using controller = typename Agent::controller;

    const typename Agent::settings& s;
    const task_shape& task;
    graph<Backend>& g;

    /// E(o) under the names of the current scope.
    variable encode(const variable& observation) const {
        return traced_in(g, "encoder", [&] {
            return Agent::encoder::encode(s.encoder, Agent::encoder::declare(g, s.encoder, task.observation),
                                          observation, task.observation);
        });
    }
    std::vector<variable> with_action(std::vector<variable> inputs, const variable& action) const {
        if (s.wiring.last_action) inputs.push_back(action);
        return inputs;
    }
    /// E(o_t) and m_t of the memory; `last_reward` is only looked at where the wiring has it.
    std::pair<variable, variable> remember(const variable& observation, const variable& last_action,
                                           const variable& last_reward) const {
        const auto scope = g.scope("memory");
        const auto reset = g.input("reset", 1);
        const variable e = encode(observation);
        const auto inner = g.scope("controller");
        auto inputs = with_action({e}, last_action);
        if (s.wiring.last_reward) inputs.push_back(last_reward);
        const auto weights = controller::declare(g, s.controller, columns_of(inputs));
        const auto start = controller::begin(g, s.controller);
        const variable m = scan(g, start, [&](auto& now) {
            reset_rows(now, reset);
            return controller::step(s.controller, weights, inputs, now);
        });
        return {e, m};
    }
    /// The parts of a played row: o_t, a_{t-1}, a_t and, where the wiring has it, r_{t-1}.
    struct played_row {
        variable observation, last_action, action, last_reward;
    };
    played_row played() const {
        const int O = task.observation.size(), A = task.actions;
        const variable row = g.input("observation", O + 2 * A + (s.wiring.last_reward ? 1 : 0));
        played_row parts{row.columns(0, O), row.columns(O, A), row.columns(O + A, A), {}};
        if (s.wiring.last_reward) parts.last_reward = row.columns(O + 2 * A, 1);
        return parts;
    }
    /// What the prediction of a row costs against the input "target".
    variable predict(const variable& memory, const variable& e, const variable& action) const {
        const auto scope = g.scope("predictor");
        return Agent::learner::row_loss(g, s.learner, Agent::learner::predict(g, s.learner, memory, e, action));
    }
};

}  // namespace internal

/// Traces the phase of the agent that `why` names.
template <class Backend, class Agent>
traced_agent<Backend> wire(acts_on_memory, const typename Agent::settings& s, const task_shape& task,
                           std::uint64_t seed, purpose why) {
    using variable = var<Backend>;
    auto out = internal::begun_trace<Backend>(task, seed);
    graph<Backend>& g = *out.g;
    const internal::phase_tracer<Backend, Agent> trace{s, task, g};

    if (why == purpose::detecting) {
        out.discount = s.learner.detector.discount;
        const variable o = g.input("observation", task.observation.size());
        const variable last = one_hot("last_action_code", g.input("last_action", 1), task.actions);
        out.x = trace.encode(o);
        const auto scope = g.scope("learner");
        out.h = relu_layer("hidden", trace.with_action({out.x}, last), s.learner.detector_hidden);
        const auto [atoms, uncertainty, heads] = Agent::learner::detect(g, s.learner, out.h, task);
        out.logits = heads.logits, out.value = heads.value, out.log_policy = heads.log_policy;
        out.watched = {{"atoms", atoms}, {"uncertainty", uncertainty}};
        return out;
    }
    if (why == purpose::remembering || why == purpose::generating) {
        out.discount = s.learner.memory.discount;
        out.schedule = Agent::learner::schedule(s.learner);
        const auto row = trace.played();
        std::tie(out.x, out.h) = trace.remember(row.observation, row.last_action, row.last_reward);
        out.logits = out.value = out.log_policy = out.h;
        if (why == purpose::generating) {
            out.row_loss = trace.predict(out.h, out.x, row.action);
            return out;
        }
        receive_gradient("memory_gradient", out.h);
        out.predictor = std::make_unique<predictor_trace<Backend>>();
        out.predictor->g = std::make_unique<graph<Backend>>(out.store);
        graph<Backend>& pairs = *out.predictor->g;
        pairs.share_parameters();
        const internal::phase_tracer<Backend, Agent> second{s, task, pairs};
        out.predictor->memory = pairs.input("memory", out.h.width, extent::sequence, true);
        const auto target = second.played();
        const variable e = internal::traced_in(pairs, "memory", [&] { return second.encode(target.observation); });
        out.predictor->row_loss = second.predict(out.predictor->memory, e, target.action);
        Agent::learner::add_row_losses(pairs, out.predictor->row_loss);
        return out;
    }

    const variable o = g.input("observation", task.observation.size());
    const variable last = one_hot("last_action_code", g.input("last_action", 1), task.actions);
    variable reward;
    if (s.wiring.last_reward) reward = g.input("last_reward", 1);
    const variable m = stop_gradient(trace.remember(o, last, reward).second);
    out.x = s.wiring.memory_alone ? m : trace.encode(o);
    const auto heads = [&] {
        const auto scope = g.scope("learner");
        auto inputs = std::vector<variable>{m};
        if (!s.wiring.memory_alone) inputs = trace.with_action({m, out.x}, last);
        out.h = relu_layer("hidden", inputs, s.learner.hidden);
        for (int i = 1; i < s.learner.layers; ++i)
            out.h = relu_layer<Backend>(message("hidden.", i), {out.h}, s.learner.hidden);
        const auto made = Agent::learner::add_heads(g, s.learner, out.h, task);
        Agent::learner::add_losses(g, s.learner, made);
        return made;
    }();
    out.logits = heads.logits, out.value = heads.value, out.log_policy = heads.log_policy;
    out.watched = {{"x", out.x}, {"h", out.h}, {"logits", out.logits}, {"value", out.value}};
    return out;
}

}  // namespace engram

ENGRAM_REFLECT(engram::acts_on_memory::settings, last_action, last_reward, memory_alone);
