#pragma once
// SPDX-License-Identifier: MIT

// Channels of images on a device: joined, parted, and freed of their mean.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/channels.hpp>

namespace engram {

/// Some channels of a whole image to an image of their own, or back.
template <class Real>
struct move_channels {
    device_rows<Real> from, to;
    int from_channels, to_channels, from_first, to_first, count;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t pixels = to.width / to_channels, row = i / (pixels * count), at = i % (pixels * count);
        const std::ptrdiff_t pixel = at / count, c = at % count;
        const Real by = from.wanted() ? from.row(row)[pixel * from_channels + from_first + c] : Real(0);
        to.take(row, pixel * to_channels + to_first + c, by);
    }
};

template <device_backend Backend>
struct channels_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    channels_kernel(const binder<Backend>& b, const channels_settings& s)
        : device_kernel<Backend>(b),
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
                this->launch(steps, settings.pixels * n,
                             move_channels<real>{{from, t},
                                                 {to, t},
                                                 apart ? total : n,
                                                 apart ? n : total,
                                                 apart ? first : 0,
                                                 apart ? 0 : first,
                                                 n});
            first += n;
        }
    }

    channels_settings settings;
    int total;
    operand<real> whole, d_whole;
    std::vector<operand<real>> parts, d_parts;
};

/// A block a row and channel.
template <class Real>
struct subtract_mean {
    static constexpr int lanes = 128;
    device_rows<Real> from, to;
    int pixels, channels;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int row = index / channels, c = index % channels, n = channels;
        const Real* const x = from.row(row);
        const Real mean = block_sum(block, pixels, [=](int i) { return x[i * n + c]; }) / static_cast<Real>(pixels);
        const device_rows<Real> y = to;
        block_for(block, pixels, [=](int i) { y.take(row, i * n + c, x[i * n + c] - mean); });
    }
};

template <device_backend Backend>
struct mean_colour_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    mean_colour_kernel(const binder<Backend>& b, const image_shape& s)
        : device_kernel<Backend>(b), image(s), in(b.in(0)), out(b.out(0)), d_in(b.d_in(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override { subtract(in, out, t, steps); }
    void backward(int t, int steps) override {
        if (d_in) subtract(d_out, d_in, t, steps);
    }

private:
    void subtract(const operand<real>& from, const operand<real>& to, int t, int steps) {
        this->launch_blocks(steps, image.channels, subtract_mean<real>::lanes,
                            subtract_mean<real>{{from, t}, {to, t}, image.height * image.width, image.channels});
    }

    image_shape image;
    operand<real> in, out, d_in, d_out;
};

}  // namespace engram
