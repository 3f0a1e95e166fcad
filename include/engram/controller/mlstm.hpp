#pragma once
// SPDX-License-Identifier: MIT

// mLSTM, the matrix memory of xLSTM (Beck et al. 2024), in the blocks of its authors. For a head with key k, query q
// and value v, gates i and f (numbers):
//
//   m' = max(log sigma(f) + m, i),  F = exp(log sigma(f) + m - m'),  I = exp(i - m') / sqrt(K)
//   C' = F C + I k v^T,  n' = F n + I k,  h = q^T C' / max(|q . n'|, exp(-m'))
//
// m keeps the exponentials small and leaves h as it is; it begins with 0, and exp(-m') is cut at exp(80). A block:
//
//   [a, z] = norm(x) W_up,  c = silu(convolution of four steps of a),  q, k = c W, c W,  v = a W,  [i, f] = [q, k, v] W
//   x' = x + ((norm_head(h) g + skip c) silu(z)) W_down
//
// With as many columns of keys as of values it is theirs, but that q, k and v come of whole products and not of blocks
// of four columns. A resettable linear recurrence (docs/decisions/0026): lift (I k v^T, I k, log sigma(f), i). Shapes:
// inputs [T, B, .], output [T, B, H]; a layer carries [B, heads * key * value] and little more.

#include <cmath>

#include <engram/controller/layered.hpp>
#include <engram/controller/short_convolution.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/normalise.hpp>
#include <engram/operations/recall_matrices.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

struct mlstm_gates {
    double root;  // 1 / sqrt(K)
    constexpr auto operator()(auto i, auto f, auto m) const {
        const auto kept = m - softplus(-f);
        const auto top = max(kept, i);
        return std::tuple{top, exp(kept - top), root * exp(i - top)};
    }
};
struct keep_and_add {
    constexpr auto operator()(auto keep, auto old, auto take, auto x) const { return keep * old + take * x; }
};
struct mlstm_divide {
    constexpr auto operator()(auto read, auto norm, auto m) const { return read / max(abs(norm), exp(min(-m, 80))); }
};
struct mlstm_out {
    constexpr auto operator()(auto h, auto gain, auto skip, auto c, auto z) const {
        return (gain * h + skip * c) * (z * logistic(z));
    }
};

struct mlstm_layer {
    struct settings {
        int hidden = 64;         // H, columns of the stream
        int layers = 2;          // blocks, one above the other
        int heads = 4;           // each with a matrix of its own
        int key = 32;            // K, columns of a head's key and query; of its value: inner / heads
        int inner = 128;         // columns between W_up and W_down, of all heads
        double forget_low = 3;   // bias of f at first: of the first head
        double forget_high = 6;  // and of the last
        void check() const {
            internal::check_layers(hidden, layers);
            require(heads > 0 && inner > 0 && inner % heads == 0, "controller.heads: ", inner,
                    " columns (controller.inner) do not divide into ", heads, " heads");
            require(key > 0, "controller.key: expected at least one column, got ", key);
        }
    };
    struct weights {
        layer_norm_weights norm;
        linear up, look, value, gates, down;
        short_convolution convolution;
        parameter gain, skip;  // [1, inner]
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, matrix), (Var, norm), (Var, scale), (Var, seen));
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s) {
        using real = typename Backend::real;
        const auto narrow = initial::fan_in<real>(std::sqrt(0.4));
        const int K = s.heads * s.key;
        weights w;
        w.norm = declare_layer_norm(g, "norm", s.hidden);
        w.up = g.declare_linear("up", s.hidden, 2 * s.inner, narrow);
        w.convolution = short_convolution::declare(g, "convolution", s.inner);
        w.look = g.declare_linear("look", s.inner, 2 * K, narrow);
        w.value = g.declare_linear("value", s.inner, s.inner, narrow);
        w.gates = g.declare_linear("gates", 2 * K + s.inner, 2 * s.heads, initial::zero<real>(),
                                   [s](std::span<real> values, int, int, philox& random) {
                                       for (std::size_t h = 0, H = values.size() / 2; h < H; ++h) {
                                           const double at = H > 1 ? static_cast<double>(h) / double(H - 1) : 0;
                                           values[h] = static_cast<real>(0.1 * double(random.normal()));
                                           values[H + h] =
                                               static_cast<real>(s.forget_low + at * (s.forget_high - s.forget_low));
                                       }
                                   });
        w.down = g.declare_linear(
            "down", s.inner, s.hidden,
            initial::fan_in<real>(2.0 / s.layers * std::sqrt(static_cast<double>(s.inner) / s.hidden)));
        w.gain = g.declare("gain", 1, s.inner, initial::constant<real>(1));
        w.skip = g.declare("skip", 1, s.inner, initial::constant<real>(1));
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.own_state("matrix", s.key * s.inner), g.own_state("norm", s.heads * s.key),
                g.own_state("scale", s.heads), short_convolution::begin(g, "seen", s.inner)};
    }
    /// The recurrence alone: h [., V] of queries and keys [., heads * K], values [., V] and gates [., heads].
    template <class Backend>
    static var<Backend> recall(int heads, const var<Backend>& q, const var<Backend>& k, const var<Backend>& v,
                               const var<Backend>& i, const var<Backend>& f, state<var<Backend>>& now) {
        const int K = k.width / heads, V = v.width / heads;
        const auto [scale, keep, take] =
            map("scale", mlstm_gates{1 / std::sqrt(static_cast<double>(K))}, i, f, now.scale);
        now.scale = scale;
        const auto found = recall_matrices("matrix", heads, false, now.matrix, q, k, v, take, keep);
        now.matrix = found.matrix;
        now.norm = map("norm", keep_and_add{}, keep.spread(K), now.norm, take.spread(K), k);
        const auto size = sum_columns("size", map("overlap", times{}, now.norm, q), K);
        return map("recalled", mlstm_divide{}, found.read, size.spread(V), scale.spread(V));
    }
    template <class Backend>
    static var<Backend> step(const settings& s, const weights& w, const var<Backend>& x, state<var<Backend>>& now) {
        const auto [a, z] = split_columns<2>(affine("up", layer_norm("norm", x, w.norm), w.up));
        const auto c = w.convolution("convolution", a, now.seen);
        const auto [q, k] = split_columns<2>(affine("look", c, w.look));
        const auto v = affine("value", a, w.value);
        const auto [i, f] = split_columns<2>(affine("gates", {q, k, v}, w.gates));
        const auto h = normalise("normal", recall(s.heads, q, k, v, i, f, now), s.inner / s.heads);
        const auto out = map("out", mlstm_out{}, h, learnt_row("gain", x, w.gain), learnt_row("skip", x, w.skip), c, z);
        return map("stream", add{}, x, affine("down", out, w.down));
    }
};

struct mlstm : layered<mlstm_layer> {};

}  // namespace engram

ENGRAM_REFLECT(engram::mlstm_layer::settings, hidden, layers, heads, key, inner, forget_low, forget_high);

static_assert(engram::controller_policy<engram::mlstm>);
