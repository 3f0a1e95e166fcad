#pragma once
// SPDX-License-Identifier: MIT

// Softmax and its logarithm over the columns of a row, or over every `group` columns by themselves (heads side by
// side); sums and the largest of such a group.

#include <string>

#include <engram/operations/row_operation.hpp>

namespace engram {

/// What groups of columns share: a body sees one group.
struct column_group {
    int columns;
};

struct grouped_rows {
    using settings = column_group;
    template <class Real>
    struct operands {
        input_row<Real> x;
        output_row<Real> y;
    };
    static constexpr int pieces(settings s, int columns) { return columns / s.columns; }
};

/// y = exp(x) / sum exp(x) of n columns, which may be x itself.
template <class Row, class X, class Y>
ENGRAM_HD void softmax_columns(Row row, int n, const X& x, const Y& y) {
    const auto top = row.largest(n, [&](auto i) { return x[i]; });
    const auto sum = row.sum(n, [&](auto i) {
        const auto e = exp(x[i] - top);
        y.put(i, e);
        return e;
    });
    row.each(n, [&](auto i) { y.put(i, y[i] / sum); });
}

struct softmax_rows : grouped_rows {
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) { softmax_columns(row, s.columns, o.x, o.y); }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        const auto mean = row.sum(s.columns, [&](auto i) { return o.y[i] * o.y.d[i]; });
        row.each(s.columns, [&](auto i) { o.x.d.put(i, o.y[i] * (o.y.d[i] - mean)); });
    }
};

struct log_softmax_rows : grouped_rows {
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        const auto top = row.largest(s.columns, [&](auto i) { return o.x[i]; });
        const auto shift = top + log(row.sum(s.columns, [&](auto i) { return exp(o.x[i] - top); }));
        row.each(s.columns, [&](auto i) { o.y.put(i, o.x[i] - shift); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        const auto sum = row.sum(s.columns, [&](auto i) { return o.y.d[i]; });
        row.each(s.columns, [&](auto i) { o.x.d.put(i, o.y.d[i] - exp(o.y[i]) * sum); });
    }
};

struct group_sum_rows : grouped_rows {
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        const auto sum = row.sum(s.columns, [&](auto i) { return o.x[i]; });
        row.once([&] { o.y.put(0, sum); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        row.each(s.columns, [&](auto i) { o.x.d.put(i, o.y.d[0]); });
    }
};

/// The largest of a group, as a constant.
struct largest_rows : grouped_rows {
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        const auto top = row.largest(s.columns, [&](auto i) { return o.x[i]; });
        row.once([&] { o.y.put(0, top); });
    }
};

/// Body over every `group` columns of x, which give `made` columns each.
template <class Body, class Backend>
var<Backend> apply_to_groups(const std::string& name, const var<Backend>& x, int group, int made) {
    graph<Backend>& g = *x.owner;
    require(group > 0 && x.width % group == 0, g.full_name(name), ": ", x.width,
            " columns do not divide into groups of ", group);
    return add_rows<Body>(g, name, {x}, {group}, {x.width / group * made})[0];
}

/// x - log sum exp x over the columns of a row.
template <class Backend>
var<Backend> log_softmax(const std::string& name, const var<Backend>& x) {
    return apply_to_groups<log_softmax_rows>(name, x, x.width, x.width);
}

/// exp(x) / sum exp(x) over every `group` columns of a row (heads side by side).
template <class Backend>
var<Backend> softmax(const std::string& name, const var<Backend>& x, int group) {
    return apply_to_groups<softmax_rows>(name, x, group, group);
}
/// The same over all columns of a row.
template <class Backend>
var<Backend> softmax(const std::string& name, const var<Backend>& x) {
    return softmax(name, x, x.width);
}

/// [T, B, F / group]: sums over every `group` columns of a row.
template <class Backend>
var<Backend> sum_columns(const std::string& name, const var<Backend>& x, int group) {
    return apply_to_groups<group_sum_rows>(name, x, group, 1);
}
/// [T, B, 1]: sum over the columns of a row.
template <class Backend>
var<Backend> sum_columns(const std::string& name, const var<Backend>& x) {
    return sum_columns(name, x, x.width);
}

/// [T, B, 1]: the largest of a row, as a constant.
template <class Backend>
var<Backend> largest(const std::string& name, const var<Backend>& x) {
    return stop_gradient(apply_to_groups<largest_rows>(name, stop_gradient(x), x.width, 1));
}

}  // namespace engram
