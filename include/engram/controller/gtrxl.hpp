#pragma once
// SPDX-License-Identifier: MIT

// GTrXL, the gated Transformer-XL (Parisotto et al. 2020), step by step: attention to the last L steps of an episode,
// this one included, and gates where a Transformer adds.
//
//   y = relu(W_o attention(norm(e))),  a = gate(e, y),  e' = gate(a, relu(W_2 relu(W_1 norm(a))))
//   gate(x, y) = (1 - z) x + z tanh(y W_g + (r x) U_g),  r = sigma(y W_r + x U_r),  z = sigma(y W_z + x U_z - bias)
//
// A layer remembers keys and values of the steps before, as they were computed then; within an unroll gradients reach
// them, and none goes beyond it, which is the recurrence of segments. Positions are rotary: q and k are turned by the
// step of the episode, so that a score knows how long ago a key was written (ours; the paper has relative positions of
// another kind), at frequencies that are learnt. With a bias above zero a layer begins near the identity.
//
// It is no linear recurrence. Unlike controller/transformer.hpp it acts, and sees beyond its unroll; for that a layer
// carries [B, 2 L H] and little more, which the host has twice and a device at every step of an unroll. Shapes: inputs
// [T, B, .], output [T, B, H].

#include <cmath>

#include <engram/controller/layered.hpp>
#include <engram/core/circular.hpp>
#include <engram/operations/attend_window.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/learnt_row.hpp>

namespace engram {

/// Cosine and sine of the step times a frequency.
struct angle_of_step {
    constexpr auto operator()(auto frequency, auto step) const {
        const auto angle = frequency * step;
        return std::tuple{cosine(angle), sine(angle)};
    }
};
/// A pair of columns turned by an angle.
struct turn_pair {
    constexpr auto operator()(auto a, auto b, auto c, auto s) const { return std::tuple{a * c - b * s, a * s + b * c}; }
};
/// The step of the episode, and the next one.
struct count_step {
    constexpr auto operator()(auto step) const { return std::tuple{step, step + 1}; }
};
struct reset_columns {
    constexpr auto operator()(auto y, auto x_gate, auto x) const { return logistic(y + x_gate) * x; }
};
struct gate_columns {
    double bias;
    constexpr auto operator()(auto z_y, auto z_x, auto n_y, auto n_x, auto x) const {
        const auto z = logistic(z_y + z_x - bias);
        return (1 - z) * x + z * tanh(n_y + n_x);
    }
};

/// The gate in place of a sum, and its weights: [r, z, n] of y and [r, z] of x without a bias, n of what r leaves of x.
struct stream_gate {
    parameter of_y, of_x, of_reset;

    template <class Backend>
    static stream_gate declare(graph<Backend>& g, const std::string& name, int H) {
        const auto first = initial::fan_in<typename Backend::real>();
        return {g.declare(name + ".y.weight", H, 3 * H, first), g.declare(name + ".x.weight", H, 2 * H, first),
                g.declare(name + ".reset.weight", H, H, first)};
    }
    template <class Backend>
    var<Backend> operator()(const std::string& name, double bias, const var<Backend>& x, const var<Backend>& y) const {
        const auto [r, z, n] = split_columns<3>(affine(name + ".y", y, linear{of_y, {}}));
        const auto [r_x, z_x] = split_columns<2>(affine(name + ".x", x, linear{of_x, {}}));
        const auto left = map(name + ".left", reset_columns{}, r, r_x, x);
        return map(name, gate_columns{bias}, z, z_x, n, affine(name + ".reset", left, linear{of_reset, {}}), x);
    }
};

struct gtrxl_layer {
    struct settings {
        int hidden = 64;       // H, columns of the stream
        int layers = 2;        // of attention and two linear maps
        int heads = 4;         // of attention, that share the columns
        int inner = 256;       // columns between W_1 and W_2
        int window = 64;       // L, steps that are seen, the present one included
        double gate_bias = 2;  // above zero: a layer begins near the identity
        void check() const {
            internal::check_layers(hidden, layers);
            require(heads > 0 && hidden % (2 * heads) == 0, "controller.heads: ", hidden,
                    " columns (controller.hidden) do not divide into ", heads, " heads of pairs");
            require(inner > 0, "controller.inner: expected a positive width, got ", inner);
            require(window > 0, "controller.window: expected at least one step, got ", window);
        }
    };
    struct weights {
        layer_norm_weights before_attention, before_inner;
        linear look, combine, widen, narrow;
        parameter frequency;  // [1, H / 2], at first 10^-4 to the power of 0 .. 1
        stream_gate attended, layered;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, window), (Var, step));
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s) {
        using real = typename Backend::real;
        weights w;
        w.before_attention = declare_layer_norm(g, "attention.norm", s.hidden);
        w.look = g.declare_linear("attention.look", s.hidden, 3 * s.hidden);
        w.frequency = g.declare("attention.frequency", 1, s.hidden / 2,
                                [pairs = s.hidden / 2 / s.heads](std::span<real> values, int, int, philox&) {
                                    for (std::size_t i = 0; i < values.size(); ++i) {
                                        const int j = static_cast<int>(i) % pairs;
                                        values[i] = static_cast<real>(std::pow(1e-4, double(j) / pairs));
                                    }
                                });
        w.combine = g.declare_linear("attention.combine", s.hidden, s.hidden);
        w.attended = stream_gate::declare(g, "attended", s.hidden);
        w.before_inner = declare_layer_norm(g, "inner.norm", s.hidden);
        w.widen = g.declare_linear("inner.widen", s.hidden, s.inner, initial::fan_in<real>(std::sqrt(2.0)));
        w.narrow = g.declare_linear("inner.narrow", s.inner, s.hidden);
        w.layered = stream_gate::declare(g, "layered", s.hidden);
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("window", 2 * s.hidden * s.window), g.own_state("step", 1)};
    }

    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const var<Backend>& x, state<var<Backend>>& now) {
        const int half = s.hidden / 2;
        const auto [q, k, v] =
            split_columns<3>(affine("attention.look", layer_norm("attention.norm", x, w.before_attention), w.look));
        const auto [step, next] = map("step", count_step{}, now.step);
        now.step = next;
        const auto [cosines, sines] = map("angle", angle_of_step{}, learnt_row("frequency", x, w.frequency), step);
        const auto turned = [&, c = cosines, d = sines](const char* name, const var<Backend>& of) {
            const auto [a, b] = map(name, turn_pair{}, of.columns(0, half), of.columns(half, half), c, d);
            return std::array{a, b};
        };
        const auto found = attend_window("attention.window", s.heads, s.window, now.window, turned("turned_query", q),
                                         turned("turned_key", k), v, step);
        now.window = found.ring;
        const auto seen = affine("attention.combine", found.seen, w.combine);
        const auto a = w.attended("attended", s.gate_bias, x, map("attention.relu", rectify{}, seen));
        const auto wide = affine("inner.widen", layer_norm("inner.norm", a, w.before_inner), w.widen);
        const auto y = affine("inner.narrow", map("inner.relu", rectify{}, wide), w.narrow);
        return w.layered("layered", s.gate_bias, a, map("inner.out", rectify{}, y));
    }
};

struct gtrxl : layered<gtrxl_layer> {};

}  // namespace engram

ENGRAM_REFLECT(engram::gtrxl_layer::settings, hidden, layers, heads, inner, window, gate_bias);

static_assert(engram::controller_policy<engram::gtrxl>);
