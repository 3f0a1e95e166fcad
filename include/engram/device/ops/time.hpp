#pragma once
// SPDX-License-Identifier: MIT

// previous on a device: one thread a number.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/time.hpp>

namespace engram {

template <class Real>
struct previous_forward {
    device_rows<Real> in, out;
    int batch;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / out.width, column = i % out.width;
        out.row(row)[column] = row < batch ? Real(0) : in.row(row - batch)[column];
    }
};

template <class Real>
struct previous_backward {
    device_rows<Real> d_out, d_in;
    int batch;
    std::ptrdiff_t rows;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / d_in.width, column = i % d_in.width;
        const bool followed = d_out.wanted() && row + batch < rows;
        d_in.take(row, column, followed ? d_out.row(row + batch)[column] : Real(0));
    }
};

template <device_backend Backend>
struct previous_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    previous_kernel(const binder<Backend>& b, no_settings)
        : device_kernel<Backend>(b), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {}
    void forward(int t, int steps) override {
        this->launch(steps, out.width, previous_forward<real>{{in, t}, {out, t}, this->batch});
    }
    void backward(int t, int steps) override {
        if (!d_in) return;
        this->launch(steps, in.width,
                     previous_backward<real>{{d_out, t}, {d_in, t}, this->batch, std::ptrdiff_t{steps} * this->batch});
    }
    operand<real> in, d_in, out, d_out;
};

}  // namespace engram
