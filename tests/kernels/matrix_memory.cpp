// Cosine scores, weighted reads and writes of a memory matrix against literal loops, and their gradients.
#include <doctest/doctest.h>

#include "differences.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "engram/kernels/matrix_memory.hpp"

namespace {

using span = std::vector<double>;
constexpr double epsilon = engram::cosine_epsilon;

span draw(std::mt19937& rng, int n, double low, double high) {
    std::uniform_real_distribution<double> uniform(low, high);
    span x(static_cast<std::size_t>(n));
    for (double& v : x) v = uniform(rng);
    return x;
}

double inner(const span& a, const span& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

span minus(span a, const span& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
}

span cosine_oracle(const span& M, int N, int W, const span& k, int R) {
    span c;
    for (int r = 0; r < R; ++r)
        for (int n = 0; n < N; ++n) {
            double product = 0, key = epsilon, row = epsilon;
            for (int i = 0; i < W; ++i) {
                product += k[r * W + i] * M[n * W + i];
                key += k[r * W + i] * k[r * W + i];
                row += M[n * W + i] * M[n * W + i];
            }
            c.push_back(product / (std::sqrt(key) * std::sqrt(row) + epsilon));
        }
    return c;
}

span write_oracle(const span& M, int N, int W, const span& w, const span& e, const span& a, int H) {
    span out;
    for (int n = 0; n < N; ++n)
        for (int i = 0; i < W; ++i) {
            double product = M[n * W + i], sum = 0;
            for (int h = 0; h < H; ++h) {
                product *= 1 - w[h * N + n] * e[h * W + i];
                sum += w[h * N + n] * a[h * W + i];
            }
            out.push_back(product + sum);
        }
    return out;
}

}  // namespace

TEST_CASE("cosine scores equal the oracle and their gradients the differences") {
    std::mt19937 rng(1);
    for (int c = 0; c < 25; ++c) {
        const int N = 1 + static_cast<int>(rng() % 20), W = 1 + static_cast<int>(rng() % 20),
                  R = 1 + static_cast<int>(rng() % 5);
        span M = draw(rng, N * W, -1, 1), k = draw(rng, R * W, -1, 1), d = draw(rng, R * N, -1, 1);
        span cosine(R * N), key_norm(R), row_norm(N), scratch(R * N);
        engram::cosine_scores(M.data(), N, W, k.data(), R, epsilon, cosine.data(), key_norm.data(), row_norm.data());
        REQUIRE(distance(cosine, cosine_oracle(M, N, W, k, R)) <= 1e-12);
        const span was_M = draw(rng, N * W, -1, 1), was_k = draw(rng, R * W, -1, 1);
        span d_M = was_M, d_k = was_k;
        engram::cosine_scores_gradient(M.data(), N, W, k.data(), R, epsilon, cosine.data(), key_norm.data(),
                                       row_norm.data(), d.data(), d_M.data(), d_k.data(), scratch.data());
        // Rows of width one turn from -1 to 1 within sqrt(epsilon) of zero: the step must be far smaller than that.
        const double h = 3e-5;
        const auto loss = [&] { return inner(d, cosine_oracle(M, N, W, k, R)); };
        REQUIRE(gradient_error(M, minus(d_M, was_M), h, loss) <= 1e-6);
        REQUIRE(gradient_error(k, minus(d_k, was_k), h, loss) <= 1e-6);
    }
}

TEST_CASE("zero rows and zero keys give zero scores and the finite gradient of the formula") {
    const int N = 3, W = 5, R = 2;
    std::mt19937 rng(2);
    span M = draw(rng, N * W, -1, 1), k = draw(rng, R * W, -1, 1);
    std::fill(M.begin() + W, M.begin() + 2 * W, 0.0);
    std::fill(k.begin(), k.begin() + W, 0.0);
    span cosine(R * N), key_norm(R), row_norm(N), scratch(R * N), d(R * N, 1.0), d_M(N * W), d_k(R * W);
    engram::cosine_scores(M.data(), N, W, k.data(), R, epsilon, cosine.data(), key_norm.data(), row_norm.data());
    for (int n = 0; n < N; ++n) CHECK(cosine[n] == 0.0);
    CHECK(cosine[N + 1] == 0.0);
    engram::cosine_scores_gradient(M.data(), N, W, k.data(), R, epsilon, cosine.data(), key_norm.data(),
                                   row_norm.data(), d.data(), d_M.data(), d_k.data(), scratch.data());
    const auto loss = [&] { return inner(d, cosine_oracle(M, N, W, k, R)); };
    CHECK(gradient_error(M, d_M, 1e-6, loss) <= 1e-6);  // steps far below sqrt(epsilon) = 1e-3
    CHECK(gradient_error(k, d_k, 1e-6, loss) <= 1e-6);

    std::vector<float> zeros(N * W, 0.0f), ones(R * N, 1.0f), out(R * N), kn(R), rn(N), dM(N * W), dk(R * W), s(R * N);
    engram::cosine_scores(zeros.data(), N, W, zeros.data(), R, 1e-6f, out.data(), kn.data(), rn.data());
    engram::cosine_scores_gradient(zeros.data(), N, W, zeros.data(), R, 1e-6f, out.data(), kn.data(), rn.data(),
                                   ones.data(), dM.data(), dk.data(), s.data());
    for (const auto* x : {&out, &dM, &dk})
        for (float v : *x) CHECK(v == 0.0f);
}

TEST_CASE("a weighted read equals the oracle and its gradients the differences") {
    std::mt19937 rng(3);
    for (int c = 0; c < 25; ++c) {
        const int N = 1 + static_cast<int>(rng() % 20), W = 1 + static_cast<int>(rng() % 100),
                  R = 1 + static_cast<int>(rng() % 6);
        span M = draw(rng, N * W, -1, 1), w = draw(rng, R * N, 0, 1), d = draw(rng, R * W, -1, 1), read(R * W, 9.0);
        const auto oracle = [&] {
            span r(R * W, 0.0);
            for (int head = 0; head < R; ++head)
                for (int n = 0; n < N; ++n)
                    for (int i = 0; i < W; ++i) r[head * W + i] += w[head * N + n] * M[n * W + i];
            return r;
        };
        engram::weighted_read(M.data(), N, W, w.data(), R, read.data());
        REQUIRE(distance(read, oracle()) <= 1e-12);
        const span was = draw(rng, N * W, -1, 1);
        span d_M = was, d_w(R * N, 9.0);
        engram::weighted_read_gradient(M.data(), N, W, w.data(), R, d.data(), d_M.data(), d_w.data());
        const auto loss = [&] { return inner(d, oracle()); };
        REQUIRE(gradient_error(M, minus(d_M, was), 1e-3, loss) <= 1e-6);
        REQUIRE(gradient_error(w, d_w, 1e-3, loss) <= 1e-6);
    }
}

TEST_CASE(
    "erase and add equals the oracle and its gradients the differences, several heads and full erasure included") {
    std::mt19937 rng(4);
    for (int c = 0; c < 25; ++c) {
        const int N = 1 + static_cast<int>(rng() % 12), W = 1 + static_cast<int>(rng() % 20),
                  H = 1 + static_cast<int>(rng() % 3);
        span M = draw(rng, N * W, -1, 1), w = draw(rng, H * N, 0, 1), e = draw(rng, H * W, 0, 1);
        span a = draw(rng, H * W, -1, 1), d = draw(rng, N * W, -1, 1), out(N * W, 9.0);
        if (c % 2) w[0] = e[0] = 1;  // a factor of exactly zero
        engram::erase_and_add(M.data(), N, W, w.data(), e.data(), a.data(), H, out.data());
        REQUIRE(distance(out, write_oracle(M, N, W, w, e, a, H)) <= 1e-12);
        const span was = draw(rng, N * W, -1, 1);
        span d_M = was, d_w(H * N, 9.0), d_e(H * W, 9.0), d_a(H * W, 9.0);
        engram::erase_and_add_gradient(M.data(), N, W, w.data(), e.data(), a.data(), H, d.data(), d_M.data(),
                                       d_w.data(), d_e.data(), d_a.data());
        const auto loss = [&] { return inner(d, write_oracle(M, N, W, w, e, a, H)); };
        REQUIRE(gradient_error(M, minus(d_M, was), 1e-3, loss) <= 1e-6);
        REQUIRE(gradient_error(w, d_w, 1e-3, loss) <= 1e-6);
        REQUIRE(gradient_error(e, d_e, 1e-3, loss) <= 1e-6);
        REQUIRE(gradient_error(a, d_a, 1e-3, loss) <= 1e-6);
    }
}
