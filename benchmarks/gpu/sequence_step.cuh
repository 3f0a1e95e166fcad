#pragma once
// SPDX-License-Identifier: MIT

// How long a sequence model takes to learn from one batch on a CUDA device: the inputs sent, forward, backward and the
// optimiser's step, each sweep one captured graph.

#include <engram/train/device_optimiser.hpp>

#include "../gtmm_models.hpp"
#include "timing.cuh"

namespace gpu_benchmark {

/// Microseconds.
template <class Model>
double training_step(const typename Model::settings& s, const engram::task_shape& task, int T, int B,
                     engram::tensor_core_rounding precision) {
    using backend = engram::cuda<float>;
    auto model = Model::template trace<backend>(s, task, 1);
    engram::program<backend> p(*model.g, model.store, {.steps = T, .batch = B, .gradients = true});
    p.executor().precision = precision;
    engram::device_optimiser<backend> adam({}, *model.store);
    gtmm::fill(p, *model.g, 1);
    return microseconds(
        10, [&] { p.executor().wait(); },
        [&] {
            p.forward();
            p.backward();
            adam.update(p, 0);
        });
}

}  // namespace gpu_benchmark
