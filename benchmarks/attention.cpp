// SPDX-License-Identifier: MIT

// Causal attention by blocks against a T x T restatement, forward and backward: milliseconds of one update, their ratio
// and the memory of each, one thread. `--steps 520 --batch 8 --width 128 --heads 4` unless told.
//
// The restatement keeps the probabilities of every row and head and masks the future; its products are Eigen's, or
// plain loops that a compiler can put on vectors.

#include <Eigen/Core>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "engram/kernels/attention.hpp"

#include "flags.hpp"

namespace {

using numbers = std::vector<float>;
using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using place = Eigen::Map<matrix, 0, Eigen::OuterStride<>>;
using given = Eigen::Map<const matrix, 0, Eigen::OuterStride<>>;

struct sizes {
    int T, B, width, heads;
    int head() const { return width / heads; }
    std::ptrdiff_t step() const { return std::ptrdiff_t{B} * width; }
    std::ptrdiff_t at(int b, int h) const { return std::ptrdiff_t{b} * width + h * head(); }
};

struct update {
    explicit update(const sizes& s) : size(s) {
        for (auto* x : {&q, &k, &v, &d_y, &y, &d_q, &d_k, &d_v}) x->resize(static_cast<std::size_t>(s.T * s.step()));
        unsigned state = 1;
        for (auto* x : {&q, &k, &v, &d_y})
            for (float& number : *x) number = float((state = state * 1664525u + 1013904223u) >> 8) / (1 << 23) - 1;
    }
    sizes size;
    numbers q, k, v, d_y, y, d_q, d_k, d_v;
};

/// By blocks, as operations/attention.hpp calls it.
class by_blocks {
public:
    explicit by_blocks(const sizes& s)
        : head_({s.T, s.head()}, true), log_sum_(static_cast<std::size_t>(s.T * s.B * s.heads)), segment_(s.T, 0) {}
    double megabytes() const { return double(head_.memory() + log_sum_.size() * sizeof(float)) / (1 << 20); }
    void run(update& u) {
        const auto step = u.size.step();
        for (int pass = 0; pass < 2; ++pass)
            for (int b = 0; b < u.size.B; ++b)
                for (int h = 0; h < u.size.heads; ++h) {
                    const auto at = u.size.at(b, h);
                    float* sums = log_sum_.data() + (b * u.size.heads + h) * u.size.T;
                    if (pass == 0)
                        head_.forward(u.q.data() + at, step, u.k.data() + at, step, u.v.data() + at, step,
                                      segment_.data(), u.y.data() + at, step, sums);
                    else
                        head_.backward(u.q.data() + at, step, u.k.data() + at, step, u.v.data() + at, step,
                                       segment_.data(), u.y.data() + at, step, sums, u.d_y.data() + at, step,
                                       u.d_q.data() + at, step, false, u.d_k.data() + at, step, false,
                                       u.d_v.data() + at, step, false);
                }
    }

private:
    engram::attention_head<float> head_;
    numbers log_sum_;
    std::vector<int> segment_;
};

/// Products of a head's rows, which lie `step` apart, with T x T matrices.
struct eigen_products {
    static void rows_by_rows(const float* a, const float* b, std::ptrdiff_t step, int T, int d, float* out) {
        given x(a, T, d, Eigen::OuterStride<>(step)), y(b, T, d, Eigen::OuterStride<>(step));
        place(out, T, T, Eigen::OuterStride<>(T)).noalias() = x * y.transpose();
    }
    static void mix(const float* p, bool across, const float* b, std::ptrdiff_t step, int T, int d, float* out) {
        given w(p, T, T, Eigen::OuterStride<>(T)), x(b, T, d, Eigen::OuterStride<>(step));
        place y(out, T, d, Eigen::OuterStride<>(step));
        if (across)
            y.noalias() = w.transpose() * x;
        else
            y.noalias() = w * x;
    }
};
struct loop_products {
    static void rows_by_rows(const float* a, const float* b, std::ptrdiff_t step, int T, int d, float* out) {
        numbers columns(static_cast<std::size_t>(T * d));
        for (int i = 0; i < T; ++i)
            for (int f = 0; f < d; ++f) columns[static_cast<std::size_t>(f * T + i)] = b[i * step + f];
        std::fill_n(out, T * T, 0.0f);
        for (int t = 0; t < T; ++t)
            for (int f = 0; f < d; ++f)
                for (int i = 0; i < T; ++i)
                    out[t * T + i] += a[t * step + f] * columns[static_cast<std::size_t>(f * T + i)];
    }
    static void mix(const float* p, bool across, const float* b, std::ptrdiff_t step, int T, int d, float* out) {
        for (int t = 0; t < T; ++t) std::fill_n(out + t * step, d, 0.0f);
        for (int t = 0; t < T; ++t)
            for (int i = 0; i < T; ++i) {
                float* to = out + (across ? i : t) * step;
                const float* from = b + (across ? t : i) * step;
                for (int f = 0; f < d; ++f) to[f] += p[t * T + i] * from[f];
            }
    }
};

template <class Products>
class whole_matrix {
public:
    explicit whole_matrix(const sizes& s)
        : p_(static_cast<std::size_t>(s.B * s.heads) * static_cast<std::size_t>(s.T * s.T)),
          slope_(static_cast<std::size_t>(s.T * s.T)) {}
    double megabytes() const { return double((p_.size() + slope_.size()) * sizeof(float)) / (1 << 20); }
    void run(update& u) {
        const int T = u.size.T, d = u.size.head();
        const auto step = u.size.step();
        const float scale = 1 / std::sqrt(float(d));
        for (int pass = 0; pass < 2; ++pass)
            for (int b = 0; b < u.size.B; ++b)
                for (int h = 0; h < u.size.heads; ++h) {
                    const auto at = u.size.at(b, h);
                    float* p = p_.data() + std::ptrdiff_t(b * u.size.heads + h) * T * T;
                    if (pass == 0) {
                        Products::rows_by_rows(u.q.data() + at, u.k.data() + at, step, T, d, p);
                        for (int t = 0; t < T; ++t) {
                            Eigen::Map<Eigen::ArrayXf> row(p + t * T, T);
                            row.tail(T - t - 1).setZero();
                            auto seen = row.head(t + 1);
                            seen = ((seen - seen.maxCoeff()) * scale).exp();
                            seen /= seen.sum();
                        }
                        Products::mix(p, false, u.v.data() + at, step, T, d, u.y.data() + at);
                        continue;
                    }
                    Products::rows_by_rows(u.d_y.data() + at, u.v.data() + at, step, T, d, slope_.data());
                    Products::mix(p, true, u.d_y.data() + at, step, T, d, u.d_v.data() + at);
                    for (int t = 0; t < T; ++t) {
                        Eigen::Map<Eigen::ArrayXf> row(p + t * T, T), slope(slope_.data() + t * T, T);
                        const float dot = (row * slope).sum();
                        slope = row * (slope - dot) * scale;
                    }
                    Products::mix(slope_.data(), false, u.k.data() + at, step, T, d, u.d_q.data() + at);
                    Products::mix(slope_.data(), true, u.q.data() + at, step, T, d, u.d_k.data() + at);
                }
    }

private:
    numbers p_, slope_;
};

double milliseconds(auto& method, update& u) {
    const auto start = std::chrono::steady_clock::now();
    method.run(u);
    return 1e3 * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(numbers x) {
    std::sort(x.begin(), x.end());
    return x[x.size() / 2];
}

double apart(const numbers& a, const numbers& b) {
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, double(std::abs(a[i] - b[i])));
    return worst;
}

}  // namespace

int main(int argc, char** argv) {
    const flags told(argc, argv, {{"--steps", "520"}, {"--batch", "8"}, {"--width", "128"}, {"--heads", "4"}});
    const sizes s{told.number("--steps", 1), told.number("--batch", 1), told.number("--width", 1),
                  told.number("--heads", 1)};
    if (s.width % s.heads != 0) return std::fputs("benchmark-attention: --heads does not divide --width\n", stderr), 2;
    update mine(s), eigen(s), loops(s);
    by_blocks blocks(s);
    whole_matrix<eigen_products> with_eigen(s);
    whole_matrix<loop_products> with_loops(s);
    numbers times[3];
    for (int i = 0; i < 8; ++i) {  // interleaved, so that a busy machine is busy for all; the first round warms up
        const double now[3] = {milliseconds(blocks, mine), milliseconds(with_eigen, eigen),
                               milliseconds(with_loops, loops)};
        for (int j = 0; i > 0 && j < 3; ++j) times[j].push_back(float(now[j]));
    }
    double worst = 0;
    for (const auto member : {&update::y, &update::d_q, &update::d_k, &update::d_v})
        worst = std::max({worst, apart(mine.*member, eigen.*member), apart(mine.*member, loops.*member)});
    const double base = median(times[0]);
    std::printf("causal attention, T = %d, B = %d, width %d, %d heads, forward and backward, largest difference %.1e\n",
                s.T, s.B, s.width, s.heads, worst);
    std::printf("%-26s %10s %10s %12s\n", "", "ms", "ratio", "megabytes");
    std::printf("%-26s %10.2f %10.2f %12.2f\n", "by blocks", base, 1.0, blocks.megabytes());
    std::printf("%-26s %10.2f %10.2f %12.2f\n", "T x T, Eigen's products", median(times[1]), median(times[1]) / base,
                with_eigen.megabytes());
    std::printf("%-26s %10.2f %10.2f %12.2f\n", "T x T, plain loops", median(times[2]), median(times[2]) / base,
                with_loops.megabytes());
}
