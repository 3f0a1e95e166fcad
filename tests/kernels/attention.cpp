// Attention by blocks against the T x T equations in loops, its gradient against differences, and what must not change:
// the past by the future, an episode by another, anything by the size of a block.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "differences.hpp"
#include "engram/kernels/attention.hpp"

namespace {

struct problem {
    int T, d, step;
    bool rotary;
    std::vector<double> q, k, v, d_y;
    std::vector<int> segment;

    problem(std::mt19937& rng, int steps, int width, bool turned, double size, int episodes = 8)
        : T(steps), d(width), step(width + 3), rotary(turned) {
        std::normal_distribution<double> normal;
        for (auto* x : {&q, &k, &v, &d_y}) {
            x->resize(static_cast<std::size_t>(T * step));
            for (double& number : *x) number = (x == &q || x == &k ? size : 1) * normal(rng);
        }
        for (int t = 0, episode = 0; t < T; ++t) segment.push_back(episode += t > 0 && rng() % episodes == 0);
    }
};

// Row t of x, turned by its position in the episode.
std::vector<double> turned(const problem& p, const std::vector<double>& x, int t) {
    std::vector<double> row(x.begin() + t * p.step, x.begin() + t * p.step + p.d), out = row;
    int n = 0;
    while (n < t && p.segment[t - n - 1] == p.segment[t]) ++n;
    for (int f = 0; p.rotary && f < p.d / 2; ++f) {
        const double angle = n * std::pow(10000.0, -2.0 * f / p.d);
        out[f] = row[f] * std::cos(angle) - row[f + p.d / 2] * std::sin(angle);
        out[f + p.d / 2] = row[f] * std::sin(angle) + row[f + p.d / 2] * std::cos(angle);
    }
    return out;
}

std::vector<double> oracle(const problem& p) {
    std::vector<double> y;
    for (int t = 0; t < p.T; ++t) {
        const auto query = turned(p, p.q, t);
        std::vector<double> weight(static_cast<std::size_t>(t + 1), 0.0);
        double top = -1e300, sum = 0;
        for (int i = 0; i <= t; ++i) {
            if (p.segment[i] != p.segment[t]) continue;
            const auto key = turned(p, p.k, i);
            for (int f = 0; f < p.d; ++f) weight[i] += query[f] * key[f] / std::sqrt(p.d);
            top = std::max(top, weight[i]);
        }
        for (int i = 0; i <= t; ++i) sum += weight[i] = p.segment[i] == p.segment[t] ? std::exp(weight[i] - top) : 0;
        for (int f = 0; f < p.d; ++f) {
            double total = 0;
            for (int i = 0; i <= t; ++i) total += weight[i] / sum * p.v[i * p.step + f];
            y.push_back(total);
        }
    }
    return y;
}

template <class Real>
struct outcome {
    std::vector<Real> y, d_q, d_k, d_v;  // y [T, d], gradients [T, step]
};

template <class Real>
outcome<Real> run(const problem& p, int block) {
    const auto cast = [](const std::vector<double>& x) { return std::vector<Real>(x.begin(), x.end()); };
    const auto q = cast(p.q), k = cast(p.k), v = cast(p.v), d_y = cast(p.d_y);
    engram::attention_head<Real> head({p.T, p.d, p.rotary, block}, true);
    std::vector<Real> log_sum(static_cast<std::size_t>(p.T));
    outcome<Real> out;
    out.y.resize(static_cast<std::size_t>(p.T * p.d));
    head.forward(q.data(), p.step, k.data(), p.step, v.data(), p.step, p.segment.data(), out.y.data(), p.d,
                 log_sum.data());
    out.d_q.assign(q.size(), Real(1));  // added to
    out.d_k.assign(q.size(), Real(5));  // stored
    out.d_v.assign(q.size(), Real(2));  // added to
    head.backward(q.data(), p.step, k.data(), p.step, v.data(), p.step, p.segment.data(), out.y.data(), p.d,
                  log_sum.data(), d_y.data(), p.step, out.d_q.data(), p.step, true, out.d_k.data(), p.step, false,
                  out.d_v.data(), p.step, true);
    for (int t = 0; t < p.T; ++t)
        for (int f = 0; f < p.step; ++f) {
            out.d_q[t * p.step + f] -= 1;
            out.d_v[t * p.step + f] -= 2;
            if (f >= p.d) REQUIRE(out.d_k[t * p.step + f] == 5);  // the gap between rows is not ours
            if (f >= p.d) out.d_k[t * p.step + f] = 0;
        }
    return out;
}

template <class Real>
double worst(const std::vector<Real>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - b[i]));
    return most;
}

}  // namespace

TEST_CASE("y equals the T x T equations, episodes, strides, positions and blocks of any size included") {
    std::mt19937 rng(1);
    for (int c = 0; c < 200; ++c) {
        const int T = 1 + int(rng() % 60), d = 2 * (1 + int(rng() % 24));
        const problem p(rng, T, d, c % 2 == 0, c % 5 == 0 ? 4.0 : 1.0, c % 3 == 0 ? 1000 : 8);
        const auto expected = oracle(p);
        const int block = c % 4 == 0 ? 64 : 1 + int(rng() % 20);
        CHECK(worst(run<double>(p, block).y, expected) <= 1e-12);
        // Scores up to about 100 carry 1e-5 in float, and so do their exponentials; |y| is about 3.
        CHECK(worst(run<float>(p, block).y, expected) <= 2e-4);
    }
}

TEST_CASE("gradients equal central differences") {
    std::mt19937 rng(2);
    for (int c = 0; c < 10; ++c) {
        problem p(rng, 2 + int(rng() % 9), 2 * (1 + int(rng() % 3)), c % 2 == 0, 1.0, c < 4 ? 1000 : 4);
        const auto out = run<double>(p, 1 + int(rng() % 6));
        const auto loss = [&] {
            const auto y = oracle(p);
            double sum = 0;
            for (int t = 0; t < p.T; ++t)
                for (int f = 0; f < p.d; ++f) sum += p.d_y[t * p.step + f] * y[t * p.d + f];
            return sum;
        };
        CHECK(gradient_error(p.q, out.d_q, 1e-3, loss) <= 1e-8);
        CHECK(gradient_error(p.k, out.d_k, 1e-3, loss) <= 1e-8);
        CHECK(gradient_error(p.v, out.d_v, 1e-3, loss) <= 1e-8);
    }
}

TEST_CASE("the size of a block changes nothing beyond rounding") {
    std::mt19937 rng(3);
    const problem p(rng, 300, 32, true, 1.0, 200);
    const auto whole = run<double>(p, 300);
    for (const int block : {1, 7, 64, 100, 130}) {  // queries come 64 at a time, so keys of 100 end within them
        const auto part = run<double>(p, block);
        CHECK(worst(part.y, whole.y) <= 1e-13);
        CHECK(worst(part.d_q, whole.d_q) <= 1e-12);
        CHECK(worst(part.d_k, whole.d_k) <= 1e-12);
        CHECK(worst(part.d_v, whole.d_v) <= 1e-12);
        if (block < 100) CHECK(whole.d_q != part.d_q);  // it is another sum
    }
}

TEST_CASE("the future changes no bit of the past, and an episode none of another's") {
    for (const int block : {64, 100, 256}) {
        std::mt19937 rng(4);
        problem p(rng, 140, 16, true, 1.0, 1000);
        for (int t = 0; t < p.T; ++t) p.segment[t] = t < 90 ? 0 : 1;
        const auto before = run<float>(p, block);
        problem later = p;
        for (int t = 70; t < 90; ++t)
            for (int f = 0; f < p.d; ++f) later.k[t * p.step + f] = later.v[t * p.step + f] = 30;
        const auto after = run<float>(later, block);
        for (int i = 0; i < 70 * p.d; ++i) REQUIRE(before.y[i] == after.y[i]);
        CHECK(before.y[75 * p.d] != after.y[75 * p.d]);
        for (int i = 90 * p.d; i < p.T * p.d; ++i) REQUIRE(before.y[i] == after.y[i]);
        for (int i = 90 * p.step; i < p.T * p.step; ++i) REQUIRE(before.d_v[i] == after.d_v[i]);

        // The second episode as an unroll of its own: the same bits, forward and backward.
        problem alone = p;
        alone.T = 50;
        for (auto* x : {&alone.q, &alone.k, &alone.v, &alone.d_y}) x->erase(x->begin(), x->begin() + 90 * p.step);
        alone.segment.assign(50, 0);
        const auto fresh = run<float>(alone, block);
        for (int i = 0; i < 50 * p.d; ++i) REQUIRE(fresh.y[i] == before.y[90 * p.d + i]);
        for (int i = 0; i < 50 * p.step; ++i) {
            REQUIRE(fresh.d_q[i] == before.d_q[90 * p.step + i]);
            REQUIRE(fresh.d_k[i] == before.d_k[90 * p.step + i]);
        }
    }
}

TEST_CASE("scores of any finite size give finite and right numbers") {
    std::mt19937 rng(5);
    for (const double size : {0.0, 30.0, 300.0}) {
        const problem p(rng, 100, 8, false, size, 1000);  // scores up to about a million
        const auto out = run<float>(p, 16);
        for (const auto* x : {&out.y, &out.d_q, &out.d_k, &out.d_v})
            for (const float number : *x) REQUIRE(std::isfinite(number));
        if (size == 0) CHECK(worst(out.y, oracle(p)) <= 1e-5);  // a mean of what was seen
        CHECK(worst(run<double>(p, 16).y, oracle(p)) <= 1e-8);
    }
}

TEST_CASE("scratch memory is linear in T") {
    const auto bytes = [](int T) { return double(engram::attention_head<float>({T, 32, true, 64}, true).memory()); };
    CHECK((bytes(8192) - bytes(4096)) / (bytes(4096) - bytes(2048)) < 2.01);
    CHECK(bytes(8192) < 14 * 8192 * 32 * sizeof(float));
}

TEST_CASE("bad sizes are one sentence") {
    CHECK_THROWS_WITH(engram::attention_head<float>({4, 3, true, 64}, false),
                      "attention: rotary positions turn pairs of columns, 3 do not make pairs");
    CHECK_THROWS_WITH(engram::attention_head<float>({4, 3, false, 0}, false),
                      "attention: 4 steps of 3 numbers in blocks of 0 leave nothing to attend to");
}
