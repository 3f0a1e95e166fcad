#pragma once
// SPDX-License-Identifier: MIT

// The visual network of the generative temporal models for 3D frames (facts 4.7, errata G13, G14) and its transpose.
//
//   global: conv 5x5 stride 3 to 128 (32 -> 10), conv 4x4 stride 2 to 256 (-> 4), conv 4x4 to 256 (-> 1); no padding
//   local:  conv 4x4 stride 2 to 16 (32 -> 16), conv 4x4 stride 2 to 8 (-> 8); one zero on every side, which is SAME
//   x = [global, local], 256 + 512 columns
//
// Shapes: observation [T, B, 32 * 32 * 3], pixels in [0, 1], which go in as (-1, 1) (`centre`); x [T, B, 768]. A ReLU
// stands between the layers of a path and not behind the last (the paper names no nonlinearity).
//
// The transpose: a linear layer and a ReLU to 768 columns, each path backwards with transposed convolutions and a ReLU
// between them, and the sum of what both give: each pixel is seen by both paths, so the gradient of the encoder is a
// sum as well.

#include <string>

#include <engram/encoder/layers.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/channels.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/convolution.hpp>

namespace engram {

struct two_pathway {
    using role = encoder_role;

    struct settings {
        std::vector<int> global_maps{128, 256, 256};  // channels of the three layers of the wide path
        std::vector<int> local_maps{16, 8};           // channels of the two layers of the narrow one
        bool centre = true;                           // pixels to [-1, 1]
        bool subtract_mean = false;                   // each image loses its mean colour (ours)
        void check() const {
            require(global_maps.size() == 3, "encoder.global_maps: expected three numbers, got ", global_maps.size());
            require(local_maps.size() == 2, "encoder.local_maps: expected two numbers, got ", local_maps.size());
            for (const int m : global_maps) require(m > 0, "encoder.global_maps: expected positive numbers, got ", m);
            for (const int m : local_maps) require(m > 0, "encoder.local_maps: expected positive numbers, got ", m);
        }
    };
    /// Layers of the paths in the order of use.
    struct weights {
        std::vector<linear> global, local;
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape image) {
        weights w;
        const auto global = global_path(s, image), local = local_path(s, image);
        const auto declare_path = [&](const std::string& name, const std::vector<layer>& path) {
            std::vector<linear> made;
            for (std::size_t i = 0; i < path.size(); ++i)
                made.push_back(declare_convolution(g, message(name, ".", i), path[i].from.channels, path[i].to.channels,
                                                   path[i].kernel, {.variance = i + 1 < path.size() ? 2.0 : 1.0}));
            return made;
        };
        w.global = declare_path("global", global);
        w.local = declare_path("local", local);
        return w;
    }

    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& observation,
                               image_shape image) {
        const var<Backend> centred = prepare_pixels(observation, image, s);
        const auto follow = [&](const std::string& path_name, const std::vector<layer>& path,
                                const std::vector<linear>& layers) {
            var<Backend> x = centred;
            for (std::size_t i = 0; i < path.size(); ++i) {
                const auto name = message(path_name, ".", i);
                const layer& l = path[i];
                if (i > 0) x = map(name + ".relu", rectify{}, x);
                x = convolve(name, x, l.from, l.to.channels, l.kernel, l.stride, layers[i], l.padding);
            }
            return x;
        };
        const auto global = follow("global", global_path(s, image), w.global);
        return concatenate<Backend>("paths", {global, follow("local", local_path(s, image), w.local)});
    }

    struct decoder_weights {
        std::vector<linear> layers, global, local;
    };

    template <class Backend>
    static decoder_weights declare_decoder(graph<Backend>& g, const settings& s, image_shape image, int inputs) {
        decoder_weights w;
        const auto global = global_path(s, image), local = local_path(s, image);
        w.layers = declare_layers(g, "layers", inputs, {global.back().to.size() + local.back().to.size()});
        // Two terms make a pixel; one bias serves them.
        const auto declare_path = [&](const std::string& name, const std::vector<layer>& path, bool last_bias) {
            std::vector<linear> made;
            for (std::size_t i = path.size(); i-- > 0;)
                made.push_back(declare_deconvolution(g, message(name, ".", i), path[i].to.channels,
                                                     path[i].from.channels, path[i].kernel, path[i].stride,
                                                     {.variance = i > 0 ? 2.0 : 0.5, .bias = i > 0 || last_bias}));
            return made;
        };
        w.global = declare_path("global", global, true);
        w.local = declare_path("local", local, false);
        return w;
    }

    /// Pixel logits [T, B, 32 * 32 * 3].
    template <class Backend>
    static var<Backend> decode(const settings& s, const decoder_weights& w, const var<Backend>& code,
                               image_shape image) {
        const auto global = global_path(s, image), local = local_path(s, image);
        const var<Backend> both = apply_layers("layers", code, w.layers);
        const auto follow = [&](const std::string& path_name, var<Backend> x, const std::vector<layer>& path,
                                const std::vector<linear>& layers) {
            for (std::size_t i = path.size(); i-- > 0;) {
                const auto name = message(path_name, ".", i);
                const layer& l = path[i];
                x = deconvolve(name, x, l.to, l.from.channels, l.kernel, l.stride, layers[path.size() - 1 - i],
                               l.padding);
                if (i > 0) x = map(name + ".relu", rectify{}, x);
            }
            return x;
        };
        const int first = global.back().to.size();
        return map("sum", sum_images{}, follow("global", both.columns(0, first), global, w.global),
                   follow("local", both.columns(first, both.width - first), local, w.local));
    }

private:
    struct layer {
        image_shape from, to;
        int kernel, stride;
        padding_rule padding;
    };

    static std::vector<layer> path(image_shape image, const std::vector<int>& maps, const std::vector<int>& kernels,
                                   const std::vector<int>& strides, padding_rule padding) {
        require(image == image_shape{32, 32, 3}, "encoder: the two-pathway network takes images of 32 x 32 x 3, not ",
                image.height, " x ", image.width, " x ", image.channels);
        std::vector<layer> layers;
        for (std::size_t i = 0; i < maps.size(); ++i) {
            const image_shape to = convolved(image, maps[i], kernels[i], strides[i], padding);
            layers.push_back({image, to, kernels[i], strides[i], padding});
            image = to;
        }
        return layers;
    }
    static std::vector<layer> global_path(const settings& s, image_shape image) {
        return path(image, s.global_maps, {5, 4, 4}, {3, 2, 1}, padding_rule::valid);
    }
    static std::vector<layer> local_path(const settings& s, image_shape image) {
        return path(image, s.local_maps, {4, 4}, {2, 2}, padding_rule::same);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::two_pathway::settings, global_maps, local_maps, centre, subtract_mean);

static_assert(engram::encoder_policy<engram::two_pathway> && engram::can_decode<engram::two_pathway>);
