#pragma once
// SPDX-License-Identifier: MIT

// Causal attention within episodes on a device (equations: kernels/attention.hpp).
//
// Scores of all pairs of steps are kept, [B, heads, T, T]: one batched product a head makes them, a block a query turns
// them into weights and back into slopes, three more products make the gradients. Queries and keys are copies, scaled
// and, if positions are rotary, turned.

#include <engram/device/kernel.hpp>
#include <engram/operations/attention.hpp>

namespace engram {

namespace internal {

/// to (+)= from times `scale`, every pair of columns (f, f + d/2) of a head turned by its step's angle, or back.
template <class Real>
struct turn_heads {
    step_rows<Real> from, to;
    operand<Real> reset;
    int batch, width;
    bool rotary, back;
    Real scale;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / to.width;
        const int column = static_cast<int>(i % to.width), within = column % width, half = width / 2;
        const Real* const x = from.row(row) + (column - within);
        Real turned = x[within];
        if (rotary) {
            const int t = static_cast<int>(row / batch), f = within % half;
            const int n = t - episode_start(reset, t, row % batch);
            const double angle = n * std::pow(10000.0, -2.0 * f / width);
            const Real c = static_cast<Real>(std::cos(angle)),
                       s = static_cast<Real>(back ? -std::sin(angle) : std::sin(angle));
            turned = within < half ? x[f] * c - x[f + half] * s : x[f] * s + x[f + half] * c;
        }
        to.put(row, column, turned * scale);
    }
};

/// Row (b, h, t) of scores [B, heads, T, T] becomes weights: softmax over the steps of the episode up to t.
template <class Real>
struct attention_weights {
    static constexpr int lanes = 32;
    Real* scores;
    operand<Real> reset;
    int steps, heads;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int t = index % steps, first = episode_start(reset, t, index / steps / heads), n = t - first + 1;
        Real *const row = scores + std::ptrdiff_t{index} * steps, *const s = row + first;
        const Real top = block_max(block, n, [=](int i) { return s[i]; });
        const Real sum = block_sum(block, n, [=](int i) { return s[i] = exp(s[i] - top); });
        block_for(block, steps, [=](int i) { row[i] = i < first || i > t ? Real(0) : row[i] / sum; });
    }
};

/// Slopes of the weights become slopes of the scores: p (d - sum p d).
template <class Real>
struct attention_slopes {
    static constexpr int lanes = 32;
    const Real* weights;
    Real* slopes;
    int steps;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const Real* const p = weights + std::ptrdiff_t{index} * steps;
        Real* const d = slopes + std::ptrdiff_t{index} * steps;
        const Real mean = block_sum(block, steps, [=](int i) { return p[i] * d[i]; });
        block_for(block, steps, [=](int i) { d[i] = p[i] * (d[i] - mean); });
    }
};

}  // namespace internal

template <device_backend Backend>
struct attention_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    attention_kernel(const binder<Backend>& b, const attention_settings& s)
        : device_kernel<Backend>(b),
          heads(s.heads),
          width(b.in(0).width / s.heads),
          rotary(s.rotary),
          v(b.in(2)),
          reset(b.in(3)),
          d_v(b.d_in(2)),
          y(b.out(0)),
          d_y(b.d_out(0)) {
        require(!rotary || width % 2 == 0, this->name, ": rotary positions turn pairs of columns, ", width,
                " columns a head have a single one");
        const auto rows = static_cast<std::size_t>(b.steps()) * static_cast<std::size_t>(b.batch());
        const auto pairs = rows * static_cast<std::size_t>(heads) * static_cast<std::size_t>(b.steps());
        const std::size_t numbers_of_all = rows * static_cast<std::size_t>(b.in(0).width);
        for (int i = 0; i < 2; ++i) {
            x[i] = b.in(static_cast<std::size_t>(i));
            dx[i] = b.d_in(static_cast<std::size_t>(i));
            turned[i] = numbers(numbers_of_all);
        }
        weights = numbers(pairs);
        if (!b.needs_backward()) return;
        slopes = numbers(pairs);
        d_turned = numbers(numbers_of_all);
    }

    void forward(int, int) override {
        for (int i = 0; i < 2; ++i) turn(x[i], copy_of(turned[i]), i == 0, false);
        products([&](int h) { scores_of(h, weights.data(), copy_of(turned[0]), copy_of(turned[1])); });
        this->launch_blocks(this->all_steps, heads, 32,
                            internal::attention_weights<real>{weights.data(), reset, this->all_steps, heads});
        products([&](int h) { mixed(h, weights.data(), false, v, y, false); });
    }
    void backward(int, int) override {
        if (!d_y) return;
        products([&](int h) { scores_of(h, slopes.data(), d_y, v); });
        if (d_v) products([&](int h) { mixed(h, weights.data(), true, d_y, d_v, d_v.accumulate); });
        this->launch_blocks(this->all_steps, heads, 32,
                            internal::attention_slopes<real>{weights.data(), slopes.data(), this->all_steps});
        for (int i = 0; i < 2; ++i) {
            if (!dx[i]) continue;
            products([&](int h) { mixed(h, slopes.data(), i == 1, copy_of(turned[1 - i]), copy_of(d_turned), false); });
            turn(copy_of(d_turned), dx[i], i == 0, true);
        }
    }

private:
    using numbers = typename executor<Backend>::buffer;

    template <class Product>
    void products(Product product) {
        for (int h = 0; h < heads; ++h) product(h);
    }
    /// A dense copy [T, B, F] as an operand.
    operand<real> copy_of(numbers& of) const {
        const int F = heads * width;
        return {of.data(), F, std::ptrdiff_t{F} * this->batch, F, false};
    }
    void turn(const operand<real>& from, const operand<real>& to, bool queries, bool back) {
        const real scale = queries ? static_cast<real>(1 / std::sqrt(static_cast<double>(width))) : real(1);
        this->launch(this->all_steps, heads * width,
                     internal::turn_heads<real>{{from, 0}, {to, 0}, reset, this->batch, width, rotary, back, scale});
    }
    std::ptrdiff_t block_of(int h) const { return std::ptrdiff_t{h} * this->all_steps * this->all_steps; }
    /// to [T, T] = a b^T of head h of every row.
    void scores_of(int h, real* to, const operand<real>& a, const operand<real>& b) {
        const int T = this->all_steps, first = h * width;
        this->on->products(this->name, this->batch, {a.data + first, a.step}, a.stride, {b.data + first, b.step, true},
                           b.stride, false, to + block_of(h), T, block_of(heads), T, T, width);
    }
    /// to [T, d] (+)= m b of head h of every row, m [T, T] or its transpose.
    void mixed(int h, const real* m, bool across, const operand<real>& b, const operand<real>& to, bool add) {
        const int T = this->all_steps, first = h * width;
        this->on->products(this->name, this->batch, {m + block_of(h), T, across}, block_of(heads),
                           {b.data + first, b.step}, b.stride, add, to.data + first, to.step, to.stride, T, width, T);
    }

    int heads, width;
    bool rotary;
    operand<real> x[2], dx[2], v, reset, d_v, y, d_y;
    numbers turned[2], weights, slopes, d_turned;
};

}  // namespace engram
