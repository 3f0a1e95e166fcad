// Sums over rows: right to rounding, and the same bits however many rows are handled at once.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "engram/kernels/rows.hpp"

namespace {

template <class Real>
std::vector<Real> normals(std::mt19937& rng, int n) {
    std::normal_distribution<double> draw;
    std::vector<Real> x(static_cast<std::size_t>(n));
    for (Real& v : x) v = static_cast<Real>(draw(rng));
    return x;
}

template <class Real>
void products_agree(double tolerance) {
    std::mt19937 rng(1);
    for (int c = 0; c < 100; ++c) {
        const bool one_row = c % 5 == 0;  // has a way of its own where b is dense
        const int rows = one_row ? 1 : 1 + static_cast<int>(rng() % 11), columns = 1 + static_cast<int>(rng() % 41);
        const int n = static_cast<int>(rng() % 70), stride = n + (one_row ? 0 : static_cast<int>(rng() % 3));
        const int wide = columns + 2;
        const auto a = normals<Real>(rng, rows * stride + 1), b = normals<Real>(rng, columns * stride + 1);
        std::vector<Real> out(static_cast<std::size_t>(rows * wide), Real(7));
        engram::row_products(a.data(), stride, rows, b.data(), stride, columns, n, out.data(), wide);
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < wide; ++j) {
                if (j >= columns) {
                    REQUIRE(out[i * wide + j] == Real(7));
                    continue;
                }
                double exact = 0, size = 1;
                for (int d = 0; d < n; ++d) {
                    exact += double(a[i * stride + d]) * double(b[j * stride + d]);
                    size += std::abs(double(a[i * stride + d]) * double(b[j * stride + d]));
                }
                REQUIRE(std::abs(out[i * wide + j] - exact) <= tolerance * size);
                REQUIRE(out[i * wide + j] == engram::dot(a.data() + i * stride, b.data() + j * stride, n));
            }
        constexpr int width = engram::pack<Real>::width;
        const auto dense = normals<Real>(rng, columns * n + 1);
        const int count = std::min(columns, width);
        const auto many = engram::dots<width>(a.data(), dense.data(), count, n);
        const auto ahead = engram::dots<width, 8>(a.data(), dense.data(), count, n);
        std::vector<Real> square(static_cast<std::size_t>(columns + 1), Real(7));
        engram::squares(dense.data(), columns, n, square.data());
        REQUIRE(square[columns] == Real(7));
        for (int i = 0; i < std::max(width, columns); ++i) {
            const Real* row = dense.data() + std::min(i, columns - 1) * n;
            if (i < columns) REQUIRE(square[i] == engram::dot(row, row, n));
            if (i >= width) continue;
            REQUIRE(many[i] == engram::dot(a.data(), dense.data() + std::min(i, count - 1) * n, n));
            REQUIRE(ahead[i] == many[i]);
        }
    }
}

template <class Real, bool Add>
void weighted_agree(double tolerance) {
    std::mt19937 rng(2);
    for (int c = 0; c < 100; ++c) {
        const int rows = 1 + static_cast<int>(rng() % 10), terms = static_cast<int>(rng() % 12);
        const int n = 1 + static_cast<int>(rng() % 150), stride = n + static_cast<int>(rng() % 3);
        const bool transposed = c % 2;
        const auto a = normals<Real>(rng, rows * terms + 1), b = normals<Real>(rng, terms * stride + 1);
        const auto was = normals<Real>(rng, rows * stride);
        auto out = was;
        const int a_row = transposed ? 1 : terms, a_term = transposed ? rows : 1;
        engram::weighted_rows<Add>(a.data(), a_row, a_term, rows, b.data(), stride, terms, out.data(), stride, n);
        for (int i = 0; i < rows; ++i)
            for (int d = 0; d < stride; ++d) {
                if (d >= n) {
                    REQUIRE(out[i * stride + d] == was[i * stride + d]);
                    continue;
                }
                double exact = Add ? double(was[i * stride + d]) : 0.0, size = 1;
                for (int r = 0; r < terms; ++r) {
                    const double term = double(a[i * a_row + r * a_term]) * double(b[r * stride + d]);
                    exact += term;
                    size += std::abs(term);
                }
                REQUIRE(std::abs(out[i * stride + d] - exact) <= tolerance * size);
            }
    }
}

}  // namespace

TEST_CASE("row products are right, stay inside, and have the bits of a single dot product") {
    products_agree<float>(1e-6);  // a dozen roundings of 6e-8, relative to the sum of magnitudes
    products_agree<double>(1e-15);
}

TEST_CASE("weighted sums of rows are right and stay inside, stored or added") {
    weighted_agree<float, false>(1e-6);
    weighted_agree<float, true>(1e-6);
    weighted_agree<double, false>(2e-15);
    weighted_agree<double, true>(2e-15);
}

TEST_CASE("small things: any lane, indices, squared distance") {
    using P = engram::pack<float>;
    for (int i = 0; i < P::width; ++i) CHECK(engram::any(engram::indices<float>(5) == P(5 + i)));
    CHECK_FALSE(engram::any(engram::indices<float>(5) == P(4)));
    CHECK_FALSE(engram::any(engram::indices<float>(5) == P(5 + P::width)));
    std::mt19937 rng(3);
    for (int n : {0, 1, 8, 16, 33}) {
        const auto a = normals<double>(rng, n + 1), b = normals<double>(rng, n + 1);
        double exact = 0;
        for (int i = 0; i < n; ++i) exact += (a[i] - b[i]) * (a[i] - b[i]);
        CHECK(std::abs(engram::squared_distance(a.data(), b.data(), n) - exact) <= 1e-14 * (1 + exact));
    }
}
