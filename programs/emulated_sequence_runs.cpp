// SPDX-License-Identifier: MIT

// The runs of models that learn from sequences, and of memories that MemUP trains, on an emulated device.

#include <engram/device/operations.hpp>

#include "memup_job.hpp"
#include "sequence_job.hpp"

namespace engram {

template struct sequence_runs<emulated<float>>;
template struct memup_runs<emulated<float>>;

}  // namespace engram
