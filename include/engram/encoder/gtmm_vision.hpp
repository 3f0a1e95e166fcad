#pragma once
// SPDX-License-Identifier: MIT

// The visual network of a generative temporal model, chosen by name (facts 4.7, errata G11, G13, G14):
//
//   inception    digits and characters, S x S x 1
//   two_pathway  3D frames, 32 x 32 x 3
//   mlp          ReLU layers of the widths `layers`, for tests and small machines; its decoder has them backwards
//
// Only the chosen one is declared and run. All take pixels in [0, 1] and see them as (-1, 1), unless `centre` is off.
// `frozen` makes batch normalisation use its running statistics: set it for the trace that generates.

#include <string>

#include <engram/core/choice.hpp>
#include <engram/encoder/inception.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/encoder/two_pathway.hpp>

namespace engram {

struct gtmm_vision {
    using role = encoder_role;

    struct settings {
        choice<"inception", "two_pathway", "mlp"> network = "inception";  // inception, two_pathway or mlp
        std::vector<int> layers{128};                                     // widths of the mlp
        bool frozen = false;                                              // batch normalisation by running statistics
        bool centre = true;                                               // pixels to [-1, 1]
        bool subtract_mean = false;                                       // each image loses its mean colour (ours)
        void check() const {
            if (network == "mlp") engram::mlp::settings{.layers = layers}.check();
        }
    };
    /// Those of the chosen network; the others are empty.
    struct weights {
        engram::mlp::weights mlp;
        engram::inception::weights inception;
        engram::two_pathway::weights two_pathway;
    };
    struct decoder_weights {
        engram::mlp::decoder_weights mlp;
        engram::inception::decoder_weights inception;
        engram::two_pathway::decoder_weights two_pathway;
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape image) {
        s.check();
        weights w;
        if (s.network == "mlp")
            w.mlp = mlp::declare(g, layered(s), image);
        else if (s.network == "inception")
            w.inception = inception::declare(g, convolved(s), image);
        else
            w.two_pathway = two_pathway::declare(g, paths(s), image);
        return w;
    }
    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& observation,
                               image_shape image) {
        if (s.network == "mlp") return mlp::encode(layered(s), w.mlp, observation, image);
        if (s.network == "inception") return inception::encode(convolved(s), w.inception, observation, image);
        return two_pathway::encode(paths(s), w.two_pathway, observation, image);
    }

    template <class Backend>
    static decoder_weights declare_decoder(graph<Backend>& g, const settings& s, image_shape image, int inputs) {
        s.check();
        decoder_weights w;
        if (s.network == "mlp")
            w.mlp = mlp::declare_decoder(g, mirrored(s, inputs), image, inputs);
        else if (s.network == "inception")
            w.inception = inception::declare_decoder(g, convolved(s), image, inputs);
        else
            w.two_pathway = two_pathway::declare_decoder(g, paths(s), image, inputs);
        return w;
    }
    /// Pixel logits [T, B, H * W * C].
    template <class Backend>
    static var<Backend> decode(const settings& s, const decoder_weights& w, const var<Backend>& code,
                               image_shape image) {
        if (s.network == "mlp") return mlp::decode(mirrored(s, code.width), w.mlp, code, image);
        if (s.network == "inception") return inception::decode(convolved(s), w.inception, code, image);
        return two_pathway::decode(paths(s), w.two_pathway, code, image);
    }

private:
    static mlp::settings layered(const settings& s) {
        return {.layers = s.layers, .centre = s.centre, .subtract_mean = s.subtract_mean};
    }
    static inception::settings convolved(const settings& s) {
        return {.frozen = s.frozen, .centre = s.centre, .subtract_mean = s.subtract_mean};
    }
    static two_pathway::settings paths(const settings& s) {
        return {.centre = s.centre, .subtract_mean = s.subtract_mean};
    }
    /// The decoder of an mlp begins at its last layer, which is the code here.
    static mlp::settings mirrored(const settings& s, int code) {
        mlp::settings m = layered(s);
        m.layers.push_back(code);
        return m;
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::gtmm_vision::settings, network, layers, frozen, centre, subtract_mean);

static_assert(engram::encoder_policy<engram::gtmm_vision> && engram::can_decode<engram::gtmm_vision>);
