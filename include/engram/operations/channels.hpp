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
#include <engram/operations/points.hpp>

namespace engram {

/// One image of many channels and several images of few: `apart` tells which are the inputs.
struct channels_settings {
    int pixels;
    std::vector<int> channels;
    bool apart;
};

/// Some channels of a pixel of one image to those of another; zero where nothing comes back.
template <class Real>
struct moved_channels {
    step_rows<Real> from, to;
    int pixels, from_channels, to_channels, from_first, to_first;
    ENGRAM_HD void operator()(std::ptrdiff_t row_and_pixel, int c) const {
        const std::ptrdiff_t row = row_and_pixel / pixels, pixel = row_and_pixel % pixels;
        const Real by = from.wanted() ? from.at(row, pixel * from_channels + from_first + c) : Real(0);
        to.put(row, pixel * to_channels + to_first + c, by);
    }
};

template <class Backend>
struct channels_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    channels_kernel(const binder<Backend>& b, const channels_settings& s)
        : point_kernel<Backend>(b),
          settings(s),
          total(std::accumulate(s.channels.begin(), s.channels.end(), 0)),
          whole(s.apart ? b.in(0) : b.out(0)),
          d_whole(s.apart ? b.d_in(0) : b.d_out(0)) {
        for (std::size_t i = 0; i < s.channels.size(); ++i) {
            parts.push_back(s.apart ? b.out(i) : b.in(i));
            d_parts.push_back(s.apart ? b.d_out(i) : b.d_in(i));
        }
    }
    void forward(int t, int steps) override { move(settings.apart, whole, parts, t, steps); }
    void backward(int t, int steps) override {
        if (d_whole) move(!settings.apart, d_whole, d_parts, t, steps);
    }

private:
    void move(bool apart, const operand<real>& one, const std::vector<operand<real>>& few, int t, int steps) {
        int first = 0;
        for (std::size_t i = 0; i < few.size(); ++i) {
            const int n = settings.channels[i];
            const operand<real>&from = apart ? one : few[i], &to = apart ? few[i] : one;
            if (to)
                this->each(std::ptrdiff_t{steps} * this->batch * settings.pixels, n,
                           moved_channels<real>{{from, t},
                                                {to, t},
                                                settings.pixels,
                                                apart ? total : n,
                                                apart ? n : total,
                                                apart ? first : 0,
                                                apart ? 0 : first});
            first += n;
        }
    }

    channels_settings settings;
    int total;
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

/// A channel of an image without its mean; the same map is its own gradient.
template <class Real>
struct without_mean {
    static constexpr int lanes = 128;
    step_rows<Real> from, to;
    int pixels, channels;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int row = index / channels, c = index % channels, n = channels;
        const Real* const x = from.row(row);
        const Real mean = block_sum(block, pixels, [=](int i) { return x[i * n + c]; }) / static_cast<Real>(pixels);
        const step_rows<Real> y = to;
        block_for(block, pixels, [=](int i) { y.put(row, i * n + c, x[i * n + c] - mean); });
    }
};

template <class Backend>
struct mean_colour_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    mean_colour_kernel(const binder<Backend>& b, const image_shape& s)
        : point_kernel<Backend>(b), image(s), in(b.in(0)), out(b.out(0)), d_in(b.d_in(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override { subtract(in, out, t, steps); }
    void backward(int t, int steps) override {
        if (d_in) subtract(d_out, d_in, t, steps);
    }

private:
    void subtract(const operand<real>& from, const operand<real>& to, int t, int steps) {
        this->each_block(std::ptrdiff_t{steps} * this->batch * image.channels,
                         without_mean<real>{{from, t}, {to, t}, image.height * image.width, image.channels});
    }

    image_shape image;
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
