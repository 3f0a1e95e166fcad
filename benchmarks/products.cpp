// SPDX-License-Identifier: MIT

// GFLOP/s of the skinny products beside Eigen and beside the peak of this machine, one thread, in one run; the last
// column is that of the same products in bfloat16.

#include <chrono>
#include <cstdio>
#include <random>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Core>
#pragma GCC diagnostic pop

#include "engram/kernels/bfloat16_product.hpp"

#include "flags.hpp"

namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Best seconds of one call over about a fifth of a second.
template <class Body>
double seconds(Body body) {
    using clock = std::chrono::steady_clock;
    body();
    double best = 1e9, total = 0;
    for (int n = 0; (total < 0.2 || n < 3) && n < 100000; ++n) {
        const auto start = clock::now();
        body();
        const double took = std::chrono::duration<double>(clock::now() - start).count();
        best = std::min(best, took);
        total += took;
    }
    return best;
}

double peak() {
    using engram::pack;
    volatile float out = 0;
    const int rounds = 200000;
    const double took = seconds([&] {
        pack<float> a[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
        const pack<float> x(1.0001f), y(1e-5f);
        for (int i = 0; i < rounds; ++i) {
            a[0] = multiply_add(a[0], x, y), a[1] = multiply_add(a[1], x, y), a[2] = multiply_add(a[2], x, y);
            a[3] = multiply_add(a[3], x, y), a[4] = multiply_add(a[4], x, y), a[5] = multiply_add(a[5], x, y);
            a[6] = multiply_add(a[6], x, y), a[7] = multiply_add(a[7], x, y), a[8] = multiply_add(a[8], x, y);
            a[9] = multiply_add(a[9], x, y);
        }
        pack<float> sum(0);
        for (auto& v : a) sum += v;
        out = out + sum.sum();
    });
    return 2e-9 * rounds * 10 * pack<float>::width / took;
}

void report(const char* name, int m, int k, int n, double eigen, double ours, double peak, double rounded) {
    const double work = 2e-9 * m * k * n;
    std::printf("%-22s %5d %5d %5d %8.1f %8.1f %7.2f %6.0f%% %9.1f\n", name, m, k, n, work / eigen, work / ours,
                eigen / ours, 100 * work / ours / peak, work / rounded);
}

}  // namespace

int main(int argc, char** argv) {
    const flags nothing(argc, argv);
    const double top = peak();
    std::printf("peak of one thread: %.1f GFLOP/s\n%-22s %5s %5s %5s %8s %8s %7s %7s %9s\n", top, "product", "m", "k",
                "n", "Eigen", "engram", "ratio", "of peak", "bfloat16");
    const int shapes[][3] = {{16, 512, 2048},  {8, 768, 2048}, {16, 1280, 2048}, {1, 768, 2048},  {160, 768, 128},
                             {800, 256, 2048}, {800, 256, 9},  {6912, 144, 16},  {6912, 288, 32}, {32, 128, 64}};
    for (const auto& [m, k, n] : shapes) {
        const matrix x = matrix::Random(m, k), w = matrix::Random(k, n);
        matrix y(m, n);
        engram::packed_weights<float> packed(k, n);
        packed.pack(w.data(), n);
        const double eigen = seconds([&] { y.noalias() = x * w; });
        const engram::product_part<float> part{x.data(), k, &packed, 0, k};
        const double ours =
            seconds([&] { engram::multiply(&part, 1, static_cast<const float*>(nullptr), false, y.data(), n, m); });
        engram::paired_weights pairs;
        engram::pack_pairs(w.data(), n, k, n, pairs);
        std::vector<std::uint32_t> words(static_cast<std::size_t>(engram::paired_workspace(k, m)));
        const double rounded = seconds(
            [&] { engram::multiply_pairs(x.data(), k, k, pairs, nullptr, false, y.data(), n, m, words.data()); });
        report("y = x W", m, k, n, eigen, ours, top, rounded);
    }
    const int transposed[][3] = {{800, 768, 2048}, {800, 256, 128}, {16, 512, 2048},  {96, 48, 16},
                                 {96, 96, 32},     {32, 128, 64},   {1024, 128, 384}, {1024, 128, 128},
                                 {1024, 64, 192},  {1024, 16, 128}, {6912, 144, 16}};
    for (const auto& [m, k, n] : transposed) {
        const matrix x = matrix::Random(m, k), dy = matrix::Random(m, n);
        matrix dw(k, n);
        std::vector<float> work(static_cast<std::size_t>(engram::transposed_workspace<float>(k, n, m)));
        const double eigen = seconds([&] { dw.noalias() = x.transpose() * dy; });
        const double ours = seconds(
            [&] { engram::multiply_transposed(x.data(), k, k, dy.data(), n, n, m, dw.data(), n, false, work.data()); });
        std::vector<std::uint32_t> words(static_cast<std::size_t>(engram::transposed_paired_workspace(k, m)));
        const double rounded = seconds([&] {
            engram::multiply_transposed_pairs(x.data(), k, k, dy.data(), n, n, m, dw.data(), n, false, words.data());
        });
        report("dW = x^T dy", m, k, n, eigen, ours, top, rounded);
    }
}
