#pragma once
// SPDX-License-Identifier: MIT

// LSTM controller (facts 1.1 step 4).
//
//   [i, f, g, o] = [inputs, h] W + b,  c' = sigma(f + 1) c + sigma(i) tanh(g),  h' = sigma(o) tanh(c')
//
// Shapes: inputs [T, B, .], state c and h [B, H], output h' [T, B, H]. The 1 keeps a new cell from forgetting.

#include <tuple>
#include <vector>

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>

namespace engram {

/// The cell: once for value, derivative and every device.
struct lstm_cell {
    constexpr auto operator()(auto i, auto f, auto g, auto o, auto c) const {
        auto next = logistic(f + 1) * c + logistic(i) * tanh(g);
        return std::tuple{next, logistic(o) * tanh(next)};
    }
};

struct lstm {
    using role = controller_role;

    struct settings {
        int hidden = 512;  // H, units
        void check() const {
            require(hidden > 0, "controller.hidden: expected a positive number of units, got ", hidden);
        }
    };
    struct weights {
        linear gates;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, cell), (Var, hidden));
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        return {g.declare_linear("gates", inputs + s.hidden, 4 * s.hidden)};
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("cell", s.hidden), g.state("hidden", s.hidden)};
    }
    /// What was in mind before this step: h_{t-1}.
    template <class Var>
    static Var held(const state<Var>& s) {
        return s.hidden;
    }
    template <class Backend>
    static var<Backend> step(const settings&, const weights& w, std::vector<var<Backend>> inputs,
                             state<var<Backend>>& s) {
        inputs.push_back(s.hidden);
        const auto z = split_columns<4>(affine("gates", inputs, w.gates));
        const auto [cell, hidden] = map("cell", lstm_cell{}, z[0], z[1], z[2], z[3], s.cell);
        s = {cell, hidden};
        return hidden;
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::lstm::settings, hidden);

static_assert(engram::controller_policy<engram::lstm>);
