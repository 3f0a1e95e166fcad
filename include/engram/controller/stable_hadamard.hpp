#pragma once
// SPDX-License-Identifier: MIT

// Stable Hadamard memory, SHM (Le et al. 2025): a matrix that is multiplied, entry by entry, by what a step chooses.
//
//   u = norm(x),  k = relu(u W_k) and q = relu(u W_q), each divided by 1e-5 and its sum,  v = u W_v,  c = u W_c
//   C = 1 + tanh(theta c^T),  M' = cut(M * C + sigma(u w) v k^T),  h = (M' q + u W_s) W_o + b
//
// theta is a learnt row of a table of `rows`. The paper draws one at random at every step, so that no product of C
// grows; here the step of the episode chooses it, by multiples of the golden ratio: as even as a draw, and the learner
// finds the row that the actor had. With `rows` = 1 it is always the same, which is what two of the three published
// programs do. The third cuts M to [-bound, bound], which the paper does not: what learning makes of C is not 1 on
// average, and where episodes are long M, and with it the gradient, grows without an end (docs/results/popgym.md).
//
// Without the cut (`bound` = 0) a resettable linear recurrence (docs/decisions/0026): lift (C, sigma(u w) v k^T).
// Shapes: x [T, B, .], from inputs by a layer of its own, state M [B, N * N], output h [T, B, H].

#include <engram/controller/layered.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/learnt_row.hpp>
#include <engram/operations/outer.hpp>
#include <engram/operations/softmax.hpp>

#include <limits>

namespace engram {

/// Share of a number in a sum of which it is part.
struct share_of {
    constexpr auto operator()(auto x, auto sum) const { return x / (sum + 1e-5); }
};
struct calibrate_and_add {
    double bound;
    constexpr auto operator()(auto old, auto calibration, auto write, auto eta) const {
        return max(min(old * (1 + tanh(calibration)) + logistic(eta) * write, bound), -bound);
    }
};
/// The row of a table of `rows` for a place in [0, 1), and the next place.
struct golden_step {
    int rows;
    constexpr auto operator()(auto place) const {
        const auto next = place + 0.6180339887498949;
        return std::tuple{min(place * rows, rows - 0.5), select(next < 1, next, next - 1)};
    }
};

struct stable_hadamard_layer {
    struct settings {
        int hidden = 128;    // H, columns of the stream
        int layers = 1;      // one above the other
        int size = 32;       // N, rows and columns of M
        int rows = 128;      // of the table of theta
        double bound = 100;  // of what M holds, 0: none
        void check() const {
            internal::check_layers(hidden, layers);
            require(size > 0, "controller.size: expected at least one row, got ", size);
            require(rows > 0, "controller.rows: expected at least one row, got ", rows);
            require(bound >= 0, "controller.bound: expected 0 or a positive number, got ", bound);
        }
        double limit() const { return bound > 0 ? bound : std::numeric_limits<double>::infinity(); }
    };
    struct weights {
        layer_norm_weights norm;
        parameter look, through;  // [k, q, v, c, eta] and W_s, without a bias
        parameter theta;          // [rows, N]
        linear out;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, matrix), (Var, place));
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s) {
        using real = typename Backend::real;
        const double bound = std::sqrt(6.0 / (s.rows + s.size));
        return {declare_layer_norm(g, "norm", s.hidden),
                g.declare("look.weight", s.hidden, 4 * s.size + 1, initial::fan_in<real>()),
                g.declare("through.weight", s.hidden, s.size, initial::fan_in<real>()),
                g.declare("theta", s.rows, s.size,
                          [bound](std::span<real> values, int, int, philox& random) {
                              for (real& v : values)
                                  v = static_cast<real>(bound * (2 * static_cast<double>(random.uniform()) - 1));
                          }),
                g.declare_linear("out", s.size, s.hidden)};
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("matrix", s.size * s.size), g.own_state("place", 1)};
    }
    /// The recurrence alone: M' q [., N] of a row theta, c, v, k and q [., N] and the logit of eta [., 1]. The rows of
    /// `matrix` are those of k: it is M^T. It is cut to [-limit, limit].
    template <class Var>
    static Var recall(const Var& theta, const Var& c, const Var& v, const Var& k, const Var& q, const Var& eta,
                      double limit, Var& matrix) {
        matrix =
            map("matrix", calibrate_and_add{limit}, matrix, outer("calibration", c, theta), outer("write", k, v), eta);
        return read_matrices("read", matrix, q);
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const var<Backend>& x, state<var<Backend>>& now) {
        const int N = s.size;
        const auto u = layer_norm("norm", x, w.norm);
        const auto all = affine("look", u, linear{w.look, {}});
        const auto shown = map("shown", rectify{}, all.columns(0, 2 * N));
        const auto [k, q] = split_columns<2>(map("shares", share_of{}, shown, sum_columns("sums", shown, N).spread(N)));
        const auto [row, place] = map("place", golden_step{s.rows}, now.place);
        now.place = place;
        const auto theta = embed("theta", row, w.theta);
        const auto read = recall(theta, all.columns(3 * N, N), all.columns(2 * N, N), k, q, all.columns(4 * N, 1),
                                 s.limit(), now.matrix);
        const auto sum = map("sum", add{}, read, affine("through", u, linear{w.through, {}}));
        return affine("out", sum, w.out);
    }
};

struct stable_hadamard : layered<stable_hadamard_layer> {};

}  // namespace engram

ENGRAM_REFLECT(engram::stable_hadamard_layer::settings, hidden, layers, size, rows, bound);

static_assert(engram::controller_policy<engram::stable_hadamard>);
