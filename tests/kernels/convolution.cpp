// SPDX-License-Identifier: MIT

// Convolutions and transposed convolutions against plain loops over every tap, with guards around all memory.

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/convolution.hpp"

using engram::convolution_shape;
using engram::packed_weights;
using engram::padding_rule;

namespace {

template <class Real>
std::vector<Real> noise(std::ptrdiff_t size, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<Real> uniform(-1, 1);
    std::vector<Real> values(static_cast<std::size_t>(size));
    for (auto& v : values) v = uniform(random);
    return values;
}

/// Windows in an image of `size` and zeros before it, from TensorFlow's rules and not from the code under test.
int windows(const convolution_shape& s, int size) {
    if (s.padding == padding_rule::same) return (size + s.stride - 1) / s.stride;
    int count = 0;
    while (count * s.stride + s.kernel <= size) ++count;
    return count;
}
int zeros_before(const convolution_shape& s, int size) {
    if (s.padding == padding_rule::valid) return 0;
    return std::max((windows(s, size) - 1) * s.stride + s.kernel - size, 0) / 2;
}

/// Calls visit(input index, weight index, output index) for every product in one image.
template <class Visit>
void every_tap(const convolution_shape& s, Visit visit) {
    const int oh = windows(s, s.height), ow = windows(s, s.width);
    const int top = zeros_before(s, s.height), left = zeros_before(s, s.width);
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
void check_shape(const convolution_shape& s, int images = 2, int gap = 3) {
    CAPTURE(s.height);
    CAPTURE(s.width);
    CAPTURE(s.channels);
    CAPTURE(s.filters);
    CAPTURE(s.kernel);
    CAPTURE(s.stride);
    CAPTURE(gap);
    s.check();
    const int in = s.inputs() + gap, out = s.outputs() + gap, weights = s.weight_rows() * s.filters;
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
    check_shape<float>({28, 28, 1, 8, 7, 1}, 1);
    check_shape<float>({14, 14, 32, 64, 3, 2});
    check_shape<float>({10, 10, 128, 256, 4, 2, padding_rule::valid});
    check_shape<float>({4, 4, 256, 256, 4, 1, padding_rule::valid});
}

TEST_CASE_TEMPLATE("without padding: every kernel and stride that fits, whole windows and leftovers", Real, float,
                   double) {
    for (const int stride : {1, 2, 3, 4})
        for (const int kernel : {1, 2, 3, 5, 7}) {
            check_shape<Real>({7, 10, 3, 5, kernel, stride, padding_rule::valid});
            check_shape<Real>({9, 13, 2, 17, kernel, stride, padding_rule::valid});
        }
    check_shape<Real>({1, 1, 3, 4, 1, 2, padding_rule::valid});
    check_shape<Real>({32, 32, 3, 9, 5, 3, padding_rule::valid});
}

TEST_CASE_TEMPLATE("short rows against large weights, dense or apart, fewer and more images than fit at once", Real,
                   float, double) {
    for (const auto& [s, images] : {std::pair{convolution_shape{10, 10, 33, 130, 4, 2, padding_rule::valid}, 9},
                                    {{10, 9, 33, 130, 4, 2, padding_rule::valid}, 2},
                                    {{9, 7, 60, 128, 3, 1}, 3},
                                    {{3, 3, 60, 128, 3, 2}, 40},
                                    {{6, 5, 1100, 64, 1, 2}, 2}}) {
        REQUIRE(engram::gathered_images(s, s.out_height(), s.out_width()) > 0);
        REQUIRE(engram::gathered_images(s, s.class_rows(), s.class_columns()) > 0);
        for (const int gap : {0, 3}) check_shape<Real>(s, images, gap);
    }
}

TEST_CASE("windows are copied forwards alone") {
    const convolution_shape there{16, 16, 33, 130, 4, 2, padding_rule::valid};
    REQUIRE(engram::gathered_images(there, there.out_height(), there.out_width()) > 0);
    REQUIRE(engram::gathered_images(there, there.class_rows(), there.class_columns()) == 0);
    check_shape<double>(there, 3, 0);
    check_shape<double>(there, 3, 3);
}

TEST_CASE_TEMPLATE("a window that covers the whole image", Real, float, double) {
    for (const auto& [s, images] : {std::pair{convolution_shape{4, 4, 20, 70, 4, 1, padding_rule::valid}, 5},
                                    {{5, 5, 3, 4, 5, 2, padding_rule::valid}, 2},
                                    {{2, 2, 3, 40, 2, 2}, 330},
                                    {{1, 1, 7, 6, 1, 3}, 3}}) {
        REQUIRE(s.is_affine());
        for (const int gap : {0, 3}) check_shape<Real>(s, images, gap);
    }
    CHECK(!convolution_shape{4, 4, 2, 2, 3, 4}.is_affine());
    CHECK(!convolution_shape{5, 4, 2, 2, 4, 3, padding_rule::valid}.is_affine());
}

TEST_CASE("windows that are copied or cover the image give the bits of the same windows in a wide image") {
    // The left columns of a wide image see the same windows, but its rows are long enough for the direct way.
    for (const auto& [narrow, wide_width] :
         {std::pair{convolution_shape{10, 10, 33, 130, 4, 2, padding_rule::valid}, 34},
          {{4, 4, 33, 130, 4, 1, padding_rule::valid}, 20}}) {
        auto wide = narrow;
        wide.width = wide_width;
        REQUIRE(engram::gathered_images(wide, wide.out_height(), wide.out_width()) == 0);
        REQUIRE(engram::gathered_images(wide, wide.class_rows(), wide.class_columns()) == 0);
        const auto x = noise<float>(narrow.inputs(), 1), w = noise<float>(narrow.weight_rows() * narrow.filters, 2),
                   b = noise<float>(narrow.filters, 3), dy = noise<float>(narrow.outputs(), 4);
        std::vector<float> wide_x(wide.inputs()), wide_dy(wide.outputs());
        const auto widen = [](const std::vector<float>& from, int line, std::vector<float>& to, int to_line) {
            for (std::size_t r = 0; r * line < from.size(); ++r)
                std::copy_n(from.begin() + r * line, line, to.begin() + r * to_line);
        };
        widen(x, narrow.width * narrow.channels, wide_x, wide.width * wide.channels);
        widen(dy, narrow.out_width() * narrow.filters, wide_dy, wide.out_width() * wide.filters);
        packed_weights<float> packed(narrow.weight_rows(), narrow.filters), flipped;
        packed.pack(w.data(), narrow.filters);
        pack_flipped(narrow, w.data(), flipped);
        const auto run = [&](const convolution_shape& s, const std::vector<float>& image,
                             const std::vector<float>& slopes) {
            std::vector<float> y(s.outputs()), dx(s.inputs()), dw(w.size()), scratch(convolution_scratch(s));
            convolution_forward(s, packed, b.data(), image.data(), 0, y.data(), 0, 1, scratch.data());
            convolution_data_gradient(s, flipped, slopes.data(), 0, dx.data(), 0, false, 1, scratch.data());
            float* none = nullptr;
            convolution_weight_gradient(s, image.data(), slopes.data(), 1, dw.data(), none, false, scratch.data());
            return std::array{y, dx, dw};
        };
        const auto a = run(narrow, x, dy), c = run(wide, wide_x, wide_dy);
        int compared = 0;
        const auto same = [&](const std::vector<float>& few, int line, const std::vector<float>& many, int many_line) {
            for (std::size_t r = 0; r * line < few.size(); ++r)
                for (int i = 0; i < line; ++i, ++compared) REQUIRE(few[r * line + i] == many[r * many_line + i]);
        };
        same(a[0], narrow.out_width() * narrow.filters, c[0], wide.out_width() * wide.filters);
        same(a[1], narrow.width * narrow.channels, c[1], wide.width * wide.channels);
        same(a[2], static_cast<int>(w.size()), c[2], static_cast<int>(w.size()));
        CHECK(compared == narrow.outputs() + narrow.inputs() + static_cast<int>(w.size()));
    }
}

TEST_CASE("gradients agree with central differences") {
    // The loss, a weighted sum of outputs, is linear in each argument: differences are exact up to rounding (1e-16 /
    // 1e-3).
    for (const convolution_shape& s : {convolution_shape{6, 5, 3, 4, 3, 1}, convolution_shape{7, 9, 2, 5, 4, 2},
                                       convolution_shape{7, 9, 2, 5, 4, 2, padding_rule::valid},
                                       convolution_shape{4, 4, 3, 5, 4, 1, padding_rule::valid}}) {
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
    for (const convolution_shape& s : {convolution_shape{9, 11, 3, 16, 3, 1},
                                       {10, 10, 33, 130, 4, 2, padding_rule::valid},
                                       {4, 4, 33, 130, 4, 1, padding_rule::valid}}) {
        const int images = 11;
        const auto x = noise<float>(images * s.inputs(), 1), w = noise<float>(s.weight_rows() * s.filters, 2),
                   dy = noise<float>(images * s.outputs(), 3), old = noise<float>(images * s.inputs(), 4);
        packed_weights<float> packed(s.weight_rows(), s.filters), flipped;
        packed.pack(w.data(), s.filters);
        pack_flipped(s, w.data(), flipped);
        std::vector<float> all(images * s.outputs()), one(s.outputs()), d_all = old, scratch(convolution_scratch(s));
        const float* none = nullptr;
        convolution_forward(s, packed, none, x.data(), s.inputs(), all.data(), s.outputs(), images, scratch.data());
        convolution_data_gradient(s, flipped, dy.data(), s.outputs(), d_all.data(), s.inputs(), true, images,
                                  scratch.data());
        for (int i = 0; i < images; ++i) {
            convolution_forward(s, packed, none, x.data() + i * s.inputs(), 0, one.data(), 0, 1, scratch.data());
            CHECK(std::equal(one.begin(), one.end(), all.begin() + i * s.outputs()));
            std::vector<float> d_one(old.begin() + i * s.inputs(), old.begin() + (i + 1) * s.inputs());
            convolution_data_gradient(s, flipped, dy.data() + i * s.outputs(), 0, d_one.data(), 0, true, 1,
                                      scratch.data());
            CHECK(std::equal(d_one.begin(), d_one.end(), d_all.begin() + i * s.inputs()));
        }
    }
}

TEST_CASE("impossible shapes are refused") {
    CHECK_THROWS_WITH_AS((convolution_shape{8, 8, 3, 4, 17, 1}.check()), "convolution: kernel 17 is not in 1..16",
                         engram::error);
    CHECK_THROWS_AS((convolution_shape{8, 8, 0, 4, 3, 1}.check()), engram::error);
    CHECK_THROWS_WITH_AS((convolution_shape{8, 4, 3, 4, 5, 1, padding_rule::valid}.check()),
                         "convolution: a kernel 5 without padding does not fit into 8 x 4", engram::error);
}
