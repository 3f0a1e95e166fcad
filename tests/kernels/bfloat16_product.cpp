// SPDX-License-Identifier: MIT

// Products of bfloat16 pairs against plain loops over numbers rounded one by one, against the bound of their error, and
// bits that do not depend on the number of rows.

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/bfloat16_product.hpp"

using engram::paired_weights;

namespace {

std::vector<float> noise(std::ptrdiff_t size, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(size));
    for (auto& v : values) v = uniform(random);
    return values;
}

/// The nearest number of eight significant bits, by the definition.
double rounded(float x) {
    if (x == 0) return 0;
    int exponent = 0;
    const double fraction = std::frexp(double(x), &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

/// Of a chain of `terms` additions of products of size one, each rounded to float, two a pair.
double tolerance(int terms) {
    return double(std::numeric_limits<float>::epsilon()) * (terms + 2);
}

/// 2^-7 and a little: what two roundings to eight bits do to a product.
constexpr double product_error = 0x1p-7 * (1 + 0x1p-9);

struct words {
    std::vector<std::uint32_t> data;
    explicit words(std::ptrdiff_t count) : data(static_cast<std::size_t>(count), 0x7fc07fc0u) {}  // NaN, not zero
    std::uint32_t* get() { return data.data(); }
};

void multiply(const float* x, std::ptrdiff_t stride, int k, const paired_weights& w, const float* bias, bool accumulate,
              float* y, std::ptrdiff_t y_stride, int m) {
    words scratch(engram::paired_workspace(k, m));
    engram::multiply_pairs(x, stride, k, w, bias, accumulate, y, y_stride, m, scratch.get());
}

}  // namespace

TEST_CASE("a word is two numbers rounded by themselves") {
    std::mt19937 random(3);
    for (int i = 0; i < 10000; ++i) {
        const float low = std::ldexp(float(int(random() % 4096) - 2048), int(random() % 40) - 20),
                    high = std::ldexp(float(int(random() % 4096) - 2048), int(random() % 40) - 20);
        const std::uint32_t word = engram::bfloat16_pairs::word(low, high);
        REQUIRE(double(std::bit_cast<float>(word << 16)) == rounded(low));
        REQUIRE(double(std::bit_cast<float>(word & 0xffff0000u)) == rounded(high));
    }
}

TEST_CASE("multiply_pairs is a plain loop over rounded numbers") {
    double worst_of_all = 0;
    for (const int n : {1, 7, 16, 17, 31, 33, 70})
        for (const int m : {1, 2, 3, 7, 11, 29})
            for (const int k : {1, 2, 37, 64})
                for (const int accumulate : {0, 1}) {
                    const int gap = 5, stride = n + 3;
                    auto x = noise(m * (k + gap), 1), w = noise((k + 1) * (n + 2), 2);
                    const auto bias = noise(n, 5);
                    // What lies behind a last number must not become the other half of its pair.
                    for (int i = 0; i < m; ++i) x[i * (k + gap) + k] = NAN;
                    std::fill_n(w.begin() + k * (n + 2), n, NAN);
                    std::vector<float> across(static_cast<std::size_t>(n * (k + 1)), NAN);
                    for (int i = 0; i < k; ++i)
                        for (int j = 0; j < n; ++j) across[j * (k + 1) + i] = w[i * (n + 2) + j];
                    paired_weights packed, transposed;
                    engram::pack_pairs(w.data(), n + 2, k, n, packed);
                    engram::pack_pairs_transposed(across.data(), k + 1, k, n, transposed);
                    auto y = noise(m * stride, 6), z = y;
                    const auto before = y;
                    multiply(x.data(), k + gap, k, packed, bias.data(), accumulate != 0, y.data(), stride, m);
                    multiply(x.data(), k + gap, k, transposed, bias.data(), accumulate != 0, z.data(), stride, m);
                    double worst = 0, from_float = 0;
                    bool untouched = true;
                    for (int i = 0; i < m; ++i) {
                        for (int j = 0; j < n; ++j) {
                            double sum = accumulate ? before[i * stride + j] : bias[j], exact = sum, size = 0;
                            for (int l = 0; l < k; ++l) {
                                const float a = x[i * (k + gap) + l], b = w[l * (n + 2) + j];
                                sum += rounded(a) * rounded(b);
                                exact += double(a) * double(b);
                                size += std::fabs(double(a) * double(b));
                            }
                            const double got = y[i * stride + j];
                            worst = std::max(worst, std::fabs(sum - got));
                            from_float =
                                std::max(from_float, std::fabs(exact - got) - product_error * size - tolerance(k));
                        }
                        for (int j = n; j < stride; ++j) untouched &= y[i * stride + j] == before[i * stride + j];
                    }
                    CHECK(worst < tolerance(k));
                    CHECK(from_float <= 0);
                    CHECK(untouched);
                    CHECK(y == z);
                    worst_of_all = std::max(worst_of_all, worst);
                }
    CHECK(worst_of_all > 0);
}

TEST_CASE("a row has the same bits in every batch and in every shard, however many addends") {
    const int k = 83, rows = 40;
    for (const int n : {5, 24, 64}) {
        const auto x = noise(rows * k, 1), w = noise(k * n, 2), bias = noise(n, 3);
        paired_weights packed, first, second;
        engram::pack_pairs(w.data(), n, k, n, packed);
        std::vector<float> all(static_cast<std::size_t>(rows * n)), some(all.size());
        multiply(x.data(), k, k, packed, bias.data(), false, all.data(), n, rows);
        for (int m = 1; m <= rows; ++m) {
            std::fill(some.begin(), some.end(), 0.0f);
            for (int from = 0; from < rows; from += m)
                multiply(x.data() + from * k, k, k, packed, bias.data(), false, some.data() + from * n, n,
                         std::min(m, rows - from));
            CHECK(some == all);
        }
        // Two addends of an even number of rows each are one longer one.
        engram::pack_pairs(w.data(), n, 50, n, first);
        engram::pack_pairs(w.data() + 50 * n, n, k - 50, n, second);
        multiply(x.data(), k, 50, first, bias.data(), false, some.data(), n, rows);
        multiply(x.data() + 50, k, k - 50, second, nullptr, true, some.data(), n, rows);
        CHECK(some == all);
    }
}

TEST_CASE("large shapes are cut into blocks without a seam") {
    const int m = 203, k = 3001, n = 40;
    REQUIRE(engram::paired_block((k + 1) / 2) < m);
    const auto x = noise(m * k, 1), w = noise(k * n, 2);
    paired_weights packed;
    engram::pack_pairs(w.data(), n, k, n, packed);
    std::vector<float> y(static_cast<std::size_t>(m * n)), row(static_cast<std::size_t>(n));
    multiply(x.data(), k, k, packed, nullptr, false, y.data(), n, m);
    for (int i = 0; i < m; ++i) {
        multiply(x.data() + i * k, k, k, packed, nullptr, false, row.data(), n, 1);
        CHECK(std::equal(row.begin(), row.end(), y.begin() + i * n));
    }
}

TEST_CASE("rows may overlap, as windows of a line do") {
    const int k = 11, step = 3, m = 21, n = 20;
    const auto x = noise(m * step + k, 1), w = noise(k * n, 2);
    paired_weights packed;
    engram::pack_pairs(w.data(), n, k, n, packed);
    std::vector<float> y(static_cast<std::size_t>(m * n));
    multiply(x.data(), step, k, packed, nullptr, false, y.data(), n, m);
    double worst = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += rounded(x[i * step + l]) * rounded(w[l * n + j]);
            worst = std::max(worst, std::fabs(sum - y[i * n + j]));
        }
    CHECK(worst < tolerance(k));
}

TEST_CASE("multiply_transposed_pairs is a plain loop over rounded numbers") {
    for (const int m : {1, 2, 7, 64, 321, 645})
        for (const int k : {1, 6, 8, 19})
            for (const int n : {1, 16, 33, 50})
                for (const int accumulate : {0, 1}) {
                    const int xs = k + 2, ys = n + 1, ws = n + 4;
                    auto x = noise((m + 1) * xs, 1), dy = noise((m + 1) * ys, 2);
                    std::fill_n(x.begin() + m * xs, xs, NAN);
                    std::fill_n(dy.begin() + m * ys, ys, NAN);
                    auto dw = noise(k * ws, 3);
                    const auto before = dw;
                    words scratch(engram::transposed_paired_workspace(k, m));
                    engram::multiply_transposed_pairs(x.data(), xs, k, dy.data(), ys, n, m, dw.data(), ws,
                                                      accumulate != 0, scratch.get());
                    double worst = 0, from_float = 0;
                    bool untouched = true;
                    for (int i = 0; i < k; ++i) {
                        for (int j = 0; j < n; ++j) {
                            double sum = accumulate ? before[i * ws + j] : 0, exact = sum, size = 0;
                            for (int t = 0; t < m; ++t) {
                                const float a = x[t * xs + i], b = dy[t * ys + j];
                                sum += rounded(a) * rounded(b);
                                exact += double(a) * double(b);
                                size += std::fabs(double(a) * double(b));
                            }
                            const double got = dw[i * ws + j];
                            worst = std::max(worst, std::fabs(sum - got));
                            from_float =
                                std::max(from_float, std::fabs(exact - got) - product_error * size - tolerance(m));
                        }
                        for (int j = n; j < ws; ++j) untouched &= dw[i * ws + j] == before[i * ws + j];
                    }
                    // Sums grow with the square root of their length, and so does what rounding them loses.
                    CHECK(worst < tolerance(m));
                    CHECK(from_float <= 0);
                    CHECK(untouched);
                }
}

TEST_CASE("no rows leave a zero or what was there, and NaN is told on") {
    std::vector<float> dw{1, 2, 3, 4, 5, 6};
    engram::multiply_transposed_pairs(nullptr, 3, 3, nullptr, 2, 2, 0, dw.data(), 2, true, nullptr);
    CHECK(dw == std::vector<float>{1, 2, 3, 4, 5, 6});
    engram::multiply_transposed_pairs(nullptr, 3, 3, nullptr, 2, 2, 0, dw.data(), 2, false, nullptr);
    CHECK(dw == std::vector<float>(6, 0));
    std::vector<float> x(5, 1), y(3), w(15, 1);
    x[2] = std::numeric_limits<float>::quiet_NaN();
    paired_weights packed;
    engram::pack_pairs(w.data(), 3, 5, 3, packed);
    multiply(x.data(), 5, 5, packed, nullptr, false, y.data(), 3, 1);
    for (const float v : y) CHECK(std::isnan(v));
}
