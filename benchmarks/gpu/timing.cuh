#pragma once
// SPDX-License-Identifier: MIT

// What the benchmarks of a GPU share: time by the host's clock around work that the device is waited for, the best of
// five runs, and a main function that says in a sentence why it did not run.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <engram/device/cuda.cuh>

namespace gpu_benchmark {

inline double microseconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// Microseconds a call of `body`, which does not wait; `wait` does. The first calls record graphs and are not timed.
template <class Wait, class Body>
double microseconds(int repeats, Wait wait, Body body) {
    for (int i = 0; i < 3; ++i) body();
    wait();
    double best = 1e30;
    for (int run = 0; run < 5; ++run) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < repeats; ++i) body();
        wait();
        best = std::min(best, microseconds_since(start) / repeats);
    }
    return best;
}

/// One line of a table: what, how much, of what.
inline void line(const std::string& what, double number, const char* unit) {
    std::printf("%-52s %14.1f %s\n", what.c_str(), number, unit);
    std::fflush(stdout);
}

template <class Body>
int run(Body body) {
    try {
        std::string why;
        if (!engram::cuda_is_usable(why)) {
            std::printf("skipped: %s\n", why.c_str());
            return 77;
        }
        body();
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}

}  // namespace gpu_benchmark
