#pragma once
// SPDX-License-Identifier: MIT

// clear_rows: zero where an episode begins, whatever stood there. Multiplying by 1 - reset would keep a NaN of the dead
// episode. One operation for any number of values, since every carried state needs it at every step.

#include <string>
#include <vector>

#include <engram/operations/episodes.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

struct cleared_rows {
    static constexpr int lanes = 256;
    using settings = no_settings;
    template <class Real>
    struct operands {
        constant_row<Real> reset;
        input_list<Real> x;
        output_list<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        const bool fresh = begins(o.reset);
        each_part(o.y, [&](int k) {
            const auto& x = o.x.parts[k];
            const auto& y = o.y.parts[k];
            if (fresh)
                row.each(y.width, [&](auto i) { y.put(i, zero_of(x[i])); });
            else
                row.each(y.width, [&](auto i) { y.put(i, x[i]); });
        });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        const bool fresh = begins(o.reset);
        each_part(o.x, [&](int k) {
            const auto& x = o.x.parts[k];
            const auto& y = o.y.parts[k];
            if (fresh || !y.d)
                row.each(x.d.width, [&](auto i) { x.d.put(i, zero_of(x.d[i])); });
            else
                row.each(x.d.width, [&](auto i) { x.d.put(i, y.d[i]); });
        });
    }
};

/// The values with zeros in the rows whose reset [T, B, 1] is one; these rows pass no gradient.
template <class Backend>
std::vector<var<Backend>> clear_rows(const std::string& name, const var<Backend>& reset,
                                     const std::vector<var<Backend>>& values) {
    graph<Backend>& g = *reset.owner;
    std::vector<var<Backend>> inputs{internal::reset_column(name, reset)};
    if (values.empty()) return {};
    std::vector<int> widths;
    for (const auto& v : values) {
        inputs.push_back(v);
        widths.push_back(v.width);
    }
    return add_rows<cleared_rows>(g, name, inputs, {}, widths);
}

}  // namespace engram
