// SPDX-License-Identifier: MIT

// The runs of memories that MemUP trains, on a GPU.

#include <engram/device/cuda.cuh>

#include "memup_job.hpp"

namespace engram {

template struct memup_runs<cuda<float>>;

}  // namespace engram
