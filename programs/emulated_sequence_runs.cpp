// SPDX-License-Identifier: MIT

// The runs of models that learn from sequences, on an emulated device.

#include <engram/device/operations.hpp>

#include "sequence_job.hpp"

namespace engram {

template struct sequence_runs<emulated<float>>;

}  // namespace engram
