#pragma once
// SPDX-License-Identifier: MIT

// What stands behind a diagonal recurrence in its layer (LRU, S5): the real part of what is read, bent and gated.
//
//   y = Re(C s) + D * u,  out = x + (f W_1 + b_1) * sigma(f W_2 + b_2),  f = gelu(y)
//
// for the layer's input x and the recurrence's input u. A complex state s is two variables of N columns, and C is a
// weight [2N, H] whose upper half multiplies Re s and whose lower half, -Im C, multiplies Im s.

#include <engram/controller/transformer.hpp>
#include <engram/operations/learnt_row.hpp>

namespace engram {

struct skip_and_bend {
    double pairs;  // 2 where a state stands for itself and its conjugate, else 1
    constexpr auto operator()(auto read, auto through, auto u) const { return gelu{}(pairs * read + through * u); }
};
struct gate_and_add {
    constexpr auto operator()(auto y, auto gate, auto x) const { return x + y * logistic(gate); }
};

struct gated_output {
    parameter read, through;  // C [2N, H] without a bias, D [1, H]
    linear gate;              // [W_1, W_2]

    /// Normal numbers: C of variance 1 / N a part, D of variance 1.
    template <class Backend>
    static gated_output declare(graph<Backend>& g, int states, int hidden) {
        using real = typename Backend::real;
        return {g.declare("read.weight", 2 * states, hidden, initial::fan_in<real>(std::sqrt(2.0))),
                g.declare("through", 1, hidden, initial::fan_in<real>()), g.declare_linear("gate", hidden, 2 * hidden)};
    }
    template <class Backend>
    var<Backend> operator()(const var<Backend>& x, const var<Backend>& u, const var<Backend>& re,
                            const var<Backend>& im, double pairs) const {
        const auto y = affine("read", {re, im}, linear{read, {}});
        const auto bent = map("bent", skip_and_bend{pairs}, y, learnt_row("through", x, through), u);
        const auto [out, open] = split_columns<2>(affine("gate", bent, gate));
        return map("out", gate_and_add{}, out, open, x);
    }
};

}  // namespace engram
