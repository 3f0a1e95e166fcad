#pragma once
// SPDX-License-Identifier: MIT

// layer_norm on a device: a block a row, and a block a column for the gradients of gain and bias.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/layer_norm.hpp>

namespace engram {

template <class Real>
struct normalise_row {
    static constexpr int lanes = 32;
    device_rows<Real> x, y;
    const Real *gain, *bias;
    Real* moments;  // [rows, 2]: mean, 1 / deviation
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int row) const {
        const int n = x.width;
        const Real *const from = x.row(row), *const by = gain, *const plus = bias;
        Real *const to = y.row(row), *const kept = moments + 2 * std::ptrdiff_t{row};
        const Real mean = block_sum(block, n, [=](int c) { return from[c]; }) / Real(n);
        const Real square = block_sum(block, n, [=](int c) { return (from[c] - mean) * (from[c] - mean); });
        const Real scale = 1 / sqrt(square / Real(n) + Real(1e-5));
        block_for(block, n, [=](int c) { to[c] = (from[c] - mean) * scale * by[c] + plus[c]; });
        block_for(block, 1, [=](int) {
            kept[0] = mean;
            kept[1] = scale;
        });
    }
};

template <class Real>
struct normalise_row_gradient {
    static constexpr int lanes = 32;
    device_rows<Real> x, dy, dx;
    const Real *gain, *moments;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int row) const {
        const int n = x.width;
        const Real *const from = x.row(row), *const slope = dy.row(row), *const by = gain;
        const Real mean = moments[2 * std::ptrdiff_t{row}], scale = moments[2 * std::ptrdiff_t{row} + 1];
        const Real level = block_sum(block, n, [=](int c) { return slope[c] * by[c]; }) / Real(n);
        const Real tilt =
            block_sum(block, n, [=](int c) { return slope[c] * by[c] * (from[c] - mean) * scale; }) / Real(n);
        const device_rows<Real> to = dx;
        block_for(block, n, [=](int c) {
            to.take(row, c, (slope[c] * by[c] - level - (from[c] - mean) * scale * tilt) * scale);
        });
    }
};

template <class Real>
struct gather_norm_slopes {
    static constexpr int lanes = 128;
    device_rows<Real> x, dy;
    const Real* moments;
    int rows;
    operand<Real> d_gain, d_bias;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int c) const {
        const device_rows<Real> from = x, slope = dy;
        const Real* const kept = moments;
        const Real by_gain = block_sum(
            block, rows, [=](int r) { return slope.row(r)[c] * (from.row(r)[c] - kept[2 * r]) * kept[2 * r + 1]; });
        const Real by_bias = block_sum(block, rows, [=](int r) { return slope.row(r)[c]; });
        const operand<Real> gain = d_gain, bias = d_bias;
        block_for(block, 1, [=](int) {
            if (gain) give(gain.data[c], gain.accumulate, by_gain);
            if (bias) give(bias.data[c], bias.accumulate, by_bias);
        });
    }
};

template <device_backend Backend>
struct layer_norm_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    layer_norm_kernel(const binder<Backend>& b, const layer_norm_weights& w)
        : device_kernel<Backend>(b),
          stepwise(b.stepwise()),
          x(b.in(0)),
          dx(b.d_in(0)),
          y(b.out(0)),
          dy(b.d_out(0)),
          gain(b.weights(w.gain)),
          bias(b.weights(w.bias)),
          d_gain(b.d_parameter(w.gain)),
          d_bias(b.d_parameter(w.bias)),
          moments(2 * static_cast<std::size_t>(b.steps()) * static_cast<std::size_t>(b.batch())) {}
    void forward(int t, int steps) override {
        this->launch_blocks(steps, 1, 32, normalise_row<real>{{x, t}, {y, t}, gain, bias, moments_of(t)});
    }
    void backward(int t, int steps) override {
        if (!dy) return;
        if (dx)
            this->launch_blocks(steps, 1, 32,
                                normalise_row_gradient<real>{{x, t}, {dy, t}, {dx, t}, gain, moments_of(t)});
        if (!stepwise) gather(steps);
    }
    void after() override {
        if (dy) gather(this->all_steps);
    }

private:
    real* moments_of(int t) { return moments.data() + 2 * std::ptrdiff_t{t} * this->batch; }
    void gather(int steps) {
        this->on->launch_blocks(
            this->name, x.width, 128,
            gather_norm_slopes<real>{{x, 0}, {dy, 0}, moments_of(0), steps * this->batch, d_gain, d_bias});
    }
    bool stepwise;
    operand<real> x, dx, y, dy;
    const real *gain, *bias;
    operand<real> d_gain, d_bias;
    typename executor<Backend>::buffer moments;
};

}  // namespace engram
