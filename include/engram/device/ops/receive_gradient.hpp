#pragma once
// SPDX-License-Identifier: MIT

// receive_gradient on a device: the host's gradient is added where it belongs.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/receive_gradient.hpp>

namespace engram {

/// value += the sum of x times its gradient over all numbers, by one block.
template <class Real>
struct gradient_product {
    static constexpr int lanes = 128;
    device_rows<Real> in, given;
    int count;
    double* value;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int) const {
        const device_rows<Real> x = in, g = given;
        const Real sum = block_sum(block, count, [=](int i) {
            const int row = i / x.width, column = i % x.width;
            return x.row(row)[column] * g.row(row)[column];
        });
        double* const to = value;
        block_for(block, 1, [=](int) { *to += static_cast<double>(sum); });
    }
};

template <class Real>
struct hand_on {
    device_rows<Real> given, d_in;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_in.width, column = i % d_in.width;
        d_in.take(row, column, given.row(row)[column]);
    }
};

template <device_backend Backend>
struct receive_gradient_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    receive_gradient_kernel(const binder<Backend>& b, no_settings)
        : device_kernel<Backend>(b), in(b.in(0)), given(b.in(1)), d_in(b.d_in(0)), value(b.loss_slot(b.op().name)) {}
    void forward(int t, int steps) override {
        this->on->launch_blocks(this->name, 1, gradient_product<real>::lanes,
                                gradient_product<real>{{in, t}, {given, t}, steps * this->batch * in.width, value});
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        this->launch(steps, in.width, hand_on<real>{{given, t}, {d_in, t}});
    }
    operand<real> in, given, d_in;
    double* value;
};

}  // namespace engram
