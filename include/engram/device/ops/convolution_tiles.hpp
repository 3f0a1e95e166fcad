#pragma once
// SPDX-License-Identifier: MIT

// Convolutions of images whose channels come in fours, on a device.
//
// A thread computes a tile of the result, four pixels of a row times four channels, and keeps it in registers while the
// taps of the window go by: eight loads of four numbers then feed 64 multiply-adds, where a thread a number would load
// two for each. Every number is still one chain of terms in the order of the weights. A weight's gradient sums over all
// images: slices of their rows are summed by a block a tap, channels side by side, and the slices are added up by a
// second launch, so the order is fixed and nothing is added atomically.

#include <algorithm>
#include <cstdint>

#include <engram/device/kernel.hpp>
#include <engram/device/shared_sums.hpp>
#include <engram/kernels/convolution_shape.hpp>

namespace engram {

/// A convolution's shape as numbers.
struct convolution_geometry {
    int height, width, channels, filters, kernel, stride, out_height, out_width, top, left;

    explicit convolution_geometry(const convolution_shape& s)
        : height(s.height),
          width(s.width),
          channels(s.channels),
          filters(s.filters),
          kernel(s.kernel),
          stride(s.stride),
          out_height(s.out_height()),
          out_width(s.out_width()),
          top(s.before_rows()),
          left(s.before_columns()) {}

    std::ptrdiff_t weights() const { return std::ptrdiff_t{kernel} * kernel * channels * filters; }
};

/// Four numbers that are loaded at once.
template <class Real>
struct alignas(4 * sizeof(Real)) quad {
    Real at[4];
};

/// The first Count numbers of four from an address that is a multiple of as many, or zeros.
template <int Count, class Real>
ENGRAM_HD quad<Real> load(const Real* from, bool there) {
    if (!there) return {};
    if constexpr (Count == 4)
        return *reinterpret_cast<const quad<Real>*>(from);
    else
        return {*from};
}

/// Rows that can be read four numbers at a time.
template <class Real>
bool in_fours(const step_rows<Real>& x) {
    return x.stride % 4 == 0 && reinterpret_cast<std::uintptr_t>(x.data) % sizeof(quad<Real>) == 0;
}
/// The same of weights, whose rows are as long as there are filters.
template <class Real>
bool in_fours(const Real* weights) {
    return reinterpret_cast<std::uintptr_t>(weights) % sizeof(quad<Real>) == 0;
}

/// Groups of four that `count` channels or pixels take.
constexpr int fours(int count) {
    return (count + 3) / 4;
}

namespace internal {

/// y = bias + the windows of x, weighted. Taken In channels at a time: 4 where that divides them, or 1; filters divide
/// by 4. One thread for each of launches() an image.
template <class Real, int In>
struct convolve_tile {
    convolution_geometry s;
    const Real *weight, *bias;
    step_rows<Real> x, y;

    static int launches(const convolution_geometry& s) { return s.out_height * fours(s.out_width) * (s.filters / 4); }

    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const int groups = s.filters / 4, tiles = fours(s.out_width), each = s.out_height * tiles * groups;
        const std::ptrdiff_t image = i / each;
        const int at = static_cast<int>(i % each), f = at % groups * 4, tile = at / groups % tiles * 4;
        const int row = at / groups / tiles, first_y = row * s.stride - s.top, first_x = tile * s.stride - s.left;
        const Real* const from = x.row(image);
        Real sum[4][4];
        for (int p = 0; p < 4; ++p)
            for (int q = 0; q < 4; ++q) sum[p][q] = bias ? bias[f + q] : Real(0);
        for (int ky = 0; ky < s.kernel; ++ky) {
            const int source = first_y + ky;
            if (source < 0 || source >= s.height) continue;
            for (int kx = 0; kx < s.kernel; ++kx) {
                const Real* const in = from + (std::ptrdiff_t{source} * s.width + first_x + kx) * s.channels;
                const Real* const w = weight + std::ptrdiff_t{ky * s.kernel + kx} * s.channels * s.filters + f;
                for (int c = 0; c < s.channels; c += In) {
                    quad<Real> scale[In], seen[4];
                    for (int j = 0; j < In; ++j) scale[j] = load<4>(w + std::ptrdiff_t{c + j} * s.filters, true);
                    for (int p = 0; p < 4; ++p) {
                        const int column = first_x + kx + p * s.stride;
                        seen[p] = load<In>(in + std::ptrdiff_t{p * s.stride} * s.channels + c,
                                           column >= 0 && column < s.width);
                    }
                    for (int j = 0; j < In; ++j)
                        for (int p = 0; p < 4; ++p)
                            for (int q = 0; q < 4; ++q) sum[p][q] += seen[p].at[j] * scale[j].at[q];
                }
            }
        }
        for (int p = 0; p < 4 && tile + p < s.out_width; ++p)
            for (int q = 0; q < 4; ++q) y.put(image, (row * s.out_width + tile + p) * s.filters + f + q, sum[p][q]);
    }
};

/// x = bias + what every window that contains a pixel sends back to it, Out channels a thread: 4 where that divides
/// them, or 1; filters divide by 4. The four pixels of a tile lie a stride apart, so that they meet the same taps.
template <class Real, int Out>
struct convolve_back_tile {
    convolution_geometry s;
    const Real *weight, *bias;
    step_rows<Real> y, x;

    static int launches(const convolution_geometry& s) {
        return s.height * s.stride * fours((s.width + s.stride - 1) / s.stride) * (s.channels / Out);
    }

    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const int groups = s.channels / Out, tiles = fours((s.width + s.stride - 1) / s.stride);
        const int each = s.height * s.stride * tiles * groups;
        const std::ptrdiff_t image = i / each;
        const int at = static_cast<int>(i % each), c = at % groups * Out, tile = at / groups % tiles;
        const int phase = at / groups / tiles % s.stride, row = at / groups / tiles / s.stride;
        const int first = phase + tile * 4 * s.stride, column = first + s.left;
        const Real* const from = y.row(image);
        Real sum[4][Out];
        for (int p = 0; p < 4; ++p)
            for (int j = 0; j < Out; ++j) sum[p][j] = bias ? bias[c + j] : Real(0);
        for (int ky = (row + s.top) % s.stride; ky < s.kernel && ky <= row + s.top; ky += s.stride) {
            const int oy = (row + s.top - ky) / s.stride;
            if (oy >= s.out_height) continue;
            for (int kx = column % s.stride; kx < s.kernel; kx += s.stride) {
                // Negative for taps that the first pixels of the tile do not have.
                const int ox = (column - kx) / s.stride;
                const Real* const out = from + (std::ptrdiff_t{oy} * s.out_width + ox) * s.filters;
                const Real* const w = weight + (std::ptrdiff_t{ky * s.kernel + kx} * s.channels + c) * s.filters;
                for (int f = 0; f < s.filters; f += 4) {
                    quad<Real> scale[Out], slope[4];
                    for (int j = 0; j < Out; ++j) scale[j] = load<4>(w + std::ptrdiff_t{j} * s.filters + f, true);
                    for (int p = 0; p < 4; ++p)
                        slope[p] =
                            load<4>(out + std::ptrdiff_t{p} * s.filters + f, ox + p >= 0 && ox + p < s.out_width);
                    for (int q = 0; q < 4; ++q)
                        for (int p = 0; p < 4; ++p)
                            for (int j = 0; j < Out; ++j) sum[p][j] += slope[p].at[q] * scale[j].at[q];
                }
            }
        }
        for (int p = 0; p < 4 && first + p * s.stride < s.width; ++p)
            for (int j = 0; j < Out; ++j)
                x.put(image, (row * s.width + first + p * s.stride) * s.channels + c + j, sum[p][j]);
    }
};

}  // namespace internal

/// How the sum over all images of a weight's gradient is split.
struct gradient_slices {
    int combinations, parts, slices;

    /// Blocks of `lanes` threads, a thread In channels times four filters, for `images` images.
    gradient_slices(const convolution_geometry& s, int in, int lanes, int images)
        : combinations(s.channels / in * (s.filters / 4)), parts((combinations + lanes - 1) / lanes) {
        // Enough blocks to fill a large device twice, few enough that the slices' sums stay small.
        constexpr int enough = 2048;
        slices = std::clamp(enough / (s.kernel * s.kernel * parts), 1, std::max(1, images * s.out_height));
    }
};

namespace internal {

/// Block (slice, tap, part): the gradients of that tap's weights, summed over the slice's rows of outputs, in
/// partial[slice, weights].
template <class Real, int In>
struct weight_gradient_slice {
    static constexpr int lanes = 128, scratch = In * 4 * lanes;
    convolution_geometry s;
    gradient_slices split;
    step_rows<Real> x, dy;
    int rows;  // of outputs, over all images
    Real* partial;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int part = index % split.parts, tap = index / split.parts % (s.kernel * s.kernel);
        const int slice = index / split.parts / (s.kernel * s.kernel);
        const int first = part * lanes, left = split.combinations - first, together = left < lanes ? left : lanes;
        const int beside = lanes / together, groups = s.filters / 4;
        const int begin = static_cast<int>(std::ptrdiff_t{rows} * slice / split.slices);
        const int end = static_cast<int>(std::ptrdiff_t{rows} * (slice + 1) / split.slices);
        const int ky = tap / s.kernel - s.top, kx = tap % s.kernel - s.left;
        Real* const sums = block.scratch;
        const auto& of = *this;
        block.each([=, &of](int lane) {
            if (lane >= together * beside) return;
            const int c = (first + lane % together) / groups * In, f = (first + lane % together) % groups * 4;
            Real sum[In][4] = {};
            for (int r = begin; r < end; ++r) {
                const int image = r / of.s.out_height, oy = r % of.s.out_height, row = oy * of.s.stride + ky;
                if (row < 0 || row >= of.s.height) continue;
                const Real* const in = of.x.row(image) + std::ptrdiff_t{row} * of.s.width * of.s.channels + c;
                const Real* const out = of.dy.row(image) + std::ptrdiff_t{oy} * of.s.out_width * of.s.filters + f;
                for (int ox = lane / together; ox < of.s.out_width; ox += beside) {
                    const int column = ox * of.s.stride + kx;
                    if (column < 0 || column >= of.s.width) continue;
                    const auto seen = load<In>(in + std::ptrdiff_t{column} * of.s.channels, true);
                    const auto slope = load<4>(out + std::ptrdiff_t{ox} * of.s.filters, true);
                    for (int j = 0; j < In; ++j)
                        for (int q = 0; q < 4; ++q) sum[j][q] += seen.at[j] * slope.at[q];
                }
            }
            for (int j = 0; j < In; ++j)
                for (int q = 0; q < 4; ++q) sums[(j * 4 + q) * lanes + lane] = sum[j][q];
        });
        Real* const to = partial + slice * of.s.kernel * of.s.kernel * std::ptrdiff_t{s.channels} * s.filters +
                         std::ptrdiff_t{tap} * s.channels * s.filters;
        const int filters = s.filters;
        block_for(block, together * In * 4, [=](int i) {
            const int q = i % 4, j = i / 4 % In, which = i / 4 / In;
            Real sum = 0;
            for (int b = 0; b < beside; ++b) sum += sums[(j * 4 + q) * lanes + b * together + which];
            const int c = (first + which) / groups * In + j, f = (first + which) % groups * 4 + q;
            to[std::ptrdiff_t{c} * filters + f] = sum;
        });
    }
};

/// Block `slice`: sums of columns over the slice's rows, in partial[slice, columns]; at most `lanes` columns side by
/// side.
template <class Real>
struct column_sums_slice {
    static constexpr int lanes = 128;
    const Real* x;
    int columns, rows, slices;  // dense
    Real* partial;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int slice) const {
        const int begin = static_cast<int>(std::ptrdiff_t{rows} * slice / slices);
        const int end = static_cast<int>(std::ptrdiff_t{rows} * (slice + 1) / slices);
        Real* const sums = block.scratch;
        for (int first = 0; first < columns; first += lanes) {
            const int left = columns - first, together = left < lanes ? left : lanes, beside = lanes / together;
            const Real* const from = x + first;
            const int step = columns;
            block.each([=](int lane) {
                Real sum = 0;
                if (lane < together * beside)
                    for (int r = begin + lane / together; r < end; r += beside)
                        sum += from[std::ptrdiff_t{r} * step + lane % together];
                sums[lane] = sum;
            });
            Real* const to = partial + std::ptrdiff_t{slice} * columns + first;
            block_for(block, together, [=](int c) {
                Real sum = 0;
                for (int b = 0; b < beside; ++b) sum += sums[b * together + c];
                to[c] = sum;
            });
        }
    }
};

/// to[i] (+)= the sum of partial[slice, i] over the slices, always in the same order; some numbers a block.
template <class Real>
struct sum_slices {
    using sums = shared_sums<128>;
    static constexpr int lanes = 128, scratch = sums::share_numbers, numbers = lanes / sums::shares;
    static std::ptrdiff_t blocks(std::ptrdiff_t count) { return (count + numbers - 1) / numbers; }

    const Real* partial;
    std::ptrdiff_t count;
    int slices;
    Real* to;
    bool accumulate;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const std::ptrdiff_t first = std::ptrdiff_t{index} * numbers, all = count, left = all - first;
        const Real* const from = partial + first;
        Real* const into = to + first;
        const bool adds = accumulate;
        sums::add_up(
            block, block.scratch, left < numbers ? static_cast<int>(left) : numbers, slices,
            [=](int i, int slice) { return from[slice * all + i]; },
            [=](int i, Real sum) { give(into[i], adds, sum); });
    }
};

}  // namespace internal

}  // namespace engram
