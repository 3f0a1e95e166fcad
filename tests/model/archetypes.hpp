#pragma once
// Archetypes: the least type that satisfies each slot's concept. A requirement that creeps into the composition without
// being part of the concept breaks these; tests/fail takes one requirement away at a time.

#include <engram/model/agent.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>

namespace archetype {

using engram::graph;
using engram::var;

struct no_settings {
    BOOST_HANA_DEFINE_STRUCT(no_settings);
};
struct no_weights {};

struct encoder {
    using role = engram::encoder_role;
    using settings = no_settings;
    using weights = no_weights;
    template <class B>
    static weights declare(graph<B>&, const settings&, engram::image_shape) {
        return {};
    }
    template <class B>
    static var<B> encode(const settings&, const weights&, const var<B>& observation, engram::image_shape) {
        return observation;
    }
};

struct controller {
    using role = engram::controller_role;
    using settings = no_settings;
    using weights = no_weights;
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, last));
    };
    static int width(const settings&) { return 2; }
    template <class B>
    static weights declare(graph<B>&, const settings&, int) {
        return {};
    }
    template <class B>
    static state<var<B>> begin(graph<B>& g, const settings&) {
        return {g.state("last", 2)};
    }
    template <class Var>
    static Var held(const state<Var>& s) {
        return s.last;
    }
    template <class B>
    static var<B> step(const settings&, const weights&, const std::vector<var<B>>& in, state<var<B>>& s) {
        return s.last = engram::copy(in[0].columns(0, 2));
    }
};

/// Parts that a near miss leaves out.
struct memory_begins {
    using role = engram::memory_role;
    using settings = no_settings;
    using weights = no_weights;
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state);
    };
    static int context_width(const settings&, engram::memory_sizes) { return 0; }
    template <class B>
    static weights declare(graph<B>&, const settings&, engram::memory_sizes) {
        return {};
    }
    template <class B>
    static state<var<B>> begin(graph<B>&, const settings&, engram::memory_sizes) {
        return {};
    }
};
struct memory_forgets {
    template <class State, class Var>
    static void forget(const no_weights&, const Var&, State&) {}
};
struct memory_reads {
    template <class State, class Var>
    static engram::recalled<Var> read(const no_settings&, const no_weights&, const std::vector<Var>&, State&) {
        return {};
    }
};
struct memory_writes {
    template <class State, class Var>
    static void write(const no_settings&, const no_weights&, const std::vector<Var>&, State&) {}
};
struct memory : memory_begins, memory_forgets, memory_reads, memory_writes {};

struct auxiliary {
    using role = engram::auxiliary_role;
    using settings = no_settings;
    template <class Encoder, class B>
    static void add_losses(graph<B>&, const settings&, const typename Encoder::settings&,
                           const engram::trajectory<var<B>>&, const engram::task_shape&) {}
};

struct learner {
    using role = engram::learner_role;
    using settings = no_settings;
    template <class Var>
    struct heads {
        Var logits, value, log_policy;
    };
    template <class B>
    static heads<var<B>> add_heads(graph<B>& g, const settings&, const var<B>& h, const engram::task_shape& task) {
        const auto all = engram::affine<B>("all", {h}, g.declare_linear("all", h.width, task.actions));
        return {all, all.columns(0, 1), all};
    }
    template <class B>
    static void add_losses(graph<B>&, const settings&, const heads<var<B>>& out) {
        engram::add_loss("value", out.value);
    }
};

using whole = engram::agent<encoder, controller, memory, auxiliary, learner>;

}  // namespace archetype
