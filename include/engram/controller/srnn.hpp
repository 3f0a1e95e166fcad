#pragma once
// SPDX-License-Identifier: MIT

// Shuffling recurrent network (SRNN), a baseline of MemUP (facts 3.6).
//
//   b_t = F(x_t) * sigma(x_t W + c),  F = (linear, relu) x layers, then linear
//   h_t = relu(b_t + roll(h_{t-1})),  roll(h)_j = h_{j-1}, and roll(h)_0 = h_{H-1}
//
// Only the cyclic shift is recurrent and it has no weights, so gradients neither grow nor shrink along it and all
// products are done ahead of the time loop. Defaults are those of the source: H = 128, hyper 64, one layer. The
// source's output map is the learner's head. First weights are fan-in scaled, by sqrt 2 before a rectifier (ours).
//
// Shapes: inputs [T, B, .], state h [B, H], output h' [T, B, H].

#include <cmath>

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/concatenate.hpp>

namespace engram {

/// b_t and the new state from F(x), the gate's logit and the shifted state.
struct shuffle_cell {
    constexpr auto operator()(auto f, auto gate, auto shifted) const { return relu(f * logistic(gate) + shifted); }
};

struct srnn {
    using role = controller_role;

    struct settings {
        int hidden = 128;  // H, units
        int hyper = 64;    // width of the hidden layers of F
        int layers = 1;    // hidden layers of F
        void check() const {
            require(hidden > 1, "controller.hidden: expected at least two units to shift, got ", hidden);
            require(hyper > 0, "controller.hyper: expected a positive number of units, got ", hyper);
            require(layers >= 0, "controller.layers: expected zero or more hidden layers, got ", layers);
        }
    };
    struct weights {
        std::vector<linear> hyper;
        linear sum, gate;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, hidden));
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        s.check();
        const auto rectified = initial::fan_in<typename Backend::real>(std::sqrt(2.0));
        weights w;
        int before = inputs;
        for (int i = 0; i < s.layers; ++i, before = s.hyper)
            w.hyper.push_back(g.declare_linear(message("hyper.", i), before, s.hyper, rectified));
        w.sum = g.declare_linear("sum", before, s.hidden);
        w.gate = g.declare_linear("gate", inputs, s.hidden);
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.state("hidden", s.hidden)};
    }
    /// What was in mind before this step: h_{t-1}.
    template <class Var>
    static Var held(const state<Var>& s) {
        return s.hidden;
    }
    template <class Backend>
    static var<Backend> step(const settings&, const weights& w, const std::vector<var<Backend>>& inputs,
                             state<var<Backend>>& s) {
        std::vector<var<Backend>> x = inputs;
        for (std::size_t i = 0; i < w.hyper.size(); ++i)
            x = {map(message("hyper.", i, ".relu"), rectify{}, affine(message("hyper.", i), x, w.hyper[i]))};
        const auto f = affine("sum", x, w.sum), gate = affine("gate", inputs, w.gate);
        const int H = s.hidden.width;
        const auto shifted = concatenate<Backend>("shifted", {s.hidden.columns(H - 1, 1), s.hidden.columns(0, H - 1)});
        s.hidden = map("hidden", shuffle_cell{}, f, gate, shifted);
        return s.hidden;
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::srnn::settings, hidden, hyper, layers);

static_assert(engram::controller_policy<engram::srnn>);
