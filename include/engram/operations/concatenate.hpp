#pragma once
// SPDX-License-Identifier: MIT

// Columns side by side: concatenate, copy, and record, which marks what a behaviour policy must write down.

#include <initializer_list>
#include <string>
#include <vector>

#include <engram/operations/row_operation.hpp>

namespace engram {

struct concatenate_rows {
    using settings = no_settings;
    template <class Real>
    struct operands {
        input_list<Real> x;
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        each_part(o.x, [&](int k) {
            const auto& x = o.x.parts[k];
            row.each(x.width, [&](auto i) { o.y.put(i + x.before, x[i]); });
        });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        each_part(o.x, [&](int k) {
            const auto& x = o.x.parts[k];
            if (x.d) row.each(x.width, [&](auto i) { x.d.put(i, o.y.d[i + x.before]); });
        });
    }
};

/// Columns of all inputs side by side. An affine map takes several inputs as they are and does not need it.
template <class Backend>
var<Backend> concatenate(const std::string& name, const std::vector<var<Backend>>& inputs) {
    require(!inputs.empty(), name, ": nothing to concatenate");
    return add_rows<concatenate_rows>(*inputs[0].owner, name, inputs, {}, {columns_of(inputs)})[0];
}

/// The same of inputs that are named where they are joined: concatenate("all", {x, h}).
template <class Backend>
var<Backend> concatenate(const std::string& name, std::initializer_list<var<Backend>> inputs) {
    return concatenate(name, std::vector<var<Backend>>(inputs));
}

/// The same numbers in a buffer of their own.
template <class Backend>
var<Backend> copy(const var<Backend>& x, const std::string& name = "copy") {
    return concatenate<Backend>(name, {x});
}

/// Marks what a behaviour policy must record: an acting plan computes it, a replaying plan reads it from the
/// trajectory, as an input of this name.
template <class Backend>
var<Backend> record(const std::string& name, std::vector<var<Backend>> parts) {
    require(!parts.empty(), name, ": nothing to record");
    for (auto& v : parts) v = stop_gradient(v);
    const auto mark = [](operation<Backend>& op) { op.is_record = true; };
    return stop_gradient(
        add_rows<concatenate_rows>(*parts[0].owner, name, parts, {}, {columns_of(parts)}, {}, mark)[0]);
}

/// The same of parts that are named here: record("stored", {x, h}).
template <class Backend>
var<Backend> record(const std::string& name, std::initializer_list<var<Backend>> parts) {
    return record(name, std::vector<var<Backend>>(parts));
}

}  // namespace engram
