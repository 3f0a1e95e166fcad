#pragma once
// SPDX-License-Identifier: MIT

// Token embedding (facts 3.4): x = row `token` of a table [tokens, width]; observations that are numbers pass an MLP of
// ReLU layers of that width instead. Rows of the table start as standard normal numbers.
//
// Shapes: observation [T, B, 1] (an index) or [T, B, pixels], x [T, B, width].

#include <cmath>
#include <vector>

#include <engram/encoder/layers.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/pick.hpp>

namespace engram {

struct token_embedding {
    using role = encoder_role;

    struct settings {
        int width = 128;     // X, columns of x
        int mlp_layers = 2;  // of that width, where observations are numbers
        void check() const {
            require(width > 0, "encoder.width: expected a positive width, got ", width);
            require(mlp_layers > 0, "encoder.mlp_layers: expected at least one layer, got ", mlp_layers);
        }
    };
    struct weights {
        parameter table;
        std::vector<linear> layers;
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape size) {
        s.check();
        weights w;
        if (size.tokens > 0)
            w.table = g.declare("table", size.tokens, s.width,
                                initial::fan_in<typename Backend::real>(std::sqrt(double(size.tokens))));
        else
            w.layers = declare_layers(g, "layers", size.size(),
                                      std::vector<int>(static_cast<std::size_t>(s.mlp_layers), s.width));
        return w;
    }
    template <class Backend>
    static var<Backend> encode(const settings&, const weights& w, const var<Backend>& observation, image_shape size) {
        return size.tokens > 0 ? embed("embedding", observation, w.table)
                               : apply_layers("layers", observation, w.layers);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::token_embedding::settings, width, mlp_layers);

static_assert(engram::encoder_policy<engram::token_embedding>);
