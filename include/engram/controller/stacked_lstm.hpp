#pragma once
// SPDX-License-Identifier: MIT

// LSTM of several layers with dropout between them and a forget bias of one's choice (facts 3.4): the memory of MemUP
// and its recurrent baseline.
//
//   layer n:  [i, f, g, o] = [inputs_n, h_n] W_n + b_n,  c' = sigma(f) c + sigma(i) tanh(g),  h' = sigma(o) tanh(c')
//   inputs_0 = inputs,  inputs_n = dropout(h'_{n-1});  the output is h' of the last layer
//
// `forget_bias` is where b_n starts for the gate f: with 3 a new memory keeps what it saw over the gap before its first
// prediction, with 0 it may never begin to learn. Shapes: state c, h [B, H] a layer, output [T, B, H].

#include <vector>

#include <engram/controller/lstm.hpp>
#include <engram/operations/dropout.hpp>

namespace engram {

struct stacked_lstm {
    using role = controller_role;

    struct settings {
        int hidden = 128;        // H, units of a layer
        int layers = 1;          // one above the other
        double forget_bias = 1;  // where b starts for the gate f
        double dropout = 0;      // between layers
        void check() const {
            require(hidden > 0, "controller.hidden: expected a positive number of units, got ", hidden);
            require(layers > 0, "controller.layers: expected at least one layer, got ", layers);
            require(dropout >= 0 && dropout < 1, "controller.dropout: expected a number in [0, 1), got ", dropout);
        }
    };
    struct weights {
        std::vector<linear> gates;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (std::vector<lstm::state<Var>>, layers));
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        using real = typename Backend::real;
        s.check();
        // The cell adds 1 of its own.
        const auto bias = [H = s.hidden, by = s.forget_bias - 1](std::span<real> values, int, int, philox&) {
            for (int i = 0; i < 4 * H; ++i)
                values[static_cast<std::size_t>(i)] = i >= H && i < 2 * H ? static_cast<real>(by) : real(0);
        };
        weights w;
        for (int n = 0; n < s.layers; ++n)
            w.gates.push_back(g.declare_linear(message("gates.", n), (n == 0 ? inputs : s.hidden) + s.hidden,
                                               4 * s.hidden, initial::fan_in<real>(), bias));
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        state<var<Backend>> all;
        for (int n = 0; n < s.layers; ++n)
            all.layers.push_back(
                {g.own_state(message("cell.", n), s.hidden), g.state(message("hidden.", n), s.hidden)});
        return all;
    }
    /// What was in mind before this step: h_{t-1} of the last layer.
    template <class Var>
    static Var held(const state<Var>& s) {
        return s.layers.back().hidden;
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, std::vector<var<Backend>> inputs,
                             state<var<Backend>>& all) {
        for (std::size_t n = 0; n < w.gates.size(); ++n) {
            auto& now = all.layers[n];
            inputs.push_back(now.hidden);
            const auto z = split_columns<4>(affine(message("gates.", n), inputs, w.gates[n]));
            const auto [cell, hidden] = map(message("cell.", n), lstm_cell{}, z[0], z[1], z[2], z[3], now.cell);
            now = {cell, hidden};
            const bool last = n + 1 == w.gates.size();
            inputs = {last ? hidden : dropout(message("dropout.", n), hidden, s.dropout)};
        }
        return inputs[0];
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::stacked_lstm::settings, hidden, layers, forget_bias, dropout);

static_assert(engram::controller_policy<engram::stacked_lstm>);
