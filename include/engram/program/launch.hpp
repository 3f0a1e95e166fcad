#pragma once
// SPDX-License-Identifier: MIT

// Several processes of a program, started by mpirun or srun, that train one model (docs/decisions/0022).

#include <memory>
#include <string>

#include <engram/train/processes.hpp>

namespace engram {

/// A process among those of a launch.
struct launched {
    int rank = 0, count = 1;
};
/// How a launcher started this process, by the variables that it sets; one of one without a launcher.
launched how_launched();

/// What connects the processes of a launch; null for one alone. Throws, with one sentence, where a launcher has started
/// several of a program that was compiled without MPI.
std::unique_ptr<processes> connect_processes();
/// Ends all processes of a launch, from one that cannot go on.
[[noreturn]] void end_all_processes(int code);

/// An agreed_error of what went wrong while running.
struct agreed_run_error : error {
    using error::error;
};

/// Throws, everywhere, what any process has to say; nothing when all are content.
inline void agree(processes* all, const std::string& trouble) {
    const std::string first = first_text(all, trouble);
    if (all && !first.empty()) throw agreed_error(first);
    require(first.empty(), first);
}

}  // namespace engram
