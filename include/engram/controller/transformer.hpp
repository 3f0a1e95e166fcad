#pragma once
// SPDX-License-Identifier: MIT

// Causal Transformer over the unroll, a baseline of MemUP (facts 3.6 names no source: all of it is ours).
//
//   x = inputs W + b (+ position_n if learned);  per layer  x += W_o attention(norm(x)),  x += W_2 f(norm(x) W_1)
//   h = norm(x)
//
// Pre-norm; attention is causal, within the episode of a step and within the unroll (operations/attention.hpp),
// positions are rotary or a learned table, both counted from the episode's first step in the unroll; f is GELU (its
// tanh form) or the rectifier. W_o and W_2 start smaller by sqrt(2 layers), so that a deep sum starts as wide as a
// shallow one.
//
// It is not recurrent: `sequence` takes all steps at once, nothing is carried, and memory grows with T. Truncation is
// the window of the unroll: a step sees the earlier steps of its own unroll only. docs/decisions/0008.
//
// Shapes: inputs [T, B, .], reset [T, B, 1], output h [T, B, hidden].

#include <cmath>
#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/attention.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/pick.hpp>

namespace engram {

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
struct gelu {
    constexpr auto operator()(auto x) const {
        return 0.5 * x * (tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))) + 1);
    }
};

struct transformer {
    using role = controller_role;

    struct settings {
        int hidden = 128;                                  // H, columns of the stream
        int layers = 2;                                    // of attention and f
        int heads = 4;                                     // of attention, that share the columns
        int inner = 512;                                   // width between W_1 and W_2
        choice<"rotary", "learned"> positions = "rotary";  // or learned
        choice<"gelu", "relu"> activation = "gelu";        // or relu
        int longest = 5120;                                // learned positions there are
        void check() const {
            require(hidden > 0, "controller.hidden: expected a positive width, got ", hidden);
            require(layers > 0, "controller.layers: expected at least one layer, got ", layers);
            require(heads > 0 && hidden % heads == 0, "controller.heads: ", hidden,
                    " columns (controller.hidden) do not divide into ", heads, " heads");
            require(inner > 0, "controller.inner: expected a positive width, got ", inner);
            require(positions != "rotary" || hidden / heads % 2 == 0,
                    "controller.heads: rotary positions turn pairs of", " columns, a head of ", hidden / heads,
                    " does not make pairs");
            require(longest > 0, "controller.longest: expected a positive number of positions, got ", longest);
        }
    };
    struct layer {
        layer_norm_weights before_attention, before_inner;
        linear look, combine, widen, narrow;
    };
    struct weights {
        linear input;
        parameter positions;
        std::vector<layer> layers;
        layer_norm_weights last;
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        using real = typename Backend::real;
        s.check();
        weights w;
        w.input = g.declare_linear("input", inputs, s.hidden);
        if (s.positions == "learned")
            w.positions = g.declare("positions", s.longest, s.hidden, initial::fan_in<real>());
        const auto residual = initial::fan_in<real>(1 / std::sqrt(2.0 * s.layers));
        for (int i = 0; i < s.layers; ++i) {
            const auto scope = g.scope(message("layer.", i));
            w.layers.push_back({declare_layer_norm(g, "attention.norm", s.hidden),
                                declare_layer_norm(g, "inner.norm", s.hidden),
                                g.declare_linear("attention.look", s.hidden, 3 * s.hidden),
                                g.declare_linear("attention.combine", s.hidden, s.hidden, residual),
                                g.declare_linear("inner.widen", s.hidden, s.inner),
                                g.declare_linear("inner.narrow", s.inner, s.hidden, residual)});
        }
        w.last = declare_layer_norm(g, "norm", s.hidden);
        return w;
    }

    /// All steps at once: h [T, B, hidden] from inputs [T, B, .] and reset [T, B, 1].
    template <class Backend>
    static var<Backend> sequence(const settings& s, const weights& w, const std::vector<var<Backend>>& inputs,
                                 const var<Backend>& reset) {
        graph<Backend>& g = *reset.owner;
        const attention_settings attend{.heads = s.heads, .rotary = s.positions == "rotary"};
        var<Backend> x = affine("input", inputs, w.input);
        if (s.positions == "learned")
            x = map("placed", add{}, x,
                    embed("position", episode_step("position.index", reset, s.longest), w.positions));
        for (std::size_t i = 0; i < w.layers.size(); ++i) {
            const auto scope = g.scope(message("layer.", i));
            const layer& l = w.layers[i];
            const auto [q, k, v] =
                split_columns<3>(affine("attention.look", layer_norm("attention.norm", x, l.before_attention), l.look));
            const auto seen = attention("attention", q, k, v, reset, attend);
            x = map("attended", add{}, x, affine("attention.combine", seen, l.combine));
            const auto z = affine("inner.widen", layer_norm("inner.norm", x, l.before_inner), l.widen);
            const auto bent = s.activation == "gelu" ? map("inner.gelu", gelu{}, z) : map("inner.relu", rectify{}, z);
            x = map("layered", add{}, x, affine("inner.narrow", bent, l.narrow));
        }
        return layer_norm("norm", x, w.last);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::transformer::settings, hidden, layers, heads, inner, positions, activation, longest);

static_assert(engram::controller_policy<engram::transformer>);
