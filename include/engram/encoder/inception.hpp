#pragma once
// SPDX-License-Identifier: MIT

// The visual network of the generative temporal models for digits and characters (facts 4.7, errata G11, G14) and its
// transpose.
//
//   for each m of `maps`: four size-preserving convolutions side by side (1 x 1, 3 x 3, 5 x 5, 7 x 7), `stream_maps`
//   kernels each, batch norm, ReLU -> conv 3x3 stride 2 to m, batch norm, ReLU (neither after the last) -> flatten = x
//
// Shapes: observation [T, B, S * S], pixels in [0, 1], which go in as (-1, 1) (`centre`); x [T, B, S/4 * S/4 * 64].
// Paper: S = 28 (x of 3136) or 32 (4096); other sides are halved upwards, as SAME does. A decoder doubles its way back,
// so it needs sides that divide by 2 for every block.
//
// Statistics of a batch are those of all its T * B images: such a plan cannot be split over threads and the encoder
// stands outside scans. With `frozen` it uses the running statistics, row by row, anywhere. A plan without gradients
// of a graph that is not frozen uses them too.
//
// The streams are normalised after they are joined: statistics are per channel, so this is the same. A convolution
// before a normalisation has no bias, which the normalisation would take away. The transpose parts the channels for
// four transposed convolutions and adds what they give; the paper only says that the decoder mirrors the encoder.

#include <array>
#include <string>

#include <engram/encoder/layers.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/batch_norm.hpp>
#include <engram/operations/channels.hpp>
#include <engram/operations/convolution.hpp>

namespace engram {

struct inception {
    using role = encoder_role;

    struct settings {
        int stream_maps = 8;            // kernels of each of the four sizes
        std::vector<int> maps{32, 64};  // channels behind each block
        bool frozen = false;            // running statistics in all plans: for generation
        bool centre = true;             // pixels to [-1, 1]
        bool subtract_mean = false;     // each image loses its mean colour (ours)
        void check() const {
            require(stream_maps > 0, "encoder.stream_maps: expected at least one map a stream, got ", stream_maps);
            require(!maps.empty(), "encoder.maps: expected at least one number");
            for (const int m : maps) require(m > 0, "encoder.maps: expected positive numbers, got ", m);
        }
    };

    static constexpr std::array<int, 4> kernels{1, 3, 5, 7};

    struct block {
        std::vector<linear> streams;
        batch_norm_weights joined;  // of the streams; in the decoder of what goes into them
        linear resized;             // to half the size; in the decoder to double
        batch_norm_weights norm;    // of what the block gives, none where that is x or the pixels
    };
    struct weights {
        std::vector<block> blocks;
    };

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape image) {
        weights w;
        int channels = image.channels;
        for (std::size_t i = 0; i < s.maps.size(); ++i) {
            const auto name = message("block.", i);
            const bool last = i + 1 == s.maps.size();
            block b;
            for (const int k : kernels)
                b.streams.push_back(
                    declare_convolution(g, message(name, ".stream.", k), channels, s.stream_maps, k, {.bias = false}));
            b.joined = declare_batch_norm(g, name + ".streams", joined_maps(s));
            b.resized = declare_convolution(g, name + ".reduce", joined_maps(s), s.maps[i], 3,
                                            {.variance = last ? 1.0 : 2.0, .bias = last});
            if (!last) b.norm = declare_batch_norm(g, name + ".maps", s.maps[i]);
            channels = s.maps[i];
            w.blocks.push_back(b);
        }
        return w;
    }

    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& observation,
                               image_shape image) {
        var<Backend> x = prepare_pixels(observation, image, s);
        for (std::size_t i = 0; i < w.blocks.size(); ++i) {
            const auto name = message("block.", i);
            const block& b = w.blocks[i];
            std::vector<var<Backend>> streams;
            for (std::size_t k = 0; k < kernels.size(); ++k)
                streams.push_back(convolve(message(name, ".stream.", kernels[k]), x, image, s.stream_maps, kernels[k],
                                           1, b.streams[k]));
            x = normalised(s, name + ".streams", concatenate_channels(name + ".join", streams, image), b.joined);
            image.channels = joined_maps(s);
            x = convolve(name + ".reduce", x, image, s.maps[i], 3, 2, b.resized);
            image = image.reduced(2, s.maps[i]);
            if (b.norm.channels > 0) x = normalised(s, name + ".maps", x, b.norm);
        }
        return x;
    }

    struct decoder_weights {
        std::vector<linear> layers;
        std::vector<block> blocks;  // in the order of use
    };

    template <class Backend>
    static decoder_weights declare_decoder(graph<Backend>& g, const settings& s, image_shape image, int inputs) {
        decoder_weights w{declare_layers(g, "layers", inputs, {smallest(s, image).size()}), {}};
        for (std::size_t i = s.maps.size(); i-- > 0;) {
            const auto name = message("block.", i);
            const int to = i > 0 ? s.maps[i - 1] : image.channels;
            block b;
            b.resized = declare_deconvolution(g, name + ".enlarge", s.maps[i], joined_maps(s), 3, 2, {.bias = false});
            b.joined = declare_batch_norm(g, name + ".streams", joined_maps(s));
            // Four terms make a sum; one bias serves the pixels.
            for (const int k : kernels)
                b.streams.push_back(declare_deconvolution(
                    g, message(name, ".stream.", k), s.stream_maps, to, k, 1,
                    {.variance = (i > 0 ? 2.0 : 1.0) / double(kernels.size()), .bias = i == 0 && k == kernels[0]}));
            if (i > 0) b.norm = declare_batch_norm(g, name + ".maps", to);
            w.blocks.push_back(b);
        }
        return w;
    }

    /// Pixel logits [T, B, H * W * C].
    template <class Backend>
    static var<Backend> decode(const settings& s, const decoder_weights& w, const var<Backend>& code,
                               image_shape image) {
        var<Backend> x = apply_layers("layers", code, w.layers);
        image_shape now = smallest(s, image);
        for (std::size_t j = 0; j < w.blocks.size(); ++j) {
            const std::size_t i = s.maps.size() - 1 - j;
            const auto name = message("block.", i);
            const block& b = w.blocks[j];
            const int to = i > 0 ? s.maps[i - 1] : image.channels;
            x = deconvolve(name + ".enlarge", x, now, joined_maps(s), 3, 2, b.resized);
            now = now.enlarged(2, joined_maps(s));
            const auto parts = split_channels(name + ".part", normalised(s, name + ".streams", x, b.joined), now,
                                              std::vector<int>(kernels.size(), s.stream_maps));
            now.channels = s.stream_maps;
            std::array<var<Backend>, kernels.size()> streams;
            for (std::size_t k = 0; k < kernels.size(); ++k)
                streams[k] =
                    deconvolve(message(name, ".stream.", kernels[k]), parts[k], now, to, kernels[k], 1, b.streams[k]);
            x = map(name + ".sum", sum_images{}, streams[0], streams[1], streams[2], streams[3]);
            now.channels = to;
            if (b.norm.channels > 0) x = normalised(s, name + ".maps", x, b.norm);
        }
        return x;
    }

private:
    static int joined_maps(const settings& s) { return static_cast<int>(kernels.size()) * s.stream_maps; }

    template <class Backend>
    static var<Backend> normalised(const settings& s, const std::string& name, const var<Backend>& x,
                                   const batch_norm_weights& w) {
        return map(name + ".relu", rectify{}, batch_norm(name, x, w, {.frozen = s.frozen}));
    }

    static image_shape smallest(const settings& s, image_shape image) {
        const int factor = 1 << s.maps.size();
        require(image.height % factor == 0 && image.width % factor == 0, "encoder.decoder: images of ", image.height,
                " x ", image.width, " cannot be doubled back from ", s.maps.size(),
                " blocks; height and width must be multiples of ", factor);
        return {image.height / factor, image.width / factor, s.maps.back()};
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::inception::settings, stream_maps, maps, frozen, centre, subtract_mean);

static_assert(engram::encoder_policy<engram::inception> && engram::can_decode<engram::inception>);
