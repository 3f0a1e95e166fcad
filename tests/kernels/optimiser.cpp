// The fused optimiser passes against scalar loops in double.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/optimiser.hpp"

namespace {

template <class Real>
std::vector<Real> normals(std::mt19937& rng, int n, double size) {
    std::normal_distribution<double> draw(0, size);
    std::vector<Real> x(static_cast<std::size_t>(n));
    for (Real& v : x) v = static_cast<Real>(draw(rng));
    return x;
}

const int sizes[] = {0, 1, 7, 16, 17, 63, 64, 1000};

// Steps both sides with the same gradients; `tolerance` relative to max(1, |p|).
template <class Real>
void adam_agrees(double tolerance) {
    std::mt19937 rng(1);
    for (int n : sizes) {
        std::vector<Real> p = normals<Real>(rng, n, 1), m(p.size()), v(p.size());
        std::vector<double> q(p.begin(), p.end()), first(q.size()), second(q.size());
        const Real lr = Real(1e-2), b1 = Real(0.9), b2 = Real(0.999), eps = Real(1e-3), scale = Real(0.7);
        for (int step = 1; step <= 20; ++step) {
            const std::vector<Real> g = normals<Real>(rng, n, step % 2 ? 1 : 1e-3);
            engram::adam_update(p.data(), g.data(), m.data(), v.data(), n, lr, b1, b2, eps, step, scale);
            for (int i = 0; i < n; ++i) {
                const double gradient = double(scale) * double(g[i]);
                first[i] = double(b1) * first[i] + (1 - double(b1)) * gradient;
                second[i] = double(b2) * second[i] + (1 - double(b2)) * gradient * gradient;
                const double mean = first[i] / (1 - std::pow(double(b1), step));
                const double square = second[i] / (1 - std::pow(double(b2), step));
                q[i] -= double(lr) * mean / (std::sqrt(square) + double(eps));
            }
        }
        for (int i = 0; i < n; ++i) REQUIRE(std::abs(p[i] - q[i]) <= tolerance * std::max(1.0, std::abs(q[i])));
        for (int i = 0; i < n; ++i) REQUIRE(std::abs(v[i] - second[i]) <= tolerance);
    }
}

template <class Real>
void rmsprop_agrees(double tolerance) {
    std::mt19937 rng(2);
    for (int n : sizes) {
        std::vector<Real> p = normals<Real>(rng, n, 1), ms(p.size()), mom(p.size());
        std::vector<double> q(p.begin(), p.end()), square(q.size()), velocity(q.size());
        const Real lr = Real(1e-3), decay = Real(0.99), eps = Real(0.1), momentum = Real(0.5), scale = Real(1.3);
        for (int step = 1; step <= 20; ++step) {
            const std::vector<Real> g = normals<Real>(rng, n, 1);
            engram::rmsprop_update(p.data(), g.data(), ms.data(), mom.data(), n, lr, decay, eps, momentum, scale);
            for (int i = 0; i < n; ++i) {
                const double gradient = double(scale) * double(g[i]);
                square[i] = double(decay) * square[i] + (1 - double(decay)) * gradient * gradient;
                velocity[i] =
                    double(momentum) * velocity[i] + double(lr) * gradient / std::sqrt(square[i] + double(eps));
                q[i] -= velocity[i];
            }
        }
        for (int i = 0; i < n; ++i) REQUIRE(std::abs(p[i] - q[i]) <= tolerance * std::max(1.0, std::abs(q[i])));
    }
}

}  // namespace

TEST_CASE("Adam equals scalar loops over twenty steps") {
    adam_agrees<double>(1e-12);
    adam_agrees<float>(3e-6);  // twenty roundings of p at 6e-8 each, and of steps of 1e-2
}

TEST_CASE("RMSProp equals scalar loops over twenty steps") {
    rmsprop_agrees<double>(1e-12);
    rmsprop_agrees<float>(3e-6);
}

TEST_CASE("the first steps have the sizes that the formulas say") {
    double p = 0, g = 5, m = 0, v = 0;
    engram::adam_update(&p, &g, &m, &v, 1, 0.1, 0.9, 0.999, 0.0, 1, 1.0);
    CHECK(p == doctest::Approx(-0.1));  // m / sqrt(v) = 1 at the first step, however large the gradient
    p = 0, m = 0, v = 0;
    engram::adam_update(&p, &g, &m, &v, 1, 0.1, 0.9, 0.999, 5.0, 1, 1.0);
    CHECK(p == doctest::Approx(-0.05));  // epsilon outside the root
    double ms = 0, mom = 0;
    p = 0, g = 3;
    engram::rmsprop_update(&p, &g, &ms, &mom, 1, 0.1, 0.0, 7.0, 0.0, 1.0);
    CHECK(p == doctest::Approx(-0.3 / 4));  // epsilon inside the root: sqrt(9 + 7)
}

TEST_CASE("nothing beyond the span is touched, and cutting a span changes no bit") {
    std::mt19937 rng(3);
    const auto g = normals<float>(rng, 100, 1), start = normals<float>(rng, 100, 1);
    auto p = start, m = std::vector<float>(100, 0.5f), v = std::vector<float>(100, 0.5f);
    engram::adam_update(p.data(), g.data(), m.data(), v.data(), 77, 0.1f, 0.9f, 0.99f, 1e-8f, 3, 1.0f);
    for (int i = 77; i < 100; ++i) CHECK((p[i] == start[i] && m[i] == 0.5f && v[i] == 0.5f));
    auto cut = start, m2 = std::vector<float>(100, 0.5f), v2 = std::vector<float>(100, 0.5f);
    engram::adam_update(cut.data(), g.data(), m2.data(), v2.data(), 29, 0.1f, 0.9f, 0.99f, 1e-8f, 3, 1.0f);
    engram::adam_update(cut.data() + 29, g.data() + 29, m2.data() + 29, v2.data() + 29, 48, 0.1f, 0.9f, 0.99f, 1e-8f, 3,
                        1.0f);
    CHECK(std::memcmp(p.data(), cut.data(), 100 * sizeof(float)) == 0);
}

TEST_CASE("the squared norm is right to rounding for any length") {
    std::mt19937 rng(4);
    for (int n : {0, 1, 15, 16, 100, 1023, 1024, 1025, 2049, 5000, 100000}) {
        const auto x = normals<float>(rng, n, 1);
        double exact = 0;
        for (float v : x) exact += double(v) * double(v);
        // 64 additions in a lane and a tree above: about 80 roundings at worst, far fewer on average.
        CHECK(std::abs(engram::squared_norm(x.data(), n) - exact) <= 80 * 6e-8 * exact);
    }
}

TEST_CASE("the first non-finite number is found wherever it lies") {
    for (int n : {1, 16, 63, 64, 65, 200})
        for (int at = 0; at < n; ++at)
            for (float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
                std::vector<float> x(static_cast<std::size_t>(n), std::numeric_limits<float>::max());
                CHECK(engram::first_non_finite(x.data(), n) == -1);
                x[at] = bad;
                x[n - 1] = at == n - 1 ? bad : -bad;
                CHECK(engram::first_non_finite(x.data(), n) == at);
            }
    CHECK(engram::first_non_finite<double>(nullptr, 0) == -1);
}
