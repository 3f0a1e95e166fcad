#pragma once
// SPDX-License-Identifier: MIT

// A small convolutional encoder: conv 8x8 stride 4 to 16, conv 4x4 stride 2 to 32, relu after each, linear to `output`,
// relu (the shallow network of IMPALA's first experiments). For images of at least 8 x 8.
//
// Shapes: observation [T, B, H * W * C], x [T, B, output].

#include <engram/encoder/layers.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/convolution.hpp>

namespace engram {

struct small_conv {
    using role = encoder_role;

    struct settings {
        std::vector<int> channels{16, 32};  // of each convolution
        std::vector<int> kernels{8, 4};     // sides, in pixels
        std::vector<int> strides{4, 2};     // in pixels
        int output = 256;                   // X, columns of x
        bool centre = false;                // pixels to [-1, 1] instead of [0, 1]
        bool subtract_mean = false;         // each image loses its mean colour (ours)
        void check() const {
            require(!channels.empty() && channels.size() == kernels.size() && channels.size() == strides.size(),
                    "encoder: channels, kernels and strides need one number a layer each, got ", channels.size(), ", ",
                    kernels.size(), " and ", strides.size());
            for (const auto& [name, list] :
                 {std::pair{"channels", &channels}, {"kernels", &kernels}, {"strides", &strides}})
                for (const int n : *list) require(n > 0, "encoder.", name, ": expected positive numbers, got ", n);
            require(output > 0, "encoder.output: expected at least one column, got ", output);
        }
    };
    struct weights {
        std::vector<linear> convolutions, layers;
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape image) {
        weights w;
        for (std::size_t i = 0; i < s.channels.size(); ++i) {
            w.convolutions.push_back(
                declare_convolution(g, message("convolution.", i), image.channels, s.channels[i], s.kernels[i]));
            image = image.reduced(s.strides[i], s.channels[i]);
        }
        w.layers = declare_layers(g, "layers", image.size(), {s.output});
        return w;
    }
    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& observation,
                               image_shape image) {
        var<Backend> x = prepare_pixels(observation, image, s);
        for (std::size_t i = 0; i < w.convolutions.size(); ++i) {
            const auto name = message("convolution.", i);
            x = map(name + ".relu", rectify{},
                    convolve(name, x, image, s.channels[i], s.kernels[i], s.strides[i], w.convolutions[i]));
            image = image.reduced(s.strides[i], s.channels[i]);
        }
        return apply_layers("layers", x, w.layers);
    }

    struct decoder_weights {
        std::vector<linear> layers, convolutions;
    };
    /// The transpose: a linear layer, then transposed convolutions; sizes must divide by the strides.
    template <class Backend>
    static decoder_weights declare_decoder(graph<Backend>& g, const settings& s, image_shape image, int inputs) {
        const auto shapes = stages(s, image);
        decoder_weights w{declare_layers(g, "layers", inputs, {shapes.back().size()}), {}};
        for (std::size_t i = s.channels.size(); i-- > 0;)
            w.convolutions.push_back(declare_deconvolution(g, message("convolution.", i), shapes[i + 1].channels,
                                                           shapes[i].channels, s.kernels[i], s.strides[i]));
        return w;
    }
    /// Pixel logits [T, B, H * W * C].
    template <class Backend>
    static var<Backend> decode(const settings& s, const decoder_weights& w, const var<Backend>& h, image_shape image) {
        const auto shapes = stages(s, image);
        var<Backend> x = apply_layers("layers", h, w.layers);
        for (std::size_t i = s.channels.size(); i-- > 0;) {
            const auto name = message("convolution.", i);
            x = deconvolve(name, x, shapes[i + 1], shapes[i].channels, s.kernels[i], s.strides[i],
                           w.convolutions[s.channels.size() - 1 - i]);
            if (i > 0) x = map(name + ".relu", rectify{}, x);
        }
        return x;
    }

private:
    static std::vector<image_shape> stages(const settings& s, image_shape image) {
        std::vector<image_shape> all{image};
        for (std::size_t i = 0; i < s.channels.size(); ++i) {
            const image_shape& from = all.back();
            require(from.height % s.strides[i] == 0 && from.width % s.strides[i] == 0, "encoder.decoder: an image of ",
                    from, " does not divide by stride ", s.strides[i], ", so it cannot be decoded");
            all.push_back(from.reduced(s.strides[i], s.channels[i]));
        }
        return all;
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::small_conv::settings, channels, kernels, strides, output, centre, subtract_mean);

static_assert(engram::encoder_policy<engram::small_conv> && engram::can_decode<engram::small_conv>);
