// V-trace against the literal n-step sum of errata M16, and GAE against its sum of discounted differences.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engram/kernels/scan_returns.hpp"

namespace {

using row = std::vector<double>;

struct unroll {
    int T, B, stride;
    row log_ratio, reward, discount, value, bootstrap, target, advantage;

    unroll(std::mt19937& rng, int steps, int batch, int gap) : T(steps), B(batch), stride(batch + gap) {
        std::normal_distribution<double> normal;
        for (row* x : {&log_ratio, &reward, &discount, &value, &target, &advantage})
            x->resize(static_cast<std::size_t>(T) * stride);
        bootstrap.resize(static_cast<std::size_t>(B));
        for (row* x : {&log_ratio, &reward, &value, &bootstrap})
            for (double& v : *x) v = normal(rng);
        for (double& v : discount) v = rng() % 4 == 0 ? 0.0 : 0.98;
    }
    double next_value(int t, int b) const { return t + 1 < T ? value[(t + 1) * stride + b] : bootstrap[b]; }
    double delta(int t, int b) const {
        const int i = t * stride + b;
        return reward[i] + discount[i] * next_value(t, b) - value[i];
    }
};

// v_s = V_s + sum_{t >= s} (prod_{i = s}^{t - 1} gamma_i c_i) rho_t (r_t + gamma_t V_{t+1} - V_t)
double literal_target(const unroll& u, int s, int b, double rho_bar, double c_bar) {
    if (s == u.T) return u.bootstrap[b];
    double result = u.value[s * u.stride + b];
    for (int t = s; t < u.T; ++t) {
        double product = 1;
        for (int i = s; i < t; ++i)
            product *= u.discount[i * u.stride + b] * std::min(c_bar, std::exp(u.log_ratio[i * u.stride + b]));
        result += product * std::min(rho_bar, std::exp(u.log_ratio[t * u.stride + b])) * u.delta(t, b);
    }
    return result;
}

bool close(double a, double b) {
    return std::abs(a - b) <= 1e-9 * (1 + std::abs(b));
}

void run(unroll& u, engram::vtrace_clips<double> clips) {
    engram::vtrace_scan(u.log_ratio.data(), u.reward.data(), u.discount.data(), u.value.data(), u.bootstrap.data(), u.T,
                        u.B, u.stride, clips, u.target.data(), u.advantage.data());
}

}  // namespace

TEST_CASE("V-trace equals the literal sum on random unrolls with episode ends") {
    std::mt19937 rng(1);
    for (int c = 0; c < 1000; ++c) {
        unroll u(rng, 1 + static_cast<int>(rng() % 12), 1 + static_cast<int>(rng() % 5), static_cast<int>(rng() % 3));
        const double bars[3] = {0.5, 1.0, 2.5};
        const double policy_bars[4] = {0, 0.5, 1.0, 2.5};  // 0: no ratio
        const engram::vtrace_clips<double> clips{bars[rng() % 3], bars[rng() % 3], policy_bars[rng() % 4]};
        run(u, clips);
        for (int t = 0; t < u.T; ++t)
            for (int b = 0; b < u.B; ++b) {
                const int i = t * u.stride + b;
                REQUIRE(close(u.target[i], literal_target(u, t, b, clips.rho_bar, clips.c_bar)));
                const double next = literal_target(u, t + 1, b, clips.rho_bar, clips.c_bar);
                const double bar = clips.pg_rho_bar;
                const double weight = bar > 0 ? std::min(bar, std::exp(u.log_ratio[i])) : 1;
                REQUIRE(close(u.advantage[i], weight * (u.reward[i] + u.discount[i] * next - u.value[i])));
            }
    }
}

TEST_CASE("on policy the targets are n-step Bellman returns") {
    std::mt19937 rng(2);
    unroll u(rng, 20, 3, 0);
    std::fill(u.log_ratio.begin(), u.log_ratio.end(), 0.0);
    run(u, {});
    for (int b = 0; b < u.B; ++b) {
        double target = u.bootstrap[b];
        for (int t = u.T - 1; t >= 0; --t) {
            const int i = t * u.stride + b;
            target = u.reward[i] + u.discount[i] * target;
            CHECK(close(u.target[i], target));
            CHECK(close(u.advantage[i], target - u.value[i]));
        }
    }
}

TEST_CASE("without discount only the reward of the step counts, and nothing leaks across an end") {
    std::mt19937 rng(3);
    unroll u(rng, 9, 2, 1);
    std::fill(u.discount.begin(), u.discount.end(), 0.0);
    run(u, {});
    for (int t = 0; t < u.T; ++t)
        for (int b = 0; b < u.B; ++b) {
            const int i = t * u.stride + b;
            const double rho = std::min(1.0, std::exp(u.log_ratio[i]));
            CHECK(close(u.target[i], u.value[i] + rho * (u.reward[i] - u.value[i])));
            CHECK(close(u.advantage[i], rho * (u.reward[i] - u.value[i])));
        }
}

TEST_CASE("a huge ratio is clipped, and a NaN is not") {
    std::mt19937 rng(4);
    unroll u(rng, 4, 1, 0);
    u.log_ratio[2] = 1e4;
    run(u, {});
    CHECK(close(u.target[2], literal_target(u, 2, 0, 1, 1)));
    u.log_ratio[2] = std::numeric_limits<double>::quiet_NaN();
    run(u, {});
    CHECK(std::isnan(u.target[2]));
    CHECK(std::isnan(u.advantage[2]));
    CHECK(std::isfinite(u.target[3]));
}

TEST_CASE("GAE equals its sum, and its ends are the one-step error and the full return") {
    std::mt19937 rng(5);
    for (int c = 0; c < 1000; ++c) {
        unroll u(rng, 1 + static_cast<int>(rng() % 12), 1 + static_cast<int>(rng() % 5), static_cast<int>(rng() % 3));
        const double lambda = c % 3 == 0 ? 0.0 : c % 3 == 1 ? 0.95 : 1.0;
        engram::generalised_advantages(u.reward.data(), u.discount.data(), u.value.data(), u.bootstrap.data(), u.T, u.B,
                                       u.stride, lambda, u.target.data(), u.advantage.data());
        for (int s = 0; s < u.T; ++s)
            for (int b = 0; b < u.B; ++b) {
                double sum = 0;
                for (int t = s; t < u.T; ++t) {
                    double product = 1;
                    for (int i = s; i < t; ++i) product *= u.discount[i * u.stride + b] * lambda;
                    sum += product * u.delta(t, b);
                }
                const int i = s * u.stride + b;
                REQUIRE(close(u.advantage[i], sum));
                REQUIRE(close(u.target[i], u.value[i] + sum));
                if (lambda == 0) REQUIRE(close(u.advantage[i], u.delta(s, b)));
            }
    }
}

TEST_CASE("float agrees with double to its rounding") {
    std::mt19937 rng(6);
    unroll u(rng, 50, 16, 0);
    run(u, {});
    const auto single = [](const row& x) { return std::vector<float>(x.begin(), x.end()); };
    const auto log_ratio = single(u.log_ratio), reward = single(u.reward), discount = single(u.discount),
               value = single(u.value), bootstrap = single(u.bootstrap);
    std::vector<float> target(u.target.size()), advantage(u.target.size());
    engram::vtrace_scan(log_ratio.data(), reward.data(), discount.data(), value.data(), bootstrap.data(), u.T, u.B,
                        u.stride, {}, target.data(), advantage.data());
    // Terms of size about 3, sums over about ten steps: a few tens of float roundings of 6e-8.
    for (std::size_t i = 0; i < target.size(); ++i) {
        CHECK(std::abs(target[i] - u.target[i]) < 2e-5);
        CHECK(std::abs(advantage[i] - u.advantage[i]) < 2e-5);
    }
}
