#pragma once
// SPDX-License-Identifier: MIT

// The hot paths of the library, each ready to be run on numbers of its own: what benchmark-hot_paths times.

#include <algorithm>
#include <string>
#include <vector>

#include "hot_paths/learning.hpp"
#include "hot_paths/memories.hpp"
#include "hot_paths/networks.hpp"
#include "processor_time.hpp"

namespace benchmarks {

/// All of them, in the order of the table.
inline std::vector<hot_path> hot_paths() {
    const sizes usual{50, 16, 1024}, memory{50, 16, 128};
    const auto both = [](auto make, bool second) { return [=](const sizes& z) { return make(z, second); }; };
    const auto fixed = [](auto make, int which) { return [=](const sizes&) { return make(which); }; };
    return {{"product", "B", usual, skinny_product},
            {"product, weight gradient", "TB", usual, weight_gradient},
            {"LSTM unroll, forward", "TB", usual, both(lstm_unroll, false)},
            {"LSTM unroll, backward", "TB", usual, both(lstm_unroll, true)},
            {"LSTM cell, forward", "B", usual, both(cell, false)},
            {"LSTM cell, backward", "B", usual, both(cell, true)},
            {"convolution, forward", "", usual, fixed(convolved, 0)},
            {"convolution, data gradient", "", usual, fixed(convolved, 1)},
            {"convolution, weight gradient", "", usual, fixed(convolved, 2)},
            {"attention, forward", "T", {520, 1, 0}, both(attended, false)},
            {"attention, backward", "T", {520, 1, 0}, both(attended, true)},
            {"dropout, forward", "TB", usual, both(dropped, false)},
            {"dropout, backward", "TB", usual, both(dropped, true)},
            {"k-NN read, forward", "BN", usual, both(nearest, false)},
            {"k-NN read, backward", "B", usual, both(nearest, true)},
            {"content addressing, forward", "N", memory, both(pointed, false)},
            {"content addressing, backward", "N", memory, both(pointed, true)},
            {"DNC allocation, forward", "N", memory, both(allocated, false)},
            {"DNC allocation, backward", "N", memory, both(allocated, true)},
            {"DNC links, forward", "N", memory, both(linked, false)},
            {"DNC links, backward", "N", memory, both(linked, true)},
            {"introspection read, forward", "N", memory, both(introspected, false)},
            {"introspection read, backward", "N", memory, both(introspected, true)},
            {"CPC scores, forward", "T", usual, both(contrasted, false)},
            {"CPC scores, backward", "T", usual, both(contrasted, true)},
            {"V-trace", "TB", usual, both(returned, true)},
            {"GAE", "TB", usual, both(returned, false)},
            {"gradient norm", "", usual, fixed(optimised, 0)},
            {"Adam", "", usual, fixed(optimised, 1)},
            {"RMSProp", "", usual, fixed(optimised, 2)},
            {"ray caster", "", usual, drawn}};
}

/// Seconds of one call, and the rates of this machine beside it: of a product, GFLOP/s, and of a copy that touches as
/// much memory, GB/s; zero where the path says nothing of it.
struct measured {
    double seconds, product, copy;
};

inline measured measure(const path& p, double budget) {
    measured m{1e9, 0, 0};
    // In turn, so that a machine that is busy for a while is busy for both sides.
    for (int round = 0; round < 3; ++round) {
        if (p.operations > 0) m.product = std::max(m.product, product_rate(budget / 3));
        if (p.bytes > 0) m.copy = std::max(m.copy, copy_rate(p.memory > 0 ? p.memory : p.bytes, budget / 3));
        m.seconds = std::min(m.seconds, least_seconds(p.run, budget / 3));
    }
    return m;
}

}  // namespace benchmarks
