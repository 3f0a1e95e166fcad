// SPDX-License-Identifier: MIT

// The runs of models that learn from sequences, on a GPU.

#include <engram/device/cuda.cuh>

#include "sequence_job.hpp"

namespace engram {

template struct sequence_runs<cuda<float>>;

}  // namespace engram
