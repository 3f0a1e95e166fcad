#pragma once
// SPDX-License-Identifier: MIT

// A parameter [1, F] as a variable [T, B, F], for maps: a gain, a rate of decay, a bias of one's own. On the host it is
// one row, and so is what maps make of nothing else; affine maps refuse it.

#include <string>

#include <engram/operations/map.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

/// 1 for any x, NaN included.
struct always_one {
    constexpr auto operator()(auto x) const { return select(x > 0, 1, 1); }
};

struct learnt_rows {
    using settings = no_settings;
    template <class Real>
    struct operands {
        constant_row<Real> like;
        weight_row<Real> row;
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        row.each(o.y.width, [&](auto i) { o.y.put(i, o.row[i]); });
    }
    static ENGRAM_HD void slopes(const auto& o, auto i, auto add) { add(o.row, o.y.d[i]); }
};

/// [., F]: the numbers of `row` [1, F] in every row that `like` has; give it an input, so that this is done ahead of
/// the time loop.
template <class Backend>
var<Backend> learnt_row(const std::string& name, const var<Backend>& like, parameter row) {
    graph<Backend>& g = *like.owner;
    const auto& entry = g.store()[row];
    require(entry.rows == 1, g.full_name(name), ": the parameter '", entry.name, "' is [", entry.rows, ",",
            entry.columns, "], expected one row");
    const auto found = add_rows<learnt_rows>(g, name, {stop_gradient(like.columns(0, 1))}, {}, {entry.columns}, {row});
    g.declare_rows_alike(found);
    return found[0];
}

}  // namespace engram
