// SPDX-License-Identifier: MIT

// The runs of memories that MemUP trains, on the host.

#include "memup_job.hpp"

namespace engram {

template struct memup_runs<cpu<float>>;

}  // namespace engram
