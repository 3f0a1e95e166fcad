#pragma once
// SPDX-License-Identifier: MIT

// loss: a named, weighted term of what is minimised.

#include <engram/operations/points.hpp>

namespace engram {

/// Sum over all rows, or that sum divided by the number of rows of the whole (unsharded) batch.
enum class reduction { sum, mean };

struct loss_settings {
    double weight;
    reduction reduce;
};

template <class Real>
struct loss_of_row {
    step_rows<Real> in;
    ENGRAM_HD Real operator()(std::ptrdiff_t row, int) const { return in.at(row, 0); }
};

template <class Real>
struct loss_slope {
    step_rows<Real> d_in;
    Real slope;
    ENGRAM_HD void operator()(std::ptrdiff_t row, int) const { d_in.put(row, 0, slope); }
};

template <class Backend>
struct loss_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    loss_kernel(const binder<Backend>& b, loss_settings s)
        : point_kernel<Backend>(b), in(b.in(0)), d_in(b.d_in(0)), value(b.loss_slot(b.op().name)) {
        const double rows = double(b.total_batch()) * (in.step ? b.steps() : 1);
        scale = s.weight / (s.reduce == reduction::mean ? rows : 1.0);
    }
    void forward(int t, int steps) override {
        this->add_sum(steps * this->batch, 1, loss_of_row<real>{{in, t}}, scale, value);
    }
    void backward(int t, int steps) override {
        if (d_in) this->each(steps * this->batch, 1, loss_slope<real>{{d_in, t}, static_cast<real>(scale)});
    }
    operand<real> in, d_in;
    double* value;
    double scale;
};

/// Adds weight * (sum or mean over rows of x [T, B, 1] or [B, 1]) to what is minimised. Not inside a scan's body: use
/// the body's variable after the scan.
template <class Backend>
void add_loss(const std::string& name, const var<Backend>& x, double weight = 1, reduction reduce = reduction::sum) {
    graph<Backend>& g = *x.owner;
    require(x.width == 1, g.full_name(name), ": a loss is one column, not ", x.width);
    auto op = make_operation<loss_kernel>(g, name, {x}, loss_settings{weight, reduce});
    op->is_loss = true;
    require(g.common_rows(op->inputs) == g.info(x).rows, g.full_name(name),
            ": add losses after the scan, not in its body");
    g.add(std::move(op), {}, g.info(x).rows);
}

}  // namespace engram
