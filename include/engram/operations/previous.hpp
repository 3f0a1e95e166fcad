#pragma once
// SPDX-License-Identifier: MIT

// previous: what a variable was one step ago, y[t] = x[t - 1] with y[0] = 0, within one unroll.
//
// For losses and auxiliary models that compare neighbouring steps of [T, B, F]. A state is not needed for that, so it
// stands outside scans; inside one, carry the variable as a state. The gradient is the shift back, zero at the last
// step.

#include <engram/operations/points.hpp>

namespace engram {

template <class Real>
struct step_before {
    step_rows<Real> in, out;
    int batch;
    ENGRAM_HD void operator()(std::ptrdiff_t row, int column) const {
        out.put(row, column, row < batch ? Real(0) : in.at(row - batch, column));
    }
};

template <class Real>
struct slope_of_step_behind {
    step_rows<Real> d_out, d_in;
    int batch;
    std::ptrdiff_t rows;
    ENGRAM_HD void operator()(std::ptrdiff_t row, int column) const {
        const bool followed = d_out.wanted() && row + batch < rows;
        d_in.put(row, column, followed ? d_out.at(row + batch, column) : Real(0));
    }
};

template <class Backend>
struct previous_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    previous_kernel(const binder<Backend>& b, no_settings)
        : point_kernel<Backend>(b), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override {
        this->each(steps * this->batch, in.width, step_before<real>{{in, t}, {out, t}, this->batch});
    }
    void backward(int t, int steps) override {
        const int rows = steps * this->batch;
        if (d_in) this->each(rows, in.width, slope_of_step_behind<real>{{d_out, t}, {d_in, t}, this->batch, rows});
    }
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
