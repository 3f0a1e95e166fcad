#pragma once
// SPDX-License-Identifier: MIT

// agent<...>: five policies, in any order, make a model; with<P> replaces the one in P's slot.
//
//   using mra = agent<impala_resnet, lstm, fifo_knn, cpc, vtrace>;
//   using lstm_only = mra::with<no_memory>::with<no_auxiliary>;
//
// A step reads, controls, writes (facts 1.1): m = read([x, h_prev]); h = control([x, m, last action, last reward]);
// write([x, h]). Tracing gives a graph in which nothing depends on the policies any more: the runtime is compiled once.

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <engram/graph/ops/rows.hpp>
#include <engram/graph/scan.hpp>
#include <engram/model/slots.hpp>

namespace engram {

/// A traced model. Inputs of every plan: observation [T, B, pixels] in [0, 1], last_action [T, B, 1] (index, -1 at the
/// first step of an episode), last_reward [T, B, 1], reset [T, B, 1] (1 at the first step); the learner adds its own.
template <class Backend>
struct traced_agent {
    using variable = var<Backend>;

    std::shared_ptr<parameters<typename Backend::real>> store;
    std::unique_ptr<graph<Backend>> g;
    task_shape task;
    variable logits, value, log_policy, x, h;
    /// What a behaviour policy records for the learner's replaying plan: names of its inputs.
    std::vector<variable> records;
    /// Read weights and the writes they belong to, for reports; absent without a memory that tells them.
    std::optional<variable> read_weight, read_when;
};

/// What the controller sees besides x and m.
struct wiring_settings {
    bool last_action_reward = true;  // one-hot last action and clipped last reward (errata M43)
};

/// The settings of the five policies, and how they are wired.
template <class Encoder, class Controller, class Memory, class Auxiliary, class Learner>
struct agent_settings {
    BOOST_HANA_DEFINE_STRUCT(agent_settings, (typename Encoder::settings, encoder),
                             (typename Controller::settings, controller), (typename Memory::settings, memory),
                             (typename Auxiliary::settings, auxiliary), (typename Learner::settings, learner),
                             (wiring_settings, wiring));
};

/// What is carried from step to step.
template <class Controller, class Memory>
struct agent_state {
    BOOST_HANA_DEFINE_STRUCT(agent_state, (Controller, controller), (Memory, memory));
};

struct clip_reward {
    auto operator()(auto r) const { return max(min(r, 1), -1); }
};

namespace detail {

template <class P>
concept has_role = requires {
    typename P::role;
};

template <class P>
struct role_of : std::type_identity<void> {};
template <has_role P>
struct role_of<P> : std::type_identity<typename P::role> {};

template <class Role, class P>
inline constexpr bool fills = std::is_same_v<Role, typename role_of<P>::type>;

template <class Role, class... Policies>
inline constexpr int claimed = (0 + ... + fills<Role, Policies>);

template <class Role, class First, class... Rest>
struct policy_of : std::conditional_t<fills<Role, First>, std::type_identity<First>, policy_of<Role, Rest...>> {};
template <class Role, class Last>
struct policy_of<Role, Last> : std::type_identity<Last> {};

/// What with<P> puts in: P itself, checked.
template <class P>
struct replacement : std::type_identity<P> {
    static_assert(has_role<P>,
                  "with<P> needs a policy: a type that claims a slot by `using role = memory_role` or another role");
};

}  // namespace detail

/// Five compile-time choices.
template <class... Policies>
struct agent {
    // From general to specific; what was said once is not said again in other words.
    static constexpr bool has_slots =
        sizeof...(Policies) == 5 && detail::claimed<encoder_role, Policies...> == 1 &&
        detail::claimed<controller_role, Policies...> == 1 && detail::claimed<memory_role, Policies...> == 1 &&
        detail::claimed<auxiliary_role, Policies...> == 1 && detail::claimed<learner_role, Policies...> == 1;
    static constexpr bool has_roles = (detail::has_role<Policies> && ...);
    static_assert(
        has_roles,
        "an agent is made of policies: types that claim a slot by `using role = memory_role` or another role");
    static_assert(!has_roles || detail::claimed<encoder_role, Policies...> == 1, "an agent needs exactly one encoder");
    static_assert(!has_roles || detail::claimed<controller_role, Policies...> == 1,
                  "an agent needs exactly one controller");
    static_assert(!has_roles || detail::claimed<memory_role, Policies...> == 1,
                  "an agent needs exactly one memory (no_memory for none)");
    static_assert(!has_roles || detail::claimed<auxiliary_role, Policies...> == 1,
                  "an agent needs exactly one auxiliary loss (no_auxiliary for none)");
    static_assert(!has_roles || detail::claimed<learner_role, Policies...> == 1, "an agent needs exactly one learner");

    using encoder = typename detail::policy_of<encoder_role, Policies...>::type;
    using controller = typename detail::policy_of<controller_role, Policies...>::type;
    using memory = typename detail::policy_of<memory_role, Policies...>::type;
    using auxiliary = typename detail::policy_of<auxiliary_role, Policies...>::type;
    using learner = typename detail::policy_of<learner_role, Policies...>::type;

    static_assert(!has_slots || (has_settings<encoder> && can_encode<encoder>),
                  "the encoder does not declare and encode: see can_encode");
    static_assert(!has_slots || (has_settings<controller> && can_control<controller>),
                  "the controller does not begin and step: see can_control");
    static_assert(!has_slots || (has_settings<memory> && can_begin<memory>),
                  "the memory does not declare and begin: see can_begin");
    static_assert(!has_slots || can_forget<memory>, "the memory cannot forget at an episode's start: see can_forget");
    static_assert(!has_slots || can_read<memory>, "the memory cannot be read: see can_read");
    static_assert(!has_slots || can_write<memory>, "the memory cannot be written: see can_write");
    static_assert(!has_slots || can_learn<learner>, "the learner adds no heads or no losses: see can_learn");
    static_assert(!has_slots || !can_encode<encoder> || can_assist<auxiliary, encoder>,
                  "the auxiliary loss does not work with this encoder (reconstruction needs one that can decode)");

    /// All that is asserted above: without it nothing further is compiled, so that no other error follows.
    static constexpr bool complete = has_slots && encoder_policy<encoder> && controller_policy<controller> &&
                                     memory_policy<memory> && auxiliary_policy<auxiliary> &&
                                     can_assist<auxiliary, encoder> && learner_policy<learner>;

    /// The same agent with the policy in P's slot replaced.
    template <class P>
    using with = agent<std::conditional_t<
        detail::fills<typename detail::role_of<typename detail::replacement<P>::type>::type, Policies>, P,
        Policies>...>;

    using settings = agent_settings<encoder, controller, memory, auxiliary, learner>;

    /// Traces the model for a task; first weights depend on the seed and their names alone.
    template <class Backend>
    static traced_agent<Backend> trace(const settings& s, const task_shape& task, std::uint64_t seed) {
        if constexpr (complete)
            return compose<Backend>(s, task, seed);
        else
            return {};
    }

private:
    template <class Backend>
    static traced_agent<Backend> compose(const settings& s, const task_shape& task, std::uint64_t seed) {
        using variable = var<Backend>;
        using state =
            agent_state<typename controller::template state<variable>, typename memory::template state<variable>>;
        traced_agent<Backend> out;
        out.task = task;
        out.store = std::make_shared<parameters<typename Backend::real>>(seed);
        out.g = std::make_unique<graph<Backend>>(out.store);
        graph<Backend>& g = *out.g;
        const auto in = [&g](const char* name, auto&& body) {
            const auto scope = g.scope(name);
            return body();
        };

        trajectory<variable> seen;
        seen.observation = g.input("observation", task.observation.size());
        seen.reset = g.input("reset", 1);
        seen.last_action = one_hot("last_action_code", g.input("last_action", 1), task.actions);
        seen.last_reward = map("last_reward_clipped", clip_reward{}, g.input("last_reward", 1));

        seen.x = in("encoder", [&] {
            return encoder::encode(s.encoder, encoder::declare(g, s.encoder, task.observation), seen.observation,
                                   task.observation);
        });
        const memory_sizes sizes{seen.x.width, controller::width(s.controller)};
        const auto memory_weights = in("memory", [&] { return memory::declare(g, s.memory, sizes); });
        const int extra = s.wiring.last_action_reward ? task.actions + 1 : 0;
        const int inputs = seen.x.width + memory::context_width(s.memory, sizes) + extra;
        const auto controller_weights = in("controller", [&] { return controller::declare(g, s.controller, inputs); });
        const state start{in("controller", [&] { return controller::begin(g, s.controller); }),
                          in("memory", [&] { return memory::begin(g, s.memory, sizes); })};

        recalled<variable> read;
        seen.h = scan(g, start, [&](state& now) {
            in("controller", [&] {
                reset_rows(now.controller, seen.reset);
                return 0;
            });
            read = in("memory", [&] {
                reset_rows(now.memory, seen.reset);
                memory::forget(memory_weights, seen.reset, now.memory);
                return memory::read(s.memory, memory_weights,
                                    std::vector<variable>{seen.x, controller::held(now.controller)}, now.memory);
            });
            const variable h = in("controller", [&] {
                std::vector<variable> to{seen.x};
                to.insert(to.end(), read.context.begin(), read.context.end());
                if (extra > 0) to.insert(to.end(), {seen.last_action, seen.last_reward});
                return controller::step(s.controller, controller_weights, to, now.controller);
            });
            in("memory", [&] {
                memory::write(s.memory, memory_weights, std::vector<variable>{seen.x, h}, now.memory);
                return 0;
            });
            return h;
        });

        const auto heads = in("learner", [&] { return learner::add_heads(g, s.learner, seen.h, task); });
        out.logits = heads.logits;
        out.value = heads.value;
        out.log_policy = heads.log_policy;
        out.x = seen.x;
        out.h = seen.h;
        learner::add_losses(g, s.learner, heads);
        in("auxiliary", [&] {
            auxiliary::template add_losses<encoder>(g, s.auxiliary, s.encoder, seen, task);
            return 0;
        });
        for (const auto& op : g.operations())
            if (op->is_record) {
                variable v;
                v.value = op->outputs[0];
                v.width = g.value(v.value).width;
                v.owner = &g;
                out.records.push_back(v);
            }
        if (!read.weight.empty() && !read.when.empty()) {
            out.read_weight = read.weight[0];
            out.read_when = read.when[0];
        }
        return out;
    }
};

}  // namespace engram

BOOST_HANA_ADAPT_STRUCT(engram::wiring_settings, last_action_reward);
