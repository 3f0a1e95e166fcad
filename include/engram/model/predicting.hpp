#pragma once
// SPDX-License-Identifier: MIT

// A memory that is trained by predictions of far steps (facts 3.1, docs/decisions/0007). The memory is an agent wired
// as always, whose output is m; the predictor q(y_k | m_i, x_k) has an encoder of its own, of the agent's kind, and the
// learner's head on [e_k, m_i]; or on [c_k, m_i], where a recurrent network of the predictor's goes over e and gives
// the context c (facts 3.4).
//
//   learning     two graphs over one store: the memory with an input "memory_gradient", and the pairs (i, k); a third
//                one gives the contexts of a rollout
//   generating   one graph: the prediction of every step from the memory and the observation of that step

#include <memory>
#include <string>
#include <utility>

#include <engram/model/acting.hpp>
#include <engram/operations/receive_gradient.hpp>

namespace engram {

/// How a learner of predictions wires a model.
struct predicts_targets : reads_controls_writes {};
/// How a learner of truncated unrolls does: as an agent, with states that are carried from unroll to unroll.
struct carries_states : reads_controls_writes {};

namespace internal {

/// e_k, the predictor's own encoding of a step.
template <class Backend, class Agent>
var<Backend> predictor_encoding(graph<Backend>& g, const typename Agent::settings& s, const task_shape& task,
                                const var<Backend>& observation) {
    const auto scope = g.scope("predictor");
    return traced_in(g, "encoder", [&] {
        return Agent::encoder::encode(s.encoder, Agent::encoder::declare(g, s.encoder, task.observation), observation,
                                      task.observation);
    });
}
/// c_k, its context.
template <class Backend, class Agent>
var<Backend> predictor_context(graph<Backend>& g, const typename Agent::settings& s, const var<Backend>& e,
                               const var<Backend>& reset) {
    const auto scope = g.scope("predictor");
    return Agent::learner::context(g, s.learner, e, reset);
}

/// Logits of q and the row's loss against the input "target".
template <class Backend, class Agent>
std::pair<var<Backend>, var<Backend>> predict_rows(graph<Backend>& g, const typename Agent::settings& s,
                                                   const task_shape& task, std::vector<var<Backend>> seen,
                                                   const var<Backend>& memory) {
    const auto scope = g.scope("predictor");
    seen.push_back(memory);
    const auto logits = Agent::learner::predict(g, s.learner, seen, task);
    return {logits, Agent::learner::row_loss(g, s.learner, logits, task)};
}

}  // namespace internal

/// Traces memory, pairs and detector of MemUP on sequences.
template <class Backend, class Agent>
traced_agent<Backend> wire(predicts_targets, const typename Agent::settings& s, const task_shape& task,
                           std::uint64_t seed, purpose why) {
    using variable = var<Backend>;
    auto out = wire<Backend, Agent>(reads_controls_writes{}, s, task, seed, why);
    out.schedule = Agent::learner::schedule(s.learner);
    const bool has_context = Agent::learner::has_context(s.learner);
    const bool sees_step = !has_context || s.learner.context.and_step;
    if (why == purpose::generating) {
        const variable observation = out.g->named("observation"), reset = out.g->named("reset");
        const variable e = internal::predictor_encoding<Backend, Agent>(*out.g, s, task, observation);
        std::vector<variable> seen;
        if (sees_step) seen.push_back(e);
        if (has_context) seen.push_back(internal::predictor_context<Backend, Agent>(*out.g, s, e, reset));
        const auto [logits, row_loss] = internal::predict_rows<Backend, Agent>(*out.g, s, task, seen, out.h);
        out.logits = out.value = out.log_policy = logits;
        out.row_loss = row_loss;
        if (has_context) out.context = seen.back();
        out.watched = {{"h", out.h}, {"logits", logits}};
        return out;
    }
    out.predictor = std::make_unique<predictor_trace<Backend>>();
    predictor_trace<Backend>& to = *out.predictor;
    if (has_context) {
        to.context_graph = std::make_unique<graph<Backend>>(out.store);
        graph<Backend>& g = *to.context_graph;
        const variable observation = g.input("observation", task.observation.size()), reset = g.input("reset", 1);
        const variable e = internal::predictor_encoding<Backend, Agent>(g, s, task, observation);
        to.context_output = internal::predictor_context<Backend, Agent>(g, s, e, reset);
        receive_gradient("context_gradient", to.context_output);
    }
    to.g = std::make_unique<graph<Backend>>(out.store);
    graph<Backend>& g = *to.g;
    g.share_parameters();
    to.memory = g.input("memory", out.h.width, extent::sequence, true);
    std::vector<variable> seen;
    if (sees_step)
        seen.push_back(
            internal::predictor_encoding<Backend, Agent>(g, s, task, g.input("observation", task.observation.size())));
    if (has_context) seen.push_back(to.context = g.input("context", to.context_output.width, extent::sequence, true));
    to.row_loss = internal::predict_rows<Backend, Agent>(g, s, task, seen, to.memory).second;
    Agent::learner::add_row_losses(g, to.row_loss);
    return out;
}

/// Traces an agent's step over sequences that are cut into unrolls.
template <class Backend, class Agent>
traced_agent<Backend> wire(carries_states, const typename Agent::settings& s, const task_shape& task,
                           std::uint64_t seed, purpose why) {
    auto out = wire<Backend, Agent>(reads_controls_writes{}, s, task, seed, why);
    out.unroll = s.learner.unroll;
    return out;
}

}  // namespace engram
