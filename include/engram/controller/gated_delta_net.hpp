#pragma once
// SPDX-License-Identifier: MIT

// Gated DeltaNet (Yang et al. 2025), in layers. A head's matrix forgets at a rate, and what is written at a key is
// corrected by what stood there:
//
//   S^ = alpha S,  S' = S^ + k (beta (v - k^T S^))^T,  y = q^T S'
//
// for |k| = 1, |q| = 1 / sqrt(K), beta = sigma(x W_b) (twice that with `negative`, which lets an eigenvalue turn its
// sign) and alpha = exp(-exp(A) softplus(x W_a + b)). With |k| = 1 and beta < 2 no eigenvalue leaves (-1, 1]. A layer:
//
//   u = norm(x),  q, k, v = silu(convolution of four steps of u W),  q and k of unit length a head
//   x' = x + (norm_head(y) g silu(u W_g)) W_o
//
// norm and norm_head divide by the root of the mean square. At first A = ln of (0, 16) and b such that softplus(b) is
// log-uniform between the settings dt_low and dt_high. A resettable linear recurrence (docs/decisions/0026), whose lift
// (alpha (1 - beta k k^T), beta k v^T) is dense: a scan of it pays in chunks alone. Shapes: inputs [T, B, .], output
// [T, B, H]; a layer carries [B, heads * key * value] and little more.

#include <cmath>

#include <engram/controller/layered.hpp>
#include <engram/controller/short_convolution.hpp>
#include <engram/operations/normalise.hpp>
#include <engram/operations/recall_matrices.hpp>

namespace engram {

struct delta_gates {
    double most;  // beta stays below
    constexpr auto operator()(auto b, auto a, auto rate, auto bias) const {
        return std::tuple{most * logistic(b), exp(-exp(rate) * softplus(a + bias))};
    }
};
struct gain_and_gate {
    constexpr auto operator()(auto y, auto gain, auto z) const { return gain * y * (z * logistic(z)); }
};

struct gated_delta_net_layer {
    struct settings {
        int hidden = 64;        // H, columns of the stream
        int layers = 2;         // one above the other
        int heads = 2;          // each with a matrix of its own
        int key = 32;           // K, columns of a head's key and query
        int value = 64;         // V, columns of a head's value
        bool negative = false;  // beta up to 2
        double dt_low = 0.001;  // softplus(b) at first: not below
        double dt_high = 0.1;   // and not above
        void check() const {
            internal::check_layers(hidden, layers);
            require(heads > 0, "controller.heads: expected at least one head, got ", heads);
            require(key > 0, "controller.key: expected at least one column, got ", key);
            require(value > 0, "controller.value: expected at least one column, got ", value);
            require(dt_low > 0 && dt_low < dt_high, "controller.dt_low, controller.dt_high: expected 0 < low < high, ",
                    "got ", dt_low, " and ", dt_high);
        }
    };
    struct weights {
        parameter norm, gain;              // [1, H], [1, heads * V]
        parameter look, gates, gate, out;  // without a bias
        parameter rate, bias;              // A and b, [1, heads]
        short_convolution convolution;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, matrix), (Var, seen));
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s) {
        using real = typename Backend::real;
        const int K = s.heads * s.key, V = s.heads * s.value;
        weights w;
        w.norm = g.declare("norm", 1, s.hidden, initial::constant<real>(1));
        w.look = g.declare("look.weight", s.hidden, 2 * K + V, initial::fan_in<real>());
        w.convolution = short_convolution::declare(g, "convolution", 2 * K + V);
        w.gates = g.declare("gates.weight", s.hidden, 2 * s.heads, initial::fan_in<real>());
        w.rate = g.declare("rate", 1, s.heads, [](std::span<real> values, int, int, philox& random) {
            for (real& v : values)
                v = static_cast<real>(std::log(16 * std::max(1e-4, static_cast<double>(random.uniform()))));
        });
        w.bias = g.declare("bias", 1, s.heads, [s](std::span<real> values, int, int, philox& random) {
            for (real& v : values) {
                const double dt = s.dt_low * std::pow(s.dt_high / s.dt_low, static_cast<double>(random.uniform()));
                v = static_cast<real>(std::log(std::expm1(dt)));
            }
        });
        w.gate = g.declare("gate.weight", s.hidden, V, initial::fan_in<real>());
        w.gain = g.declare("gain", 1, V, initial::constant<real>(1));
        w.out = g.declare("out.weight", V, s.hidden, initial::fan_in<real>());
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("matrix", s.heads * s.key * s.value),
                short_convolution::begin(g, "seen", s.heads * (2 * s.key + s.value))};
    }
    /// The recurrence alone: y [., heads * V] of queries and keys [., heads * K], values [., heads * V], and beta and
    /// alpha [., heads].
    template <class Backend>
    static var<Backend> recall(int heads, const var<Backend>& q, const var<Backend>& k, const var<Backend>& v,
                               const var<Backend>& beta, const var<Backend>& alpha, state<var<Backend>>& now) {
        const auto found = recall_matrices("matrix", heads, true, now.matrix, q, k, v, beta, alpha);
        now.matrix = found.matrix;
        return found.read;
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const var<Backend>& x, state<var<Backend>>& now) {
        const int K = s.heads * s.key, V = s.heads * s.value;
        const auto u =
            map("normal", times{}, learnt_row("norm", x, w.norm), normalise("norm", x, s.hidden, false, 1e-6));
        const auto seen = w.convolution("convolution", affine("look", u, linear{w.look, {}}), now.seen);
        const double root = 1 / std::sqrt(static_cast<double>(s.key));
        const auto q = normalise("query", seen.columns(0, K), s.key, false, 1e-6, root * root);
        const auto k = normalise("key", seen.columns(K, K), s.key, false, 1e-6, root);
        const auto [b, a] = split_columns<2>(affine("gates", u, linear{w.gates, {}}));
        const auto [beta, alpha] = map("rates", delta_gates{s.negative ? 2.0 : 1.0}, b, a,
                                       learnt_row("rate", x, w.rate), learnt_row("bias", x, w.bias));
        const auto y =
            normalise("head", recall(s.heads, q, k, seen.columns(2 * K, V), beta, alpha, now), s.value, false, 1e-6);
        const auto out =
            map("out", gain_and_gate{}, y, learnt_row("gain", x, w.gain), affine("gate", u, linear{w.gate, {}}));
        return map("stream", add{}, x, affine("out", out, linear{w.out, {}}));
    }
};

struct gated_delta_net : layered<gated_delta_net_layer> {};

}  // namespace engram

ENGRAM_REFLECT(engram::gated_delta_net_layer::settings, hidden, layers, heads, key, value, negative, dt_low, dt_high);

static_assert(engram::controller_policy<engram::gated_delta_net>);
