// SPDX-License-Identifier: MIT

// Packed products against plain loops, bits that do not depend on the number of rows, and memory that is not theirs.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/product.hpp"

using engram::packed_weights;
using engram::product_part;

namespace {

template <class Real>
std::vector<Real> noise(std::ptrdiff_t size, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<Real> uniform(-1, 1);
    std::vector<Real> values(static_cast<std::size_t>(size));
    for (auto& v : values) v = uniform(random);
    return values;
}

/// Rounding of a chain of `terms` products of numbers of size one.
template <class Real>
double tolerance(int terms) {
    return double(std::numeric_limits<Real>::epsilon()) * (terms + 2);
}

}  // namespace

TEST_CASE_TEMPLATE("multiply adds bias, parts and rows as plain loops do", Real, float, double) {
    for (const int n : {1, 7, 9, 16, 17, 31, 32, 33, 48, 70, 128})
        for (const int m : {1, 2, 3, 7, 8, 11, 16, 29})
            for (const int accumulate : {0, 1}) {
                const int k0 = 37, k1 = 20, gap = 5, from = 3, part_rows = k1 - 6;
                const auto x0 = noise<Real>(m * (k0 + gap), 1), x1 = noise<Real>(m * k1, 2);
                const auto w = noise<Real>((k0 + k1) * n, 3), w1 = noise<Real>(n * k1, 4), bias = noise<Real>(n, 5);
                packed_weights<Real> first(k0 + k1, n), second;
                first.pack(w.data(), n);
                second.resize(k1, n);
                second.pack_transposed(w1.data(), k1);
                const product_part<Real> parts[] = {{x0.data(), k0 + gap, &first, k1, k0},
                                                    {x1.data(), k1, &second, from, part_rows}};
                const int stride = n + 3;
                auto y = noise<Real>(m * stride, 6);
                const auto before = y;
                const Real* b = accumulate ? nullptr : bias.data();
                engram::multiply(parts, 2, b, accumulate != 0, y.data(), stride, m);
                double worst = 0;
                bool untouched = true;
                for (int i = 0; i < m; ++i) {
                    for (int j = 0; j < n; ++j) {
                        double sum = accumulate ? before[i * stride + j] : bias[j];
                        for (int k = 0; k < k0; ++k)
                            sum += double(x0[i * (k0 + gap) + k]) * double(w[(k1 + k) * n + j]);
                        for (int k = 0; k < part_rows; ++k)
                            sum += double(x1[i * k1 + k]) * double(w1[j * k1 + from + k]);
                        worst = std::max(worst, std::fabs(sum - y[i * stride + j]));
                    }
                    for (int j = n; j < stride; ++j) untouched &= y[i * stride + j] == before[i * stride + j];
                }
                CHECK(worst < tolerance<Real>(k0 + part_rows));
                CHECK(untouched);
            }
}

TEST_CASE_TEMPLATE("a row has the same bits in every batch and in every shard", Real, float, double) {
    const int k = 83, rows = 40;
    for (const int n : {5, 16, 24, 40, 64}) {
        const auto x = noise<Real>(rows * k, 1), w = noise<Real>(k * n, 2), bias = noise<Real>(n, 3);
        packed_weights<Real> packed(k, n);
        packed.pack(w.data(), n);
        std::vector<Real> all(static_cast<std::size_t>(rows * n)), some(all.size());
        const product_part<Real> part{x.data(), k, &packed, 0, k};
        engram::multiply(&part, 1, bias.data(), false, all.data(), n, rows);
        for (int m = 1; m <= rows; ++m) {
            std::fill(some.begin(), some.end(), Real(0));
            for (int first = 0; first < rows; first += m) {
                const product_part<Real> shard{x.data() + first * k, k, &packed, 0, k};
                engram::multiply(&shard, 1, bias.data(), false, some.data() + first * n, n, std::min(m, rows - first));
            }
            CHECK(some == all);
        }
        // Two parts over one chain: as if their rows were one longer row.
        const product_part<Real> halves[] = {{x.data(), k, &packed, 0, 50}, {x.data() + 50, k, &packed, 50, k - 50}};
        engram::multiply(halves, 2, bias.data(), false, some.data(), n, rows);
        CHECK(some == all);
        const Real* none = nullptr;
        engram::multiply(&halves[0], 1, bias.data(), false, some.data(), n, rows);
        engram::multiply(&halves[1], 1, none, true, some.data(), n, rows);
        CHECK(some == all);
    }
}

TEST_CASE("large shapes are cut into blocks without a seam") {
    const int m = 203, k = 1500, n = 70;
    const auto x = noise<float>(m * k, 1), w = noise<float>(k * n, 2);
    packed_weights<float> packed(k, n);
    packed.pack(w.data(), n);
    std::vector<float> y(static_cast<std::size_t>(m * n)), row(static_cast<std::size_t>(n));
    const product_part<float> part{x.data(), k, &packed, 0, k};
    engram::multiply<float>(&part, 1, nullptr, false, y.data(), n, m);
    for (int i = 0; i < m; ++i) {
        const product_part<float> single{x.data() + i * k, k, &packed, 0, k};
        engram::multiply<float>(&single, 1, nullptr, false, row.data(), n, 1);
        CHECK(std::equal(row.begin(), row.end(), y.begin() + i * n));
    }
    double exact = 0;
    for (int j = 0; j < k; ++j) exact += double(x[202 * k + j]) * double(w[j * n + 69]);
    CHECK(std::fabs(y[202 * n + 69] - exact) < tolerance<float>(k) / 10);
}

TEST_CASE_TEMPLATE("rows may overlap, as windows of a line do", Real, float, double) {
    const int k = 12, step = 3, m = 21, n = 20;
    const auto x = noise<Real>(m * step + k, 1), w = noise<Real>(k * n, 2);
    packed_weights<Real> packed(k, n);
    packed.pack(w.data(), n);
    std::vector<Real> y(static_cast<std::size_t>(m * n));
    const product_part<Real> part{x.data(), step, &packed, 0, k};
    engram::multiply<Real>(&part, 1, nullptr, false, y.data(), n, m);
    double worst = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += double(x[i * step + l]) * double(w[l * n + j]);
            worst = std::max(worst, std::fabs(sum - y[i * n + j]));
        }
    CHECK(worst < tolerance<Real>(k));
}

TEST_CASE_TEMPLATE("multiply_transposed and sum_rows agree with plain loops", Real, float, double) {
    for (const int n : {1, 9, 16, 31, 32, 48, 70, 288})  // the last in so many panels that short rows are gathered
        for (const int k : {1, 3, 8, 13, 48})
            // 700 rows are three blocks; 330 columns of stride leave the first-level cache.
            for (const auto& [m, gap] : {std::pair{1, 0}, {15, 2}, {320, 1}, {700, 0}, {90, 330}})
                for (const bool accumulate : {false, true}) {
                    const int xs = k + gap, ys = n + gap, ws = n + 1;
                    const auto x = noise<Real>(m * xs, 1), dy = noise<Real>(m * ys, 2);
                    auto dw = noise<Real>(k * ws, 3), db = noise<Real>(n, 4);
                    const auto dw_before = dw, db_before = db;
                    const std::ptrdiff_t space = engram::transposed_workspace<Real>(k, n, m);
                    std::vector<Real> work(static_cast<std::size_t>(space + 1), Real(7));
                    engram::multiply_transposed(x.data(), xs, k, dy.data(), ys, n, m, dw.data(), ws, accumulate,
                                                work.data());
                    engram::sum_rows(dy.data(), ys, n, m, db.data(), accumulate);
                    double worst = 0, worst_bias = 0;
                    bool untouched = work.back() == 7;
                    for (int i = 0; i < k; ++i) {
                        for (int j = 0; j < n; ++j) {
                            double sum = accumulate ? dw_before[i * ws + j] : 0;
                            for (int t = 0; t < m; ++t) sum += double(x[t * xs + i]) * double(dy[t * ys + j]);
                            worst = std::max(worst, std::fabs(sum - dw[i * ws + j]));
                        }
                        untouched &= dw[i * ws + n] == dw_before[i * ws + n];
                    }
                    for (int j = 0; j < n; ++j) {
                        double sum = accumulate ? db_before[j] : 0;
                        for (int t = 0; t < m; ++t) sum += dy[t * ys + j];
                        worst_bias = std::max(worst_bias, std::fabs(sum - db[j]));
                    }
                    CHECK(worst < tolerance<Real>(m));
                    CHECK(worst_bias < tolerance<Real>(m) * 4);
                    CHECK(untouched);
                }
}

TEST_CASE("no rows: nothing is written, or zero") {
    std::vector<float> dw(6, 3.0f), db(2, 3.0f);
    engram::multiply_transposed<float>(nullptr, 3, 3, nullptr, 2, 2, 0, dw.data(), 2, true, nullptr);
    CHECK(dw == std::vector<float>(6, 3.0f));
    engram::multiply_transposed<float>(nullptr, 3, 3, nullptr, 2, 2, 0, dw.data(), 2, false, nullptr);
    CHECK(dw == std::vector<float>(6, 0.0f));
    engram::sum_rows<float>(nullptr, 2, 2, 0, db.data(), false);
    CHECK(db == std::vector<float>(2, 0.0f));
    CHECK_THROWS_AS(packed_weights<float>(-1, 2), engram::error);
}
