// SPDX-License-Identifier: MIT

// The runs of memories that MemUP trains, on an emulated device.

#include <engram/device/operations.hpp>

#include "memup_job.hpp"

namespace engram {

template struct memup_runs<emulated<float>>;

}  // namespace engram
