#pragma once
// SPDX-License-Identifier: MIT

// agent<...>: five policies, in any order, make a model; with<P> replaces the one in P's slot.
//
//   using mra = agent<impala_resnet, lstm, fifo_knn, cpc, vtrace>;
//   using lstm_only = mra::with<no_memory>::with<no_auxiliary>;
//
// The learner says how a step is wired: model/acting.hpp reads, controls, writes; model/generative.hpp controls, reads,
// infers, writes.

#include <string>
#include <type_traits>
#include <utility>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/acting.hpp>
#include <engram/model/generative.hpp>

namespace engram {

/// The settings of the five policies, and how they are wired.
template <class Encoder, class Controller, class Memory, class Auxiliary, class Learner, class Wiring>
struct agent_settings {
    BOOST_HANA_DEFINE_STRUCT(agent_settings, (typename Encoder::settings, encoder),
                             (typename Controller::settings, controller), (typename Memory::settings, memory),
                             (typename Auxiliary::settings, auxiliary), (typename Learner::settings, learner),
                             (typename Wiring::settings, wiring));
};

namespace internal {

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

/// How a learner wires a step; without a word of its own as an agent.
template <class Learner>
struct wiring_of : std::type_identity<reads_controls_writes> {};
template <class Learner>
    requires requires {
        typename Learner::wiring;
    }
struct wiring_of<Learner> : std::type_identity<typename Learner::wiring> {};

/// Whether an auxiliary loss can stand beside a learner: a generative model has no actions or rewards to predict.
template <class Auxiliary, class Learner>
inline constexpr bool goes_with = !can_infer<Learner> || std::is_same_v<Auxiliary, no_auxiliary>;

/// A learner that lives on the state carried from unroll to unroll says `static constexpr bool carries_memory = true`.
template <class Learner>
concept carries_memory = requires {
    requires Learner::carries_memory;
};

/// Whether a controller can be stepped, or nothing asks for its steps one by one: no memory is read before them, and
/// the learner neither acts, nor feeds back what it infers, nor lives on what is carried.
template <class Controller, class Memory, class Learner>
inline constexpr bool steps_with = can_control<Controller>;
template <class Controller, class Memory, class Learner>
    requires(!can_control<Controller> && Learner::learns_sequences && !carries_memory<Learner>)
inline constexpr bool steps_with<Controller, Memory, Learner> = std::is_same_v<Memory, no_memory> && can_learn<Learner>;

/// A wiring in which the controller is the memory, trained before the agent acts, says
/// `static constexpr bool controller_remembers = true`: there is no place for another one, nor for a loss beside it.
template <class Learner>
concept controller_remembers = requires {
    requires wiring_of<Learner>::type::controller_remembers;
};
template <class Controller, class Memory, class Auxiliary, class Learner>
inline constexpr bool leaves_memory_alone =
    !controller_remembers<Learner> ||
    (can_control<Controller> && std::is_same_v<Memory, no_memory> && std::is_same_v<Auxiliary, no_auxiliary>);

/// What with<P> puts in: P itself, checked.
template <class P>
struct replacement : std::type_identity<P> {
    static_assert(has_role<P>,
                  "with<P> needs a policy: a type that claims a slot by `using role = memory_role` or another role");
};

}  // namespace internal

/// Five compile-time choices.
template <class... Policies>
struct agent {
    // From general to specific; what was said once is not said again in other words.
    static constexpr bool has_slots =
        sizeof...(Policies) == 5 && internal::claimed<encoder_role, Policies...> == 1 &&
        internal::claimed<controller_role, Policies...> == 1 && internal::claimed<memory_role, Policies...> == 1 &&
        internal::claimed<auxiliary_role, Policies...> == 1 && internal::claimed<learner_role, Policies...> == 1;
    static constexpr bool has_roles = (internal::has_role<Policies> && ...);
    static_assert(
        has_roles,
        "an agent is made of policies: types that claim a slot by `using role = memory_role` or another role");
    static_assert(!has_roles || internal::claimed<encoder_role, Policies...> == 1,
                  "an agent needs exactly one encoder");
    static_assert(!has_roles || internal::claimed<controller_role, Policies...> == 1,
                  "an agent needs exactly one controller");
    static_assert(!has_roles || internal::claimed<memory_role, Policies...> == 1,
                  "an agent needs exactly one memory (no_memory for none)");
    static_assert(!has_roles || internal::claimed<auxiliary_role, Policies...> == 1,
                  "an agent needs exactly one auxiliary loss (no_auxiliary for none)");
    static_assert(!has_roles || internal::claimed<learner_role, Policies...> == 1,
                  "an agent needs exactly one learner");

    using encoder = typename internal::policy_of<encoder_role, Policies...>::type;
    using controller = typename internal::policy_of<controller_role, Policies...>::type;
    using memory = typename internal::policy_of<memory_role, Policies...>::type;
    using auxiliary = typename internal::policy_of<auxiliary_role, Policies...>::type;
    using learner = typename internal::policy_of<learner_role, Policies...>::type;

    static constexpr bool has_reflected = has_slots && (has_settings<Policies> && ...);
    static_assert(!has_slots || has_reflected,
                  "a policy has no settings that are known by name: write a `settings` aggregate with defaults and, at "
                  "global scope, ENGRAM_REFLECT(policy::settings, members...)");

    static_assert(!has_reflected || can_encode<encoder>, "the encoder does not declare and encode: see can_encode");
    static_assert(!has_reflected || controller_policy<controller>,
                  "the controller does not begin and step: see can_control");
    static_assert(!has_reflected || can_begin<memory>,
                  "the memory does not declare, begin and tell its context_width: see can_begin");
    static_assert(!has_reflected || can_forget<memory>,
                  "the memory cannot forget at an episode's start: see can_forget");
    static_assert(!has_reflected || can_read<memory>, "the memory cannot be read: see can_read");
    static_assert(!has_reflected || can_write<memory>, "the memory cannot be written: see can_write");
    static_assert(
        !has_reflected || !controller_policy<controller> || internal::steps_with<controller, memory, learner>,
        "a controller of whole sequences cannot act step by step yet: it goes with no_memory and a learner of "
        "sequences (supervised)");
    static_assert(!has_reflected || can_learn<learner> || can_infer<learner>,
                  "the learner adds no heads or no losses: see can_learn");
    static_assert(!has_reflected || !can_encode<encoder> || can_assist<auxiliary, encoder>,
                  "the auxiliary loss does not work with this encoder (reconstruction needs one that can decode)");

    static_assert(!has_reflected || internal::goes_with<auxiliary, learner>,
                  "the auxiliary loss needs actions and rewards, which a variational model does not have");
    static_assert(!has_reflected || internal::leaves_memory_alone<controller, memory, auxiliary, learner>,
                  "an agent that acts on a trained memory has it in the controller's slot: it goes with no_memory, "
                  "no_auxiliary and a controller that is stepped");
    static_assert(!has_reflected || !can_infer<learner> || !can_encode<encoder> || can_decode<encoder>,
                  "a variational model draws frames: its encoder must be able to decode, see can_decode");

    /// All that is asserted above: without it nothing further is compiled, so that no other error follows.
    static constexpr bool complete =
        has_slots && encoder_policy<encoder> && controller_policy<controller> && memory_policy<memory> &&
        auxiliary_policy<auxiliary> && can_assist<auxiliary, encoder> && learner_policy<learner> &&
        internal::steps_with<controller, memory, learner> && internal::goes_with<auxiliary, learner> &&
        internal::leaves_memory_alone<controller, memory, auxiliary, learner> &&
        (!can_infer<learner> || can_decode<encoder>);

    /// The same agent with the policy in P's slot replaced.
    template <class P>
    using with = agent<std::conditional_t<
        internal::fills<typename internal::role_of<typename internal::replacement<P>::type>::type, Policies>, P,
        Policies>...>;

    using wiring = typename internal::wiring_of<learner>::type;
    using settings = agent_settings<encoder, controller, memory, auxiliary, learner, wiring>;

    /// Traces the model for a task; first weights depend on the seed and their names alone.
    template <class Backend>
    static traced_agent<Backend> trace(const settings& s, const task_shape& task, std::uint64_t seed,
                                       purpose why = purpose::learning) {
        if constexpr (complete)
            return wire<Backend, agent>(wiring{}, s, task, seed, why);
        else
            return {};
    }
};

}  // namespace engram
