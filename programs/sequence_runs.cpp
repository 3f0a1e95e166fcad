// SPDX-License-Identifier: MIT

// The runs of models that learn from sequences, and of memories that MemUP trains, on the host.

#include "memup_job.hpp"
#include "sequence_job.hpp"

namespace engram {

template struct sequence_runs<cpu<float>>;
template struct memup_runs<cpu<float>>;

}  // namespace engram
