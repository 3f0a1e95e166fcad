#pragma once
// SPDX-License-Identifier: MIT

// affine on a device: the bias in every row, then one matrix product an input, added in the order of the host's sum.
//
// Products are the executor's (cuBLAS on CUDA). What is hoisted, split and deferred is as on the host (ops/affine.hpp).

#include <optional>

#include <engram/device/kernel.hpp>
#include <engram/device/ops/table_product.hpp>
#include <engram/operations/affine.hpp>

namespace engram {

template <device_backend Backend>
struct affine_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    affine_kernel(const binder<Backend>& b, linear weights)
        : device_kernel<Backend>(b),
          stepwise_(b.stepwise()),
          y_(b.out(0)),
          dy_(b.d_out(0)),
          weight_(b.weights(weights.weight)),
          bias_(weights.bias.id >= 0 ? b.weights(weights.bias) : nullptr),
          dw_(b.d_parameter(weights.weight)) {
        if (bias_) db_ = b.d_parameter(weights.bias);
        int row = 0;
        for (std::size_t i = 0; i < b.op().inputs.size(); ++i) {
            if (const auto rows = b.looked_up(i)) {
                table_.emplace(b, *rows, weights, row);
                table_ahead_ = b.hoisted(i);
            } else {
                parts_.push_back({b.in(i), b.d_in(i), std::ptrdiff_t{row} * y_.width, b.hoisted(i)});
            }
            row += b.op().inputs[i].width;
        }
        std::stable_sort(parts_.begin(), parts_.end(),
                         [](const part& a, const part& c) { return a.hoisted > c.hoisted; });
        for (const part& p : parts_) hoisted_ += p.hoisted;
    }

    void before() override {
        if (!split()) return;
        if (table_) table_->multiply();
        if (hoisted_ > 0) begin(hoisted_, 0, this->all_steps);
    }
    void forward(int t, int steps) override {
        const int all = static_cast<int>(parts_.size());
        if (!split() && table_) table_->multiply();
        if (split() && hoisted_ > 0)
            sum(hoisted_, all, t, steps);
        else
            begin(all, t, steps);
    }
    void backward(int t, int steps) override {
        for (const part& p : parts_)
            if (p.dx && !(p.hoisted && split())) send(p, t, steps);
        if (!stepwise_) weight_gradients(steps);
    }
    void after() override {
        for (const part& p : parts_)
            if (p.dx && p.hoisted && split()) send(p, 0, this->all_steps);
        weight_gradients(this->all_steps);
    }

private:
    struct part {
        operand<real> x, dx;
        std::ptrdiff_t first;  // its rows' place in the weight
        bool hoisted;
    };

    bool split() const { return (hoisted_ > 0 || table_ahead_) && this->all_steps > 1; }

    /// The sums over the table and the first `count` parts.
    void begin(int count, int t, int steps) {
        if (table_)
            table_->take(t, steps);
        else
            this->launch(steps, y_.width, internal::start_affine<real>{{y_, t}, bias_});
        sum(0, count, t, steps);
    }
    void sum(int first, int last, int t, int steps) {
        for (int i = first; i < last; ++i) {
            const part& p = parts_[static_cast<std::size_t>(i)];
            this->on->product(this->name, {p.x.at(t), p.x.stride}, {weight_ + p.first, y_.width}, true, y_.at(t),
                              y_.stride, steps * this->batch, y_.width, p.x.width);
        }
    }
    void send(const part& p, int t, int steps) {
        this->on->product(this->name, {dy_.at(t), dy_.stride}, {weight_ + p.first, y_.width, true}, p.dx.accumulate,
                          p.dx.at(t), p.dx.stride, steps * this->batch, p.x.width, y_.width);
    }
    void weight_gradients(int steps) {
        if (!dy_) return;
        if (table_) table_->backward(steps, dw_);
        if (dw_)
            for (const part& p : parts_) {
                // One row a batch entry meets the gradients of all steps, one step after the other.
                const int calls = p.x.step ? 1 : steps, rows = steps / calls * this->batch;
                for (int t = 0; t < calls; ++t)
                    this->on->product(this->name, {p.x.data, p.x.stride, true}, {dy_.at(t), dy_.stride},
                                      dw_.accumulate || t > 0, dw_.data + p.first, dw_.stride, p.x.width, y_.width,
                                      rows);
            }
        if (db_ && table_)
            table_->sum(db_);
        else if (db_)
            this->on->launch_blocks(
                this->name, y_.width, internal::sum_column<real>::lanes,
                internal::sum_column<real>{dy_.data, dy_.stride, steps * this->batch, db_.data, db_.accumulate});
    }

    bool stepwise_;
    operand<real> y_, dy_;
    const real *weight_, *bias_;
    operand<real> dw_, db_;
    std::vector<part> parts_;
    int hoisted_ = 0;
    std::optional<table_product<Backend>> table_;
    bool table_ahead_ = false;
};

}  // namespace engram
