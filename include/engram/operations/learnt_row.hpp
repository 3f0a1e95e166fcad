#pragma once
// SPDX-License-Identifier: MIT

// A parameter [1, F] as a variable [T, B, F], for maps: a gain, a rate of decay, a bias of one's own. Maps of nothing
// else are computed for one row.

#include <string>

#include <engram/operations/map.hpp>
#include <engram/operations/pick.hpp>

namespace engram {

/// Zero whatever there is, NaN included.
struct no_matter_what {
    constexpr auto operator()(auto x) const { return select(x > 0, 0, 0); }
};

/// One whatever there is.
struct always_one {
    constexpr auto operator()(auto x) const { return select(x > 0, 1, 1); }
};

/// [., F]: the numbers of `row` [1, F] in every row that `like` has; give it an input, so that this is done ahead of
/// the time loop.
template <class Backend>
var<Backend> learnt_row(const std::string& name, const var<Backend>& like, parameter row) {
    const auto& entry = like.owner->store()[row];
    require(entry.rows == 1, like.owner->full_name(name), ": the parameter '", entry.name, "' is [", entry.rows, ",",
            entry.columns, "], expected one row");
    const auto found = embed(name, map("only_row", no_matter_what{}, stop_gradient(like.columns(0, 1))), row);
    like.owner->declare_rows_alike(found);
    return found;
}

}  // namespace engram
