#pragma once
// SPDX-License-Identifier: MIT

// One row of reference_table.hpp.

#include <engram/version.hpp>

namespace engram {

/// Mean episode rewards at small fidelity, with their standard errors over the episodes.
struct reference_row {
    const char *task, *level;
    double random, random_error, oracle, oracle_error;
    int episodes;
};

}  // namespace engram
