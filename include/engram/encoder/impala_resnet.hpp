#pragma once
// SPDX-License-Identifier: MIT

// The deep residual network of IMPALA (facts 1.2, errata M20) and, for reconstruction, its transpose.
//
//   for each c of `channels`: conv 3x3 to c -> max-pool 3x3 stride 2 -> `blocks` x {relu, conv, relu, conv, add input}
//   relu -> flatten -> `hidden` fully connected layers with relu -> linear to `output` -> relu = x
//
// Shapes: observation [T, B, H * W * C], x [T, B, output]. Paper: channels 16, 32, 32, two blocks, no hidden layer, 256
// out. The small preset has no section: one at full resolution costs ten times all the rest. Before the sections there
// may be convolutions with strides (ours), each with its relu, which share weights over places and cost as little as a
// fully connected layer.

#include <string>

#include <engram/encoder/layers.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/convolution.hpp>

namespace engram {

struct impala_resnet {
    using role = encoder_role;

    struct settings {
        std::vector<int> strided{};             // filters of convolutions with strides before the sections; none: none
        std::vector<int> strided_sides{4, 3};   // their sides, in pixels
        std::vector<int> strided_by{2, 2};      // in pixels
        std::vector<int> channels{16, 32, 32};  // of each section; none: no section
        int blocks = 2;                         // residual blocks of a section
        std::vector<int> hidden{};              // widths of fully connected layers before the last
        int output = 256;                       // X, columns of x
        bool centre = false;                    // pixels to [-1, 1] instead of [0, 1]
        bool subtract_mean = false;             // each image loses its mean colour (ours)
        void check() const {
            require(strided_sides.size() >= strided.size() && strided_by.size() >= strided.size(),
                    "encoder: strided_sides and strided_by need a number for each of the ", strided.size(),
                    " convolutions of encoder.strided, got ", strided_sides.size(), " and ", strided_by.size());
            for (const auto& [name, list] :
                 {std::pair{"strided", &strided}, {"strided_sides", &strided_sides}, {"strided_by", &strided_by}})
                for (const int n : *list) require(n > 0, "encoder.", name, ": expected positive numbers, got ", n);
            for (const int c : channels) require(c > 0, "encoder.channels: expected positive numbers, got ", c);
            for (const int n : hidden) require(n > 0, "encoder.hidden: expected positive widths, got ", n);
            require(blocks >= 0, "encoder.blocks: expected zero or more, got ", blocks);
            require(output > 0, "encoder.output: expected at least one column, got ", output);
        }
    };

    /// Convolution and residual blocks of one section.
    struct section {
        linear convolution;
        std::vector<linear> blocks;
    };
    struct weights {
        std::vector<linear> strided;
        std::vector<section> sections;
        std::vector<linear> layers;
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape image) {
        weights w;
        for (std::size_t i = 0; i < s.strided.size(); ++i) {
            w.strided.push_back(
                declare_convolution(g, message("strided.", i), image.channels, s.strided[i], s.strided_sides[i]));
            image = image.reduced(s.strided_by[i], s.strided[i]);
        }
        for (std::size_t i = 0; i < s.channels.size(); ++i) {
            w.sections.push_back(declare_section(g, message("section.", i), s, image.channels, s.channels[i]));
            image = image.reduced(2, s.channels[i]);
        }
        std::vector<int> widths = s.hidden;
        widths.push_back(s.output);
        w.layers = declare_layers(g, "layers", image.size(), widths);
        return w;
    }

    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& observation,
                               image_shape image) {
        var<Backend> x = prepare_pixels(observation, image, s);
        for (std::size_t i = 0; i < w.strided.size(); ++i) {
            const auto name = message("strided.", i);
            x = map(name + ".relu", rectify{},
                    convolve(name, x, image, s.strided[i], s.strided_sides[i], s.strided_by[i], w.strided[i]));
            image = image.reduced(s.strided_by[i], s.strided[i]);
        }
        for (std::size_t i = 0; i < w.sections.size(); ++i) {
            const auto name = message("section.", i);
            const int filters = s.channels[i];
            x = max_pool(name + ".pool",
                         convolve(name + ".convolution", x, image, filters, 3, 1, w.sections[i].convolution),
                         {image.height, image.width, filters});
            image = image.reduced(2, filters);
            x = residual_blocks(name, x, image, w.sections[i].blocks);
        }
        if (!w.sections.empty()) x = map("relu", rectify{}, x);
        return apply_layers("layers", x, w.layers);
    }

    struct decoder_weights {
        std::vector<linear> layers;
        std::vector<section> sections;  // in the order of use
        linear pixels;
        std::vector<linear> strided;  // in the order of use
    };

    /// The transpose: fully connected layers, then for each section backwards its blocks, up-sampling, a convolution,
    /// then the convolutions with strides, transposed.
    template <class Backend>
    static decoder_weights declare_decoder(graph<Backend>& g, const settings& s, image_shape image, int inputs) {
        decoder_weights w;
        std::vector<int> widths(s.hidden.rbegin(), s.hidden.rend());
        if (s.channels.empty() && s.strided.empty()) {
            w.layers = declare_layers(g, "layers", inputs, widths);
            w.pixels = g.declare_linear("pixels", widths.empty() ? inputs : widths.back(), image.size());
            return w;
        }
        const auto stages = strided_stages(s, image);
        widths.push_back(smallest(s, stages.back()).size());
        w.layers = declare_layers(g, "layers", inputs, widths);
        for (std::size_t i = s.channels.size(); i-- > 0;)
            w.sections.push_back(declare_section(g, message("section.", i), s, s.channels[i],
                                                 i > 0 ? s.channels[i - 1] : s.channels[0], s.channels[i]));
        if (!s.channels.empty()) w.pixels = declare_convolution(g, "pixels", s.channels[0], stages.back().channels, 3);
        for (std::size_t i = s.strided.size(); i-- > 0;)
            w.strided.push_back(declare_deconvolution(g, message("strided.", i), stages[i + 1].channels,
                                                      stages[i].channels, s.strided_sides[i], s.strided_by[i]));
        return w;
    }

    /// Pixel logits [T, B, H * W * C].
    template <class Backend>
    static var<Backend> decode(const settings& s, const decoder_weights& w, const var<Backend>& h, image_shape image) {
        var<Backend> x = apply_layers("layers", h, w.layers);
        if (s.channels.empty() && s.strided.empty()) return affine("pixels", x, w.pixels);
        const auto stages = strided_stages(s, image);
        image_shape now = smallest(s, stages.back());
        for (std::size_t k = 0; k < w.sections.size(); ++k) {
            const std::size_t i = s.channels.size() - 1 - k;
            const auto name = message("section.", i);
            const int filters = i > 0 ? s.channels[i - 1] : s.channels[0];
            x = residual_blocks(name, x, now, w.sections[k].blocks);
            x = upsample(name + ".upsample", x, now);
            now = now.enlarged(2, now.channels);
            x = convolve(name + ".convolution", map(name + ".relu", rectify{}, x), now, filters, 3, 1,
                         w.sections[k].convolution);
            now.channels = filters;
        }
        if (!s.channels.empty()) {
            x = convolve("pixels", map("relu", rectify{}, x), now, stages.back().channels, 3, 1, w.pixels);
            if (!s.strided.empty()) x = map("pixels.relu", rectify{}, x);
        }
        for (std::size_t i = s.strided.size(); i-- > 0;) {
            const auto name = message("strided.", i);
            x = deconvolve(name, x, stages[i + 1], stages[i].channels, s.strided_sides[i], s.strided_by[i],
                           w.strided[s.strided.size() - 1 - i]);
            if (i > 0) x = map(name + ".relu", rectify{}, x);
        }
        return x;
    }

private:
    template <class Backend>
    static section declare_section(graph<Backend>& g, const std::string& name, const settings& s, int channels,
                                   int filters, int block_channels = 0) {
        const int inside = block_channels > 0 ? block_channels : filters;
        section made{declare_convolution(g, name + ".convolution", channels, filters, 3), {}};
        for (int b = 0; b < 2 * s.blocks; ++b)
            made.blocks.push_back(
                declare_convolution(g, message(name, ".block.", b / 2, ".", b % 2), inside, inside, 3));
        return made;
    }
    template <class Backend>
    static var<Backend> residual_blocks(const std::string& name, var<Backend> x, image_shape image,
                                        const std::vector<linear>& w) {
        for (std::size_t b = 0; b + 1 < w.size(); b += 2) {
            const auto block = message(name, ".block.", b / 2);
            const auto inner =
                convolve(block + ".0", map(block + ".relu.0", rectify{}, x), image, image.channels, 3, 1, w[b]);
            const auto outer =
                convolve(block + ".1", map(block + ".relu.1", rectify{}, inner), image, image.channels, 3, 1, w[b + 1]);
            x = map(block + ".add", add{}, x, outer);
        }
        return x;
    }
    /// The image and what is left of it behind each convolution with strides, which a decoder has to undo.
    static std::vector<image_shape> strided_stages(const settings& s, image_shape image) {
        std::vector<image_shape> all{image};
        for (std::size_t i = 0; i < s.strided.size(); ++i) {
            const image_shape& from = all.back();
            require(from.height % s.strided_by[i] == 0 && from.width % s.strided_by[i] == 0,
                    "encoder.decoder: an image of ", from, " does not divide by stride ", s.strided_by[i],
                    ", so it cannot be decoded");
            all.push_back(from.reduced(s.strided_by[i], s.strided[i]));
        }
        return all;
    }
    /// The image behind the last section; a decoder doubles its way back, so sizes must divide.
    static image_shape smallest(const settings& s, image_shape image) {
        const int factor = 1 << s.channels.size();
        require(image.height % factor == 0 && image.width % factor == 0, "encoder.decoder: images of ", image.height,
                " x ", image.width, " cannot be doubled back from ", s.channels.size(),
                " sections; height and width must be multiples of ", factor);
        return {image.height / factor, image.width / factor, s.channels.empty() ? image.channels : s.channels.back()};
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::impala_resnet::settings, strided, strided_sides, strided_by, channels, blocks, hidden, output,
               centre, subtract_mean);

static_assert(engram::encoder_policy<engram::impala_resnet> && engram::can_decode<engram::impala_resnet>);
