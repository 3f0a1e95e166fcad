#pragma once
// Models of policies that are chosen while the test runs: each slot is filled by one policy that stands for all of the
// library's and hands every call on to the chosen one. So a few models are compiled, and every composition can be made.
//
// What the wirings ask of a policy's type, and not of a value, stays a type here: the learner, a controller of whole
// sequences, no memory, a memory whose context stands for h, no auxiliary loss.

#include <any>

#include "composed.hpp"

ENGRAM_REFLECT(composed::encoders);
ENGRAM_REFLECT(composed::controllers);
ENGRAM_REFLECT(composed::memories);
ENGRAM_REFLECT(composed::auxiliaries);

namespace composed {

struct any_encoder {
    using role = encoder_role;
    using settings = encoders;
    using weights = std::any;

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape size) {
        return s.visit([&]<class P>(const typename P::settings& of) { return std::any(P::declare(g, of, size)); });
    }
    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& seen, image_shape size) {
        return s.visit([&]<class P>(const typename P::settings& of) {
            return P::encode(of, std::any_cast<const typename P::weights&>(w), seen, size);
        });
    }
    template <class Backend>
    static std::any declare_decoder(graph<Backend>& g, const settings& s, image_shape size, int inputs) {
        return s.visit([&]<class P>(const typename P::settings& of) -> std::any {
            if constexpr (can_decode<P>)
                return P::declare_decoder(g, of, size, inputs);
            else
                fail(s.name(), " cannot decode");
        });
    }
    template <class Backend>
    static var<Backend> decode(const settings& s, const std::any& w, const var<Backend>& code, image_shape size) {
        return s.visit([&]<class P>(const typename P::settings& of) -> var<Backend> {
            if constexpr (can_decode<P>) {
                using decoder = decltype(P::declare_decoder(std::declval<graph<Backend>&>(), of, size, 1));
                return P::decode(of, std::any_cast<const decoder&>(w), code, size);
            } else {
                fail(s.name(), " cannot decode");
            }
        });
    }
};

/// A state as its leaves, with what its policy makes of them.
template <class Var, class Choice>
struct any_state {
    BOOST_HANA_DEFINE_STRUCT(any_state, (std::vector<Var>, leaves));
    Choice of;
    std::any like;

    template <class State>
    static any_state from(const Choice& of, const State& state) {
        any_state s;
        s.leaves = flatten<Var>(state), s.of = of, s.like = state;
        return s;
    }
    template <class State>
    State as() const {
        return unflatten(std::any_cast<const State&>(like), leaves);
    }
    template <class State>
    void take(const State& state) {
        leaves = flatten<Var>(state);
    }
};

struct any_controller {
    using role = controller_role;
    using settings = controllers;
    using weights = std::any;
    template <class Var>
    using state = any_state<Var, controllers>;

    static int width(const settings& s) {
        return s.visit([]<class P>(const typename P::settings& of) { return P::width(of); });
    }
    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        return s.visit([&]<class P>(const typename P::settings& of) { return std::any(P::declare(g, of, inputs)); });
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return s.visit([&]<class P>(const typename P::settings& of) -> state<var<Backend>> {
            if constexpr (can_control<P>)
                return state<var<Backend>>::from(s, P::begin(g, of));
            else
                fail(s.name(), " has no steps");
        });
    }
    template <class Var>
    static Var held(const state<Var>& now) {
        return now.of.visit([&]<class P>(const typename P::settings&) -> Var {
            if constexpr (can_control<P>)
                return P::held(now.template as<typename P::template state<Var>>());
            else
                fail("there is no state");
        });
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const std::vector<var<Backend>>& inputs,
                             state<var<Backend>>& now) {
        return s.visit([&]<class P>(const typename P::settings& of) -> var<Backend> {
            if constexpr (can_control<P>) {
                auto inner = now.template as<typename P::template state<var<Backend>>>();
                const auto h = P::step(of, std::any_cast<const typename P::weights&>(w), inputs, inner);
                now.take(inner);
                return h;
            } else {
                fail(s.name(), " has no steps");
            }
        });
    }
};

/// Replaces: whether the context stands for h_t (introspection alone).
template <bool Replaces>
struct any_memory {
    using role = memory_role;
    static constexpr bool replaces_held = Replaces;
    using settings = memories;
    using weights = std::any;
    template <class Var>
    using state = any_state<Var, memories>;

    static int capacity(const settings& s) requires Replaces {
        return introspection::capacity(std::get<introspection::settings>(s.values));
    }
    static int context_width(const settings& s, memory_sizes z) {
        return s.visit([&]<class P>(const typename P::settings& of) { return P::context_width(of, z); });
    }
    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, memory_sizes z) {
        return s.visit([&]<class P>(const typename P::settings& of) { return std::any(P::declare(g, of, z)); });
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s, memory_sizes z) {
        return s.visit(
            [&]<class P>(const typename P::settings& of) { return state<var<Backend>>::from(s, P::begin(g, of, z)); });
    }
    template <class Var>
    static void forget(const weights& w, const Var& reset, state<Var>& now) {
        now.of.visit([&]<class P>(const typename P::settings&) {
            auto inner = now.template as<typename P::template state<Var>>();
            P::forget(std::any_cast<const typename P::weights&>(w), reset, inner);
            now.take(inner);
        });
    }
    template <class Backend>
    static recalled<var<Backend>> read(const settings& s, const weights& w, const std::vector<var<Backend>>& cue,
                                       state<var<Backend>>& now) {
        return s.visit([&]<class P>(const typename P::settings& of) {
            auto inner = now.template as<typename P::template state<var<Backend>>>();
            const auto got = P::read(of, std::any_cast<const typename P::weights&>(w), cue, inner);
            now.take(inner);
            return got;
        });
    }
    template <class Backend>
    static void write(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        s.visit([&]<class P>(const typename P::settings& of) {
            auto inner = now.template as<typename P::template state<var<Backend>>>();
            P::write(of, std::any_cast<const typename P::weights&>(w), content, inner);
            now.take(inner);
        });
    }
};

struct any_auxiliary {
    using role = auxiliary_role;
    using settings = auxiliaries;
    template <class Encoder, class Backend>
    static void add_losses(graph<Backend>& g, const settings& s, const typename Encoder::settings& encoder,
                           const trajectory<var<Backend>>& seen, const task_shape& task) {
        s.visit([&]<class P>(const typename P::settings& of) {
            P::template add_losses<Encoder>(g, of, encoder, seen, task);
        });
    }
};

/// Whether the sentences of model/agent.hpp let these policies stand together. Compositions that they refuse do not
/// compile.
inline bool compiles(const agent_of& a) {
    const bool pairs = a.encoder.visit([&]<class E>(const typename E::settings&) {
        return a.auxiliary.visit([&]<class A>(const typename A::settings&) {
            return a.learner.visit([]<class L>(const typename L::settings&) {
                return can_assist<A, E> && internal::goes_with<A, L> &&
                       (!can_infer<L> || can_decode<E>)&&internal::leaves_memory_alone<lstm, no_memory, A, L>;
            });
        });
    });
    const bool steps = a.controller.visit([&]<class C>(const typename C::settings&) {
        return a.memory.visit([&]<class M>(const typename M::settings&) {
            return a.learner.visit([]<class L>(const typename L::settings&) {
                return internal::steps_with<C, M, L> && internal::leaves_memory_alone<C, M, no_auxiliary, L>;
            });
        });
    });
    return pairs && steps;
}

class traced_agent_of final : public agent_of {
public:
    using agent_of::agent_of;

    traced_agent<cpu<float>> trace(const task_shape& task, std::uint64_t seed, purpose why) const override {
        return learner.visit([&]<class L>(const typename L::settings& s) {
            if constexpr (std::is_same_v<typename internal::wiring_of<L>::type, acts_on_memory>) {
                return with<any_controller, no_memory, no_auxiliary, L>(s, task, seed, why);
            } else if constexpr (can_infer<L>) {
                return memory.name() == "introspection"
                           ? with<any_controller, any_memory<true>, no_auxiliary, L>(s, task, seed, why)
                           : with<any_controller, any_memory<false>, no_auxiliary, L>(s, task, seed, why);
            } else {
                if constexpr (internal::steps_with<transformer, no_memory, L>)
                    if (controller.name() == "transformer")
                        return with<transformer, no_memory, any_auxiliary, L>(s, task, seed, why);
                return with<any_controller, any_memory<false>, any_auxiliary, L>(s, task, seed, why);
            }
        });
    }

private:
    template <class Controller, class Memory, class Auxiliary, class Learner>
    traced_agent<cpu<float>> with(const typename Learner::settings& s, const task_shape& task, std::uint64_t seed,
                                  purpose why) const {
        using model = agent<any_encoder, Controller, Memory, Auxiliary, Learner>;
        typename model::settings all;
        all.encoder = encoder;
        // What model/generative.hpp does where the settings have the member.
        if (why == purpose::generating && can_infer<Learner>)
            all.encoder.change([](auto& of) {
                if constexpr (requires { of.frozen = true; }) of.frozen = true;
            });
        const auto give = [](auto& to, const auto& from) {
            using wanted = std::remove_reference_t<decltype(to)>;
            if constexpr (std::is_same_v<wanted, std::remove_cvref_t<decltype(from)>>)
                to = from;
            else if constexpr (!reflected_without_members<wanted>)
                to = std::get<wanted>(from.values);
        };
        give(all.controller, controller), give(all.memory, memory), give(all.auxiliary, auxiliary);
        all.learner = s;
        if constexpr (std::is_same_v<typename model::wiring::settings, acts_on_memory::settings>)
            all.wiring = remembers;
        else if constexpr (std::is_same_v<typename model::wiring::settings, controls_reads_infers_writes::settings>)
            all.wiring = generates;
        else
            all.wiring = acts;
        return model::template trace<cpu<float>>(all, task, seed, why);
    }
    /// Settings of a null policy.
    template <class S>
    static constexpr bool reflected_without_members = std::is_empty_v<S>;
};

}  // namespace composed
