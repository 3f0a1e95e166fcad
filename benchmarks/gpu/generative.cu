// SPDX-License-Identifier: MIT

// Training steps of the five generative temporal models at the paper's sizes on a CUDA device, in frames a second:
// batch 10, T = 25, 28 x 28 frames.

#include "sequence_step.cuh"

namespace {

using engram::tensor_core_rounding;

template <class Model>
void row(const char* name) {
    for (const auto& [precision, kind] :
         {std::pair{tensor_core_rounding::full, ", float"}, std::pair{tensor_core_rounding::tf32, ", tf32"}}) {
        const double us =
            gpu_benchmark::training_step<Model>(gtmm::paper<Model>(), gtmm::frames(), gtmm::T, gtmm::B, precision);
        gpu_benchmark::line(std::string(name) + kind, 1e6 * gtmm::T * gtmm::B / us, "frames/s");
    }
}

}  // namespace

int main() {
    return gpu_benchmark::run([] {
        row<engram::catalogue::vrnn>("VRNN");
        row<engram::catalogue::introspective_gtmm>("introspective GTMM");
        row<engram::catalogue::ntm_gtmm>("NTM-GTMM");
        row<engram::catalogue::lru_gtmm>("LRU-GTMM");
        row<engram::catalogue::dnc_gtmm>("DNC-GTMM");
    });
}
