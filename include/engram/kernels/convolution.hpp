#pragma once
// SPDX-License-Identifier: MIT

// Convolutions of channels-last images, and their gradients, through the packed products: as a rule without an unrolled
// copy of the image.
//
//   y[oy, ox, f] = b[f] + sum over ky, kx, c of x[oy s + ky - before, ox s + kx - before, c] w[ky, kx, c, f]
//
// Images are rows of a batch, [height * width * channels] each; weights are [kernel * kernel * channels, filters] in
// the order ky, kx, c. Padding is TensorFlow's: SAME with zeros, ceil(size / stride) outputs, the odd zero after; or
// VALID, none, floor((size - kernel) / stride) + 1 outputs. In a padded image, a window row is kernel * channels
// contiguous numbers, so a row of outputs is one product of `kernel` parts whose rows overlap. For the data gradient,
// inputs with the same remainder modulo the stride see the same taps: each of the stride^2 classes is a convolution of
// stride one over dy with the taps reversed, and no multiplication by inserted zeros.
//
// Short rows of outputs against large weights would read the weights again and again: there the windows of a few images
// are copied side by side first, for one long product. A window that covers the whole image needs no copy: all images
// are the rows of one affine map. Every output is the same chain of terms whichever way it is computed, so the way, and
// the number of images, change no bits (but the sign of a zero).
//
// A transposed convolution is the data gradient of the convolution that its shape describes: [out_height, out_width,
// filters] to [height, width, channels].

#include <algorithm>
#include <array>
#include <cstddef>

#include "engram/kernels/convolution_shape.hpp"
#include "engram/kernels/product.hpp"

namespace engram {

/// Windows of taps x depth numbers, `rows` x `columns` of them, side by side; returns the end of what it wrote.
template <class Real>
Real* gather_windows(const Real* image, std::ptrdiff_t line, int rows, int columns, std::ptrdiff_t row_step,
                     std::ptrdiff_t column_step, int taps, int depth, Real* to) {
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c)
            for (int k = 0; k < taps; ++k)
                to = std::copy_n(image + r * row_step + c * column_step + k * line, depth, to);
    return to;
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

/// y = the convolution of `images` images x; with `accumulate` added to y.
template <class Real>
void convolution_forward(const convolution_shape& s, const packed_weights<Real>& weights, const Real* bias,
                         bool accumulate, const Real* x, std::ptrdiff_t x_stride, Real* y, std::ptrdiff_t y_stride,
                         int images, Real* scratch) {
    const int depth = s.kernel * s.channels, rows = s.out_height(), columns = s.out_width();
    if (s.is_affine()) {
        const product_part<Real> all{x, x_stride, &weights, 0, s.weight_rows()};
        return multiply(&all, 1, bias, accumulate, y, y_stride, images);
    }
    const std::ptrdiff_t line = std::ptrdiff_t(s.padded_width()) * s.channels;
    if (const int most = gathered_images(s, rows, columns)) {
        Real* const windows = scratch + s.padded_height() * line;
        // Images that do not follow each other densely are taken one by one.
        const int at_once = y_stride == s.outputs() ? most : 1;
        for (int first = 0; first < images; first += at_once) {
            const int count = std::min(at_once, images - first);
            Real* end = windows;
            for (int image = first; image < first + count; ++image)
                end = gather_windows(padded_image(s, x + image * x_stride, scratch), line, rows, columns,
                                     s.stride * line, std::ptrdiff_t(s.stride) * s.channels, s.kernel, depth, end);
            const product_part<Real> all{windows, s.weight_rows(), &weights, 0, s.weight_rows()};
            multiply(&all, 1, bias, accumulate, y + first * y_stride, s.filters, count * rows * columns);
        }
        return;
    }
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
void pack_flipped(const convolution_shape& s, const Real* w, packed_weights<Real>& packed, panel_range part = {}) {
    s.check();
    if (packed.rows() != s.kernel * s.kernel * s.filters || packed.columns() != s.channels)
        packed.resize(s.kernel * s.kernel * s.filters, s.channels);
    packed.pack_from(
        [&](int row, int c) {
            int a = s.stride - 1, b = s.stride - 1;
            while (a > 0 && row < s.class_row(a, 0)) --a;
            while (b > 0 && row < s.class_row(a, b)) --b;
            const int within = row - s.class_row(a, b), tap = within / s.filters, f = within % s.filters;
            const int ky = a + s.stride * (s.taps(a) - 1 - tap / s.taps(b));
            const int kx = b + s.stride * (s.taps(b) - 1 - tap % s.taps(b));
            return w[(std::ptrdiff_t(ky * s.kernel + kx) * s.channels + c) * s.filters + f];
        },
        part);
}

/// transposed_convolution_forward of a few images at once: for each class, the windows of dy side by side.
template <class Real>
void send_windows(const convolution_shape& s, const packed_weights<Real>& flipped, const Real* bias, bool accumulate,
                  const Real* x, std::ptrdiff_t x_stride, Real* y, std::ptrdiff_t y_stride, int images, Real* scratch) {
    const int margin = s.margin();
    const std::ptrdiff_t line = std::ptrdiff_t(s.gradient_width()) * s.filters, placed = s.gradient_height() * line;
    Real* const windows = scratch + images * placed;
    for (int i = 0; i < images; ++i)
        place_amid_zeros(x + i * x_stride, s.out_height(), s.out_width(), s.filters, margin, margin,
                         scratch + i * placed, s.gradient_height(), s.gradient_width());
    for (int iy = 0; iy < std::min(s.stride, s.height); ++iy)
        for (int ix = 0; ix < std::min(s.stride, s.width); ++ix) {
            const int a = (iy + s.before_rows()) % s.stride, row = (iy + s.before_rows()) / s.stride;
            const int b = (ix + s.before_columns()) % s.stride, column = (ix + s.before_columns()) / s.stride;
            const int rows = (s.height - iy + s.stride - 1) / s.stride;
            const int columns = (s.width - ix + s.stride - 1) / s.stride;
            const int depth = s.taps(b) * s.filters, terms = s.taps(a) * depth;
            const std::ptrdiff_t start =
                (row - (s.taps(a) - 1) + margin) * line + std::ptrdiff_t(column - (s.taps(b) - 1) + margin) * s.filters;
            Real* sums = windows;
            for (int i = 0; i < images; ++i)
                sums = gather_windows(scratch + i * placed + start, line, rows, columns, line,
                                      std::ptrdiff_t(s.filters), s.taps(a), depth, sums);
            const auto each_pixel = [&](auto body) {
                Real* at = sums;
                for (int i = 0; i < images; ++i)
                    for (int r = 0; r < rows; ++r)
                        for (int c = 0; c < columns; ++c, at += s.channels)
                            body(at,
                                 y + i * y_stride +
                                     (std::ptrdiff_t(iy + r * s.stride) * s.width + ix + c * s.stride) * s.channels);
            };
            if (accumulate) each_pixel([&](Real* sum, const Real* old) { std::copy_n(old, s.channels, sum); });
            const product_part<Real> all{windows, terms, &flipped, s.class_row(a, b), terms};
            multiply(&all, 1, bias, accumulate, sums, s.channels, images * rows * columns);
            each_pixel([&](const Real* sum, Real* to) { std::copy_n(sum, s.channels, to); });
        }
}

/// y [height, width, channels] = bias + what the convolution would send back for x [out_height, out_width, filters].
template <class Real>
void transposed_convolution_forward(const convolution_shape& s, const packed_weights<Real>& flipped, const Real* bias,
                                    bool accumulate, const Real* x, std::ptrdiff_t x_stride, Real* y,
                                    std::ptrdiff_t y_stride, int images, Real* scratch) {
    if (s.is_affine()) {
        // Every pixel sees one tap.
        for (int iy = 0; iy < s.height; ++iy)
            for (int ix = 0; ix < s.width; ++ix) {
                const product_part<Real> tap{x, x_stride, &flipped, s.flipped_row(iy, ix), s.filters};
                multiply(&tap, 1, bias, accumulate, y + (std::ptrdiff_t(iy) * s.width + ix) * s.channels, y_stride,
                         images);
            }
        return;
    }
    if (const int at_once = gathered_images(s, s.class_rows(), s.class_columns())) {
        for (int first = 0; first < images; first += at_once)
            send_windows(s, flipped, bias, accumulate, x + first * x_stride, x_stride, y + first * y_stride, y_stride,
                         std::min(at_once, images - first), scratch);
        return;
    }
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

/// The transpose: from the smaller image to the larger one.
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
    const auto add_bias = [&](int image) {
        if (db) sum_rows(dy + image * dy_stride, s.filters, s.filters, s.out_height() * out, db, true);
    };
    const auto add_taps = [&](int ky, const Real* from, std::ptrdiff_t from_stride, const Real* slopes,
                              std::ptrdiff_t slope_stride, int m, Real* workspace) {
        multiply_transposed(from, from_stride, depth, slopes, slope_stride, s.filters, m,
                            dw + std::ptrdiff_t(ky) * depth * s.filters, s.filters, true, workspace);
    };
    if (s.is_affine()) {
        for (int image = 0; image < images; ++image) add_bias(image);
        for (int ky = 0; ky < s.kernel; ++ky) add_taps(ky, x + ky * line, x_stride, dy, dy_stride, images, scratch);
        return;
    }
    if (const int most = gathered_images(s, s.out_height(), out)) {
        Real* const windows = scratch + s.padded_height() * line;
        const int at_once = dy_stride == s.outputs() ? most : 1;
        for (int first = 0; first < images; first += at_once) {
            const int count = std::min(at_once, images - first);
            Real* end = windows;
            for (int image = first; image < first + count; ++image) {
                add_bias(image);
                end = gather_windows(padded_image(s, x + image * x_stride, scratch), line, s.out_height(), out,
                                     s.stride * line, std::ptrdiff_t(s.stride) * s.channels, s.kernel, depth, end);
            }
            for (int ky = 0; ky < s.kernel; ++ky)
                add_taps(ky, windows + ky * depth, s.weight_rows(), dy + first * dy_stride, s.filters,
                         count * s.out_height() * out, end);
        }
        return;
    }
    Real* spread = scratch + s.padded_height() * line;
    Real* workspace = spread + std::ptrdiff_t(rows) * columns * s.filters;
    for (int image = 0; image < images; ++image) {
        const Real* padded = padded_image(s, x + image * x_stride, scratch);
        const Real* dys = dy + image * dy_stride;
        add_bias(image);
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
                add_taps(ky, padded + (oy * s.stride + ky) * line, std::ptrdiff_t(s.stride) * s.channels, from,
                         s.filters, m, workspace);
        }
    }
}

/// dw and db from x and dy; with `accumulate` added to them.
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
