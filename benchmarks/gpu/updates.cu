// SPDX-License-Identifier: MIT

// Learner updates on a CUDA device: forward, backward and optimiser step, each one captured graph. Prints one row a
// model: milliseconds an update and time steps of experience a second. The host's are benchmark-mra_update's: nvcc does
// not take the vector code of its gradients.
//
//   benchmark-gpu-updates [repeats]

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <engram/device/cuda.cuh>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/laws.hpp>
#include <engram/train/device_optimiser.hpp>

namespace {

using namespace engram;
using clock_type = std::chrono::steady_clock;

constexpr int T = 50, B = 16;

double milliseconds_since(clock_type::time_point start) {
    return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

template <class Agent>
double on_the_device(const task_shape& task, product_precision precision, int repeats) {
    auto a = Agent::template trace<cuda<float>>({}, task, 1);
    program<cuda<float>> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true});
    p.executor().precision = precision;
    device_optimiser<cuda<float>> adam({}, *a.store);
    fill_randomly(p, a, 1);
    const auto update = [&] {
        p.forward();
        p.backward();
        adam.update(p, 0);
        p.carry();
    };
    for (int i = 0; i < 3; ++i) update();
    p.executor().wait();
    const auto start = clock_type::now();
    for (int i = 0; i < repeats; ++i) update();
    p.executor().wait();
    return milliseconds_since(start) / repeats;
}

template <class Agent>
void row(const char* name, const task_shape& task, int repeats) {
    std::printf("%-28s", name);
    for (const auto precision : {product_precision::full, product_precision::tf32, product_precision::bf16}) {
        const double ms = on_the_device<Agent>(task, precision, repeats);
        std::printf(" %10.2f %10.0f", ms, T * B / ms * 1000);
    }
    std::printf("\n");
}

}  // namespace

int main(int count, char** arguments) try {
    std::string why;
    if (!cuda_is_usable(why)) {
        std::printf("skipped: %s\n", why.c_str());
        return 77;
    }
    const int repeats = count > 1 ? std::atoi(arguments[1]) : 20;
    std::printf("T = %d, B = %d, float; milliseconds an update, steps a second\n", T, B);
    std::printf("%-28s %10s %10s %10s %10s %10s %10s\n", "model", "fp32", "", "tf32", "", "bf16", "");
    const task_shape numbers{{1, 32, 1}, 6}, frames{{72, 96, 3}, 6};
    row<agent<mlp, lstm, no_memory, no_auxiliary, vtrace>>("LSTM, numbers", numbers, repeats);
    row<agent<mlp, lstm, fifo_knn, cpc, vtrace>>("LSTM+MEM+CPC, numbers", numbers, repeats);
    row<agent<impala_resnet, lstm, fifo_knn, cpc, vtrace>>("LSTM+MEM+CPC, 72x96 frames", frames, repeats);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
