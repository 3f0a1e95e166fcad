// SPDX-License-Identifier: MIT

// Bits that must not hang on what a compiler makes of a * b + c: equal numbers give equal results wherever they stand
// in a row, whatever the row's length, beside whatever other rows, and whether an input is one column or all. Compiled
// and run again for other compilers, levels and contractions by the tests bits.*.

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include <engram/kernels/knn.hpp>
#include <engram/kernels/optimiser.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

// Products that are added to, used twice, invariant over a row, or behind a function: what contraction is decided by.
struct sums_of_products {
    auto operator()(auto a, auto b, auto c) const { return a * b + c * a - b * 0.3; }
};
struct product_twice {
    auto operator()(auto a, auto b, auto c) const {
        const auto p = a * b;
        return p * c + p + c * 1.7;
    }
};
struct cell {
    auto operator()(auto a, auto b, auto c) const { return logistic(a + 1) * c + tanh(b) * exp(a * 0.1) + softplus(c); }
};
struct distance {
    auto operator()(auto a, auto b, auto c) const { return (square(a - b) * c + square(b)) / (abs(c) + 1); }
};

struct numbers {
    float a, b, c;
};

/// y and the gradients of a, b and c, [rows, width] each, of rows whose numbers are given, one set a row for all
/// columns.
template <class Functor>
std::vector<std::vector<float>> results(Functor f, const std::vector<numbers>& rows, int width, bool one_column) {
    const int B = static_cast<int>(rows.size());
    auto store = std::make_shared<parameters<float>>(7);
    graph<cpu<float>> g(store);
    const auto a = g.input("a", width, extent::sequence, true), b = g.input("b", width, extent::sequence, true);
    const auto c = g.input("c", one_column ? 1 : width, extent::sequence, true);
    const auto y = map("y", f, a, b, c);
    add_loss("loss", sum_columns("sum", y));
    program<cpu<float>> p(g, store, {.steps = 1, .batch = B, .gradients = true}, {y});
    const auto fill = [&](const char* name, auto number) {
        const auto to = p.input(name);
        const std::size_t columns = to.size() / rows.size();
        for (std::size_t i = 0; i < to.size(); ++i) to[i] = number(rows[i / columns]);
    };
    fill("a", [](const numbers& n) { return n.a; });
    fill("b", [](const numbers& n) { return n.b; });
    fill("c", [](const numbers& n) { return n.c; });
    p.forward();
    p.backward();
    std::vector<std::vector<float>> all;
    const auto keep = [&](operand<const float> x) {
        auto& to = all.emplace_back();
        for (int r = 0; r < B; ++r) to.insert(to.end(), x.data + r * x.stride, x.data + r * x.stride + x.width);
    };
    keep(p.output(y));
    keep(p.gradient_of(a));
    keep(p.gradient_of(b));
    if (!one_column) keep(p.gradient_of(c));
    return all;
}

std::vector<numbers> drawn(int count) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<numbers> rows;
    for (int i = 0; i < count; ++i) rows.push_back({normal(random), normal(random), normal(random)});
    return rows;
}

bool same(float x, float y) {
    return std::memcmp(&x, &y, sizeof x) == 0;
}

template <class Functor>
void keeps_its_bits(Functor f) {
    const auto rows = drawn(6);
    for (const numbers& row : rows) {
        const auto alone = results(f, {row}, 1, false);
        for (const int width : {2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64})
            for (const bool one_column : {false, true}) {
                const auto wide = results(f, {row}, width, one_column);
                int different = 0;
                for (std::size_t i = 0; i < wide.size(); ++i)
                    for (const float x : wide[i]) different += !same(x, alone[i][0]);
                CAPTURE(width);
                CAPTURE(one_column);
                CHECK(different == 0);
            }
    }
    for (const int width : {1, 5, 16, 19, 33}) {
        const auto together = results(f, rows, width, true);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const auto alone = results(f, {rows[r]}, width, true);
            for (std::size_t i = 0; i < alone.size(); ++i)
                CHECK(std::memcmp(alone[i].data(), together[i].data() + r * alone[i].size(),
                                  sizeof(float) * alone[i].size()) == 0);
        }
    }
}

std::vector<float> noise(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> all(size);
    for (auto& x : all) x = normal(random);
    return all;
}

}  // namespace

TEST_CASE("a functor gives the same bits in every place of every row") {
    keeps_its_bits(sums_of_products{});
    keeps_its_bits(product_twice{});
    keeps_its_bits(cell{});
    keeps_its_bits(distance{});
}

TEST_CASE("affine maps and their softmax of a row alone and in a batch") {
    constexpr int B = 11, X = 23, Y = 37;
    auto store = std::make_shared<parameters<float>>(7);
    graph<cpu<float>> g(store);
    const auto x = g.input("x", X, extent::sequence, true);
    const auto weights = g.declare_linear("map", X, Y);
    const auto y = affine<cpu<float>>("y", {x}, weights);
    const auto z = log_softmax("z", y);
    const auto numbers = noise(B * X, 1);
    const auto run = [&](int first, int count) {
        program<cpu<float>> p(g, store, {.steps = 1, .batch = count}, {y, z});
        std::copy_n(numbers.data() + first * X, count * X, p.input("x").data());
        p.forward();
        std::vector<float> all;
        for (const auto& v : {y, z}) {
            const auto out = p.output(v);
            for (int r = 0; r < count; ++r)
                all.insert(all.end(), out.at(0) + r * out.stride, out.at(0) + r * out.stride + Y);
        }
        return all;
    };
    const auto all = run(0, B);
    for (const int count : {1, 2, 3, 4, 5})
        for (int first = 0; first + count <= B; ++first) {
            const auto some = run(first, count);
            for (int part = 0; part < 2; ++part)
                CHECK(std::memcmp(some.data() + part * count * Y, all.data() + (part * B + first) * Y,
                                  sizeof(float) * std::size_t(count * Y)) == 0);
        }
}

TEST_CASE("distances of slots in their order and picked out, weights updated in one span and in two") {
    constexpr int N = 53, D = 29;
    auto keys = noise(N * D, 2), norms = noise(N, 3), content = noise(N, 4);
    const auto query = noise(D, 5);
    std::int64_t written = N;
    const knn_ring<float> ring{content.data(), keys.data(), norms.data(), &written, N, 1, D};
    std::vector<float> in_order(N + pack<float>::width), picked(N + pack<float>::width);
    knn_distances(ring, query.data(), N, in_order.data());
    std::vector<int> slots(N);
    for (int i = 0; i < N; ++i) slots[static_cast<std::size_t>(i)] = (i * 7 + 3) % N;
    knn_distances_of(ring, query.data(), slots.data(), N, picked.data());
    for (std::size_t i = 0; i < N; ++i) CHECK(same(picked[i], in_order[static_cast<std::size_t>(slots[i])]));

    const auto gradient = noise(N, 6);
    const auto step = [&](std::vector<std::ptrdiff_t> cuts, bool adam) {
        auto w = noise(N, 7), m = noise(N, 8), v = noise(N, 9);
        for (auto& x : v) x = x * x;
        cuts.push_back(N);
        std::ptrdiff_t from = 0;
        for (const auto to : cuts) {
            if (adam)
                adam_update(w.data() + from, gradient.data() + from, m.data() + from, v.data() + from, to - from, 1e-3f,
                            0.9f, 0.999f, 1e-8f, 3, 0.7f);
            else
                rmsprop_update(w.data() + from, gradient.data() + from, m.data() + from, v.data() + from, to - from,
                               1e-3f, 0.99f, 0.1f, 0.9f, 0.7f);
            from = to;
        }
        w.insert(w.end(), m.begin(), m.end());
        return w;
    };
    for (const bool adam : {true, false}) {
        const auto whole = step({}, adam);
        for (const std::ptrdiff_t cut : {1, 5, 16, 31}) {
            const auto parts = step({cut}, adam);
            CHECK(std::memcmp(parts.data(), whole.data(), sizeof(float) * whole.size()) == 0);
        }
    }
}
