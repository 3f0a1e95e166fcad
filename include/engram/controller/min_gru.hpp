#pragma once
// SPDX-License-Identifier: MIT

// MinGRU (Feng et al. 2024): a GRU whose gates see the input alone, in layers with a highway around each (PufferLib).
//
//   [u, z, o] = x W_l,  h' = (1 - sigma(z)) h + sigma(z) g(u),  x' = sigma(o) h' + (1 - sigma(o)) x
//   g(u) = u + 1/2 where u >= 0, else sigma(u) ("positive"), or u itself ("linear")
//
// Nothing feeds back, so a layer is a resettable linear recurrence (docs/decisions/0026): lift (1 - sigma(z), sigma(z)
// g(u)). Positive candidates keep h positive, which is what allows the scan in log space; the loop over steps is exact
// for both. Shapes: inputs [T, B, .], state h [B, H] a layer, output [T, B, H].

#include <string>

#include <engram/controller/layered.hpp>
#include <engram/core/choice.hpp>

namespace engram {

struct min_gru_cell {
    bool positive;
    constexpr auto operator()(auto u, auto z, auto o, auto x, auto h) const {
        const auto bent = select(u >= 0, u + 0.5, logistic(u));
        const auto candidate = positive ? bent : decltype(bent)(u);
        const auto take = logistic(z);
        const auto pass = logistic(o);
        const auto next = (1 - take) * h + take * candidate;
        return std::tuple{next, pass * next + (1 - pass) * x};
    }
};

struct min_gru_layer {
    struct settings {
        int hidden = 128;                                      // H, units of a layer
        int layers = 4;                                        // one above the other
        choice<"positive", "linear"> candidates = "positive";  // or linear
        void check() const { internal::check_layers(hidden, layers); }
    };
    struct weights {
        linear gates;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, memory));
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s) {
        return {g.declare_linear("gates", s.hidden, 3 * s.hidden)};
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("memory", s.hidden)};
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const var<Backend>& x, state<var<Backend>>& now) {
        const auto [u, z, o] = split_columns<3>(affine("gates", x, w.gates));
        const auto [memory, out] = map("memory", min_gru_cell{s.candidates == "positive"}, u, z, o, x, now.memory);
        now.memory = memory;
        return out;
    }
};

struct min_gru : layered<min_gru_layer> {};

}  // namespace engram

ENGRAM_REFLECT(engram::min_gru_layer::settings, hidden, layers, candidates);

static_assert(engram::controller_policy<engram::min_gru>);
