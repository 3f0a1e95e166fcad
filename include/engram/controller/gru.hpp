#pragma once
// SPDX-License-Identifier: MIT

// Gated recurrent unit (Cho et al. 2014), in the form of cuDNN, PyTorch and Flax: the reset gate stands behind the
// product with h.
//
//   [r, z, n] = inputs W + b,  [r', z', n'] = h U + c
//   n'' = tanh(n + sigma(r + r') n'),  h' = (1 - sigma(z + z')) n'' + sigma(z + z') h
//
// The paper of 2014 resets ahead of the product, tanh(x W_n + (r h) U_n), which is another function. Columns of W and U
// are in the order r, z, n. Shapes: inputs [T, B, .], state h [B, H], output h' [T, B, H].

#include <vector>

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>

namespace engram {

struct gru_cell {
    constexpr auto operator()(auto r, auto z, auto n, auto r_h, auto z_h, auto n_h, auto h) const {
        const auto keep = logistic(z + z_h);
        return (1 - keep) * tanh(n + logistic(r + r_h) * n_h) + keep * h;
    }
};

struct gru {
    using role = controller_role;

    struct settings {
        int hidden = 256;  // H, units
        void check() const {
            require(hidden > 0, "controller.hidden: expected a positive number of units, got ", hidden);
        }
    };
    struct weights {
        linear input, recurrent;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, hidden));
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        return {g.declare_linear("input", inputs, 3 * s.hidden), g.declare_linear("recurrent", s.hidden, 3 * s.hidden)};
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
        const auto x = split_columns<3>(affine("input", inputs, w.input));
        const auto h = split_columns<3>(affine("recurrent", s.hidden, w.recurrent));
        s.hidden = map("hidden", gru_cell{}, x[0], x[1], x[2], h[0], h[1], h[2], s.hidden);
        return s.hidden;
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::gru::settings, hidden);

static_assert(engram::controller_policy<engram::gru>);
