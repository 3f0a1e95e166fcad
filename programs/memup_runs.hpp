#pragma once
// SPDX-License-Identifier: MIT

// What the runs on one backend do with memories that MemUP trains, alone or as a phase of an agent; defined in
// memup_job.hpp, and compiled apart from the other runs.

#include <engram/program/device_runs.hpp>

namespace engram {

template <class Backend>
struct memup_runs {
    /// Trains by predictions of far steps or in phases; returns the exit code.
    static int train(const configuration& config, const run_paths& paths, const arguments& a);
};

}  // namespace engram
