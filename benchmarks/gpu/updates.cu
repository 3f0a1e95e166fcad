// SPDX-License-Identifier: MIT

// Learner updates on a CUDA device: forward, backward and optimiser step, each one captured graph, beside one host
// thread. Prints one row a model: milliseconds an update and, for the device, time steps of experience a second.
//
//   benchmark-gpu-updates [repeats]

#include <cstdio>
#include <cstdlib>

#include <engram/device/cuda.cuh>
#include <engram/model/laws.hpp>
#include <engram/train/device_optimiser.hpp>

#include "updates.hpp"

namespace {

using namespace engram;
using namespace updates;

template <class Agent>
double on_the_device(const task_shape& task, tensor_core_rounding precision, int repeats) {
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
    const double host = on_the_host<Agent>(task);
    std::printf("%-28s %10.2f", name, host);
    for (const auto precision : {tensor_core_rounding::full, tensor_core_rounding::tf32, tensor_core_rounding::bf16}) {
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
    std::printf("%-28s %10s %10s %10s %10s %10s %10s %10s\n", "model", "host", "fp32", "", "tf32", "", "bf16", "");
    const task_shape numbers{{1, 32, 1}, 6}, frames{{72, 96, 3}, 6};
    row<plain>("LSTM, numbers", numbers, repeats);
    row<remembering>("LSTM+MEM+CPC, numbers", numbers, repeats);
    row<seeing>("LSTM+MEM+CPC, 72x96 frames", frames, repeats);
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
