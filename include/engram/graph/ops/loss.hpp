#pragma once
// SPDX-License-Identifier: MIT

// loss: a named, weighted term of what is minimised.

#include <engram/graph/simple_operation.hpp>

namespace engram {

/// Sum over all rows, or that sum divided by the number of rows of the whole (unsharded) batch.
enum class reduction { sum, mean };

struct loss_settings {
    double weight;
    reduction reduce;
};

template <class Backend>
struct loss_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    loss_kernel(const binder<Backend>& b, loss_settings s)
        : batch(b.batch()), in(b.in(0)), d_in(b.d_in(0)), value(b.loss_slot(b.op().name)) {
        const double rows = double(b.total_batch()) * (in.step ? b.steps() : 1);
        scale = s.weight / (s.reduce == reduction::mean ? rows : 1.0);
    }
    void forward(int t, int steps) override {
        double sum = 0;
        for (int r = 0; r < steps * batch; ++r) sum += static_cast<double>(in.at(t)[r * in.stride]);
        *value += scale * sum;
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        for (int r = 0; r < steps * batch; ++r) {
            real& d = d_in.at(t)[r * d_in.stride];
            d = d_in.accumulate ? d + static_cast<real>(scale) : static_cast<real>(scale);
        }
    }
    int batch;
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
