#pragma once
// SPDX-License-Identifier: MIT

// Convolutions, pooling and up-sampling on a device (meaning: operations/convolution.hpp).
//
// Computed directly, without copies of windows. Where the filters come in fours a thread holds a tile of the result
// (convolution_tiles.hpp), elsewhere one number; a window that covers the whole image is a matrix product.

#include <cstdint>

#include <engram/device/kernel.hpp>
#include <engram/device/ops/affine.hpp>
#include <engram/device/ops/convolution_tiles.hpp>
#include <engram/operations/convolution.hpp>

namespace engram {

namespace internal {

/// y = bias + the windows of x, weighted.
template <class Real>
struct convolve_pixel {
    convolution_geometry s;
    const Real *weight, *bias;
    step_rows<Real> x, y;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t image = i / y.width;
        const int at = static_cast<int>(i % y.width), f = at % s.filters, pixel = at / s.filters;
        const int first_y = pixel / s.out_width * s.stride - s.top, first_x = pixel % s.out_width * s.stride - s.left;
        const Real* const from = x.row(image);
        Real sum = bias ? bias[f] : Real(0);
        for (int ky = 0; ky < s.kernel; ++ky)
            for (int kx = 0; kx < s.kernel; ++kx) {
                const int row = first_y + ky, column = first_x + kx;
                if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
                const Real* const in = from + (std::ptrdiff_t{row} * s.width + column) * s.channels;
                const Real* const w = weight + std::ptrdiff_t{ky * s.kernel + kx} * s.channels * s.filters + f;
                for (int c = 0; c < s.channels; ++c) sum += in[c] * w[std::ptrdiff_t{c} * s.filters];
            }
        y.put(image, at, sum);
    }
};

/// x = bias + what every window that contains a pixel sends back to it: the data gradient, and the transposed
/// convolution.
template <class Real>
struct convolve_back {
    convolution_geometry s;
    const Real *weight, *bias;
    step_rows<Real> y, x;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t image = i / x.width;
        const int at = static_cast<int>(i % x.width), c = at % s.channels, pixel = at / s.channels;
        const int row = pixel / s.width + s.top, column = pixel % s.width + s.left;
        const Real* const from = y.row(image);
        Real sum = bias ? bias[c] : Real(0);
        for (int ky = row % s.stride; ky < s.kernel && ky <= row; ky += s.stride)
            for (int kx = column % s.stride; kx < s.kernel && kx <= column; kx += s.stride) {
                const int oy = (row - ky) / s.stride, ox = (column - kx) / s.stride;
                if (oy >= s.out_height || ox >= s.out_width) continue;
                const Real* const out = from + (std::ptrdiff_t{oy} * s.out_width + ox) * s.filters;
                const Real* const w = weight + (std::ptrdiff_t{ky * s.kernel + kx} * s.channels + c) * s.filters;
                for (int f = 0; f < s.filters; ++f) sum += out[f] * w[f];
            }
        x.put(image, at, sum);
    }
};

/// Block i: the gradient of weight i, summed over images and pixels of the output.
template <class Real>
struct window_weight_gradient {
    static constexpr int lanes = 128;
    convolution_geometry s;
    step_rows<Real> x, dy;
    int images;
    Real* dw;
    bool accumulate;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int f = index % s.filters, c = index / s.filters % s.channels, tap = index / s.filters / s.channels;
        const int ky = tap / s.kernel - s.top, kx = tap % s.kernel - s.left, pixels = s.out_height * s.out_width;
        const convolution_geometry g = s;
        const step_rows<Real> from = x, slope = dy;
        const Real sum = block_sum(block, images * pixels, [=](int i) {
            const int image = i / pixels, pixel = i % pixels;
            const int row = pixel / g.out_width * g.stride + ky, column = pixel % g.out_width * g.stride + kx;
            if (row < 0 || row >= g.height || column < 0 || column >= g.width) return Real(0);
            return from.row(image)[(std::ptrdiff_t{row} * g.width + column) * g.channels + c] *
                   slope.row(image)[std::ptrdiff_t{pixel} * g.filters + f];
        });
        Real* const to = dw + index;
        const bool add = accumulate;
        block_for(block, 1, [=](int) { give(*to, add, sum); });
    }
};

}  // namespace internal

template <device_backend Backend>
struct convolution_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    convolution_kernel(const binder<Backend>& b, const convolution_settings& s)
        : device_kernel<Backend>(b),
          shape(s.shape),
          affine(s.shape.is_affine()),
          transposed(s.transposed),
          stepwise(b.stepwise()),
          x(b.in(0)),
          dx(b.d_in(0)),
          y(b.out(0)),
          dy(b.d_out(0)),
          weight(b.weights(s.weights.weight)),
          bias(s.weights.bias.id >= 0 ? b.weights(s.weights.bias) : nullptr),
          dw(b.d_parameter(s.weights.weight)) {
        if (bias) db = b.d_parameter(s.weights.bias);
        if (dw && !affine && shape.filters % 4 == 0) {
            const int slices = slices_of(shape.channels % 4 == 0 ? 4 : 1, this->all_steps * this->batch).slices;
            partial = buffer(static_cast<std::size_t>(slices * shape.weights()));
        }
        if (db) bias_partial = buffer(static_cast<std::size_t>(bias_slices) * static_cast<std::size_t>(db.width));
    }

    void forward(int t, int steps) override { run(transposed, bias, x, y, t, steps); }
    void backward(int t, int steps) override {
        if (dx && dy) run(!transposed, nullptr, dy, dx, t, steps);
        if (!stepwise) weight_gradients(0, steps, false);
    }
    void after() override {
        if (x.step) return weight_gradients(0, this->all_steps, false);
        // One image a batch entry meets the gradients of all steps.
        for (int t = 0; t < this->all_steps; ++t) weight_gradients(t, 1, t > 0);
    }

private:
    using buffer = typename executor<Backend>::buffer;
    static constexpr int bias_slices = 256;

    gradient_slices slices_of(int in, int images) const {
        return {shape, in, internal::weight_gradient_slice<real, 1>::lanes, images};
    }

    /// To the windows' sums, or (`send`) back from them to the image; `plus` is a bias.
    void run(bool send, const real* plus, const operand<real>& from, const operand<real>& to, int t, int steps) {
        const step_rows<real> in(from, t), out(to, t);
        const int rows = steps * this->batch;
        if (affine && !(send && plus)) {
            if (plus) this->launch(steps, to.width, internal::start_affine<real>{out, plus});
            return this->on->product(this->name, {in.data, in.stride}, {weight, shape.filters, send},
                                     plus || to.accumulate, out.data, out.stride, rows, to.width, from.width);
        }
        const bool tiles = shape.filters % 4 == 0 && in_fours(weight) && (!send || in_fours(in));
        if (!tiles && send)
            return this->launch(steps, to.width, internal::convolve_back<real>{shape, weight, plus, in, out});
        if (!tiles) return this->launch(steps, to.width, internal::convolve_pixel<real>{shape, weight, plus, in, out});
        const bool fours = shape.channels % 4 == 0;
        if (send && fours)
            tile(steps, internal::convolve_back_tile<real, 4>{shape, weight, plus, in, out});
        else if (send)
            tile(steps, internal::convolve_back_tile<real, 1>{shape, weight, plus, in, out});
        else if (fours && in_fours(in))
            tile(steps, internal::convolve_tile<real, 4>{shape, weight, plus, in, out});
        else
            tile(steps, internal::convolve_tile<real, 1>{shape, weight, plus, in, out});
    }
    template <class Tile>
    void tile(int steps, const Tile& functor) {
        this->launch(steps, Tile::launches(shape), functor);
    }

    void weight_gradients(int t, int steps, bool add) {
        if (!dy || !dw) return;
        const int images = steps * this->batch;
        const step_rows<real> image(transposed ? dy : x, t), filtered(transposed ? x : dy, t);
        if (affine)
            this->on->product(this->name, {image.data, image.stride, true}, {filtered.data, filtered.stride},
                              dw.accumulate || add, dw.data, dw.stride, image.width, filtered.width, images);
        else if (shape.filters % 4 != 0 || !in_fours(filtered))
            this->on->launch_blocks(
                this->name, shape.weights(), internal::window_weight_gradient<real>::lanes,
                internal::window_weight_gradient<real>{shape, image, filtered, images, dw.data, dw.accumulate || add});
        else if (shape.channels % 4 == 0 && in_fours(image))
            sum_in_slices<4>(image, filtered, images, add);
        else
            sum_in_slices<1>(image, filtered, images, add);
        if (!db) return;
        // An output's gradient is dense: its pixels are rows of `db.width` channels.
        const int rows = images * (dy.width / db.width), slices = std::min(bias_slices, rows);
        this->on->launch_blocks(
            this->name, slices, internal::column_sums_slice<real>::lanes,
            internal::column_sums_slice<real>{dy.at(t), db.width, rows, slices, bias_partial.data()});
        add_slices(bias_partial, db.width, slices, db, add);
    }
    template <int In>
    void sum_in_slices(const step_rows<real>& image, const step_rows<real>& filtered, int images, bool add) {
        using slice = internal::weight_gradient_slice<real, In>;
        const gradient_slices split = slices_of(In, images);
        this->on->launch_blocks(this->name, std::ptrdiff_t{split.slices} * shape.kernel * shape.kernel * split.parts,
                                slice::scratch,
                                slice{shape, split, image, filtered, images * shape.out_height, partial.data()});
        add_slices(partial, shape.weights(), split.slices, dw, add);
    }
    void add_slices(buffer& of, std::ptrdiff_t count, int slices, const operand<real>& to, bool add) {
        using sum = internal::sum_slices<real>;
        this->on->launch_blocks(this->name, sum::blocks(count), sum::scratch,
                                sum{of.data(), count, slices, to.data, to.accumulate || add});
    }

    convolution_geometry shape;
    bool affine, transposed, stepwise;
    operand<real> x, dx, y, dy;
    const real *weight, *bias;
    operand<real> dw, db;
    buffer partial, bias_partial;
};

// --- pooling and up-sampling ---

/// A pooling's shape as numbers.
struct pooling_geometry {
    int height, width, channels, window, stride, out_height, out_width, top, left;

    explicit pooling_geometry(const pooling_shape& s)
        : height(s.height),
          width(s.width),
          channels(s.channels),
          window(s.window),
          stride(s.stride),
          out_height(s.out_height()),
          out_width(s.out_width()),
          top(s.before_rows()),
          left(s.before_columns()) {}
};

namespace internal {

template <class Real>
struct pool_windows {
    pooling_geometry s;
    step_rows<Real> x, y;
    std::uint8_t* taps;  // [images, outputs], or null
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t image = i / y.width;
        const int at = static_cast<int>(i % y.width), c = at % s.channels, pixel = at / s.channels;
        const int first_y = pixel / s.out_width * s.stride - s.top, first_x = pixel % s.out_width * s.stride - s.left;
        Real best = 0;
        int winner = -1;
        for (int tap = 0; tap < s.window * s.window; ++tap) {
            const int row = first_y + tap / s.window, column = first_x + tap % s.window;
            if (row < 0 || row >= s.height || column < 0 || column >= s.width) continue;
            const Real v = x.row(image)[(std::ptrdiff_t{row} * s.width + column) * s.channels + c];
            // The first largest wins, and the first NaN over all.
            if (winner >= 0 && !(v > best) && !(v != v && best == best)) continue;
            best = v;
            winner = tap;
        }
        y.row(image)[at] = best;
        if (taps) taps[i] = static_cast<std::uint8_t>(winner);
    }
};

template <class Real>
struct pool_gradient {
    pooling_geometry s;
    step_rows<Real> dy, dx;
    const std::uint8_t* taps;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t image = i / dx.width;
        const int at = static_cast<int>(i % dx.width), c = at % s.channels, pixel = at / s.channels;
        const int row = pixel / s.width + s.top, column = pixel % s.width + s.left;
        Real sum = 0;
        for (int tap = 0; tap < s.window * s.window; ++tap) {
            const int y = row - tap / s.window, x = column - tap % s.window;
            if (y < 0 || x < 0 || y % s.stride != 0 || x % s.stride != 0) continue;
            const int oy = y / s.stride, ox = x / s.stride;
            if (oy >= s.out_height || ox >= s.out_width) continue;
            const std::ptrdiff_t out = (std::ptrdiff_t{oy} * s.out_width + ox) * s.channels + c;
            if (taps[image * dy.width + out] == tap) sum += dy.row(image)[out];
        }
        dx.put(image, at, sum);
    }
};

}  // namespace internal

template <device_backend Backend>
struct max_pool_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    max_pool_kernel(const binder<Backend>& b, const pooling_shape& s)
        : device_kernel<Backend>(b), shape(s), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {
        const int images = d_in ? (out.step ? b.steps() : 1) * b.batch() : 0;
        taps = bytes(static_cast<std::size_t>(images) * static_cast<std::size_t>(s.outputs()));
    }
    void forward(int t, int steps) override {
        this->launch(steps, out.width, internal::pool_windows<real>{shape, {in, t}, {out, t}, winners(t)});
    }
    void backward(int t, int steps) override {
        if (d_in && d_out)
            this->launch(steps, in.width, internal::pool_gradient<real>{shape, {d_out, t}, {d_in, t}, winners(t)});
    }

private:
    using bytes = typename executor<Backend>::template array<std::uint8_t>;

    std::uint8_t* winners(int t) { return d_in ? taps.data() + std::ptrdiff_t{t} * this->batch * out.width : nullptr; }

    pooling_geometry shape;
    operand<real> in, d_in, out, d_out;
    bytes taps;
};

namespace internal {

/// Every pixel four times, or backward the sum of its four copies.
template <class Real>
struct repeat_pixels {
    int width, channels;
    step_rows<Real> small, large;
    bool back;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t image = i / small.width;
        const int at = static_cast<int>(i % small.width), c = at % channels, pixel = at / channels;
        const std::ptrdiff_t line = std::ptrdiff_t{2} * width * channels;
        Real* const to = large.row(image) + 2 * (pixel / width) * line + 2 * (pixel % width) * channels + c;
        if (back)
            small.put(image, at, (to[0] + to[channels]) + (to[line] + to[line + channels]));
        else
            to[0] = to[channels] = to[line] = to[line + channels] = small.row(image)[at];
    }
};

}  // namespace internal

template <device_backend Backend>
struct upsample_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    upsample_kernel(const binder<Backend>& b, const image_shape& s)
        : device_kernel<Backend>(b), image(s), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override {
        this->launch(steps, in.width,
                     internal::repeat_pixels<real>{image.width, image.channels, {in, t}, {out, t}, false});
    }
    void backward(int t, int steps) override {
        if (d_in && d_out)
            this->launch(steps, in.width,
                         internal::repeat_pixels<real>{image.width, image.channels, {d_in, t}, {d_out, t}, true});
    }
    image_shape image;
    operand<real> in, d_in, out, d_out;
};

}  // namespace engram
