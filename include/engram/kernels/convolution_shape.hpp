#pragma once
// SPDX-License-Identifier: MIT

// The shape of a convolution: what it does to the size of an image, where its zeros stand, how its taps fall into
// classes modulo the stride, and the scratch memory that its kernels need.

#include <algorithm>
#include <cstddef>

#include "engram/core/error.hpp"
#include "engram/kernels/product.hpp"

namespace engram {

/// SAME: ceil(size / stride) outputs, zeros around the image. VALID: only windows that lie within the image.
enum class padding_rule { same, valid };

struct convolution_shape {
    int height, width, channels, filters, kernel, stride;
    padding_rule padding = padding_rule::same;

    int out_height() const { return windows(height); }
    int out_width() const { return windows(width); }
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
    int class_rows() const { return (height + stride - 1) / stride; }
    int class_columns() const { return (width + stride - 1) / stride; }
    int gradient_height() const { return (height - 1 + before_rows()) / stride + 1 + margin(); }
    int gradient_width() const { return (width - 1 + before_columns()) / stride + 1 + margin(); }

    /// First row of tap (ky, kx) in the flipped weights.
    int flipped_row(int ky, int kx) const {
        const int a = ky % stride, b = kx % stride;
        return class_row(a, b) + ((taps(a) - 1 - ky / stride) * taps(b) + taps(b) - 1 - kx / stride) * filters;
    }
    /// First row of class (a, b) in the flipped weights.
    int class_row(int a, int b) const {
        int taps_before = 0;
        for (int i = 0; i < a; ++i) taps_before += taps(i) * kernel;
        for (int i = 0; i < b; ++i) taps_before += taps(a) * taps(i);
        return taps_before * filters;
    }

    /// One window covers the image and nothing else.
    bool is_affine() const {
        return out_height() == 1 && out_width() == 1 && padded_height() == height && padded_width() == width;
    }

    static constexpr int largest_kernel = 16;

    /// There is a window at all.
    bool fits() const { return padding == padding_rule::same || (kernel <= height && kernel <= width); }
    void check() const {
        require(height > 0 && width > 0 && channels > 0 && filters > 0 && stride > 0,
                "convolution: sizes must be positive, here ", height, " x ", width, " x ", channels, " to ", filters,
                " filters, stride ", stride);
        require(kernel > 0 && kernel <= largest_kernel, "convolution: kernel ", kernel, " is not in 1..",
                largest_kernel);
        require(fits(), "convolution: a kernel ", kernel, " without padding does not fit into ", height, " x ", width);
    }

private:
    int windows(int size) const {
        return padding == padding_rule::same ? (size + stride - 1) / stride : (size - kernel) / stride + 1;
    }
};

/// Rows of a product from which on reading the weights no longer counts.
inline constexpr int enough_rows = 128;

/// Images whose windows are copied side by side for a product of `rows` x `columns` outputs an image; 0 for none.
inline int gathered_images(const convolution_shape& s, int rows, int columns) {
    constexpr int short_row = 8, large = 1 << 16;
    if (columns >= short_row || s.weight_rows() * s.filters < large) return 0;
    return std::max(1, enough_rows / (rows * columns));
}

/// Output rows that the weight gradient takes at a time: enough to amortise reading and writing dw, within the cache.
inline int gradient_rows(const convolution_shape& s) {
    return s.stride == 1 ? std::clamp(transposed_block / s.padded_width(), 1, s.out_height()) : 1;
}

/// Elements of scratch memory for any call with this shape (of floats or doubles), per thread.
inline std::ptrdiff_t convolution_scratch(const convolution_shape& s) {
    const auto product_space = [&](int m) {
        const int depth = s.kernel * s.channels;
        return std::max(transposed_workspace<float>(depth, s.filters, m),
                        transposed_workspace<double>(depth, s.filters, m));
    };
    if (s.is_affine()) return product_space(transposed_block);
    const std::ptrdiff_t image = std::ptrdiff_t(s.padded_height()) * s.padded_width() * s.channels;
    const std::ptrdiff_t gradient = std::ptrdiff_t(s.gradient_height()) * s.gradient_width() * s.filters;
    const int rows = gradient_rows(s) * s.padded_width();
    const std::ptrdiff_t direct = image + std::ptrdiff_t(rows) * s.filters + product_space(rows);

    const int windows = gathered_images(s, s.out_height(), s.out_width()) * s.out_height() * s.out_width();
    const std::ptrdiff_t gathered = image + std::ptrdiff_t(windows) * s.weight_rows() + product_space(windows);
    const std::ptrdiff_t pixel = std::ptrdiff_t(s.taps(0)) * s.taps(0) * s.filters + s.channels;
    const std::ptrdiff_t sent =
        gathered_images(s, s.class_rows(), s.class_columns()) * (gradient + s.class_rows() * s.class_columns() * pixel);
    return std::max({direct, windows > 0 ? gathered : 0, gradient, sent});
}

}  // namespace engram
