#pragma once
// SPDX-License-Identifier: MIT

// Convolutions, transposed convolutions, max pooling and up-sampling of images in the columns of a variable.
//
// A row [H * W * C] is one image, channels last. Padding is SAME with zeros, ceil(H / stride) rows come out, or VALID,
// none, floor((H - kernel) / stride) + 1 rows come out. Weights are [kernel * kernel * C, filters] in the order ky, kx,
// c. A transposed convolution ("deconvolution") is the data gradient of the convolution from its output to its input,
// so its weight is [kernel * kernel * filters, C]; it multiplies H and W by the stride (SAME) or gives
// (H - 1) * stride + kernel rows (VALID). Scratch is that of a few images; a weight gradient is one sweep over all
// T * B images, after a time loop.

#include <engram/graph/image_shape.hpp>
#include <engram/graph/simple_operation.hpp>
#include <engram/kernels/convolution.hpp>
#include <engram/kernels/pooling.hpp>

namespace engram {

/// A convolution as a kernel sees it: `shape` always describes the convolution, `transposed` which way it is run.
struct convolution_settings {
    convolution_shape shape;
    linear weights;
    bool transposed;
};

template <class Backend>
struct convolution_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    convolution_kernel(const binder<Backend>& b, const convolution_settings& s)
        : shape(s.shape),
          transposed(s.transposed),
          stepwise(b.stepwise()),
          all(b.steps()),
          batch(b.batch()),
          x(b.in(0)),
          dx(b.d_in(0)),
          y(b.out(0)),
          dy(b.d_out(0)),
          bias(s.weights.bias),
          store(&b.store()),
          dw(b.d_parameter(s.weights.weight)),
          scratch(static_cast<std::size_t>(convolution_scratch(s.shape))) {
        if (bias.id >= 0) db = b.d_parameter(bias);
        const auto flipped = [&] {
            return store->packed(s.weights.weight, message("flipped ", shape.kernel, " ", shape.stride),
                                 shape.kernel * shape.kernel * shape.filters, shape.channels,
                                 [shape = shape](const real* w, packed_weights<real>& to, panel_range part) {
                                     pack_flipped(shape, w, to, part);
                                 });
        };
        const auto plain = [&] { return store->packed_forward(s.weights.weight); };
        weights = transposed ? flipped() : plain();
        if (dx) gradient_weights = transposed ? plain() : flipped();
    }

    void forward(int t, int steps) override {
        const real* b = bias.id >= 0 ? store->values(bias) : nullptr;
        if (transposed)
            transposed_convolution_forward(shape, *weights, b, x.at(t), x.stride, y.at(t), y.stride, steps * batch,
                                           scratch.data());
        else
            convolution_forward(shape, *weights, b, x.at(t), x.stride, y.at(t), y.stride, steps * batch,
                                scratch.data());
    }
    void backward(int t, int steps) override {
        if (dx && dy) {
            if (transposed)
                transposed_convolution_data_gradient(shape, *gradient_weights, dy.at(t), dy.stride, dx.at(t), dx.stride,
                                                     dx.accumulate, steps * batch, scratch.data());
            else
                convolution_data_gradient(shape, *gradient_weights, dy.at(t), dy.stride, dx.at(t), dx.stride,
                                          dx.accumulate, steps * batch, scratch.data());
        }
        if (!stepwise) weight_gradients(0, steps, false);
    }
    void after() override {
        if (x.step) return weight_gradients(0, all, false);
        // One image a batch entry meets the gradients of all steps.
        for (int t = 0; t < all; ++t) weight_gradients(t, 1, t > 0);
    }

private:
    void weight_gradients(int t, int steps, bool add) {
        if (!dy || !dw) return;
        const int images = steps * batch;
        real* no_bias = nullptr;
        if (transposed)
            convolution_weight_gradient(shape, dy.at(t), dy.stride, x.at(t), x.stride, images, dw.data, no_bias,
                                        dw.accumulate || add, scratch.data());
        else
            convolution_weight_gradient(shape, x.at(t), x.stride, dy.at(t), dy.stride, images, dw.data, no_bias,
                                        dw.accumulate || add, scratch.data());
        // An output's gradient is dense: its pixels are rows of `db.width` channels.
        if (db) sum_rows(dy.at(t), db.width, db.width, images * (dy.width / db.width), db.data, db.accumulate || add);
    }

    convolution_shape shape;
    bool transposed, stepwise;
    int all, batch;
    operand<real> x, dx, y, dy;
    parameter bias;
    parameters<real>* store;
    const packed_weights<real>* weights = nullptr;
    const packed_weights<real>* gradient_weights = nullptr;
    operand<real> dw, db;
    aligned_vector<real> scratch;
};

/// A convolution or its transpose, as its settings say, between two shapes.
template <class Backend>
var<Backend> add_convolution(const std::string& name, const var<Backend>& x, image_shape from, image_shape to,
                             const convolution_settings& s) {
    graph<Backend>& g = *x.owner;
    const convolution_shape& c = s.shape;
    auto op = make_operation<convolution_kernel>(g, name, {x}, s);
    const std::string who = g.full_name(name);
    require(from.height > 0 && from.width > 0 && from.channels > 0, who, ": an image of ", from, " has no pixels");
    require(x.width == from.size(), who, ": the input has ", x.width, " columns, an image of ", from, " has ",
            from.size());
    require(c.kernel > 0 && c.kernel <= convolution_shape::largest_kernel && c.stride > 0, who, ": kernel ", c.kernel,
            " and stride ", c.stride, "; a kernel has 1 to ", convolution_shape::largest_kernel,
            " rows, a stride is at least 1");
    require(c.fits(), who, ": a kernel ", c.kernel, " without padding does not fit into an image of ", from);
    const auto& w = g.store()[s.weights.weight];
    require(w.rows == c.weight_rows() && w.columns == c.filters, who, ": the weight '", w.name, "' is [", w.rows, ",",
            w.columns, "], a kernel ", c.kernel, " from ", from, " to ", to, " needs [", c.weight_rows(), ",",
            c.filters, "]");
    op->parameters = {s.weights.weight.id};
    if (s.weights.bias.id >= 0) {
        const auto& b = g.store()[s.weights.bias];
        require(b.size() == to.channels, who, ": the bias '", b.name, "' has ", b.size(), " entries, an image of ", to,
                " needs ", to.channels);
        op->parameters.push_back(s.weights.bias.id);
    }
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {to.size()}, rows)[0];
}

/// The image that a convolution makes of one.
inline image_shape convolved(image_shape image, int filters, int kernel, int stride,
                             padding_rule padding = padding_rule::same) {
    const convolution_shape s{image.height, image.width, image.channels, filters, kernel, std::max(stride, 1), padding};
    return {s.out_height(), s.out_width(), filters};
}

/// The image that a transposed convolution makes of one: the smallest from which the convolution comes back.
inline image_shape deconvolved(image_shape image, int filters, int kernel, int stride,
                               padding_rule padding = padding_rule::same) {
    if (padding == padding_rule::same) return image.enlarged(stride, filters);
    return {(image.height - 1) * stride + kernel, (image.width - 1) * stride + kernel, filters};
}

/// The convolution of x [T, B, H * W * C]: [T, B, H' * W' * filters], an image as convolved() says. A weight without a
/// bias (id -1) adds none.
template <class Backend>
var<Backend> convolve(const std::string& name, const var<Backend>& x, image_shape image, int filters, int kernel,
                      int stride, linear weights, padding_rule padding = padding_rule::same) {
    const convolution_shape shape{image.height, image.width, image.channels, filters, kernel, stride, padding};
    return add_convolution(name, x, image, convolved(image, filters, kernel, stride, padding), {shape, weights, false});
}

/// The transposed convolution of x: an image as deconvolved() says.
template <class Backend>
var<Backend> deconvolve(const std::string& name, const var<Backend>& x, image_shape image, int filters, int kernel,
                        int stride, linear weights, padding_rule padding = padding_rule::same) {
    const image_shape to = deconvolved(image, filters, kernel, stride, padding);
    return add_convolution(
        name, x, image, to,
        {{to.height, to.width, to.channels, image.channels, kernel, stride, padding}, weights, true});
}

/// How a convolution starts: normal weights of `variance` / (terms of a sum), 2 where a ReLU follows (He); a bias of
/// zeros, or none where a normalisation follows, which has its own.
struct convolution_start {
    double variance = 2;
    bool bias = true;
};

/// Weight [kernel * kernel * channels, filters] and bias of convolve.
template <class Backend>
linear declare_convolution(graph<Backend>& g, const std::string& name, int channels, int filters, int kernel,
                           convolution_start start = {}) {
    using real = typename Backend::real;
    return {g.declare(name + ".weight", kernel * kernel * channels, filters,
                      initial::fan_in<real>(std::sqrt(start.variance))),
            start.bias ? g.declare(name + ".bias", 1, filters, initial::zero<real>()) : parameter{}};
}

/// Weight [kernel * kernel * filters, channels] and bias of deconvolve: a pixel sees about (kernel / stride)^2 taps.
template <class Backend>
linear declare_deconvolution(graph<Backend>& g, const std::string& name, int channels, int filters, int kernel,
                             int stride, convolution_start start = {}) {
    using real = typename Backend::real;
    const double gain = stride * std::sqrt(start.variance * filters / channels);
    return {g.declare(name + ".weight", kernel * kernel * filters, channels, initial::fan_in<real>(gain)),
            start.bias ? g.declare(name + ".bias", 1, filters, initial::zero<real>()) : parameter{}};
}

template <class Backend>
struct max_pool_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    max_pool_kernel(const binder<Backend>& b, const pooling_shape& s)
        : shape(s), batch(b.batch()), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {
        // Without a gradient nobody reads the winners: room for one image's is enough.
        const int images = d_in ? (out.step ? b.steps() : 1) * batch : 1;
        taps.resize(static_cast<std::size_t>(images) * static_cast<std::size_t>(s.outputs()));
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            max_pool_forward(shape, in.at(t) + r * in.stride, in.stride, out.at(t) + r * out.stride, out.stride,
                             d_in ? winners(t) + std::ptrdiff_t{r} * shape.outputs() : taps.data(), 1);
    }
    void backward(int t, int steps) override {
        if (d_in && d_out)
            max_pool_backward(shape, d_out.at(t), d_out.stride, winners(t), d_in.at(t), d_in.stride, d_in.accumulate,
                              steps * batch);
    }

private:
    std::uint8_t* winners(int t) { return taps.data() + std::ptrdiff_t{t} * batch * shape.outputs(); }

    pooling_shape shape;
    int batch;
    operand<real> in, d_in, out, d_out;
    std::vector<std::uint8_t> taps;
};

/// The largest number of every 3 x 3 window, stride 2: image.reduced(2, channels). Padding never wins.
template <class Backend>
var<Backend> max_pool(const std::string& name, const var<Backend>& x, image_shape image) {
    graph<Backend>& g = *x.owner;
    const pooling_shape s{image.height, image.width, image.channels};
    auto op = make_operation<max_pool_kernel>(g, name, {x}, s);
    require(image.height > 0 && image.width > 0 && image.channels > 0, g.full_name(name), ": an image of ", image,
            " has no pixels");
    require(x.width == image.size(), g.full_name(name), ": the input has ", x.width, " columns, an image of ", image,
            " has ", image.size());
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {s.outputs()}, rows)[0];
}

template <class Backend>
struct upsample_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    upsample_kernel(const binder<Backend>& b, const image_shape& s)
        : image(s), batch(b.batch()), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override {
        upsample_forward(image.height, image.width, image.channels, in.at(t), in.stride, out.at(t), out.stride,
                         steps * batch);
    }
    void backward(int t, int steps) override {
        if (d_in && d_out)
            upsample_backward(image.height, image.width, image.channels, d_out.at(t), d_out.stride, d_in.at(t),
                              d_in.stride, d_in.accumulate, steps * batch);
    }
    image_shape image;
    int batch;
    operand<real> in, d_in, out, d_out;
};

/// Every pixel four times: image.enlarged(2, channels).
template <class Backend>
var<Backend> upsample(const std::string& name, const var<Backend>& x, image_shape image) {
    graph<Backend>& g = *x.owner;
    auto op = make_operation<upsample_kernel>(g, name, {x}, image);
    require(x.width == image.size(), g.full_name(name), ": the input has ", x.width, " columns, an image of ", image,
            " has ", image.size());
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {4 * image.size()}, rows)[0];
}

}  // namespace engram
