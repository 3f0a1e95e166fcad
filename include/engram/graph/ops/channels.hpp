#pragma once
// SPDX-License-Identifier: MIT

// Channels of images in the columns of a variable: several images as one, one as several.
//
// A row [H * W * C] is one image, channels last, so images are joined and parted pixel by pixel. Each function is the
// other's inverse and the other's gradient. And what all pixels of a channel have in common, taken away.

#include <initializer_list>
#include <numeric>
#include <vector>

#include <engram/graph/image_shape.hpp>
#include <engram/graph/simple_operation.hpp>

namespace engram {

/// One image of many channels and several images of few: `apart` tells which are the inputs.
struct channels_settings {
    int pixels;
    std::vector<int> channels;
    bool apart;
};

template <class Backend>
struct channels_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    channels_kernel(const binder<Backend>& b, const channels_settings& s)
        : settings(s),
          batch(b.batch()),
          total(std::accumulate(s.channels.begin(), s.channels.end(), 0)),
          whole(s.apart ? b.in(0) : b.out(0)),
          d_whole(s.apart ? b.d_in(0) : b.d_out(0)) {
        for (std::size_t i = 0; i < s.channels.size(); ++i) {
            parts.push_back(s.apart ? b.out(i) : b.in(i));
            d_parts.push_back(s.apart ? b.d_out(i) : b.d_in(i));
        }
    }
    void forward(int t, int steps) override {
        each_pixel(steps, parts, [&](const operand<real>& part, std::ptrdiff_t at, int row, int pixel, int n) {
            real* one = whole.at(t) + row * whole.stride + at;
            real* few = part.at(t) + row * part.stride + std::ptrdiff_t{pixel} * n;
            settings.apart ? std::copy_n(one, n, few) : std::copy_n(few, n, one);
        });
    }
    void backward(int t, int steps) override {
        if (!d_whole) return;
        each_pixel(steps, d_parts, [&](const operand<real>& part, std::ptrdiff_t at, int row, int pixel, int n) {
            real* one = d_whole.at(t) + row * d_whole.stride + at;
            real* few = part ? part.at(t) + row * part.stride + std::ptrdiff_t{pixel} * n : nullptr;
            const operand<real>& receiver = settings.apart ? d_whole : part;
            if (!receiver) return;
            const real* from = settings.apart ? few : one;
            real* to = settings.apart ? one : few;
            for (int c = 0; c < n; ++c) {
                const real slope = from ? from[c] : real(0);
                to[c] = receiver.accumulate ? to[c] + slope : slope;
            }
        });
    }

private:
    // body(part, column of its first channel in the whole image, row, pixel, channels)
    template <class Body>
    void each_pixel(int steps, const std::vector<operand<real>>& of, Body body) {
        for (int r = 0; r < steps * batch; ++r)
            for (int pixel = 0; pixel < settings.pixels; ++pixel) {
                std::ptrdiff_t at = std::ptrdiff_t{pixel} * total;
                for (std::size_t i = 0; i < of.size(); ++i) {
                    body(of[i], at, r, pixel, settings.channels[i]);
                    at += settings.channels[i];
                }
            }
    }

    channels_settings settings;
    int batch, total;
    operand<real> whole, d_whole;
    std::vector<operand<real>> parts, d_parts;
};

/// Images of equal height and width as one, their channels side by side in every pixel: [T, B, H * W * sum of
/// channels]. `image` gives height and width.
template <class Backend>
var<Backend> concatenate_channels(const std::string& name, const std::vector<var<Backend>>& images, image_shape image) {
    require(!images.empty(), name, ": nothing to concatenate");
    graph<Backend>& g = *images[0].owner;
    const int pixels = image.height * image.width;
    std::vector<int> channels;
    int width = 0;
    for (const auto& v : images) {
        require(pixels > 0 && v.width % pixels == 0, g.full_name(name), ": ", v.width,
                " columns are not an image of height ", image.height, " and width ", image.width);
        channels.push_back(v.width / pixels);
        width += v.width;
    }
    auto op = make_operation<channels_kernel>(g, name, images, channels_settings{pixels, channels, false});
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {width}, rows)[0];
}

/// The same of images that are named here: concatenate_channels("both", {a, b}, image).
template <class Backend>
var<Backend> concatenate_channels(const std::string& name, std::initializer_list<var<Backend>> images,
                                  image_shape image) {
    return concatenate_channels(name, std::vector<var<Backend>>(images), image);
}

/// The inverse: images of the given numbers of channels, which must add up to image.channels.
template <class Backend>
std::vector<var<Backend>> split_channels(const std::string& name, const var<Backend>& x, image_shape image,
                                         const std::vector<int>& channels) {
    graph<Backend>& g = *x.owner;
    require(x.width == image.size(), g.full_name(name), ": the input has ", x.width, " columns, an image of ", image,
            " has ", image.size());
    int sum = 0;
    std::vector<int> widths;
    for (const int n : channels) {
        require(n > 0, g.full_name(name), ": an image needs at least one channel, not ", n);
        sum += n;
        widths.push_back(image.height * image.width * n);
    }
    require(sum == image.channels, g.full_name(name), ": parts of ", sum, " channels do not make up an image of ",
            image);
    auto op =
        make_operation<channels_kernel>(g, name, {x}, channels_settings{image.height * image.width, channels, true});
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), widths, rows);
}

/// Each image without its mean colour; the same map is its own gradient.
template <class Backend>
struct mean_colour_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    mean_colour_kernel(const binder<Backend>& b, const image_shape& s)
        : image(s), batch(b.batch()), in(b.in(0)), out(b.out(0)), d_in(b.d_in(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override { subtract(in, out, t, steps, false); }
    void backward(int t, int steps) override {
        if (d_in) subtract(d_out, d_in, t, steps, d_in.accumulate);
    }

private:
    void subtract(const operand<real>& from, const operand<real>& to, int t, int steps, bool add) {
        const int pixels = image.height * image.width, n = image.channels;
        for (int r = 0; r < steps * batch; ++r) {
            const real* x = from.at(t) + r * from.stride;
            real* y = to.at(t) + r * to.stride;
            for (int c = 0; c < n; ++c) {
                real mean = 0;
                for (int i = 0; i < pixels; ++i) mean += x[i * n + c];
                mean /= static_cast<real>(pixels);
                for (int i = 0; i < pixels; ++i) {
                    const real rest = x[i * n + c] - mean;
                    y[i * n + c] = add ? y[i * n + c] + rest : rest;
                }
            }
        }
    }

    image_shape image;
    int batch;
    operand<real> in, out, d_in, d_out;
};

/// [T, B, H * W * C]: every channel of every image minus its mean over the pixels.
template <class Backend>
var<Backend> subtract_mean_colour(const std::string& name, const var<Backend>& x, image_shape image) {
    graph<Backend>& g = *x.owner;
    require(x.width == image.size(), g.full_name(name), ": the input has ", x.width, " columns, an image of ", image,
            " has ", image.size());
    auto op = make_operation<mean_colour_kernel>(g, name, {x}, image);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {image.size()}, rows)[0];
}

/// Images of one shape, added pixel by pixel.
struct sum_images {
    constexpr auto operator()(auto... images) const { return (images + ...); }
};

}  // namespace engram
