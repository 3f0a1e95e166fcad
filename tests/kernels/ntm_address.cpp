// NTM addressing against literal loops, its gradients against differences, and the corners in which its formula has no
// sum to divide by.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "engram/kernels/ntm_address.hpp"

namespace {

using span = std::vector<double>;

span draw(std::mt19937& rng, int n, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    span x(static_cast<std::size_t>(n));
    for (double& v : x) v = uniform(rng);
    return x;
}

/// Every row of N numbers divided by its sum.
span normalised(span x, int N) {
    for (std::size_t i = 0; i < x.size(); i += static_cast<std::size_t>(N)) {
        double sum = 0;
        for (int n = 0; n < N; ++n) sum += x[i + static_cast<std::size_t>(n)];
        for (int n = 0; n < N; ++n) x[i + static_cast<std::size_t>(n)] /= sum;
    }
    return x;
}

double largest_difference(const span& a, const span& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst;
}

/// What one call gives and keeps, and its gradients.
template <class Real>
struct call {
    using numbers = std::vector<Real>;
    int N, R;
    numbers cosine, raw, previous;
    numbers weight, content, shifted, d_cosine, d_raw, d_previous, scratch;
    std::vector<engram::ntm_head<Real>> heads;

    call(int n, int r, numbers c, numbers z, numbers p)
        : N(n), R(r), cosine(std::move(c)), raw(std::move(z)), previous(std::move(p)) {
        // Nothing that was there before may show.
        for (auto* x : {&weight, &content, &shifted, &d_cosine, &d_previous}) x->assign(cosine.size(), Real(9));
        d_raw.assign(raw.size(), Real(9));
        scratch.assign(static_cast<std::size_t>(engram::ntm_address_scratch(N)), Real(9));
        heads.resize(static_cast<std::size_t>(R));
    }
    void forward() {
        engram::ntm_address(cosine.data(), raw.data(), previous.data(), N, R, weight.data(), content.data(),
                            shifted.data(), heads.data(), scratch.data());
    }
    void backward(const numbers& d) {
        engram::ntm_address_gradient(cosine.data(), raw.data(), previous.data(), N, R, weight.data(), content.data(),
                                     shifted.data(), heads.data(), d.data(), d_cosine.data(), d_raw.data(),
                                     d_previous.data(), scratch.data());
    }
    Real sum(int head = 0) const {
        Real s = 0;
        for (int n = 0; n < N; ++n) s += weight[static_cast<std::size_t>(head * N + n)];
        return s;
    }
    bool finite() const {
        for (const auto* x : {&weight, &d_cosine, &d_raw, &d_previous})
            for (const Real v : *x)
                if (!std::isfinite(v)) return false;
        return true;
    }
};

span oracle(int N, int R, const span& cosine, const span& raw, const span& previous) {
    span all;
    for (int r = 0; r < R; ++r) {
        const double *c = cosine.data() + r * N, *z = raw.data() + 6 * r, *p = previous.data() + r * N;
        const double beta = std::log1p(std::exp(z[0])), g = 1 / (1 + std::exp(-z[1])),
                     gamma = 1 + std::log1p(std::exp(z[5]));
        double shift[3], sum = 0;
        for (int o = 0; o < 3; ++o) sum += shift[o] = std::exp(z[2 + o]);
        span u, v(static_cast<std::size_t>(N), 0.0);
        double total = 0;
        for (int n = 0; n < N; ++n) total += std::exp(beta * c[n]);
        for (int n = 0; n < N; ++n) u.push_back(g * std::exp(beta * c[n]) / total + (1 - g) * p[n]);
        for (int n = 0; n < N; ++n)
            for (int o = -1; o <= 1; ++o)
                v[static_cast<std::size_t>((n + o + N) % N)] += u[static_cast<std::size_t>(n)] * shift[o + 1] / sum;
        total = 0;
        for (const double x : v) total += std::pow(x, gamma);
        for (const double x : v) all.push_back(std::pow(x, gamma) / total);
    }
    return all;
}

}  // namespace

TEST_CASE("weights equal the loops, their gradients the differences, and every head's weights are its own") {
    std::mt19937 rng(1);
    double apart = 0, slope = 0;
    for (int c = 0; c < 200; ++c) {
        const int N = 1 + static_cast<int>(rng() % 40), R = 1 + static_cast<int>(rng() % 4);
        call<double> x(N, R, draw(rng, R * N, -1, 1), draw(rng, R * 6, -3, 3),
                       normalised(draw(rng, R * N, 0.01, 1), N));
        const span d = draw(rng, R * N, -1, 1);
        x.forward();
        apart = std::max(apart, largest_difference(x.weight, oracle(N, R, x.cosine, x.raw, x.previous)));
        for (int r = 0; r < R; ++r) {
            REQUIRE(std::abs(x.sum(r) - 1) <= 1e-14);
            const auto row = [&](const span& from, int width) {
                return span(from.begin() + r * width, from.begin() + (r + 1) * width);
            };
            call<double> alone(N, 1, row(x.cosine, N), row(x.raw, 6), row(x.previous, N));
            alone.forward();
            REQUIRE(alone.weight == row(x.weight, N));
        }
        if (c >= 40) continue;
        x.backward(d);
        const auto loss = [&] {
            const span w = oracle(N, R, x.cosine, x.raw, x.previous);
            double sum = 0;
            for (std::size_t i = 0; i < w.size(); ++i) sum += w[i] * d[i];
            return sum;
        };
        for (auto [value, gradient] :
             {std::pair{&x.cosine, &x.d_cosine}, {&x.raw, &x.d_raw}, {&x.previous, &x.d_previous}}) {
            double scale = 1e-3, worst = 0;
            for (std::size_t i = 0; i < value->size(); ++i) {
                const double keep = (*value)[i], h = 1e-4;
                double difference = 0;
                for (const auto& [step, by] : {std::pair{-2, 1.0}, {-1, -8.0}, {1, 8.0}, {2, -1.0}}) {
                    (*value)[i] = keep + step * h;
                    difference += by * loss();
                }
                (*value)[i] = keep;
                difference /= 12 * h;
                worst = std::max(worst, std::abs(difference - (*gradient)[i]));
                scale = std::max(scale, std::abs(difference));
            }
            slope = std::max(slope, worst / scale);
        }
    }
    MESSAGE("weights differ by ", apart, ", slopes by ", slope, " of the largest");
    CHECK(apart <= 1e-12);
    CHECK(slope <= 1e-6);
}

TEST_CASE("shifts go round: a head with nothing but a shift moves its weights by one slot") {
    for (const int N : {1, 2, 3, 17, 64})
        for (const int offset : {-1, 0, 1}) {
            span previous(static_cast<std::size_t>(N), 0.0), raw{0, -1e3, 0, 0, 0, -1e3};
            previous[0] = 1;
            raw[static_cast<std::size_t>(3 + offset)] = 1e3;
            call<double> x(N, 1, span(static_cast<std::size_t>(N), 0.0), raw, previous);
            x.forward();
            CHECK(x.weight[static_cast<std::size_t>((offset + N) % N)] == 1.0);
            CHECK(x.sum() == 1.0);
        }
}

TEST_CASE_TEMPLATE("no sharpening leaves a sum of zero", Real, float, double) {
    // To the power of 1e4 every weight here is below the smallest number.
    for (const double gamma : {1e2, 1e4, 1e30}) {
        std::vector<Real> previous(20, Real(0.05));
        previous[7] = Real(0.051);
        call<Real> x(20, 1, std::vector<Real>(20, Real(0)), {0, -60, -60, 0, -60, Real(gamma)}, previous);
        x.forward();
        std::vector<Real> d;
        for (int i = 0; i < 20; ++i) d.push_back(static_cast<Real>(i % 7));
        x.backward(d);
        CHECK(std::abs(x.sum() - 1) <= Real(1e-6));
        CHECK(x.weight[7] >= (gamma < 1e3 ? Real(0.2) : Real(1)));
        CHECK(x.finite());
    }
}

TEST_CASE_TEMPLATE("equal weights stay equal, however sharp", Real, float, double) {
    call<Real> x(16, 1, std::vector<Real>(16, Real(0.3)), {Real(1e4), 0, 0, 0, 0, Real(1e4)},
                 std::vector<Real>(16, Real(0.0625)));
    std::vector<Real> d(16, Real(0));
    d[3] = 1;
    x.forward();
    x.backward(d);
    for (const Real w : x.weight) CHECK(w == Real(0.0625));
    CHECK(x.finite());
}

TEST_CASE_TEMPLATE("a strength of 1e4 picks the best slot, and the lowest cosine does not matter", Real, float,
                   double) {
    std::vector<Real> cosine(11, Real(-1));
    cosine[4] = Real(0.5);
    call<Real> x(11, 1, cosine, {Real(1e4), 60, -60, 0, -60, 0}, std::vector<Real>(11, Real(0)));
    x.forward();
    x.backward(cosine);
    CHECK(x.weight[4] == Real(1));
    CHECK(x.sum() == Real(1));
    CHECK(x.finite());
}

TEST_CASE_TEMPLATE("before any weights, a gate that closes ends in content alone", Real, float, double) {
    const std::vector<Real> zeros(5, Real(0)), cosine{Real(0.9), Real(-0.2), Real(0.1), Real(0.4), Real(-0.8)};
    const auto with_gate = [&](Real gate) {
        call<Real> x(5, 1, cosine, {2, gate, 0, Real(0.5), 1, 0}, zeros);
        x.forward();
        x.backward(cosine);
        CHECK(std::abs(x.sum() - 1) <= Real(1e-6));
        CHECK(x.finite());
        // The gate scales what is divided by its sum.
        CHECK(std::abs(x.d_raw[1]) <= Real(1e-6));
        return x;
    };
    const auto open = with_gate(3);
    for (const double gate : {0.0, -5.0, -40.0, -100.0, -1e4}) {
        const auto closed = with_gate(static_cast<Real>(gate));
        for (std::size_t i = 0; i < 5; ++i) {
            CHECK(std::abs(closed.weight[i] - open.weight[i]) <= Real(1e-6));
            CHECK(std::abs(closed.d_cosine[i] - open.d_cosine[i]) <= Real(2e-6));
        }
    }
}

TEST_CASE("a weight of zero has the slope of its neighbours without sharpening, and none with it") {
    // One slot behind a closed gate, no shift: v = previous. dw_i / dv_i = 1 / sum v at gamma = 1, 0 above.
    const auto slope = [](double sharpening) {
        span previous(6, 0.0), d(6, 0.0);
        previous[2] = 1;
        d[4] = 1;
        call<double> x(6, 1, span(6, 0.0), {0, -1e3, -1e3, 0, -1e3, sharpening}, previous);
        x.forward();
        x.backward(d);
        CHECK(x.finite());
        return x.d_previous[4];
    };
    CHECK(slope(-1e3) == 1.0);
    CHECK(slope(0) == 0.0);
}

TEST_CASE("NaN is not hidden") {
    for (const int where : {0, 1, 2}) {
        call<double> x(7, 1, span(7, 0.1), span(6, 0.2), span(7, 1.0 / 7));
        (where == 0 ? x.cosine[3] : where == 1 ? x.raw[1] : x.previous[3]) = std::nan("");
        x.forward();
        CHECK(std::isnan(x.sum()));
    }
}
