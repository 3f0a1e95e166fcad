#pragma once
// SPDX-License-Identifier: MIT

// clear_rows: zero where an episode begins, whatever stood there. Multiplying by 1 - reset would keep a NaN of the dead
// episode. One operation for any number of values, since every carried state needs it at every step.

#include <algorithm>
#include <vector>

#include <engram/graph/simple_operation.hpp>

namespace engram {

template <class Backend>
struct clear_rows_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    clear_rows_kernel(const binder<Backend>& b, no_settings) : batch(b.batch()), reset(b.in(0)) {
        for (std::size_t i = 0; i + 1 < b.op().inputs.size(); ++i)
            parts.push_back({b.in(i + 1), b.d_in(i + 1), b.out(i), b.d_out(i)});
    }
    void forward(int t, int steps) override {
        for (const part& p : parts)
            for (int r = 0; p.out && r < steps * batch; ++r) {
                real* const to = p.out.at(t) + r * p.out.stride;
                if (begins(t, r))
                    std::fill_n(to, p.out.width, real(0));
                else
                    std::copy_n(p.in.at(t) + r * p.in.stride, p.in.width, to);
            }
    }
    void backward(int t, int steps) override {
        for (const part& p : parts)
            for (int r = 0; p.d_in && r < steps * batch; ++r) {
                real* const dx = p.d_in.at(t) + r * p.d_in.stride;
                const real* const dy = p.d_out && !begins(t, r) ? p.d_out.at(t) + r * p.d_out.stride : nullptr;
                if (dy && p.d_in.accumulate)
                    for (int f = 0; f < p.in.width; ++f) dx[f] += dy[f];
                else if (dy)
                    std::copy_n(dy, p.in.width, dx);
                else if (!p.d_in.accumulate)
                    std::fill_n(dx, p.in.width, real(0));
            }
    }

private:
    struct part {
        operand<real> in, d_in, out, d_out;
    };
    bool begins(int t, int row) const { return reset.at(t)[row * reset.stride] > real(0.5); }

    int batch;
    operand<real> reset;
    std::vector<part> parts;
};

/// The values with zeros in the rows whose reset [T, B, 1] is one; these rows pass no gradient.
template <class Backend>
std::vector<var<Backend>> clear_rows(const std::string& name, const var<Backend>& reset,
                                     const std::vector<var<Backend>>& values) {
    graph<Backend>& g = *reset.owner;
    require(reset.width == 1, g.full_name(name), ": reset is one column, not ", reset.width);
    if (values.empty()) return {};
    std::vector<var<Backend>> inputs{stop_gradient(reset)};
    std::vector<int> widths;
    for (const auto& v : values) {
        inputs.push_back(v);
        widths.push_back(v.width);
    }
    auto op = make_operation<clear_rows_kernel>(g, name, inputs, no_settings{});
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), widths, rows);
}

}  // namespace engram
