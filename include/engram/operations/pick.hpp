#pragma once
// SPDX-License-Identifier: MIT

// What an index [T, B, 1] names: one column of a row, its one-hot code, a row of a table. Indices are numbers in a
// column of width 1. Out of range they throw when replayed; on a device they give zero and raise the executor's alarm,
// which the program's next report of losses turns into an error.

#include <string>

#include <engram/operations/row_operation.hpp>

namespace engram {

struct pick_rows {
    using settings = no_settings;
    static constexpr const char* index = "index";
    template <class Real>
    struct operands {
        input_row<Real> x;
        constant_row<Real> index;
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        const int at = row.index(o.index[0], o.x.width);
        row.once([&] { o.y.put(0, select(at < 0, 0, o.x[at < 0 ? 0 : at])); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        row.each(o.x.width, [&](auto i) { o.x.d.put(i, select(row.number(i) == o.index[0], o.y.d[0], 0)); });
    }
};

struct one_hot_rows {
    using settings = no_settings;
    template <class Real>
    struct operands {
        constant_row<Real> index;
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        using Real = decltype(o.index[0]);
        row.each(o.y.width, [&](auto i) { o.y.put(i, select(row.number(i) == o.index[0], Real(1), Real(0))); });
    }
};

struct embed_rows {
    using settings = int;  // rows of the table
    static constexpr const char* index = "index";
    template <class Real>
    struct operands {
        constant_row<Real> index;
        weight_row<Real> table;
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings count) {
        const int at = row.index(o.index[0], count);
        // Without a place for it an affine map multiplies the table instead.
        row.each(o.y.width, [&](auto i) { o.y.put(i, at < 0 ? zero_of(o.table[i]) : o.table[i + at * o.y.width]); });
    }
    static ENGRAM_HD int taken_row(const auto& o) { return static_cast<int>(o.index[0]); }
    static ENGRAM_HD void slopes(const auto& o, auto i, auto add) { add(o.table, o.y.d[i]); }
};

/// [T, B, 1]: the column of x that `index` [T, B, 1] names in each row.
template <class Backend>
var<Backend> pick(const std::string& name, const var<Backend>& x, const var<Backend>& index) {
    require(index.width == 1, x.owner->full_name(name), ": the index must be one column, not ", index.width);
    return add_rows<pick_rows>(*x.owner, name, {x, stop_gradient(index)}, {}, {1})[0];
}

/// [T, B, count] with a one at `index`; all zeros when the index is negative ("none yet").
template <class Backend>
var<Backend> one_hot(const std::string& name, const var<Backend>& index, int count) {
    require(index.width == 1, index.owner->full_name(name), ": the index must be one column, not ", index.width);
    return add_rows<one_hot_rows>(*index.owner, name, {stop_gradient(index)}, {}, {count})[0];
}

/// Row `index` [T, B, 1] of the table [count, width]. Where only affine maps read it, they multiply the table
/// (operations/table_product.hpp), and what is left to do here is to check the index.
template <class Backend>
var<Backend> embed(const std::string& name, const var<Backend>& index, parameter table) {
    graph<Backend>& g = *index.owner;
    require(index.width == 1, g.full_name(name), ": the index must be one column, not ", index.width);
    const auto& entry = g.store()[table];
    return add_rows<embed_rows>(g, name, {stop_gradient(index)}, entry.rows, {entry.columns}, {table},
                                [=](operation<Backend>& op) { op.table = table.id; })[0];
}

}  // namespace engram
