// SPDX-License-Identifier: MIT

// Pooling and up-sampling against plain loops.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/pooling.hpp"

using engram::pooling_shape;

namespace {

/// Multiples of 1/8, few of them: sums are exact and ties are frequent.
template <class Real>
std::vector<Real> coarse(int size, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<Real> values(static_cast<std::size_t>(size));
    for (auto& v : values) v = static_cast<Real>(static_cast<int>(random() % 17) - 8) / 8;
    return values;
}

}  // namespace

TEST_CASE_TEMPLATE("max pooling picks the first largest tap and sends its gradient there", Real, float, double) {
    for (const pooling_shape& s : {pooling_shape{7, 10, 5},
                                   {72, 96, 16},
                                   {9, 9, 33},
                                   {1, 1, 3},
                                   {2, 5, 16},
                                   {8, 8, 7, 2, 2},
                                   {6, 7, 4, 5, 1},
                                   {9, 4, 17, 4, 3}}) {
        s.check();
        const int images = 2, oh = (s.height + s.stride - 1) / s.stride, ow = (s.width + s.stride - 1) / s.stride;
        const int top = std::max((oh - 1) * s.stride + s.window - s.height, 0) / 2;
        const int left = std::max((ow - 1) * s.stride + s.window - s.width, 0) / 2;
        const int in = s.inputs() + 2, out = s.outputs() + 1;
        REQUIRE(s.outputs() == oh * ow * s.channels);
        const auto x = coarse<Real>(images * in, 1), dy = coarse<Real>(images * out, 2),
                   old = coarse<Real>(images * in, 3);
        for (const bool accumulate : {false, true}) {
            std::vector<Real> y(images * out, 9), y_exact(y), dx(old), dx_exact(old);
            std::vector<std::uint8_t> taps(images * s.outputs() + 1, 200);
            for (int i = 0; i < images; ++i) {
                if (!accumulate) std::fill_n(dx_exact.begin() + i * in, s.inputs(), Real(0));
                for (int oy = 0; oy < oh; ++oy)
                    for (int ox = 0; ox < ow; ++ox)
                        for (int c = 0; c < s.channels; ++c) {
                            int winner = -1;
                            for (int ky = 0; ky < s.window; ++ky)
                                for (int kx = 0; kx < s.window; ++kx) {
                                    const int iy = oy * s.stride + ky - top, ix = ox * s.stride + kx - left;
                                    if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
                                    const int at = i * in + (iy * s.width + ix) * s.channels + c;
                                    if (winner < 0 || x[at] > x[winner]) winner = at;
                                }
                            const int to = i * out + (oy * ow + ox) * s.channels + c;
                            y_exact[to] = x[winner];
                            dx_exact[winner] += dy[to];
                        }
            }
            max_pool_forward(s, x.data(), in, y.data(), out, taps.data(), images);
            max_pool_backward(s, dy.data(), out, taps.data(), dx.data(), in, accumulate, images);
            CHECK(y == y_exact);
            CHECK(dx == dx_exact);
            CHECK(taps.back() == 200);
        }
    }
}

TEST_CASE("a NaN is the maximum of each window that holds it") {
    const pooling_shape s{4, 4, 16};
    const float nan = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> x(s.inputs(), 1.0f), y(s.outputs());
    std::vector<std::uint8_t> taps(s.outputs());
    x[(1 * 4 + 1) * 16 + 3] = nan;
    max_pool_forward(s, x.data(), s.inputs(), y.data(), s.outputs(), taps.data(), 1);
    for (int i = 0; i < s.outputs(); ++i) CHECK(std::isnan(y[i]) == (i == 3));
    CHECK(taps[3] == 4);
}

TEST_CASE_TEMPLATE("up-sampling copies four times and its gradient sums them", Real, float, double) {
    for (const int channels : {1, 5, 16, 35}) {
        const int h = 3, w = 4, in = h * w * channels + 1, out = 4 * h * w * channels + 2;
        const auto x = coarse<Real>(2 * in, 1), dy = coarse<Real>(2 * out, 2), old = coarse<Real>(2 * in, 3);
        for (const bool accumulate : {false, true}) {
            std::vector<Real> y(2 * out, 9), y_exact(y), dx(old), dx_exact(old);
            for (int i = 0; i < 2; ++i) {
                if (!accumulate) std::fill_n(dx_exact.begin() + i * in, in - 1, Real(0));
                for (int oy = 0; oy < 2 * h; ++oy)
                    for (int ox = 0; ox < 2 * w; ++ox)
                        for (int c = 0; c < channels; ++c) {
                            const int from = i * in + (oy / 2 * w + ox / 2) * channels + c;
                            const int to = i * out + (oy * 2 * w + ox) * channels + c;
                            y_exact[to] = x[from];
                            dx_exact[from] += dy[to];
                        }
            }
            engram::upsample_forward(h, w, channels, x.data(), in, y.data(), out, 2);
            engram::upsample_backward(h, w, channels, dy.data(), out, dx.data(), in, accumulate, 2);
            CHECK(y == y_exact);
            CHECK(dx == dx_exact);
        }
    }
}

TEST_CASE("impossible windows are refused") {
    CHECK_THROWS_AS((pooling_shape{4, 4, 16, 2, 3}.check()), engram::error);
    CHECK_THROWS_AS((pooling_shape{4, 4, 0}.check()), engram::error);
}
