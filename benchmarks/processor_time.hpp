#pragma once
// SPDX-License-Identifier: MIT

// What a benchmark of one thread measures with, and what it measures against.
//
// Times are processor time of the thread, not of the clock on the wall, and the least of many: a machine that does
// other things as well makes them worse by shared caches and memory alone. The rates of the machine are measured in
// the same run: of a product that stays in the cache, and of a copy that touches as much memory.

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <vector>

#include <engram/kernels/product.hpp>

namespace benchmarks {

/// Seconds of processor time that this thread has had.
inline double thread_seconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Least seconds of one call, of at least three samples of 20 us and as many as `budget` seconds hold.
template <class Body>
double least_seconds(Body&& body, double budget) {
    constexpr double least_sample = 20e-6;  // a hundred times what reading the clock costs
    int calls = 1;
    double best = 1e9;
    for (double total = 0, samples = 0; samples < 3 || total < budget;) {
        const double start = thread_seconds();
        for (int i = 0; i < calls; ++i) body();
        const double took = thread_seconds() - start;
        total += took;
        if (took < least_sample && calls < (1 << 20)) {
            calls *= 2;
            continue;
        }
        best = std::min(best, took / calls);
        ++samples;
    }
    return best;
}

/// GFLOP/s of y = x W with 128 x 512 x 512 numbers, packed.
inline double product_rate(double budget) {
    constexpr int m = 128, k = 512, n = 512;
    static const std::vector<float> x(m * k, 0.5f), w(k * n, 0.25f);
    static std::vector<float> y(m * n);
    static const auto packed = [] {
        engram::packed_weights<float> p(k, n);
        p.pack(w.data(), n);
        return p;
    }();
    const engram::product_part<float> part{x.data(), k, &packed, 0, k};
    const double took = least_seconds(
        [&] { engram::multiply(&part, 1, static_cast<const float*>(nullptr), false, y.data(), n, m); }, budget);
    return 2e-9 * m * k * n / took;
}

/// GB/s of a copy that reads and writes `bytes` in all, one half each.
inline double copy_rate(double bytes, double budget) {
    const auto half = std::max<std::size_t>(64, static_cast<std::size_t>(bytes / 2));
    std::vector<char> from(half, 1), to(half);
    const double took = least_seconds(
        [&] {
            std::memcpy(to.data(), from.data(), half);
            asm volatile("" ::"r"(to.data()) : "memory");  // else nobody reads it and there is no copy
        },
        budget);
    return 2e-9 * double(half) / took;
}

}  // namespace benchmarks
