#pragma once
// SPDX-License-Identifier: MIT

// loss on a device: one block adds up all rows.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/loss.hpp>

namespace engram {

template <class Real>
struct loss_sum {
    static constexpr int lanes = 128;
    device_rows<Real> in;
    int rows;
    double scale;
    double* value;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int) const {
        const device_rows<Real> x = in;
        const Real sum = block_sum(block, rows, [=](int r) { return *x.row(r); });
        double* const to = value;
        const double by = scale;
        block_for(block, 1, [=](int) { *to += by * static_cast<double>(sum); });
    }
};

template <class Real>
struct loss_slope {
    device_rows<Real> d_in;
    Real scale;
    ENGRAM_HD void operator()(std::ptrdiff_t row) const { d_in.take(row, 0, scale); }
};

template <device_backend Backend>
struct loss_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    loss_kernel(const binder<Backend>& b, loss_settings s)
        : device_kernel<Backend>(b), in(b.in(0)), d_in(b.d_in(0)), value(b.loss_slot(b.op().name)) {
        const double rows = double(b.total_batch()) * (in.step ? b.steps() : 1);
        scale = s.weight / (s.reduce == reduction::mean ? rows : 1.0);
    }
    void forward(int t, int steps) override {
        this->on->launch_blocks(this->name, 1, loss_sum<real>::lanes,
                                loss_sum<real>{{in, t}, steps * this->batch, scale, value});
    }
    void backward(int t, int steps) override {
        if (d_in) this->launch(steps, 1, loss_slope<real>{{d_in, t}, static_cast<real>(scale)});
    }
    operand<real> in, d_in;
    double* value;
    double scale;
};

}  // namespace engram
