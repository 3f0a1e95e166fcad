#pragma once
// SPDX-License-Identifier: MIT

// Shards: the parts into which the rows of a batch are divided, and the unit in which gradients are summed.
//
// A shard owns its rows, their states and its plans; its numbers depend on nothing else. Threads carry neighbouring
// shards. The sum over shards is one fixed binary tree (neighbours, then neighbours of neighbours), so a run has the
// same bits whatever the number of threads that carry it.

#include <string>

#include <engram/core/error.hpp>

namespace engram {

/// The shards of `rows` rows: as many as the setting `name` says, or, where it is zero, one a thread (of all
/// processes).
inline int count_shards(int wanted, const char* name, int threads, int rows, const std::string& what) {
    const std::string range = message("expected 1 to ", rows, " (the number of ", what, "), got ");
    if (wanted == 0) {
        require(threads > 0 && threads <= rows, "threads: ", range, threads);
        return threads;
    }
    require(threads > 0, "threads: expected at least one, got ", threads);
    require(wanted > 0 && wanted <= rows, name, ": ", range, wanted);
    return wanted;
}

/// The first row of a shard.
inline int first_row(int shard, int shards, int rows) {
    return static_cast<int>(static_cast<long long>(rows) * shard / shards);
}

/// add(to, from) for the places of a sum over shards, each of which has `each` neighbouring places; all ends in place
/// 0.
template <class Add>
void add_in_order(int places, int each, Add add) {
    const int shards = places / each;
    for (int s = 0; s < shards; ++s)
        for (int k = 1; k < each; ++k) add(s * each, s * each + k);
    for (int apart = 1; apart < shards; apart *= 2)
        for (int s = 0; s + apart < shards; s += 2 * apart) add(s * each, (s + apart) * each);
}

}  // namespace engram
