#pragma once
// SPDX-License-Identifier: MIT

// The five slots of a model: tags by which a policy claims its slot, and what a slot requires of it.
//
// A policy is a type with a `role`, a `settings` aggregate with defaults and static functions; what changes lives in
// its `state`, what is learnt in its `weights`. Concepts are checked against the double-precision CPU backend: they ask
// for form, never for sizes.

#include <algorithm>
#include <concepts>
#include <vector>

#include <engram/core/device.hpp>
#include <engram/core/reflection.hpp>
#include <engram/graph/graph.hpp>
#include <engram/graph/image_shape.hpp>
#include <engram/operations/clear_rows.hpp>
#include <engram/operations/map.hpp>

namespace engram {

struct encoder_role {};
struct controller_role {};
struct memory_role {};
struct auxiliary_role {};
struct learner_role {};

/// How a learner wires the steps of a model (its member `wiring`), with what there is to choose.
/// m = read; h = control(m); write (facts 1.1): agents and supervised learning.
struct reads_controls_writes {
    struct settings {
        bool last_action_reward = true;  // the controller sees one-hot last action and clipped last reward (errata M43)
        bool last_reward = true;         // false: of these two the action alone (facts 3.9)
    };
};
/// h = control(z); C = read; infer z; write (facts 4.2): generative models.
struct controls_reads_infers_writes {
    struct settings {
        bool previous_reads = false;  // the controller sees what was read one step before
        int features = 128;           // width of the features of x and z in a model without memory (VRNN)
        void check() const { require(features > 0, "wiring.features: expected at least one column, got ", features); }
    };
};

/// What a model is traced for. A generating trace may follow its own predictions, and freezes statistics of batches;
/// detecting and remembering are phases of an agent whose memory is trained before it acts (model/remembering.hpp).
enum class purpose { learning, generating, detecting, remembering };

/// What a task shows and accepts.
struct task_shape {
    image_shape observation;
    int actions = 0;       // of an agent, or columns of a generative model's condition
    int targets = 0;       // columns of a supervised target
    int classes = 0;       // of a supervised target that is the index of one of them
    bool numbers = false;  // a supervised target is real numbers and not bits
};

/// Widths that a memory must know: the encoder's x and the controller's h.
struct memory_sizes {
    int observed = 0, held = 0;
};

/// What a memory gives to the controller (nothing, or one variable), and for whoever looks on how it came about.
template <class Var>
struct recalled {
    std::vector<Var> context;
    // How it was read, for pictures: weights [T, B, K] and the write [T, B, K] that each belongs to (-1: none); or
    // weights [T, B, heads * N] alone, over N slots that stay where they are.
    std::vector<Var> weight, when;
};

/// All that an auxiliary loss may look at; everything is [T, B, .].
template <class Var>
struct trajectory {
    Var observation, x, h, last_action, last_reward, reset;  // last_action is one-hot, last_reward not clipped
};

namespace slot {
using backend = cpu<double>;
using variable = var<backend>;
using variables = std::vector<variable>;
}  // namespace slot

template <class P, class Role>
concept claims = std::same_as<typename P::role, Role>;

template <class P>
concept has_settings = std::default_initializable<typename P::settings> && reflected<typename P::settings>;

// --- encoder: observation [T, B, pixels] -> x [T, B, X] ---
// [encoder]
template <class P>
concept can_encode = requires(graph<slot::backend>& g, const typename P::settings& s, const typename P::weights& w,
                              slot::variable v, image_shape size) {
    { P::declare(g, s, size) } -> std::same_as<typename P::weights>;
    { P::encode(s, w, v, size) } -> std::same_as<slot::variable>;
};
template <class P>
concept can_decode = requires(graph<slot::backend>& g, const typename P::settings& s, slot::variable v,
                              image_shape size) {
    { P::decode(s, P::declare_decoder(g, s, size, 1), v, size) } -> std::same_as<slot::variable>;
};
template <class P>
concept encoder_policy = claims<P, encoder_role> && has_settings<P> && can_encode<P>;
// [encoder]

// --- controller: inputs, state -> h, state ---
//
// The inputs of a step are x, what the memory gave (if anything), and the last action and reward where the wiring has
// them; declare() is told the sum of their columns.

// [controller]
template <class P>
concept can_control = requires(graph<slot::backend>& g, const typename P::settings& s, const typename P::weights& w,
                               const slot::variables& in, typename P::template state<slot::variable>& state) {
    { P::declare(g, s, 1) } -> std::same_as<typename P::weights>;
    { P::begin(g, s) } -> std::same_as<typename P::template state<slot::variable>>;
    { P::step(s, w, in, state) } -> std::same_as<slot::variable>;
    { P::held(state) } -> std::convertible_to<slot::variable>;
    { P::width(s) } -> std::convertible_to<int>;
};
/// A controller that is not recurrent: inputs and reset of all steps -> h of all steps.
template <class P>
concept can_control_sequence = requires(graph<slot::backend>& g, const typename P::settings& s,
                                        const typename P::weights& w, const slot::variables& in, slot::variable reset) {
    { P::declare(g, s, 1) } -> std::same_as<typename P::weights>;
    { P::sequence(s, w, in, reset) } -> std::same_as<slot::variable>;
    { P::width(s) } -> std::convertible_to<int>;
};
template <class P>
concept controller_policy = claims<P, controller_role> && has_settings<P> &&(can_control<P> || can_control_sequence<P>);
// [controller]

// --- memory: cue, state -> context; content, state -> state ---
//
// cue = {x_t, h_{t-1}}, content = {x_t, h_t}; of a generative model both have its latent in the place of x. What one
// may have besides: `capacity(s)`, the writes after which the first one is lost, and `replaces_held`
// (model/generative.hpp).

// [memory]
template <class P>
concept can_begin = requires(graph<slot::backend>& g, const typename P::settings& s, memory_sizes z) {
    { P::declare(g, s, z) } -> std::same_as<typename P::weights>;
    { P::begin(g, s, z) } -> std::same_as<typename P::template state<slot::variable>>;
    { P::context_width(s, z) } -> std::convertible_to<int>;
};
template <class P>
concept can_forget = requires(const typename P::weights& w, slot::variable reset,
                              typename P::template state<slot::variable>& state) {
    P::forget(w, reset, state);
};
template <class P>
concept can_read = requires(const typename P::settings& s, const typename P::weights& w, const slot::variables& cue,
                            typename P::template state<slot::variable>& state) {
    { P::read(s, w, cue, state) } -> std::same_as<recalled<slot::variable>>;
};
template <class P>
concept can_write = requires(const typename P::settings& s, const typename P::weights& w,
                             const slot::variables& content, typename P::template state<slot::variable>& state) {
    P::write(s, w, content, state);
};
template <class P>
concept memory_policy =
    claims<P, memory_role> && has_settings<P> && can_begin<P> && can_forget<P> && can_read<P> && can_write<P>;
// [memory]

// --- auxiliary: trajectory -> losses of its own ---
// [auxiliary]
template <class P, class Encoder>
concept can_assist = requires(graph<slot::backend>& g, const typename P::settings& s,
                              const typename Encoder::settings& e, const trajectory<slot::variable>& seen,
                              const task_shape& task) {
    P::template add_losses<Encoder>(g, s, e, seen, task);
};
template <class P>
concept auxiliary_policy = claims<P, auxiliary_role> && has_settings<P>;
// [auxiliary]

// --- learner: wires a step and says what is minimised ---
// [learner]
template <class P>
concept can_learn = requires(graph<slot::backend>& g, const typename P::settings& s, slot::variable h,
                             const task_shape& task, const typename P::template heads<slot::variable>& heads) {
    { P::add_heads(g, s, h, task) } -> std::same_as<typename P::template heads<slot::variable>>;
    P::add_losses(g, s, heads);
};
/// A generative learner: what it believes of a step before and after it has seen it, and what that costs.
template <class P>
concept can_infer = requires(graph<slot::backend>& g, const typename P::settings& s, const typename P::weights& w,
                             const slot::variables& context, slot::variable v,
                             const typename P::template beliefs<slot::variable>& b, const task_shape& task) {
    { P::latent_width(s) } -> std::convertible_to<int>;
    { P::declare(g, s, 1, 1) } -> std::same_as<typename P::weights>;
    { P::infer(g, s, w, context, v, 1) } -> std::same_as<typename P::template beliefs<slot::variable>>;
    { P::divergence(b) } -> std::same_as<slot::variable>;
    { P::log_likelihood(s, v, v) } -> std::same_as<slot::variable>;
    { P::expected_frame(s, v) } -> std::same_as<slot::variable>;
    P::add_losses(s, v, v);
};
template <class P>
concept learner_policy = claims<P, learner_role> && has_settings<P> &&(can_learn<P> || can_infer<P>);
// [learner]

/// Clears every variable of a state at the rows whose episode begins with this step. Within a list, such as layers,
/// what lies side by side is cleared together and nothing else: the plan tells apart what operations do not tie
/// together. An operation's own state is cleared by that operation, an uncleared one by its memory, or by nobody.
template <class State, class Var>
void reset_rows(State& state, const Var& reset) {
    std::vector<std::string> groups;
    for_each_leaf(state, "", [&](const std::string& path, const Var& leaf) {
        const auto& info = leaf.owner->info(leaf);
        groups.push_back(info.own || info.uncleared ? path : element_of(path));
    });
    const std::vector<Var> leaves = flatten<Var>(state);
    std::vector<Var> cleared;
    for (std::size_t first = 0, last = 0; first < leaves.size(); first = last) {
        std::vector<Var> together;
        for (; last < leaves.size() && groups[last] == groups[first]; ++last) together.push_back(leaves[last]);
        const auto& info = leaves[first].owner->info(leaves[first]);
        if (info.own || info.uncleared) {
            cleared.push_back(leaves[first]);
            if (info.own) cleared.back().reset = reset.value;
            continue;
        }
        const std::string name = groups[first].empty() ? "clear" : message("clear.", groups[first]);
        for (const Var& v : clear_rows(name, reset, together)) cleared.push_back(v);
    }
    state = unflatten(state, cleared);
}

}  // namespace engram

ENGRAM_REFLECT(engram::reads_controls_writes::settings, last_action_reward, last_reward);
ENGRAM_REFLECT(engram::controls_reads_infers_writes::settings, previous_reads, features);
