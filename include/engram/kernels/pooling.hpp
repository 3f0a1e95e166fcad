#pragma once
// SPDX-License-Identifier: MIT

// Max pooling and nearest up-sampling of channels-last images, vectorised over channels.
//
// Images are rows of a batch, [height, width, channels] each, so many elements apart as the strides say. Pooling pads
// as TensorFlow's SAME does, with positions that are never the maximum: ceil(size / stride) outputs. Ties: the first
// tap in reading order wins. A NaN in a window is its maximum. The forward call saves for each output which tap won (0
// .. window^2 - 1), and the gradient gathers: each input asks the few windows that contain it, so it is written once.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engram/core/error.hpp"
#include "engram/core/pack.hpp"

namespace engram {

struct pooling_shape {
    int height, width, channels, window = 3, stride = 2;

    int out_height() const { return (height + stride - 1) / stride; }
    int out_width() const { return (width + stride - 1) / stride; }
    int inputs() const { return height * width * channels; }
    int outputs() const { return out_height() * out_width() * channels; }
    int before_rows() const { return std::max((out_height() - 1) * stride + window - height, 0) / 2; }
    int before_columns() const { return std::max((out_width() - 1) * stride + window - width, 0) / 2; }

    void check() const {
        require(height > 0 && width > 0 && channels > 0, "pooling: an image of ", height, " x ", width, " x ",
                channels);
        require(window > 0 && window < 16 && stride > 0 && stride <= window, "pooling: window ", window, ", stride ",
                stride, "; a window has 1 to 15 rows and its stride does not exceed it");
    }
};

/// Body(first channel, channels there), the second a constant for whole packs.
template <class Real, class Body>
ENGRAM_SIMD void for_channel_packs(int channels, Body body) {
    constexpr int width = pack<Real>::width;
    int c = 0;
    for (; c + width <= channels; c += width) body(c, std::integral_constant<int, width>{});
    if (c < channels) body(c, channels - c);
}

/// The `count` channels at an address; without a mask where they fill a pack.
template <class Real, class Count>
ENGRAM_SIMD pack<Real> read_channels(const Real* from, Count count) {
    if constexpr (std::is_same_v<Count, int>)
        return pack<Real>::load(from, count);
    else
        return pack<Real>::load(from);
}

/// Stores the channels of a pack, all or `count` of them.
template <class Real, class Count>
ENGRAM_SIMD void write_channels(pack<Real> v, Real* to, Count count) {
    if constexpr (std::is_same_v<Count, int>)
        v.store(to, count);
    else
        v.store(to);
}

/// Tap numbers: integers as wide as Real in registers, one byte each in memory.
template <class Real>
struct tap_pack {
    using native = typename pack_mask<Real>::native;
    // Two fixed sizes: GCC drops a vector_size that depends on a template parameter from a type that does not.
    typedef std::uint8_t bytes_of_floats __attribute__((vector_size(pack_bytes / 4)));
    typedef std::uint8_t bytes_of_doubles __attribute__((vector_size(pack_bytes / 8)));
    using bytes = std::conditional_t<sizeof(Real) == 4, bytes_of_floats, bytes_of_doubles>;

    static ENGRAM_SIMD native load(const std::uint8_t* from, int count) {
        bytes b{};
        if (count == pack<Real>::width)
            std::memcpy(&b, from, sizeof b);
        else
            for (int i = 0; i < count; ++i) b[i] = from[i];
        return widen(b);
    }

    static ENGRAM_SIMD void store(native taps, std::uint8_t* to, int count) {
        const bytes b = __builtin_convertvector(taps, bytes);
        if (count == pack<Real>::width)
            std::memcpy(to, &b, sizeof b);
        else
            for (int i = 0; i < count; ++i) to[i] = b[i];
    }

private:
    // By hand, since GCC 12 widens byte vectors one element at a time (narrowing it does at once).
    static ENGRAM_SIMD native widen(bytes b) {
#if defined(__AVX512F__)
        if constexpr (sizeof(Real) == 4)
            return native(_mm512_maskz_cvtepu8_epi32(__mmask16(-1), __builtin_bit_cast(__m128i, b)));
        else
            return native(
                _mm512_maskz_cvtepu8_epi64(__mmask8(-1), _mm_cvtsi64_si128(__builtin_bit_cast(long long, b))));
#elif defined(__AVX2__)
        if constexpr (sizeof(Real) == 4)
            return native(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(__builtin_bit_cast(long long, b))));
        else
            return native(_mm256_cvtepu8_epi64(_mm_cvtsi32_si128(__builtin_bit_cast(int, b))));
#else
        return __builtin_convertvector(b, native);
#endif
    }
};

/// y [out_height, out_width, channels], and the winning taps, images * outputs() of them.
template <class Real>
void max_pool_forward(const pooling_shape& s, const Real* x, std::ptrdiff_t x_stride, Real* y, std::ptrdiff_t y_stride,
                      std::uint8_t* taps, int images) {
    using number = pack<Real>;
    const int top = s.before_rows(), left = s.before_columns(), oh = s.out_height(), ow = s.out_width();
    for (int image = 0; image < images; ++image)
        for (int oy = 0; oy < oh; ++oy) {
            const int y0 = oy * s.stride - top, first_y = std::max(y0, 0), last_y = std::min(y0 + s.window, s.height);
            for (int ox = 0; ox < ow; ++ox) {
                const int x0 = ox * s.stride - left, first_x = std::max(x0, 0),
                          last_x = std::min(x0 + s.window, s.width);
                const std::ptrdiff_t out = (std::ptrdiff_t(oy) * ow + ox) * s.channels;
                for_channel_packs<Real>(
                    s.channels, [&](int c, auto count) __attribute__((always_inline)) {
                        const auto at = [&](int iy, int ix) __attribute__((always_inline)) {
                            return read_channels(
                                x + image * x_stride + (std::ptrdiff_t(iy) * s.width + ix) * s.channels + c, count);
                        };
                        using integers = typename tap_pack<Real>::native;
                        number best = at(first_y, first_x);
                        integers winner = integers{} + ((first_y - y0) * s.window + first_x - x0);
                        for (int iy = first_y; iy < last_y; ++iy)
                            for (int ix = first_x; ix < last_x; ++ix) {
                                const number v = at(iy, ix);
                                const auto better = (v > best) | ((v != v) & (best == best));
                                best = select(better, v, best);
                                winner = better.bits ? integers{} + ((iy - y0) * s.window + ix - x0) : winner;
                            }
                        write_channels(best, y + image * y_stride + out + c, count);
                        tap_pack<Real>::store(winner, taps + image * std::ptrdiff_t(s.outputs()) + out + c, count);
                    });
            }
        }
}

/// dx (=|+=) dy where the forward call found the maximum.
template <class Real>
void max_pool_backward(const pooling_shape& s, const Real* dy, std::ptrdiff_t dy_stride, const std::uint8_t* taps,
                       Real* dx, std::ptrdiff_t dx_stride, bool accumulate, int images) {
    using number = pack<Real>;
    const int top = s.before_rows(), left = s.before_columns(), oh = s.out_height(), ow = s.out_width();
    for (int image = 0; image < images; ++image)
        for (int iy = 0; iy < s.height; ++iy) {
            // Windows oy with oy * stride <= iy + top < oy * stride + window.
            const int first_y = std::max(iy + top - s.window + s.stride, 0) / s.stride;
            const int last_y = std::min((iy + top) / s.stride, oh - 1);
            int begin_x = 0, end_x = 0;
            for (int ix = 0; ix < s.width; ++ix) {
                while (end_x < ow && end_x * s.stride <= ix + left) ++end_x;
                if (begin_x * s.stride + s.window <= ix + left) ++begin_x;
                const int first_x = begin_x, last_x = end_x - 1;
                Real* to = dx + image * dx_stride + (std::ptrdiff_t(iy) * s.width + ix) * s.channels;
                for_channel_packs<Real>(
                    s.channels, [&](int c, auto count) __attribute__((always_inline)) {
                        number sum = accumulate ? read_channels(to + c, count) : number(0);
                        for (int oy = first_y; oy <= last_y; ++oy)
                            for (int ox = first_x; ox <= last_x; ++ox) {
                                const std::ptrdiff_t out = (std::ptrdiff_t(oy) * ow + ox) * s.channels + c;
                                const auto winner =
                                    tap_pack<Real>::load(taps + image * std::ptrdiff_t(s.outputs()) + out, count);
                                const int tap = (iy + top - oy * s.stride) * s.window + ix + left - ox * s.stride;
                                sum += select(pack_mask<Real>{winner == tap},
                                              read_channels(dy + image * dy_stride + out, count), 0);
                            }
                        write_channels(sum, to + c, count);
                    });
            }
        }
}

/// y [2 height, 2 width, channels]: each pixel four times.
template <class Real>
void upsample_forward(int height, int width, int channels, const Real* x, std::ptrdiff_t x_stride, Real* y,
                      std::ptrdiff_t y_stride, int images) {
    for (int image = 0; image < images; ++image)
        for (int oy = 0; oy < 2 * height; ++oy)
            for (int ox = 0; ox < 2 * width; ++ox)
                std::copy_n(x + image * x_stride + (std::ptrdiff_t(oy / 2) * width + ox / 2) * channels, channels,
                            y + image * y_stride + (std::ptrdiff_t(oy) * 2 * width + ox) * channels);
}

/// dx (=|+=) the sum of each pixel's four copies.
template <class Real>
void upsample_backward(int height, int width, int channels, const Real* dy, std::ptrdiff_t dy_stride, Real* dx,
                       std::ptrdiff_t dx_stride, bool accumulate, int images) {
    using number = pack<Real>;
    const std::ptrdiff_t line = std::ptrdiff_t(2) * width * channels;
    for (int image = 0; image < images; ++image)
        for (int iy = 0; iy < height; ++iy)
            for (int ix = 0; ix < width; ++ix) {
                const Real* from = dy + image * dy_stride + 2 * iy * line + std::ptrdiff_t(2) * ix * channels;
                Real* to = dx + image * dx_stride + (std::ptrdiff_t(iy) * width + ix) * channels;
                for_channel_packs<Real>(
                    channels, [&](int c, auto count) __attribute__((always_inline)) {
                        number sum = accumulate ? read_channels(to + c, count) : number(0);
                        sum +=
                            (read_channels(from + c, count) + read_channels(from + channels + c, count)) +
                            (read_channels(from + line + c, count) + read_channels(from + line + channels + c, count));
                        write_channels(sum, to + c, count);
                    });
            }
}

}  // namespace engram
