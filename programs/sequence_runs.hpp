#pragma once
// SPDX-License-Identifier: MIT

// What the runs on one backend do with models that learn from sequences; defined in sequence_job.hpp, and compiled
// apart from what acts, since either takes its while.

#include <memory>

#include <engram/program/device_runs.hpp>

namespace engram {

struct prepared_sequences;

template <class Backend>
struct sequence_runs {
    /// Trains on whole sequences or on unrolls; returns the exit code.
    static int train(const configuration& config, const run_paths& paths, const arguments& a);
    /// The model on the device.
    static std::unique_ptr<prepared_sequences> prepare(const configuration& config);
};

}  // namespace engram
