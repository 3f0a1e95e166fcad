#pragma once
// SPDX-License-Identifier: MIT

// receive_gradient: the gradient at a variable comes from outside, for a model whose loss another program computes.
//
// The term that is minimised is sum(x * g), with g an input of x's shape: its gradient at x is g. A program that reads
// x of this one writes what it found there (program::gradient_of of its own input) into g between forward() and
// backward(). The value of the term means nothing to a run; it is what makes the operation one like any other, central
// differences included.

#include <engram/operations/points.hpp>

namespace engram {

template <class Real>
struct gradient_product {
    step_rows<Real> in, given;
    ENGRAM_HD Real operator()(std::ptrdiff_t row, int column) const {
        return in.at(row, column) * given.at(row, column);
    }
};

template <class Real>
struct handed_on {
    step_rows<Real> given, d_in;
    ENGRAM_HD void operator()(std::ptrdiff_t row, int column) const { d_in.put(row, column, given.at(row, column)); }
};

template <class Backend>
struct receive_gradient_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    receive_gradient_kernel(const binder<Backend>& b, no_settings)
        : point_kernel<Backend>(b), in(b.in(0)), given(b.in(1)), d_in(b.d_in(0)), value(b.loss_slot(b.op().name)) {}
    void forward(int t, int steps) override {
        this->add_sum(steps * this->batch, in.width, gradient_product<real>{{in, t}, {given, t}}, 1, value);
    }
    void backward(int t, int steps) override {
        if (d_in) this->each(steps * this->batch, in.width, handed_on<real>{{given, t}, {d_in, t}});
    }
    operand<real> in, given, d_in;
    double* value;
};

/// Adds an input called `name`, of the shape of x, that holds the gradient at x. Not inside a scan's body.
template <class Backend>
void receive_gradient(const std::string& name, const var<Backend>& x) {
    graph<Backend>& g = *x.owner;
    const auto given = g.input(name, x.width, g.info(x).rows);
    auto op = make_operation<receive_gradient_kernel>(g, name, {x, stop_gradient(given)}, no_settings{});
    op->is_loss = true;
    require(g.common_rows({}) == extent::batch, g.full_name(name), ": add it after the scan, not in its body");
    g.add(std::move(op), {}, g.info(x).rows);
}

}  // namespace engram
