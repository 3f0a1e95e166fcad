#pragma once
// SPDX-License-Identifier: MIT

// previous: what a variable was one step ago, y[t] = x[t - 1] with y[0] = 0, within one unroll.
//
// For losses and auxiliary models that compare neighbouring steps of [T, B, F]. A state is not needed for that, so it
// stands outside scans; inside one, carry the variable as a state. The gradient is the shift back, zero at the last
// step.

#include <engram/graph/simple_operation.hpp>

namespace engram {

template <class Backend>
struct previous_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    previous_kernel(const binder<Backend>& b, no_settings)
        : batch(b.batch()), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override {
        for (int r = 0; r < batch; ++r) std::fill_n(out.at(t) + r * out.stride, out.width, real(0));
        for (int r = batch; r < steps * batch; ++r)
            std::copy_n(in.at(t) + (r - batch) * in.stride, in.width, out.at(t) + r * out.stride);
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        for (int r = 0; r < steps * batch; ++r) {
            real* to = d_in.at(t) + r * d_in.stride;
            if (!d_in.accumulate) std::fill_n(to, in.width, real(0));
            if (!d_out || r >= (steps - 1) * batch) continue;
            const real* from = d_out.at(t) + (r + batch) * d_out.stride;
            for (int f = 0; f < in.width; ++f) to[f] += from[f];
        }
    }
    int batch;
    operand<real> in, d_in, out, d_out;
};

/// [T, B, F]: x of the step before; zero in the first step.
template <class Backend>
var<Backend> previous(const std::string& name, const var<Backend>& x) {
    graph<Backend>& g = *x.owner;
    auto op = make_operation<previous_kernel>(g, name, {x}, no_settings{});
    require(g.common_rows({}) == extent::batch, g.full_name(name),
            ": a step of a scan does not see the step before; carry the variable as a state");
    require(g.info(x).rows == extent::sequence, g.full_name(name), ": '", g.info(x).name, "' is [B,", x.width,
            "] and has no steps; a [T,B,F] variable is needed");
    op->row_wise = false;
    return g.add(std::move(op), {x.width}, extent::sequence)[0];
}

}  // namespace engram
