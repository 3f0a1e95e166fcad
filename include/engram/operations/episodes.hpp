#pragma once
// SPDX-License-Identifier: MIT

// Where episodes begin within an unroll. `reset` [T, B, 1] is one at the first step of an episode, zero elsewhere.

#include <string>

#include <engram/core/error.hpp>
#include <engram/core/flag.hpp>
#include <engram/graph/graph.hpp>
#include <engram/graph/kernel.hpp>

namespace engram {

/// Whether an episode of batch row b begins with step t.
template <class Real>
ENGRAM_HD bool begins(const operand<Real>& reset, int t, std::ptrdiff_t b) {
    return is_set(reset.at(t)[b * reset.stride]);
}

/// The step with which the episode of step t began, or the unroll.
template <class Real>
ENGRAM_HD int episode_start(const operand<Real>& reset, int t, std::ptrdiff_t b) {
    int first = t;
    while (first > 0 && !begins(reset, first, b)) --first;
    return first;
}

/// Numbers the episodes of row b, from 0 on.
template <class Real>
void number_episodes(const operand<Real>& reset, int b, int steps, int* episode) {
    for (int t = 0, n = 0; t < steps; ++t) {
        n += t > 0 && begins(reset, t, b);
        episode[t] = n;
    }
}

namespace internal {

/// `reset` as an operation `name` takes it: one column, without a gradient.
template <class Backend>
var<Backend> reset_column(const std::string& name, const var<Backend>& reset) {
    require(reset.width == 1, reset.owner->full_name(name), ": reset is one column, not ", reset.width);
    return stop_gradient(reset);
}

}  // namespace internal

}  // namespace engram
