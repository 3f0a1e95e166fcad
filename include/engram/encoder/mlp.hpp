#pragma once
// SPDX-License-Identifier: MIT

// Multi-layer perceptron encoder: x = relu layers of the flattened observation; its decoder is the same backwards. With
// `normalise` the first layer's outputs have mean 0 and variance 1 over the layer in place of a ReLU (layer
// normalisation without gain and bias, as the networks of POPGym's authors begin); the decoder has no such layer.

#include <engram/encoder/layers.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/normalise.hpp>

namespace engram {

struct mlp {
    using role = encoder_role;

    struct settings {
        std::vector<int> layers{128, 128};  // widths; the last one is X
        bool centre = true;                 // pixels to [-1, 1]
        bool subtract_mean = false;         // each image loses its mean colour (ours)
        bool normalise = false;             // the first layer: mean 0 and variance 1 instead of a ReLU
        void check() const {
            require(!layers.empty(), "encoder.layers: expected at least one width");
            for (const int n : layers) require(n > 0, "encoder.layers: expected positive widths, got ", n);
        }
    };
    struct weights {
        std::vector<linear> layers;
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape size) {
        return {declare_layers(g, "layers", size.size(), s.layers)};
    }
    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& observation,
                               image_shape image) {
        const auto pixels = prepare_pixels(observation, image, s);
        if (!s.normalise) return apply_layers("layers", pixels, w.layers);
        const auto first = affine("layers.0", pixels, w.layers.front());
        return apply_layers("layers", normalise("layers.0.normalise", first, first.width), w.layers, 1);
    }

    struct decoder_weights {
        std::vector<linear> layers;
        linear pixels;
    };
    template <class Backend>
    static decoder_weights declare_decoder(graph<Backend>& g, const settings& s, image_shape size, int inputs) {
        const std::vector<int> widths(s.layers.rbegin() + 1, s.layers.rend());
        return {declare_layers(g, "layers", inputs, widths),
                g.declare_linear("pixels", widths.empty() ? inputs : widths.back(), size.size())};
    }
    /// Pixel logits [T, B, pixels].
    template <class Backend>
    static var<Backend> decode(const settings&, const decoder_weights& w, const var<Backend>& h, image_shape) {
        return affine("pixels", apply_layers("layers", h, w.layers), w.pixels);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::mlp::settings, layers, centre, subtract_mean, normalise);

static_assert(engram::encoder_policy<engram::mlp> && engram::can_decode<engram::mlp>);
