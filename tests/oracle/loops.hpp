#pragma once
// Slow restatements of the equations, in double and in loops, from the facts and not from the library.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <engram/model/laws.hpp>

namespace oracle {

using numbers = std::vector<double>;
using matrix = std::vector<numbers>;
using engram::parameters;

inline numbers operator+(numbers a, const numbers& b) {  // [a, b]
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

inline std::size_t at(int i) {
    return static_cast<std::size_t>(i);
}
inline matrix zeros(int rows, int columns) {
    return matrix(at(rows), numbers(at(columns)));
}
inline numbers flat(const matrix& rows) {
    numbers all;
    for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
    return all;
}
/// The inverse, into rows of their sizes.
inline void spread(const double* from, matrix& rows) {
    for (auto& row : rows)
        for (double& x : row) x = *from++;
}

inline double weight(const parameters<double>& store, const std::string& name, int row, int column) {
    const auto p = store.find(name);
    return store.values(p)[row * store[p].columns + column];
}

inline numbers affine(const parameters<double>& store, const std::string& name, const numbers& x) {
    const auto w = store.find(name + ".weight"), b = store.find(name + ".bias");
    const int rows = store[w].rows, columns = store[w].columns;
    REQUIRE(rows == static_cast<int>(x.size()));
    numbers y;
    for (int j = 0; j < columns; ++j) {
        double sum = store.values(b)[j];
        for (int i = 0; i < rows; ++i) sum += x[static_cast<std::size_t>(i)] * store.values(w)[i * columns + j];
        y.push_back(sum);
    }
    return y;
}

inline numbers relu(numbers x) {
    for (double& v : x) v = v > 0 ? v : 0;
    return x;
}
inline double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}

inline double softplus(double x) {
    return x > 30 ? x : std::log1p(std::exp(x));
}

/// Mean 0 and variance 1, an epsilon of 1e-8 beside the variance.
inline void standardise(numbers& x) {
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
    for (double& v : x) v = (v - mean) / std::sqrt(variance + 1e-8);
}

inline numbers log_softmax(numbers x) {
    double sum = 0;
    for (const double v : x) sum += std::exp(v);
    for (double& v : x) v -= std::log(sum);
    return x;
}

/// Facts 1.1 step 4; the forget gate stands one higher. `cell` is carried.
inline numbers lstm(const parameters<double>& store, const numbers& in, const numbers& h, numbers& cell) {
    const numbers z = affine(store, "controller.gates", in + h);
    const std::size_t H = h.size();
    numbers next(H);
    for (std::size_t j = 0; j < H; ++j) {
        cell[j] = sigmoid(z[H + j] + 1) * cell[j] + sigmoid(z[j]) * std::tanh(z[2 * H + j]);
        next[j] = sigmoid(z[3 * H + j]) * std::tanh(cell[j]);
    }
    return next;
}

/// Row b of step t of a program's variable or dense input.
template <class Operand>
numbers row(const Operand& o, int t, int b) {
    const double* first = o.at(t) + b * o.stride;
    return {first, first + o.width};
}
inline numbers row(std::span<const double> input, int width, int B, int t, int b) {
    const double* first = input.data() + (t * B + b) * width;
    return {first, first + width};
}

/// Both are within 1e-9 of the larger size: sums of a few hundred products in another order differ by 1e-13.
inline void check_near(const numbers& a, const numbers& b) {
    REQUIRE(a.size() == b.size());
    double size = 1e-300, worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        size = std::max({size, std::abs(a[i]), std::abs(b[i])});
        worst = std::max(worst, std::isnan(a[i] - b[i]) ? INFINITY : std::abs(a[i] - b[i]));
    }
    CHECK(worst <= 1e-9 * size);
}

}  // namespace oracle
