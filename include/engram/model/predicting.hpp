#pragma once
// SPDX-License-Identifier: MIT

// A memory that is trained by predictions of far steps (facts 3.1, docs/decisions/0007). The memory is an agent wired as
// always, whose output is m; the predictor q(y_k | m_i, x_k) has an encoder of its own, of the agent's kind, and the
// learner's head on [e_k, m_i].
//
//   learning     two graphs over one store: the memory with an input "memory_gradient", and the pairs (i, k)
//   generating   one graph: the prediction of every step from the memory and the observation of that step

#include <memory>
#include <string>
#include <utility>

#include <engram/model/acting.hpp>

namespace engram {

/// How a learner of predictions wires a model.
struct predicts_targets : reads_controls_writes {};
/// How a learner of truncated unrolls does: as an agent, with states that are carried from unroll to unroll.
struct carries_states : reads_controls_writes {};

namespace detail {

template <class Backend>
var<Backend> input_named(graph<Backend>& g, const std::string& name) {
    for (std::size_t i = 0; i < g.values().size(); ++i) {
        const value_info& info = g.values()[i];
        if (info.kind != value_info::origin::input || info.name != name) continue;
        var<Backend> v;
        v.value = static_cast<int>(i);
        v.width = info.width;
        v.owner = &g;
        return v;
    }
    fail("no input '", name, "' was traced");
}

/// Logits of q and the row's loss against the input "target".
template <class Backend, class Agent>
std::pair<var<Backend>, var<Backend>> predict_rows(graph<Backend>& g, const typename Agent::settings& s,
                                                   const task_shape& task, const var<Backend>& observation,
                                                   const var<Backend>& memory) {
    const auto scope = g.scope("predictor");
    const auto e = traced_in(g, "encoder", [&] {
        return Agent::encoder::encode(s.encoder, Agent::encoder::declare(g, s.encoder, task.observation), observation,
                                      task.observation);
    });
    const auto logits = Agent::learner::predict(g, s.learner, {e, memory}, task);
    return {logits, Agent::learner::row_loss(g, s.learner, logits, task)};
}

}  // namespace detail

template <class Backend, class Agent>
traced_agent<Backend> wire(predicts_targets, const typename Agent::settings& s, const task_shape& task,
                           std::uint64_t seed, purpose why) {
    auto out = wire<Backend, Agent>(reads_controls_writes{}, s, task, seed, why);
    out.schedule = Agent::learner::schedule(s.learner);
    if (why == purpose::generating) {
        const auto [logits, row_loss] = detail::predict_rows<Backend, Agent>(
            *out.g, s, task, detail::input_named(*out.g, "observation"), out.h);
        out.logits = out.value = out.log_policy = logits;
        out.row_loss = row_loss;
        out.watched = {{"h", out.h}, {"logits", logits}};
        return out;
    }
    out.predictor = std::make_unique<predictor_trace<Backend>>();
    out.predictor->g = std::make_unique<graph<Backend>>(out.store);
    graph<Backend>& g = *out.predictor->g;
    g.share_parameters();
    const auto memory = g.input("memory", out.h.width, extent::sequence, true);
    const auto row_loss = detail::predict_rows<Backend, Agent>(g, s, task, g.input("observation", task.observation.size()),
                                                               memory)
                              .second;
    Agent::learner::add_row_losses(g, row_loss);
    out.predictor->memory = memory;
    out.predictor->row_loss = row_loss;
    return out;
}

template <class Backend, class Agent>
traced_agent<Backend> wire(carries_states, const typename Agent::settings& s, const task_shape& task,
                           std::uint64_t seed, purpose why) {
    auto out = wire<Backend, Agent>(reads_controls_writes{}, s, task, seed, why);
    out.unroll = s.learner.unroll;
    return out;
}

}  // namespace engram
