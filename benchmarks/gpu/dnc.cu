// SPDX-License-Identifier: MIT

// A training step of a DNC on a CUDA device: batch 16, memory 16 x 16, 4 read heads, LSTM 64, 20 time steps of bits.

#include "sequence_step.cuh"

int main() {
    using engram::tensor_core_rounding;
    return gpu_benchmark::run([] {
        for (const auto& [precision, name] :
             {std::pair{tensor_core_rounding::full, "DNC, 16 x 16, 4 heads, T 20, B 16, float"},
              std::pair{tensor_core_rounding::tf32, "DNC, 16 x 16, 4 heads, T 20, B 16, tf32"}})
            gpu_benchmark::line(
                name, gpu_benchmark::training_step<gtmm::bits_dnc>(gtmm::small_dnc(), gtmm::bits(), 20, 16, precision),
                "us/update");
    });
}
