// Least-recently-used access against literal loops, and its gradients against differences.
#include <doctest/doctest.h>

#include "differences.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "engram/kernels/least_used.hpp"

namespace {

using span = std::vector<double>;

std::size_t at(int i) {
    return static_cast<std::size_t>(i);
}
span draw(std::mt19937& rng, int n, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    span x(at(n));
    for (double& v : x) v = uniform(rng);
    return x;
}
double inner(const span& a, const span& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
span minus(span a, const span& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
}

span cosine_loops(const span& M, int N, int W, const span& k, int R) {
    span c;
    for (int r = 0; r < R; ++r)
        for (int n = 0; n < N; ++n) {
            double product = 0, key = 0, row = 0;
            for (int i = 0; i < W; ++i) {
                product += k[at(r * W + i)] * M[at(n * W + i)];
                key += k[at(r * W + i)] * k[at(r * W + i)];
                row += M[at(n * W + i)] * M[at(n * W + i)];
            }
            c.push_back(product / std::sqrt(key * row + 1e-6));
        }
    return c;
}

}  // namespace

TEST_CASE("cosines under one root equal the loops and their gradients the differences") {
    std::mt19937 rng(1);
    double worst = 0, slope = 0;
    for (int c = 0; c < 40; ++c) {
        const int N = 1 + static_cast<int>(rng() % 20), W = 1 + static_cast<int>(rng() % 20),
                  R = 1 + static_cast<int>(rng() % 5);
        span M = draw(rng, N * W, -1, 1), k = draw(rng, R * W, -1, 1), d = draw(rng, R * N, -1, 1);
        if (c % 4 == 0) std::fill_n(M.begin(), W, 0.0);  // a cleared slot
        if (c % 8 == 0) std::fill_n(k.begin(), W, 0.0);
        span cosine(at(R * N)), key_square(at(R)), row_square(at(N)), scratch(at(2 * R * N));
        engram::joint_cosine(M.data(), N, W, k.data(), R, cosine.data(), key_square.data(), row_square.data());
        worst = std::max(worst, distance(cosine, cosine_loops(M, N, W, k, R)));
        const span was_M = draw(rng, N * W, -1, 1), was_k = draw(rng, R * W, -1, 1);
        span d_M = was_M, d_k = was_k;
        engram::joint_cosine_gradient(M.data(), N, W, k.data(), R, cosine.data(), key_square.data(), row_square.data(),
                                      d.data(), d_M.data(), d_k.data(), scratch.data());
        // A zero row turns from -1 to 1 within 1e-3 / |k|, so a step must be far smaller than that.
        const auto loss = [&] { return inner(d, cosine_loops(M, N, W, k, R)); };
        slope = std::max({slope, gradient_error(M, minus(d_M, was_M), 2e-6, loss),
                          gradient_error(k, minus(d_k, was_k), 2e-6, loss)});
    }
    MESSAGE("cosines differ by ", worst, ", their gradients by ", slope);
    CHECK(worst <= 1e-14);
    CHECK(slope <= 1e-7);
}

TEST_CASE("all-zero memories and keys give zero and no gradient, in float") {
    const int N = 3, W = 5, R = 2;
    std::vector<float> zeros(15), ones(6, 1.0f), out(6, 9.0f), kk(2), mm(3), dM(15), dk(10), s(12);
    engram::joint_cosine(zeros.data(), N, W, zeros.data(), R, out.data(), kk.data(), mm.data());
    engram::joint_cosine_gradient(zeros.data(), N, W, zeros.data(), R, out.data(), kk.data(), mm.data(), ones.data(),
                                  dM.data(), dk.data(), s.data());
    for (const auto* x : {&out, &dM, &dk})
        for (const float v : *x) CHECK(v == 0.0f);
}

TEST_CASE("exactly n slots are marked, in the order of usage and then of slots") {
    std::mt19937 rng(2);
    for (int c = 0; c < 300; ++c) {
        const int N = 1 + static_cast<int>(rng() % 30), count = 1 + static_cast<int>(rng() % static_cast<unsigned>(N));
        span usage(at(N)), marks(at(count * N), 9.0);
        for (double& u : usage) u = c % 2 ? static_cast<double>(rng() % 3) : static_cast<double>(rng());
        std::vector<int> order(at(N));
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return usage[at(a)] < usage[at(b)]; });
        engram::mark_least_used(usage.data(), N, count, marks.data());
        for (int r = 0; r < count; ++r)
            for (int n = 0; n < N; ++n) REQUIRE(marks[at(r * N + n)] == (order[at(r)] == n ? 1 : 0));
    }
}

TEST_CASE("equal usages, infinite ones and ones that are no number still mark different slots") {
    const double no_number = std::numeric_limits<double>::quiet_NaN(), infinite = INFINITY;
    const auto marked = [](const span& usage) {
        const int N = static_cast<int>(usage.size());
        span marks(at(N * N));
        engram::mark_least_used(usage.data(), N, N, marks.data());
        std::vector<int> slots;
        for (int r = 0; r < N; ++r)
            for (int n = 0; n < N; ++n)
                if (marks[at(r * N + n)] == 1) slots.push_back(n);
        return slots;
    };
    CHECK(marked({0, 0, 0}) == std::vector<int>{0, 1, 2});
    CHECK(marked({no_number, no_number, no_number}) == std::vector<int>{0, 1, 2});
    CHECK(marked({no_number, 2, infinite, 1, -infinite}) == std::vector<int>{4, 3, 1, 0, 2});
}

TEST_CASE("clearing and adding equals the loops and its gradients the differences") {
    std::mt19937 rng(3);
    double worst = 0, slope = 0;
    for (int c = 0; c < 40; ++c) {
        const int N = 1 + static_cast<int>(rng() % 20), W = 1 + static_cast<int>(rng() % 20),
                  R = 1 + static_cast<int>(rng() % static_cast<unsigned>(std::min(N, 5)));
        span M = draw(rng, N * W, -1, 1), w = draw(rng, R * N, 0, 1), a = draw(rng, R * W, -1, 1);
        const span usage = draw(rng, N, 0, 1), d = draw(rng, N * W, -1, 1);
        span marks(at(R * N)), out(at(N * W), 9.0);
        engram::mark_least_used(usage.data(), N, R, marks.data());
        const auto loops = [&] {
            span next;
            for (int n = 0; n < N; ++n)
                for (int i = 0; i < W; ++i) {
                    double x = M[at(n * W + i)];
                    for (int r = 0; r < R; ++r)
                        if (marks[at(r * N + n)] == 1) x = 0;
                    for (int r = 0; r < R; ++r) x += w[at(r * N + n)] * a[at(r * W + i)];
                    next.push_back(x);
                }
            return next;
        };
        engram::clear_and_add(M.data(), N, W, marks.data(), w.data(), a.data(), R, out.data());
        worst = std::max(worst, distance(out, loops()));
        const span was = draw(rng, N * W, -1, 1);
        span d_M = was, d_w(at(R * N), 9.0), d_a(at(R * W), 9.0), kept(at(N));
        engram::clear_and_add_gradient(N, W, marks.data(), w.data(), a.data(), R, d.data(), d_M.data(), d_w.data(),
                                       d_a.data(), kept.data());
        const auto loss = [&] { return inner(d, loops()); };
        slope = std::max({slope, gradient_error(M, minus(d_M, was), 1e-3, loss), gradient_error(w, d_w, 1e-3, loss),
                          gradient_error(a, d_a, 1e-3, loss)});
    }
    MESSAGE("memories differ by ", worst, ", their gradients by ", slope);
    CHECK(worst <= 1e-14);
    CHECK(slope <= 1e-9);
}

TEST_CASE("what was in a cleared slot is gone, whatever it was") {
    span M{1, 2, std::numeric_limits<double>::quiet_NaN(), INFINITY}, marks{0, 1}, w{0.5, 0.25}, a{4, 8}, out(4);
    engram::clear_and_add(M.data(), 2, 2, marks.data(), w.data(), a.data(), 1, out.data());
    CHECK(out == span{3, 6, 1, 2});
}
