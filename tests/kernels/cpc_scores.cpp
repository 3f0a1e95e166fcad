// The CPC loss against literal loops over facts 1.6 with errata M14 and M15, and its gradient against differences.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "engram/kernels/cpc_scores.hpp"

namespace {

struct problem {
    int T, X, N, x_stride, pred_stride;
    std::vector<double> x, pred, d_loss;
    std::vector<int> segment;

    problem(std::mt19937& rng, int steps, int width, int horizon, double size)
        : T(steps), X(width), N(horizon), x_stride(width + 3), pred_stride(width * horizon + 2) {
        std::normal_distribution<double> normal;
        x.resize(static_cast<std::size_t>(T) * x_stride);
        pred.resize(static_cast<std::size_t>(T) * pred_stride);
        d_loss.resize(static_cast<std::size_t>(T) * 2);
        for (auto* a : {&x, &pred})
            for (double& v : *a) v = size * normal(rng);
        for (double& v : d_loss) v = normal(rng);
        for (int t = 0, episode = 0; t < T; ++t) segment.push_back(episode += t > 0 && rng() % 8 == 0);
    }
};

// log sum exp of s over the indices in `set` but `without`.
double logsumexp(const std::vector<double>& s, const std::vector<int>& set, int without) {
    double top = -1e300, sum = 0;
    for (int i : set)
        if (i != without) top = std::max(top, s[i]);
    for (int i : set)
        if (i != without) sum += std::exp(s[i] - top);
    return top + std::log(sum);
}

std::vector<double> oracle(const problem& q) {
    std::vector<double> loss(static_cast<std::size_t>(q.T), 0.0);
    for (int k = 1; k <= q.N; ++k)
        for (int t = 1; t <= q.T - k; ++t) {  // counted from 1, as in the paper
            if (q.segment[t + k - 1] != q.segment[t - 1]) continue;
            std::vector<int> candidates;
            for (int j = k + 1; j <= q.T; ++j)
                if (q.segment[j - 1] == q.segment[t - 1]) candidates.push_back(j);
            std::vector<double> s(static_cast<std::size_t>(q.T + 1), 0.0);
            for (int j : candidates)
                for (int d = 0; d < q.X; ++d)
                    s[j] += q.x[(j - 1) * q.x_stride + d] * q.pred[(t - 1) * q.pred_stride + (k - 1) * q.X + d];
            const double all = logsumexp(s, candidates, -1);
            double L = all - s[t + k];
            for (int j : candidates)
                if (j != t + k) L -= (logsumexp(s, candidates, j) - all) / double(candidates.size() - 1);
            loss[t - 1] += L;
        }
    return loss;
}

template <class Real>
struct outcome {
    std::vector<Real> loss, d_x, d_pred;
};

template <class Real>
outcome<Real> run(const problem& q) {
    const auto cast = [](const std::vector<double>& v) { return std::vector<Real>(v.begin(), v.end()); };
    const std::vector<Real> x = cast(q.x), pred = cast(q.pred), d_loss = cast(q.d_loss);
    std::vector<Real> scores(static_cast<std::size_t>(engram::cpc_scores_size(q.T, q.N)));
    std::vector<Real> workspace(static_cast<std::size_t>(engram::cpc_workspace_size(q.T)));
    std::vector<Real> wide_loss(static_cast<std::size_t>(q.T) * 2, Real(7));
    engram::cpc_forward(x.data(), q.x_stride, pred.data(), q.pred_stride, q.segment.data(), q.T, q.X, q.N,
                        wide_loss.data(), 2, scores.data());
    outcome<Real> out;
    out.d_x.assign(x.size(), Real(1));        // accumulated
    out.d_pred.assign(pred.size(), Real(5));  // stored
    engram::cpc_backward(x.data(), q.x_stride, pred.data(), q.pred_stride, q.segment.data(), q.T, q.X, q.N,
                         d_loss.data(), 2, scores.data(), out.d_x.data(), q.x_stride, out.d_pred.data(), q.pred_stride,
                         workspace.data());
    for (Real& v : out.d_x) v -= 1;
    for (int t = 0; t < q.T; ++t) out.loss.push_back(wide_loss[2 * t]);
    return out;
}

// d_loss . loss of the oracle; differences of it check every entry of x and pred that matters.
double worst_gradient_error(problem q) {
    const auto out = run<double>(q);
    const auto total = [&] {
        const auto loss = oracle(q);
        double sum = 0;
        for (int t = 0; t < q.T; ++t) sum += q.d_loss[2 * t] * loss[t];
        return sum;
    };
    double worst = 0, scale = 1e-3;
    const auto check = [&](std::vector<double>& values, const std::vector<double>& gradient, int stride, int width) {
        for (int t = 0; t < q.T; ++t)
            for (int d = 0; d < width; ++d) {
                double& v = values[t * stride + d];
                const double keep = v, h = 1e-4;
                double difference = 0;
                for (int step : {-2, -1, 1, 2}) {
                    v = keep + step * h;
                    difference += (step == 1 || step == -1 ? 8.0 : -1.0) * (step > 0 ? 1.0 : -1.0) * total();
                }
                v = keep;
                difference /= 12 * h;
                worst = std::max(worst, std::abs(difference - gradient[t * stride + d]));
                scale = std::max(scale, std::abs(difference));
            }
    };
    check(q.x, out.d_x, q.x_stride, q.X);
    check(q.pred, out.d_pred, q.pred_stride, q.X * q.N);
    return worst / scale;
}

}  // namespace

TEST_CASE("the loss equals the oracle, episodes and strides included") {
    std::mt19937 rng(1);
    for (int c = 0; c < 300; ++c) {
        const int T = 1 + static_cast<int>(rng() % 30), X = 1 + static_cast<int>(rng() % 40);
        problem q(rng, T, X, 1 + static_cast<int>(rng() % 12), c % 3 == 0 ? 2.0 : 0.5);
        const auto out = run<double>(q);
        const auto expected = oracle(q);
        for (int t = 0; t < T; ++t) REQUIRE(std::abs(out.loss[t] - expected[t]) <= 1e-9 * (1 + std::abs(expected[t])));
        const auto single = run<float>(q);  // scores of size up to about 100 carry 1e-5; a dozen of them a loss
        for (int t = 0; t < T; ++t)
            REQUIRE(std::abs(single.loss[t] - expected[t]) <= 1e-4 * (1 + std::abs(expected[t])));
    }
}

TEST_CASE("gradients equal central differences") {
    std::mt19937 rng(2);
    for (int c = 0; c < 12; ++c) {
        problem q(rng, 2 + static_cast<int>(rng() % 9), 1 + static_cast<int>(rng() % 9),
                  1 + static_cast<int>(rng() % 4), c % 2 ? 1.5 : 0.7);
        CHECK(worst_gradient_error(q) <= 1e-6);
    }
}

TEST_CASE("one dominating score, right or wrong, keeps loss and gradient finite and right") {
    // x_j = (e_j), pred = the scores themselves; T = 4, k = 1: step 1 has the positive x_2 among x_2, x_3, x_4.
    for (int winner : {1, 2, 3, 4})  // 4: all scores equal
        for (double height : {20.0, 80.0, 3000.0}) {
            std::mt19937 rng(3);
            problem q(rng, 4, 4, 1, 0.0);
            std::fill(q.segment.begin(), q.segment.end(), 0);
            std::fill(q.d_loss.begin(), q.d_loss.end(), 0.0);
            q.d_loss[0] = 1;
            for (int j = 0; j < 4; ++j) q.x[j * q.x_stride + j] = 1;
            for (int j = 0; j < 4; ++j) q.pred[j] = winner == 4 || j == winner ? height : -height;
            const auto expected = oracle(q);
            const auto out = run<float>(q);
            const auto exact = run<double>(q);
            for (int t = 0; t < 4; ++t) {
                CHECK(std::abs(out.loss[t] - expected[t]) <= 1e-6 * (1 + std::abs(expected[t])));
                CHECK(std::abs(exact.loss[t] - expected[t]) <= 1e-12 * (1 + std::abs(expected[t])));
            }
            for (float v : out.d_x) CHECK(std::isfinite(v));
            for (std::size_t i = 0; i < out.d_pred.size(); ++i) {
                CHECK(std::isfinite(out.d_pred[i]));
                CHECK(std::abs(out.d_pred[i] - exact.d_pred[i]) <= 1e-6);
            }
            // In the limit a wrong winner costs its own logit fully, and half of it again through log(1 - p).
            if (winner == 2 && height > 50) {
                CHECK(out.d_pred[2] == doctest::Approx(1.5));
                CHECK(out.d_pred[1] == doctest::Approx(-1.25));
                CHECK(out.d_pred[3] == doctest::Approx(-0.25));
            }
            if (height < 50) CHECK(worst_gradient_error(q) <= 1e-6);
        }
}

TEST_CASE("without negatives, and beyond the horizon, nothing is lost or learnt") {
    std::mt19937 rng(4);
    problem q(rng, 2, 5, 3, 1.0);  // t = 1, k = 1: the only candidate is the positive
    const auto out = run<double>(q);
    for (double v : out.loss) CHECK(v == 0.0);
    for (double v : out.d_x) CHECK(v == 0.0);
    for (int t = 0; t < 2; ++t)
        for (int d = 0; d < 15; ++d) CHECK(out.d_pred[t * q.pred_stride + d] == 0.0);
    CHECK(out.d_pred[15] == 5.0);  // the gap between rows is not ours
}

TEST_CASE("nothing crosses an episode boundary") {
    std::mt19937 rng(5);
    problem q(rng, 12, 6, 4, 1.0);
    for (int t = 0; t < 12; ++t) q.segment[t] = t < 7 ? 0 : 1;
    const auto before = run<double>(q);
    for (int t = 7; t < 12; ++t)
        for (int d = 0; d < 6; ++d) q.x[t * q.x_stride + d] = 1e3;
    const auto after = run<double>(q);
    for (int t = 0; t < 7; ++t) CHECK(before.loss[t] == after.loss[t]);
    for (int i = 0; i < 7 * q.x_stride; ++i) CHECK(before.d_x[i] == after.d_x[i]);
}
