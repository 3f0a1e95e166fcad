#pragma once
// SPDX-License-Identifier: MIT

// layered<Layer>: a controller of equal layers, one above the other, for recurrences that no layer feeds back: what a
// layer carries depends on its input alone, so history reaches a gate only from the layer below.
//
//   x_0 = inputs W + b,  x_n = Layer(x_{n-1}, its state),  h = x_L
//
// A Layer has settings (with `hidden`, the width H of x, and `layers`), weights and state, and three functions of them:
// declare(g, s), begin(g, s) and step(s, w, x [., H], state) -> [., H]. It adds x itself, where it does.

#include <vector>

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>

namespace engram {

template <class Layer>
struct layered {
    using role = controller_role;
    using settings = typename Layer::settings;

    struct weights {
        linear input;
        std::vector<typename Layer::weights> layers;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (std::vector<typename Layer::template state<Var>>, layers), (Var, hidden));
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        s.check();
        weights w;
        w.input = g.declare_linear("input", inputs, s.hidden);
        for (int n = 0; n < s.layers; ++n) {
            const auto scope = g.scope(message("layer.", n));
            w.layers.push_back(Layer::declare(g, s));
        }
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        state<var<Backend>> all;
        for (int n = 0; n < s.layers; ++n) {
            const auto scope = g.scope(message("layer.", n));
            all.layers.push_back(Layer::begin(g, s));
        }
        all.hidden = g.state("hidden", s.hidden);
        return all;
    }
    /// What came out one step before: h_{t-1}, which no layer reads.
    template <class Var>
    static Var held(const state<Var>& s) {
        return s.hidden;
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const std::vector<var<Backend>>& inputs,
                             state<var<Backend>>& all) {
        var<Backend> x = affine("input", inputs, w.input);
        for (std::size_t n = 0; n < w.layers.size(); ++n) {
            const auto scope = x.owner->scope(message("layer.", n));
            x = Layer::step(s, w.layers[n], x, all.layers[n]);
        }
        return all.hidden = x;
    }
};

namespace internal {

/// What settings of layers have in common.
inline void check_layers(int hidden, int layers) {
    require(hidden > 0, "controller.hidden: expected a positive width, got ", hidden);
    require(layers > 0, "controller.layers: expected at least one layer, got ", layers);
}

}  // namespace internal
}  // namespace engram
