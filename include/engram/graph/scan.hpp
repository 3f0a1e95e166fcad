#pragma once
// SPDX-License-Identifier: MIT

// scan: traces one time step and repeats it over T.
//
// `initial` is a reflected aggregate of [B, F] variables. `body` gets a copy of it whose variables are the entering
// state, leaves the next state in it and returns what the caller wants to use: any body variable may be used
// afterwards, as [T, B, F]. A variable from outside that is used in the body is "row t of it", so a scan needs no list
// of inputs.

#include <utility>
#include <vector>

#include <engram/core/reflection.hpp>
#include <engram/graph/graph.hpp>
#include <engram/operations/concatenate.hpp>

namespace engram {

/// Traces `body` once, as one time step, and repeats it over T; gives what it returns, [T, B, .].
template <class Backend, class State, class Body>
auto scan(graph<Backend>& g, const State& initial, Body&& body) {
    g.begin_scan();
    State state = initial;
    std::vector<std::string> names;
    for_each_leaf(state, "", [&](const auto&, var<Backend>& leaf) {
        names.push_back(g.info(leaf).name);
        leaf = g.enter_state(leaf);
    });
    auto result = body(state);
    std::size_t i = 0;
    for_each_leaf(state, "", [&](const auto&, var<Backend>& leaf) {
        // A state needs a buffer of its own: slices, inputs and values used twice are copied into one.
        if (!g.is_fresh_body_value(leaf)) leaf = copy(leaf, names[i]);
        g.leave_state(i++, leaf);
    });
    g.end_scan();
    return result;
}

}  // namespace engram
