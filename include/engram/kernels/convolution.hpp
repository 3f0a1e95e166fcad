#pragma once
// SPDX-License-Identifier: MIT

// Convolutions of channels-last images, and their gradients, through the packed products: no unrolled copy of the
// image.
//
//   y[oy, ox, f] = b[f] + sum over ky, kx, c of x[oy s + ky - before, ox s + kx - before, c] w[ky, kx, c, f]
//
// Images are rows of a batch, [height * width * channels] each; weights are [kernel * kernel * channels, filters] in
// the order ky, kx, c. Padding is TensorFlow's SAME with zeros: ceil(size / stride) outputs, the odd zero after. In a
// padded image, a window row is kernel * channels contiguous numbers, so a row of outputs is one product of `kernel`
// parts whose rows overlap. For the data gradient, inputs with the same remainder modulo the stride see the same taps:
// each of the stride^2 classes is a convolution of stride one over dy with the taps reversed, and no multiplication by
// inserted zeros.
//
// A transposed convolution is the data gradient of the convolution that its shape describes: [out_height, out_width,
// filters] to [height, width, channels].

#include <algorithm>
#include <array>
#include <cstddef>

#include "engram/core/error.hpp"
#include "engram/kernels/product.hpp"

namespace engram {

struct convolution_shape {
    int height, width, channels, filters, kernel, stride;

    int out_height() const { return (height + stride - 1) / stride; }
    int out_width() const { return (width + stride - 1) / stride; }
    int inputs() const { return height * width * channels; }
    int outputs() const { return out_height() * out_width() * filters; }
    int weight_rows() const { return kernel * kernel * channels; }

    // The part of the padded image that windows touch, and the zeros before the image in it.
    int padded_height() const { return (out_height() - 1) * stride + kernel; }
    int padded_width() const { return (out_width() - 1) * stride + kernel; }
    int before_rows() const { return std::max(padded_height() - height, 0) / 2; }
    int before_columns() const { return std::max(padded_width() - width, 0) / 2; }

    // Class `a` of taps: those that are a modulo the stride. `margin` zeros surround dy in the data gradient.
    int taps(int a) const { return a < kernel ? (kernel - a + stride - 1) / stride : 0; }
    int margin() const { return taps(0) - 1; }
    int gradient_height() const { return (height - 1 + before_rows()) / stride + 1 + margin(); }
    int gradient_width() const { return (width - 1 + before_columns()) / stride + 1 + margin(); }

    /// First row of class (a, b) in the flipped weights.
    int class_row(int a, int b) const {
        int taps_before = 0;
        for (int i = 0; i < a; ++i) taps_before += taps(i) * kernel;
        for (int i = 0; i < b; ++i) taps_before += taps(a) * taps(i);
        return taps_before * filters;
    }

    static constexpr int largest_kernel = 16;

    void check() const {
        require(height > 0 && width > 0 && channels > 0 && filters > 0 && stride > 0,
                "convolution: sizes must be positive, here ", height, " x ", width, " x ", channels, " to ", filters,
                " filters, stride ", stride);
        require(kernel > 0 && kernel <= largest_kernel, "convolution: kernel ", kernel, " is not in 1..",
                largest_kernel);
    }
};

/// Output rows that the weight gradient takes at a time: enough to amortise reading and writing dw, within the cache.
inline int gradient_rows(const convolution_shape& s) {
    return s.stride == 1 ? std::clamp(transposed_block / s.padded_width(), 1, s.out_height()) : 1;
}

/// Elements of scratch memory for any call with this shape (of floats or doubles), per thread.
inline std::ptrdiff_t convolution_scratch(const convolution_shape& s) {
    const std::ptrdiff_t image = std::ptrdiff_t(s.padded_height()) * s.padded_width() * s.channels;
    const std::ptrdiff_t gradient = std::ptrdiff_t(s.gradient_height()) * s.gradient_width() * s.filters;
    const int rows = gradient_rows(s) * s.padded_width();
    const std::ptrdiff_t product = std::max(transposed_workspace<float>(s.kernel * s.channels, s.filters, rows),
                                            transposed_workspace<double>(s.kernel * s.channels, s.filters, rows));
    return std::max(gradient, image + std::ptrdiff_t(rows) * s.filters + product);
}

/// Rows [rows, columns, channels] of an image amid zeros: to[r, c] = from[r - top, c - left] where that exists.
template <class Real>
void place_amid_zeros(const Real* from, int rows, int columns, int channels, int top, int left, Real* to, int to_rows,
                      int to_columns) {
    const int used_rows = std::min(rows, to_rows - top), used_columns = std::min(columns, to_columns - left);
    const std::ptrdiff_t line = std::ptrdiff_t(to_columns) * channels, start = std::ptrdiff_t(left) * channels;
    const std::ptrdiff_t used = std::ptrdiff_t(used_columns) * channels;
    std::fill_n(to, top * line, Real(0));
    for (int r = 0; r < used_rows; ++r) {
        Real* row = to + (top + r) * line;
        std::fill_n(row, start, Real(0));
        std::copy_n(from + std::ptrdiff_t(r) * columns * channels, used, row + start);
        std::fill_n(row + start + used, line - start - used, Real(0));
    }
    std::fill_n(to + (top + used_rows) * line, (to_rows - top - used_rows) * line, Real(0));
}

/// The image itself where no zero has to surround it, else its copy in scratch; lines of padded_width() either way.
template <class Real>
const Real* padded_image(const convolution_shape& s, const Real* x, Real* scratch) {
    if (s.padded_width() == s.width && s.padded_height() <= s.height) return x;
    place_amid_zeros(x, s.height, s.width, s.channels, s.before_rows(), s.before_columns(), scratch, s.padded_height(),
                     s.padded_width());
    return scratch;
}

template <class Real>
void convolution_forward(const convolution_shape& s, const packed_weights<Real>& weights, const Real* bias,
                         bool accumulate, const Real* x, std::ptrdiff_t x_stride, Real* y, std::ptrdiff_t y_stride,
                         int images, Real* scratch) {
    const int depth = s.kernel * s.channels;
    const std::ptrdiff_t line = std::ptrdiff_t(s.padded_width()) * s.channels;
    std::array<product_part<Real>, convolution_shape::largest_kernel> parts;
    for (int image = 0; image < images; ++image) {
        const Real* padded = padded_image(s, x + image * x_stride, scratch);
        for (int oy = 0; oy < s.out_height(); ++oy) {
            for (int ky = 0; ky < s.kernel; ++ky)
                parts[ky] = {padded + (oy * s.stride + ky) * line, std::ptrdiff_t(s.stride) * s.channels, &weights,
                             ky * depth, depth};
            multiply(parts.data(), s.kernel, bias, accumulate,
                     y + image * y_stride + std::ptrdiff_t(oy) * s.out_width() * s.filters, s.filters, s.out_width());
        }
    }
}

/// y = b + w * x; bias may be null. Strides are those from image to image.
template <class Real>
void convolution_forward(const convolution_shape& s, const packed_weights<Real>& weights, const Real* bias,
                         const Real* x, std::ptrdiff_t x_stride, Real* y, std::ptrdiff_t y_stride, int images,
                         Real* scratch) {
    convolution_forward(s, weights, bias, false, x, x_stride, y, y_stride, images, scratch);
}

/// Weights [kernel * kernel * channels, filters] packed as the data gradient reads them: [classes of taps, reversed
/// taps, filters] by channels. Resizes on the first call only.
template <class Real>
void pack_flipped(const convolution_shape& s, const Real* w, packed_weights<Real>& packed) {
    s.check();
    if (packed.rows() != s.kernel * s.kernel * s.filters || packed.columns() != s.channels)
        packed.resize(s.kernel * s.kernel * s.filters, s.channels);
    packed.pack_from([&](int row, int c) {
        int a = s.stride - 1, b = s.stride - 1;
        while (a > 0 && row < s.class_row(a, 0)) --a;
        while (b > 0 && row < s.class_row(a, b)) --b;
        const int within = row - s.class_row(a, b), tap = within / s.filters, f = within % s.filters;
        const int ky = a + s.stride * (s.taps(a) - 1 - tap / s.taps(b));
        const int kx = b + s.stride * (s.taps(b) - 1 - tap % s.taps(b));
        return w[(std::ptrdiff_t(ky * s.kernel + kx) * s.channels + c) * s.filters + f];
    });
}

/// y [height, width, channels] = bias + what the convolution would send back for x [out_height, out_width, filters].
template <class Real>
void transposed_convolution_forward(const convolution_shape& s, const packed_weights<Real>& flipped, const Real* bias,
                                    bool accumulate, const Real* x, std::ptrdiff_t x_stride, Real* y,
                                    std::ptrdiff_t y_stride, int images, Real* scratch) {
    const int margin = s.margin(), columns = s.gradient_width();
    const std::ptrdiff_t line = std::ptrdiff_t(columns) * s.filters;
    std::array<product_part<Real>, convolution_shape::largest_kernel> parts;
    for (int image = 0; image < images; ++image) {
        place_amid_zeros(x + image * x_stride, s.out_height(), s.out_width(), s.filters, margin, margin, scratch,
                         s.gradient_height(), columns);
        for (int iy = 0; iy < s.height; ++iy) {
            const int a = (iy + s.before_rows()) % s.stride, row = (iy + s.before_rows()) / s.stride;
            for (int ix = 0; ix < std::min(s.stride, s.width); ++ix) {
                const int b = (ix + s.before_columns()) % s.stride, column = (ix + s.before_columns()) / s.stride;
                const int count = (s.width - ix + s.stride - 1) / s.stride;
                const int depth = s.taps(b) * s.filters, first = s.class_row(a, b);
                for (int j = 0; j < s.taps(a); ++j)
                    parts[j] = {scratch + (row - (s.taps(a) - 1) + margin + j) * line +
                                    std::ptrdiff_t(column - (s.taps(b) - 1) + margin) * s.filters,
                                s.filters, &flipped, first + j * depth, depth};
                // A class without taps (kernel < stride) still has its bias.
                if (s.taps(a) == 0 || s.taps(b) == 0) parts[0] = {scratch, s.filters, &flipped, 0, 0};
                multiply(parts.data(), s.taps(b) == 0 ? 1 : std::max(1, s.taps(a)), bias, accumulate,
                         y + image * y_stride + (std::ptrdiff_t(iy) * s.width + ix) * s.channels,
                         std::ptrdiff_t(s.stride) * s.channels, count);
            }
        }
    }
}

template <class Real>
void transposed_convolution_forward(const convolution_shape& s, const packed_weights<Real>& flipped, const Real* bias,
                                    const Real* x, std::ptrdiff_t x_stride, Real* y, std::ptrdiff_t y_stride,
                                    int images, Real* scratch) {
    transposed_convolution_forward(s, flipped, bias, false, x, x_stride, y, y_stride, images, scratch);
}

/// dx (=|+=) the gradient to the images, with weights from pack_flipped.
template <class Real>
void convolution_data_gradient(const convolution_shape& s, const packed_weights<Real>& flipped, const Real* dy,
                               std::ptrdiff_t dy_stride, Real* dx, std::ptrdiff_t dx_stride, bool accumulate,
                               int images, Real* scratch) {
    const Real* no_bias = nullptr;
    transposed_convolution_forward(s, flipped, no_bias, accumulate, dy, dy_stride, dx, dx_stride, images, scratch);
}

/// dw [kernel * kernel * channels, filters] and db [filters] (=|+=) their gradients, images in order; db may be null.
template <class Real>
void convolution_weight_gradient(const convolution_shape& s, const Real* x, std::ptrdiff_t x_stride, const Real* dy,
                                 std::ptrdiff_t dy_stride, int images, Real* dw, Real* db, bool accumulate,
                                 Real* scratch) {
    const int depth = s.kernel * s.channels, columns = s.padded_width(), out = s.out_width(), rows = gradient_rows(s);
    const std::ptrdiff_t line = std::ptrdiff_t(columns) * s.channels;
    if (!accumulate) {
        std::fill_n(dw, std::ptrdiff_t(s.weight_rows()) * s.filters, Real(0));
        if (db) std::fill_n(db, s.filters, Real(0));
    }
    Real* spread = scratch + s.padded_height() * line;
    Real* workspace = spread + std::ptrdiff_t(rows) * columns * s.filters;
    for (int image = 0; image < images; ++image) {
        const Real* padded = padded_image(s, x + image * x_stride, scratch);
        const Real* dys = dy + image * dy_stride;
        if (db) sum_rows(dys, s.filters, s.filters, s.out_height() * out, db, true);
        for (int oy = 0; oy < s.out_height(); oy += rows) {
            const int lines = std::min(rows, s.out_height() - oy);
            const Real* from = dys + std::ptrdiff_t(oy) * out * s.filters;
            int m = out;
            if (lines > 1) {
                // With stride one several rows are one long row, if dy is zero where a window would wrap around.
                m = (lines - 1) * columns + out;
                if (columns != out) {
                    place_amid_zeros(from, lines, out, s.filters, 0, 0, spread, lines, columns);
                    from = spread;
                }
            }
            for (int ky = 0; ky < s.kernel; ++ky)
                multiply_transposed(padded + (oy * s.stride + ky) * line, std::ptrdiff_t(s.stride) * s.channels, depth,
                                    from, s.filters, s.filters, m, dw + std::ptrdiff_t(ky) * depth * s.filters,
                                    s.filters, true, workspace);
        }
    }
}

template <class Real>
void convolution_weight_gradient(const convolution_shape& s, const Real* x, const Real* dy, int images, Real* dw,
                                 Real* db, bool accumulate, Real* scratch) {
    convolution_weight_gradient(s, x, s.inputs(), dy, s.outputs(), images, dw, db, accumulate, scratch);
}

/// dx (=|+=) of a transposed convolution: the convolution itself, with its forward packing.
template <class Real>
void transposed_convolution_data_gradient(const convolution_shape& s, const packed_weights<Real>& weights,
                                          const Real* dy, std::ptrdiff_t dy_stride, Real* dx, std::ptrdiff_t dx_stride,
                                          bool accumulate, int images, Real* scratch) {
    const Real* no_bias = nullptr;
    convolution_forward(s, weights, no_bias, accumulate, dy, dy_stride, dx, dx_stride, images, scratch);
}

/// dw as the convolution has it, db [channels] of the transposed convolution's own bias; x [out_height, out_width,
/// filters].
template <class Real>
void transposed_convolution_weight_gradient(const convolution_shape& s, const Real* x, const Real* dy, int images,
                                            Real* dw, Real* db, bool accumulate, Real* scratch) {
    Real* no_bias = nullptr;
    convolution_weight_gradient(s, dy, x, images, dw, no_bias, accumulate, scratch);
    if (db) sum_rows(dy, s.channels, s.channels, images * s.height * s.width, db, accumulate);
}

}  // namespace engram
