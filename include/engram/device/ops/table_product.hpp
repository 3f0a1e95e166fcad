#pragma once
// SPDX-License-Identifier: MIT

// The product of an embedding and a weight on a device: one product of the table, rows of it copied by token, and their
// gradients gathered by the thread that owns the place (equations: operations/table_product.hpp).
//
// The embedding's own kernel raises the alarm for a token that is out of range; here its row is zero.

#include <string>

#include <engram/device/kernel.hpp>
#include <engram/operations/table_product.hpp>

namespace engram {

namespace internal {

/// Each number of the table looks for the rows that used it: no two threads add to one place, in a fixed order.
template <class Real>
struct embed_gather {
    step_rows<Real> index, d_out;
    int rows;
    Real* d_table;
    bool accumulate;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t entry = i / d_out.width, column = i % d_out.width;
        Real sum = 0;
        for (int r = 0; r < rows; ++r) {
            const Real at = *index.row(r);
            if (at >= 0 && static_cast<int>(at) == entry) sum += d_out.row(r)[column];
        }
        give(d_table[i], accumulate, sum);
    }
};

/// y[r, c] = bias[c], or zero.
template <class Real>
struct start_affine {
    step_rows<Real> y;
    const Real* bias;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / y.width, column = i % y.width;
        y.row(row)[column] = bias ? bias[column] : Real(0);
    }
};

/// total[c] (+)= the sum of column c over all rows: a block a column.
template <class Real>
struct sum_column {
    static constexpr int lanes = 128;
    const Real* x;
    std::ptrdiff_t stride;
    int rows;
    Real* total;
    bool accumulate;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int column) const {
        const Real* const from = x + column;
        const std::ptrdiff_t step = stride;
        const Real sum = block_sum(block, rows, [=](int r) { return from[r * step]; });
        Real* const to = total + column;
        const bool add = accumulate;
        block_for(block, 1, [=](int) { give(*to, add, sum); });
    }
};

/// y[r] = products[token of r].
template <class Real>
struct take_products {
    const Real* products;
    int count;
    step_rows<Real> index, y;
    ENGRAM_HD void operator()(std::ptrdiff_t i) const {
        const std::ptrdiff_t row = i / y.width, column = i % y.width;
        const Real at = *index.row(row);
        const bool there = at >= 0 && at < Real(count);
        y.row(row)[column] = there ? products[static_cast<int>(at) * std::ptrdiff_t{y.width} + column] : Real(0);
    }
};

}  // namespace internal

template <device_backend Backend>
class table_product<Backend> {
public:
    using real = typename Backend::real;
    using table_rows = typename binder<Backend>::table_rows;

    table_product(const binder<Backend>& b, const table_rows& rows, linear weights, int first_row)
        : on_(&b.executor()),
          name_(b.op().name),
          batch_(b.batch()),
          first_row_(first_row),
          count_(b.store()[rows.table].rows),
          inputs_(b.store()[rows.table].columns),
          rows_(rows),
          y_(b.out(0)),
          dy_(b.d_out(0)),
          table_(b.weights(rows.table)),
          weight_(b.weights(weights.weight) + std::ptrdiff_t{first_row} * y_.width),
          bias_(weights.bias.id >= 0 ? b.weights(weights.bias) : nullptr),
          products_(size()),
          sums_(dy_ ? size() : 0) {}

    /// P, from the weights as they are now.
    void multiply() {
        step_rows<real> p;
        p.data = products_.data();
        p.stride = p.width = y_.width;
        on_->launch(name_, std::ptrdiff_t{count_} * y_.width, internal::start_affine<real>{p, bias_});
        on_->product(name_, {table_, inputs_}, {weight_, y_.width}, true, products_.data(), y_.width, count_, y_.width,
                     inputs_);
    }
    /// Rows of P into y.
    void take(int t, int steps) {
        on_->launch(name_, std::ptrdiff_t{steps} * batch_ * y_.width,
                    internal::take_products<real>{products_.data(), count_, {rows_.index, t}, {y_, t}});
    }
    /// G from all rows; dW and d_table.
    void backward(int steps, const operand<real>& dw) {
        on_->launch(name_, std::ptrdiff_t{count_} * y_.width,
                    internal::embed_gather<real>{{rows_.index, 0}, {dy_, 0}, steps * batch_, sums_.data(), false});
        if (dw)
            on_->product(name_, {table_, inputs_, true}, {sums_.data(), y_.width}, dw.accumulate,
                         dw.data + first_row_ * dw.stride, dw.stride, inputs_, y_.width, count_);
        if (rows_.d_table)
            on_->product(name_, {sums_.data(), y_.width}, {weight_, y_.width, true}, rows_.d_table.accumulate,
                         rows_.d_table.data, rows_.d_table.stride, count_, inputs_, y_.width);
    }
    /// d_bias, after backward().
    void sum(const operand<real>& db) {
        on_->launch_blocks(name_, y_.width, internal::sum_column<real>::lanes,
                           internal::sum_column<real>{sums_.data(), y_.width, count_, db.data, db.accumulate});
    }

private:
    std::size_t size() const { return static_cast<std::size_t>(count_) * static_cast<std::size_t>(y_.width); }

    executor<Backend>* on_;
    std::string name_;
    int batch_, first_row_, count_, inputs_;
    table_rows rows_;
    operand<real> y_, dy_;
    const real *table_, *weight_, *bias_;
    typename executor<Backend>::buffer products_, sums_;  // [V, F]
};

}  // namespace engram
