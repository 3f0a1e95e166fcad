#pragma once
// SPDX-License-Identifier: MIT

// affine: y = b + sum_i x_i W_i, several inputs against one stacked weight.
//
// W is [sum of widths, outputs], its row blocks in the order of the inputs, so a recurrent layer needs no
// concatenation. In a scan the inputs known before the time loop are summed ahead of it over all T * B rows, the loop
// adds the others, and every weight gradient is one product after the backward sweep. A sum runs in one fixed order
// (bias, hoisted inputs, the others) whatever the number of rows, so a plan with T = 1 gives the bits of a plan with T
// = 50. Where the first input in this order is an embedding, its table may be multiplied instead
// (operations/table_product.hpp).

#include <initializer_list>
#include <optional>
#include <vector>

#include <engram/kernels/product.hpp>
#include <engram/operations/table_product.hpp>
#include <engram/operations/weight_rows.hpp>

namespace engram {

template <class Backend>
struct affine_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    affine_kernel(const binder<Backend>& b, linear weights)
        : steps_(b.steps()),
          batch_(b.batch()),
          stepwise_(b.stepwise()),
          y_(b.out(0)),
          dy_(b.d_out(0)),
          bias_(weights.bias.id >= 0 ? &b.store() : nullptr),
          bias_id_(weights.bias) {
        dw_ = b.d_parameter(weights.weight);
        int row = 0;
        for (std::size_t i = 0; i < b.op().inputs.size(); ++i) {
            const int width = b.op().inputs[i].width;
            if (const auto rows = b.looked_up(i)) {
                table_.emplace(b, *rows, weights, row);
                table_ahead_ = b.hoisted(i);
            } else {
                part p{b.in(i), b.d_in(i), {}, b.hoisted(i)};
                p.weights = {b.store(),       weights.weight,          row,       width,
                             steps_ * batch_, static_cast<bool>(p.dx), bool(dw_), work_};
                parts_.push_back(p);
            }
            row += width;
        }
        std::stable_sort(parts_.begin(), parts_.end(),
                         [](const part& a, const part& c) { return a.hoisted > c.hoisted; });
        hoisted_ =
            static_cast<int>(std::count_if(parts_.begin(), parts_.end(), [](const part& p) { return p.hoisted; }));
        if (bias_) db_ = b.d_parameter(weights.bias);
        products_.resize(parts_.size());
    }

    void before() override {
        if (!split()) return;
        if (table_) table_->multiply();
        if (hoisted_ > 0) begin(hoisted_, 0, steps_);
    }
    void forward(int t, int steps) override {
        const int all = static_cast<int>(parts_.size());
        if (!split() && table_) table_->multiply();
        if (split() && hoisted_ > 0)
            sum(hoisted_, all, t, steps, true);
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
            if (p.dx && p.hoisted && split()) send(p, 0, steps_);
        weight_gradients(steps_);
    }

private:
    struct part {
        operand<real> x, dx;
        weight_rows<real> weights;
        bool hoisted;
    };

    bool split() const { return (hoisted_ > 0 || table_ahead_) && steps_ > 1; }

    /// The sums over the table and the first `count` parts.
    void begin(int count, int t, int steps) {
        if (table_) table_->take(t, steps);
        sum(0, count, t, steps, table_.has_value());
    }
    void sum(int first, int last, int t, int steps, bool accumulate) {
        const real* bias = bias_ ? bias_->values(bias_id_) : nullptr;
        for (int i = first; i < last; ++i) {
            const part& p = parts_[static_cast<std::size_t>(i)];
            if (p.weights.paired())
                p.weights.multiply(p.x.at(t), p.x.stride, bias, accumulate || i > first, y_.at(t), y_.stride,
                                   steps * batch_);
            else
                products_[static_cast<std::size_t>(i - first)] = p.weights.part(p.x.at(t), p.x.stride);
        }
        if (last > first && !parts_[0].weights.paired())
            multiply(products_.data(), last - first, bias, accumulate, y_.at(t), y_.stride, steps * batch_);
    }
    void send(const part& p, int t, int steps) {
        p.weights.send(dy_.at(t), dy_.stride, p.dx.accumulate, p.dx.at(t), p.dx.stride, steps * batch_);
    }
    void weight_gradients(int steps) {
        if (!dy_) return;
        if (table_) table_->backward(steps, dw_);
        if (dw_)
            for (const part& p : parts_) {
                if (p.x.step || steps == 1) {
                    p.weights.gradient(p.x.data, p.x.stride, dy_.data, dy_.stride, steps * batch_, dw_.data, dw_.stride,
                                       dw_.accumulate);
                } else {
                    // One row a batch entry meets the gradients of all steps.
                    for (int t = 0; t < steps; ++t)
                        p.weights.gradient(p.x.data, p.x.stride, dy_.at(t), dy_.stride, batch_, dw_.data, dw_.stride,
                                           dw_.accumulate || t > 0);
                }
            }
        if (db_ && table_)
            table_->sum(db_);
        else if (db_)
            sum_rows(dy_.data, dy_.stride, y_.width, steps * batch_, db_.data, db_.accumulate);
    }

    int steps_, batch_;
    bool stepwise_;
    operand<real> y_, dy_;
    parameters<real>* bias_;
    parameter bias_id_;
    product_workspace<real> work_;
    std::vector<part> parts_;
    std::vector<product_part<real>> products_;
    int hoisted_ = 0;
    std::optional<table_product<Backend>> table_;
    bool table_ahead_ = false;
    operand<real> dw_, db_;
};

template <class Backend>
struct affine_operation final : operation<Backend> {
    linear weights;
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        return bind_kernel<affine_kernel<Backend>>(b, weights);
    }
};

/// [T, B, outputs] from inputs whose widths add up to the rows of the weight.
template <class Backend>
var<Backend> affine(const std::string& name, const std::vector<var<Backend>>& inputs, linear weights) {
    require(!inputs.empty(), name, ": an affine map needs an input");
    graph<Backend>& g = *inputs[0].owner;
    auto op = std::make_unique<affine_operation<Backend>>();
    op->name = name;
    op->weights = weights;
    op->splits = true;
    op->takes_tables = true;
    op->parameters = {weights.weight.id};
    if (weights.bias.id >= 0) op->parameters.push_back(weights.bias.id);
    for (const auto& v : inputs) {
        op->inputs.push_back(g.own(name, v));
        // A product sends several rows' gradients at once, and rows that are alike have one place for theirs.
        require(!g.info(v).rows_alike, g.full_name(name), ": '", g.info(v).name,
                "' is made of parameters alone, the same in every row; such rows are for maps");
    }
    const int columns = columns_of(inputs);
    const auto& w = g.store()[weights.weight];
    require(columns == w.rows, g.full_name(name), ": inputs have ", columns, " columns, the weight '", w.name, "' is [",
            w.rows, ",", w.columns, "]");
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {w.columns}, rows)[0];
}

/// The same with inputs that are named here: affine("gates", {x, h}, weights).
template <class Backend>
var<Backend> affine(const std::string& name, std::initializer_list<var<Backend>> inputs, linear weights) {
    return affine(name, std::vector<var<Backend>>(inputs), weights);
}

/// The same with one input.
template <class Backend>
var<Backend> affine(const std::string& name, const var<Backend>& input, linear weights) {
    return affine(name, std::vector<var<Backend>>{input}, weights);
}

}  // namespace engram
