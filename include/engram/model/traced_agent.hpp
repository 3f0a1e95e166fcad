#pragma once
// SPDX-License-Identifier: MIT

// What tracing five policies gives: a graph, its weights, and the variables by which the runtime knows it. Nothing in
// it depends on the policies any more, so the runtime is compiled once.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <engram/kernels/target_selection.hpp>
#include <engram/model/slots.hpp>

namespace engram {

/// Variables of a generative temporal model (facts 4.1), all [T, B, .].
template <class Var>
struct generative_variables {
    Var divergence;      // KL(q || p) of the step's latent, nats [T, B, 1]
    Var log_likelihood;  // log p(x | z, C), nats [T, B, 1]
    Var frame;           // expected frame [T, B, pixels]
    Var latent;          // z [T, B, Z]
};

/// When a MemUP learner predicts what (facts 3.2).
struct prediction_schedule {
    int rollout = 20, every = 20, selected = 10;  // r, f, K; steps
    target_selector selector = target_selector::top;
    double current_weight = 0;  // of the current-step loss
    double decay = 0.97;        // of the moving averages
    int period = 1;             // updates between two of their steps
    int pretrain = 0;           // updates of the predictor alone at first
    int block = 0;              // then updates of the memory alone and of the predictor alone by turns; 0: both at once
    bool retraced = false;      // contexts of chosen steps carry a gradient
    double chosen_weight = 1;   // of the chosen targets' loss
    int last = 0;               // in updates of the predictor's turn, the last steps alone have a target; 0: all

    /// What update u steps: both, the memory, or the predictor.
    enum class part { both, memory, predictor };
    part stepped(std::int64_t u) const {
        if (u < pretrain) return part::predictor;
        if (block == 0) return part::both;
        return (u - pretrain) / block % 2 == 0 ? part::memory : part::predictor;
    }
    int predictions() const { return (rollout + every - 1) / every; }
    /// Rows (i, k) of one sequence and rollout; the last `rollout` are current steps, which a weight of zero leaves
    /// out.
    int chosen() const { return predictions() * targets_of(selector, selected); }
    int pairs() const { return chosen() + (current_weight > 0 ? rollout : 0); }
};

/// The second graph of a MemUP model over the parameters of the first: one row is a pair of a prediction step i and a
/// target step k. Inputs: memory m_i [P, B, M] with its gradient, observation x_k (or the context c_k [P, B, C], with
/// its gradient), target y_k and weight [P, B, .].
template <class Backend>
struct predictor_trace {
    std::unique_ptr<graph<Backend>> g;
    var<Backend> memory, row_loss;  // row_loss [P, B, 1]: -log q(y_k | m_i, x_k), or the squared error
    /// A third graph over the same parameters, where the predictor sees contexts: what its own network [T, B, C] holds
    /// at each step. Null where it sees observations.
    std::unique_ptr<graph<Backend>> context_graph;
    var<Backend> context, context_output;
};

/// A traced model. Inputs of every plan: observation [T, B, pixels] in [0, 1] and reset [T, B, 1] (1 at the first step
/// of an episode). An acting model has last_action [T, B, 1] (index, -1 at an episode's start) and last_reward [T, B,
/// 1]; a generative one has condition [T, B, actions] if the task has actions, and in a generating trace use_prior [T,
/// B, 1] (1: the step's latent is drawn from the prior). The learner adds its own.
template <class Backend>
struct traced_agent {
    using variable = var<Backend>;

    std::shared_ptr<parameters<typename Backend::real>> store;
    std::unique_ptr<graph<Backend>> g;
    task_shape task;
    variable logits, value, log_policy, x, h;  // of an acting or supervised model; a generative one has x and h
    std::optional<generative_variables<variable>> generative;
    /// Of a MemUP model: its pairs (learning), and what it says of each step of its own [T, B, 1] (generating).
    std::unique_ptr<predictor_trace<Backend>> predictor;
    std::optional<variable> row_loss, context;
    std::optional<prediction_schedule> schedule;
    /// Of the returns that an agent, a detector or a predictor learns.
    double discount = 0;
    /// Steps of an unroll of truncated backpropagation; 0: whole sequences.
    int unroll = 0;
    /// What the laws compare, with names.
    std::vector<std::pair<const char*, variable>> watched;
    /// What a behaviour policy records for the learner's replaying plan: names of its inputs.
    std::vector<variable> records;
    /// Read weights and the writes they belong to, for reports; absent without a memory that tells them.
    std::optional<variable> read_weight, read_when;
    /// Read and write weights over the slots of a memory whose slots stay in place [T, B, heads * N].
    std::optional<variable> slot_read_weight, slot_write_weight;
    /// Steps that a buffer of writes can hold, of a memory that has one and says so.
    std::optional<int> capacity;
};

/// What is carried from step to step.
template <class Controller, class Memory>
struct agent_state {
    BOOST_HANA_DEFINE_STRUCT(agent_state, (Controller, controller), (Memory, memory));
};

namespace internal {

/// Runs `body` with the names of all that it traces under `name`.
template <class Backend, class Body>
auto traced_in(graph<Backend>& g, const char* name, Body&& body) {
    const auto scope = g.scope(name);
    return body();
}

/// Notes what a memory's read told, and the write weights among its state's leaves.
template <class Backend, class MemoryState>
void note_memory(traced_agent<Backend>& to, const recalled<var<Backend>>& read, const MemoryState& left) {
    if (!read.weight.empty() && !read.when.empty()) {
        to.read_weight = read.weight[0];
        to.read_when = read.when[0];
    }
    if (!read.weight.empty() && read.when.empty()) to.slot_read_weight = read.weight[0];
    for_each_leaf(left, "", [&](const auto& path, const var<Backend>& leaf) {
        if (path == "write_weight") to.slot_write_weight = leaf;
    });
}

/// The recorded values of a graph.
template <class Backend>
std::vector<var<Backend>> recorded_values(graph<Backend>& g) {
    std::vector<var<Backend>> all;
    for (const auto& op : g.operations())
        if (op->is_record) all.push_back(g.variable_of(op->outputs[0]));
    return all;
}

/// A trace of this task with nothing in it yet.
template <class Backend>
traced_agent<Backend> begun_trace(const task_shape& task, std::uint64_t seed) {
    traced_agent<Backend> begun;
    begun.task = task;
    begun.store = std::make_shared<parameters<typename Backend::real>>(seed);
    begun.g = std::make_unique<graph<Backend>>(begun.store);
    return begun;
}

}  // namespace internal

}  // namespace engram
