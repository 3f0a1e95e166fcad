// SPDX-License-Identifier: MIT

// Convolutions and transposed convolutions against plain loops over every tap, with guards around all memory.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/convolution.hpp"

using engram::convolution_shape;
using engram::packed_weights;

namespace {

template <class Real>
std::vector<Real> noise(std::ptrdiff_t size, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<Real> uniform(-1, 1);
    std::vector<Real> values(static_cast<std::size_t>(size));
    for (auto& v : values) v = uniform(random);
    return values;
}

/// Zeros before an image of `size`, from TensorFlow's rule and not from the code under test.
int zeros_before(int size, int kernel, int stride) {
    const int out = (size + stride - 1) / stride;
    return std::max((out - 1) * stride + kernel - size, 0) / 2;
}

/// Calls visit(input index, weight index, output index) for every product in one image.
template <class Visit>
void every_tap(const convolution_shape& s, Visit visit) {
    const int oh = (s.height + s.stride - 1) / s.stride, ow = (s.width + s.stride - 1) / s.stride;
    const int top = zeros_before(s.height, s.kernel, s.stride), left = zeros_before(s.width, s.kernel, s.stride);
    for (int oy = 0; oy < oh; ++oy)
        for (int ox = 0; ox < ow; ++ox)
            for (int ky = 0; ky < s.kernel; ++ky)
                for (int kx = 0; kx < s.kernel; ++kx) {
                    const int iy = oy * s.stride + ky - top, ix = ox * s.stride + kx - left;
                    if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
                    for (int c = 0; c < s.channels; ++c)
                        for (int f = 0; f < s.filters; ++f)
                            visit((iy * s.width + ix) * s.channels + c,
                                  ((ky * s.kernel + kx) * s.channels + c) * s.filters + f,
                                  (oy * ow + ox) * s.filters + f);
                }
}

template <class Real>
double largest_difference(const std::vector<Real>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
    return worst;
}

/// Everything at once for one shape: images lie `gap` apart; scratch is poisoned and has a guard behind it.
template <class Real>
void check_shape(const convolution_shape& s, int images = 2) {
    CAPTURE(s.height);
    CAPTURE(s.width);
    CAPTURE(s.channels);
    CAPTURE(s.filters);
    CAPTURE(s.kernel);
    CAPTURE(s.stride);
    s.check();
    const int gap = 3, in = s.inputs() + gap, out = s.outputs() + gap, weights = s.weight_rows() * s.filters;
    const auto x = noise<Real>(images * in, 1), w = noise<Real>(weights, 2), b = noise<Real>(s.filters, 3),
               dy = noise<Real>(images * out, 4), b_in = noise<Real>(s.channels, 8);
    const auto y_old = noise<Real>(images * out, 5), dx_old = noise<Real>(images * in, 6),
               dw_old = noise<Real>(weights, 7);
    packed_weights<Real> packed(s.weight_rows(), s.filters), flipped;
    packed.pack(w.data(), s.filters);
    pack_flipped(s, w.data(), flipped);
    const std::ptrdiff_t space = convolution_scratch(s);
    std::vector<Real> scratch(static_cast<std::size_t>(space + 1), std::numeric_limits<Real>::quiet_NaN());
    scratch.back() = 77;
    const auto poison = [&] { std::fill_n(scratch.begin(), space, std::numeric_limits<Real>::quiet_NaN()); };

    // Rounding: as many terms of size one as the longest chain has (weights: all pixels of all images).
    const double eps = std::numeric_limits<Real>::epsilon();
    const double tolerance = eps * (s.kernel * s.kernel * std::max(s.channels, s.filters) + 4);
    const double weight_tolerance = eps * (images * s.out_height() * s.out_width() + 4);

    for (const bool accumulate : {false, true}) {
        auto y = y_old, dx = dx_old, dw = dw_old, ty = dx_old;
        std::vector<Real> db(b);
        std::vector<double> y_exact(y.begin(), y.end()), dx_exact(dx.begin(), dx.end()), dw_exact(dw.begin(), dw.end()),
            ty_exact(ty.begin(), ty.end()), db_exact(b.begin(), b.end());
        if (!accumulate) {
            std::fill(dw_exact.begin(), dw_exact.end(), 0.0);
            std::fill(db_exact.begin(), db_exact.end(), 0.0);
        }
        for (int i = 0; i < images; ++i) {
            for (int j = 0; j < s.outputs(); ++j) {
                y_exact[i * out + j] = b[j % s.filters];
                db_exact[j % s.filters] += dy[i * out + j];
            }
            for (int j = 0; j < s.inputs(); ++j) {
                if (!accumulate) dx_exact[i * in + j] = 0;
                ty_exact[i * in + j] = b_in[j % s.channels];
            }
            every_tap(s, [&](int input, int weight, int output) {
                y_exact[i * out + output] += double(x[i * in + input]) * double(w[weight]);
                dx_exact[i * in + input] += double(dy[i * out + output]) * double(w[weight]);
                ty_exact[i * in + input] += double(dy[i * out + output]) * double(w[weight]);
                dw_exact[weight] += double(x[i * in + input]) * double(dy[i * out + output]);
            });
        }
        poison();
        convolution_forward(s, packed, b.data(), x.data(), in, y.data(), out, images, scratch.data());
        CHECK(largest_difference(y, y_exact) < tolerance);
        poison();
        convolution_data_gradient(s, flipped, dy.data(), out, dx.data(), in, accumulate, images, scratch.data());
        CHECK(largest_difference(dx, dx_exact) < tolerance);
        poison();
        convolution_weight_gradient(s, x.data(), in, dy.data(), out, images, dw.data(), db.data(), accumulate,
                                    scratch.data());
        CHECK(largest_difference(dw, dw_exact) < weight_tolerance);
        CHECK(largest_difference(db, db_exact) < 4 * weight_tolerance);
        poison();
        transposed_convolution_forward(s, flipped, b_in.data(), dy.data(), out, ty.data(), in, images, scratch.data());
        CHECK(largest_difference(ty, ty_exact) < tolerance);
    }
    CHECK(scratch.back() == 77);
}

}  // namespace

TEST_CASE_TEMPLATE("every kernel and stride, odd and even sizes, agree with plain loops", Real, float, double) {
    for (const int stride : {1, 2, 3, 4})
        for (const int kernel : {1, 2, 3, 4, 5, 8}) {
            check_shape<Real>({7, 10, 3, 5, kernel, stride});
            check_shape<Real>({9, 13, 2, 17, kernel, stride});
            check_shape<Real>({12, 8, 16, 3, kernel, stride});
        }
    check_shape<Real>({1, 1, 3, 4, 3, 2});
    check_shape<Real>({2, 1, 3, 4, 5, 4});
    check_shape<Real>({5, 3, 33, 40, 3, 1});
}

TEST_CASE("the sizes of the image encoders") {
    check_shape<float>({72, 96, 3, 16, 3, 1}, 1);
    check_shape<float>({36, 48, 16, 32, 3, 1}, 1);
    check_shape<float>({18, 24, 32, 32, 3, 1});
    check_shape<float>({72, 96, 3, 16, 8, 4}, 1);
    check_shape<float>({36, 48, 16, 32, 4, 2}, 1);
}

TEST_CASE("gradients agree with central differences") {
    // The loss, a weighted sum of outputs, is linear in each argument: differences are exact up to rounding (1e-16 /
    // 1e-3).
    for (const convolution_shape& s : {convolution_shape{6, 5, 3, 4, 3, 1}, convolution_shape{7, 9, 2, 5, 4, 2}}) {
        auto x = noise<double>(2 * s.inputs(), 1), w = noise<double>(s.weight_rows() * s.filters, 2),
             b = noise<double>(s.filters, 3);
        const auto dy = noise<double>(2 * s.outputs(), 4);
        std::vector<double> y(dy.size()), dx(x.size()), dw(w.size()), db(b.size()), scratch(convolution_scratch(s));
        packed_weights<double> packed(s.weight_rows(), s.filters), flipped;
        pack_flipped(s, w.data(), flipped);
        const auto loss = [&] {
            packed.pack(w.data(), s.filters);
            convolution_forward(s, packed, b.data(), x.data(), s.inputs(), y.data(), s.outputs(), 2, scratch.data());
            double sum = 0;
            for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
            return sum;
        };
        convolution_data_gradient(s, flipped, dy.data(), s.outputs(), dx.data(), s.inputs(), false, 2, scratch.data());
        convolution_weight_gradient(s, x.data(), dy.data(), 2, dw.data(), db.data(), false, scratch.data());
        const auto check = [&](std::vector<double>& values, const std::vector<double>& slopes) {
            for (std::size_t i = 0; i < values.size(); i += 1 + values.size() / 20) {
                const double kept = values[i], step = 1e-3;
                values[i] = kept + step;
                const double above = loss();
                values[i] = kept - step;
                const double below = loss();
                values[i] = kept;
                CHECK(slopes[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-9));
            }
        };
        check(x, dx);
        check(w, dw);
        check(b, db);
    }
}

TEST_CASE("a transposed convolution's gradients are the convolution and its weight gradient") {
    const convolution_shape s{8, 6, 3, 4, 4, 2};
    auto x = noise<double>(s.outputs(), 1), w = noise<double>(s.weight_rows() * s.filters, 2),
         b = noise<double>(s.channels, 3);
    const auto dy = noise<double>(s.inputs(), 4);
    std::vector<double> y(dy.size()), dx(x.size()), dw(w.size()), db(b.size()), scratch(convolution_scratch(s));
    packed_weights<double> packed(s.weight_rows(), s.filters), flipped;
    packed.pack(w.data(), s.filters);
    const auto loss = [&] {
        pack_flipped(s, w.data(), flipped);
        transposed_convolution_forward(s, flipped, b.data(), x.data(), s.outputs(), y.data(), s.inputs(), 1,
                                       scratch.data());
        double sum = 0;
        for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
        return sum;
    };
    transposed_convolution_data_gradient(s, packed, dy.data(), s.inputs(), dx.data(), s.outputs(), false, 1,
                                         scratch.data());
    transposed_convolution_weight_gradient(s, x.data(), dy.data(), 1, dw.data(), db.data(), false, scratch.data());
    const auto check = [&](std::vector<double>& values, const std::vector<double>& slopes) {
        for (std::size_t i = 0; i < values.size(); i += 1 + values.size() / 20) {
            const double kept = values[i], step = 1e-3;
            values[i] = kept + step;
            const double above = loss();
            values[i] = kept - step;
            const double below = loss();
            values[i] = kept;
            CHECK(slopes[i] == doctest::Approx((above - below) / (2 * step)).epsilon(1e-9));
        }
    };
    check(x, dx);
    check(w, dw);
    check(b, db);
}

TEST_CASE("an image has the same bits alone and in a batch") {
    const convolution_shape s{9, 11, 3, 16, 3, 1};
    const auto x = noise<float>(5 * s.inputs(), 1), w = noise<float>(s.weight_rows() * s.filters, 2);
    packed_weights<float> packed(s.weight_rows(), s.filters);
    packed.pack(w.data(), s.filters);
    std::vector<float> all(5 * s.outputs()), one(s.outputs()), scratch(convolution_scratch(s));
    const float* none = nullptr;
    convolution_forward(s, packed, none, x.data(), s.inputs(), all.data(), s.outputs(), 5, scratch.data());
    for (int i = 0; i < 5; ++i) {
        convolution_forward(s, packed, none, x.data() + i * s.inputs(), 0, one.data(), 0, 1, scratch.data());
        CHECK(std::equal(one.begin(), one.end(), all.begin() + i * s.outputs()));
    }
}

TEST_CASE("impossible shapes are refused") {
    CHECK_THROWS_WITH_AS((convolution_shape{8, 8, 3, 4, 17, 1}.check()), "convolution: kernel 17 is not in 1..16",
                         engram::error);
    CHECK_THROWS_AS((convolution_shape{8, 8, 0, 4, 3, 1}.check()), engram::error);
}
