// Allocation and temporal links of a DNC against literal loops, and their gradients against differences.
#include <doctest/doctest.h>

#include "differences.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "engram/kernels/dnc_allocate.hpp"
#include "engram/kernels/dnc_link.hpp"

namespace {

double gradient_error(std::vector<double>& x, const std::vector<double>& gradient,
                      const std::function<double()>& loss) {
    return ::gradient_error(x, gradient, 1e-3, loss);
}

using span = std::vector<double>;
constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

span draw(std::mt19937& rng, int n, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    span x(static_cast<std::size_t>(n));
    for (double& v : x) v = uniform(rng);
    return x;
}
double inner(const span& a, const span& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
/// The allocation with its order given.
span allocation_in(const std::vector<int>& order, const span& u) {
    span a(u.size());
    for (std::size_t j = 0; j < order.size(); ++j) {
        const auto used = [&](std::size_t i) { return 1e-6 + (1 - 1e-6) * u[static_cast<std::size_t>(order[i])]; };
        double product = 1 - used(j);
        for (std::size_t i = 0; i < j; ++i) product *= used(i);
        a[static_cast<std::size_t>(order[j])] = product;
    }
    return a;
}
std::vector<int> order_of(const span& u) {
    std::vector<int> order(u.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return u[static_cast<std::size_t>(a)] < u[static_cast<std::size_t>(b)]; });
    return order;
}

struct link_case {
    int N, R;
    span L, w, p, v;

    link_case(std::mt19937& rng, int slots, int heads) : N(slots), R(heads) {
        L = draw(rng, N * N, 0, 1);
        for (int i = 0; i < N; ++i) L[static_cast<std::size_t>(i * N + i)] = 0;
        w = draw(rng, N, 0, 1.0 / N);
        p = draw(rng, N, 0, 1.0 / N);
        v = draw(rng, R * N, 0, 1);
    }
    double link(int i, int j) const {
        const auto k = [](int x) { return static_cast<std::size_t>(x); };
        return i == j ? 0 : (1 - w[k(i)] - w[k(j)]) * L[k(i * N + j)] + w[k(i)] * p[k(j)];
    }
    /// Forward, then backward weights [2][R][N].
    span moved() const {
        span out(static_cast<std::size_t>(2 * R * N));
        for (int r = 0; r < R; ++r)
            for (int i = 0; i < N; ++i)
                for (int j = 0; j < N; ++j) {
                    const double read = v[static_cast<std::size_t>(r * N + j)];
                    out[static_cast<std::size_t>(r * N + i)] += link(i, j) * read;
                    out[static_cast<std::size_t>((R + r) * N + i)] += link(j, i) * read;
                }
        return out;
    }
};

}  // namespace

TEST_CASE("allocation equals the loops and its gradient the differences") {
    std::mt19937 rng(1);
    double worst = 0, slope = 0;
    for (int c = 0; c < 200; ++c) {
        const int N = 1 + static_cast<int>(rng() % 40);
        // Far enough apart that a difference never changes their order.
        span u(static_cast<std::size_t>(N));
        for (int n = 0; n < N; ++n) u[static_cast<std::size_t>(n)] = (n + 0.5) / N;
        std::shuffle(u.begin(), u.end(), rng);
        std::vector<int> order(u.size());
        span a(u.size()), d_u(u.size(), 9.0), scratch(u.size()), d = draw(rng, N, -1, 1);
        engram::dnc_allocate(u.data(), N, order.data(), a.data(), scratch.data());
        REQUIRE(order == order_of(u));
        worst = std::max(worst, distance(a, allocation_in(order, u)));
        engram::dnc_allocate_gradient(u.data(), N, order.data(), d.data(), d_u.data(), scratch.data());
        slope = std::max(slope, gradient_error(u, d_u, [&] { return inner(d, allocation_in(order, u)); }));
    }
    MESSAGE("allocation differs by ", worst, ", its gradient by ", slope);
    CHECK(worst <= 1e-14);
    CHECK(slope <= 1e-9);
}

TEST_CASE("usages of exactly zero and one, and ties: lower slots first, and the exact gradient of that order") {
    std::mt19937 rng(2);
    for (int c = 0; c < 200; ++c) {
        const int N = 1 + static_cast<int>(rng() % 12);
        span u(static_cast<std::size_t>(N));
        const double levels[] = {0, 1, 0.25, 0.25};
        for (double& x : u) x = levels[rng() % 4];
        std::vector<int> order(u.size());
        span a(u.size()), d_u(u.size(), 9.0), scratch(u.size()), d = draw(rng, N, -1, 1);
        engram::dnc_allocate(u.data(), N, order.data(), a.data(), scratch.data());
        REQUIRE(order == order_of(u));
        REQUIRE(distance(a, allocation_in(order, u)) <= 1e-15);
        engram::dnc_allocate_gradient(u.data(), N, order.data(), d.data(), d_u.data(), scratch.data());
        REQUIRE(gradient_error(u, d_u, [&] { return inner(d, allocation_in(order, u)); }) <= 1e-9);
        for (std::size_t n = 0; n < u.size(); ++n)
            if (u[n] == 1) REQUIRE(a[n] == 0);
    }
}

TEST_CASE("allocation weights are a share of one, in float and with many slots") {
    std::mt19937 rng(3);
    for (const int N : {1, 5, 128, 512})
        for (int c = 0; c < 50; ++c) {
            std::vector<float> u(static_cast<std::size_t>(N)), a(u.size()), scratch(u.size());
            const int kind = c % 3;
            for (float& x : u)
                x = kind == 0   ? static_cast<float>(rng() % 2)
                    : kind == 1 ? static_cast<float>(rng() % 1000) / 999
                                : 1e-7f;
            std::vector<int> order(u.size());
            engram::dnc_allocate(u.data(), N, order.data(), a.data(), scratch.data());
            double sum = 0;
            for (const float x : a) {
                REQUIRE(x >= 0);
                REQUIRE(x <= 1);
                sum += static_cast<double>(x);
            }
            REQUIRE(sum <= 1 + 1e-6);
        }
}

TEST_CASE("a usage that is no number comes last, and spoils nothing before it") {
    span u{0.5, no_number, 0.1, no_number, 0.9}, a(5), scratch(5);
    std::vector<int> order(5);
    engram::dnc_allocate(u.data(), 5, order.data(), a.data(), scratch.data());
    CHECK(order == std::vector<int>{2, 0, 4, 1, 3});
    for (const int n : {0, 2, 4}) CHECK(std::isfinite(a[static_cast<std::size_t>(n)]));
    for (const int n : {1, 3}) CHECK(std::isnan(a[static_cast<std::size_t>(n)]));
}

TEST_CASE("links equal the loops and their gradients the differences") {
    std::mt19937 rng(4);
    double worst = 0, slope = 0;
    for (int c = 0; c < 60; ++c) {
        link_case x(rng, 1 + static_cast<int>(rng() % 21), 1 + static_cast<int>(rng() % 5));
        const int N = x.N, R = x.R;
        span updated(x.L.size()), moved(static_cast<std::size_t>(2 * R * N), 9.0);
        engram::link_update(x.L.data(), x.w.data(), x.p.data(), N, updated.data());
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j)
                worst = std::max(worst, std::abs(updated[static_cast<std::size_t>(i * N + j)] - x.link(i, j)));
        engram::link_read(updated.data(), N, x.v.data(), R, moved.data(), moved.data() + R * N, N);
        worst = std::max(worst, distance(moved, x.moved()));

        // A loss of the moved weights and of what becomes of the link.
        const span d = draw(rng, 2 * R * N, -1, 1);
        const bool later = c % 4 != 0, forward = c % 3 != 1, backward = c % 3 != 2;
        span d_link = draw(rng, N * N, -1, 1);
        if (!later) std::fill(d_link.begin(), d_link.end(), 0.0);
        const span from_later = d_link;
        span d_w(x.w.size(), 9.0), d_p(x.p.size(), 9.0), d_v(x.v.size(), 9.0), scratch(x.L.size());
        engram::link_gradient(x.L.data(), x.w.data(), x.p.data(), N, x.v.data(), R, forward ? d.data() : nullptr,
                              backward ? d.data() + R * N : nullptr, N, d_link.data(), d_w.data(), d_p.data(),
                              d_v.data(), scratch.data());
        const auto loss = [&] {
            const span m = x.moved();
            double sum = 0;
            for (int i = 0; i < R * N; ++i) {
                if (forward) sum += d[static_cast<std::size_t>(i)] * m[static_cast<std::size_t>(i)];
                if (backward) sum += d[static_cast<std::size_t>(R * N + i)] * m[static_cast<std::size_t>(R * N + i)];
            }
            for (int i = 0; i < N; ++i)
                for (int j = 0; j < N; ++j) sum += from_later[static_cast<std::size_t>(i * N + j)] * x.link(i, j);
            return sum;
        };
        slope = std::max({slope, gradient_error(x.w, d_w, loss), gradient_error(x.p, d_p, loss),
                          gradient_error(x.v, d_v, loss), gradient_error(x.L, d_link, loss)});
    }
    MESSAGE("links differ by ", worst, ", their gradients by ", slope);
    CHECK(worst <= 1e-14);
    CHECK(slope <= 1e-9);
}

TEST_CASE("a link may be updated in place, and its reads may lie apart") {
    std::mt19937 rng(5);
    const link_case x(rng, 19, 3);
    span updated(x.L.size()), in_place = x.L;
    engram::link_update(x.L.data(), x.w.data(), x.p.data(), 19, updated.data());
    engram::link_update(in_place.data(), x.w.data(), x.p.data(), 19, in_place.data());
    CHECK(in_place == updated);
    span dense(3 * 19), other(3 * 19), wide(3 * 40, 9.0), wide_other(3 * 40, 9.0);
    engram::link_read(updated.data(), 19, x.v.data(), 3, dense.data(), other.data(), 19);
    engram::link_read(updated.data(), 19, x.v.data(), 3, wide.data(), wide_other.data(), 40);
    for (int r = 0; r < 3; ++r)
        for (int n = 0; n < 40; ++n) {
            const auto at = static_cast<std::size_t>(r * 40 + n), from = static_cast<std::size_t>(r * 19 + n);
            CHECK(wide[at] == (n < 19 ? dense[from] : 9.0));
            CHECK(wide_other[at] == (n < 19 ? other[from] : 9.0));
        }
}
