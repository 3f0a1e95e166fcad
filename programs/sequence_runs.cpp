// SPDX-License-Identifier: MIT

// The runs of models that learn from sequences, on the host.

#include "sequence_job.hpp"

namespace engram {

template struct sequence_runs<cpu<float>>;

}  // namespace engram
