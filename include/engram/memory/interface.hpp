#pragma once
// SPDX-License-Identifier: MIT

// What memories share: the part of a cue or content that their maps see, the part of a write that is read, heads side
// by side, and the functors that give a new episode its start.

#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/core/flag.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/pick.hpp>

namespace engram {

/// What the heads of a memory see: what is observed and what the controller holds, or what it holds alone.
using memory_input = choice<"all", "held">;

/// Columns that the maps see: of [observed, held] ("all"), or of the held part alone ("held", the text of facts 4.2).
inline int interface_width(memory_input input, memory_sizes z) {
    return input == "all" ? z.observed + z.held : z.held;
}

/// What the maps see: both parts, or the held one.
template <class Var>
std::vector<Var> interface_inputs(memory_input input, const std::vector<Var>& both) {
    return input == "all" ? both : std::vector<Var>{both[1]};
}

/// What of a write [observed, held] is read.
using memory_values = choice<"held", "observed", "all">;

/// Columns of a write.
struct memory_columns {
    int first = 0, width = 0;
};
/// Where in a write what is read stands.
inline memory_columns value_columns(memory_values values, memory_sizes z) {
    if (values == "all") return {0, z.observed + z.held};
    return values == "held" ? memory_columns{z.observed, z.held} : memory_columns{0, z.observed};
}

/// Heads side by side; a single one as it is.
template <class Var>
Var joined_heads(const char* name, const std::vector<Var>& heads) {
    return heads.size() == 1 ? heads[0] : concatenate(name, heads);
}

/// A small constant where an episode begins: equal rows of any size give equal cosines.
struct fill_on_reset {
    constexpr auto operator()(auto reset, auto x) const { return select(is_set(reset), 1e-6, x); }
};
/// The slot that a new episode's weights stand on, as the index of a one-hot code; none elsewhere.
struct slot_on_reset {
    constexpr auto operator()(auto reset) const { return select(is_set(reset), 0, -1); }
};

/// Weights [T, B, slots] that stand on the first slot where an episode begins, and are 0 elsewhere.
template <class Backend>
var<Backend> first_slot(const var<Backend>& reset, int slots) {
    return one_hot("first", map("begins", slot_on_reset{}, reset), slots);
}

/// `weights` of one or more heads, where an episode begins those of first_slot() for each of them.
template <class Backend>
var<Backend> stand_on(const char* name, const var<Backend>& first, const var<Backend>& reset,
                      const var<Backend>& weights) {
    const std::vector<var<Backend>> heads(static_cast<std::size_t>(weights.width / first.width), first);
    return map(name, choose{}, reset, joined_heads("first", heads), weights);
}

}  // namespace engram
