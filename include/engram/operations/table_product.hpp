#pragma once
// SPDX-License-Identifier: MIT

// The product of an embedding and a weight, as rows of the product of its table [V, E] and that weight [E, F]:
//
//   P = bias + table W,  y_r = P_token(r)
//   G_v = sum of dy_r over the rows r of token v,  dW = table^T G,  d_table = G W^T,  d_bias = sum_v G_v
//
// V E F multiply-adds a sweep instead of T B E F: with ten tokens the input of a recurrent layer costs next to nothing.
// A row of P is the chain of multiply-adds that its token's rows of x would be, so y has the same bits; gradients are
// the same sums in another order. Which plans do this: find_lookups in graph/plan.hpp.

#include <engram/core/aligned.hpp>
#include <engram/graph/program.hpp>
#include <engram/operations/weight_rows.hpp>

namespace engram {

template <class Backend>
class table_product {
public:
    using real = typename Backend::real;
    using table_rows = typename binder<Backend>::table_rows;

    /// `first_row` of the weight is where the embedding's columns begin.
    table_product(const binder<Backend>& b, const table_rows& rows, linear weights, int first_row)
        : batch_(b.batch()),
          count_(b.store()[rows.table].rows),
          inputs_(b.store()[rows.table].columns),
          store_(&b.store()),
          rows_(rows),
          bias_(weights.bias),
          y_(b.out(0)),
          dy_(b.d_out(0)),
          products_(size()),
          weights_(b.store(), weights.weight, first_row, inputs_, count_, dy_ && rows_.d_table, bool(dy_), work_) {
        if (dy_) sums_.resize(size());
    }

    table_product(const table_product&) = delete;  // products refer to its workspace

    /// P, from the weights as they are now.
    void multiply() {
        weights_.multiply(store_->values(rows_.table), inputs_, bias_.id >= 0 ? store_->values(bias_) : nullptr, false,
                          products_.data(), y_.width, count_);
    }
    /// Rows of P into y.
    void take(int t, int steps) const {
        each_row(t, steps, [&](int token, int s, int b) {
            std::copy_n(products_.data() + place(token), y_.width, y_.at(s) + b * y_.stride);
        });
    }
    /// G from all rows; dW and d_table.
    void backward(int steps, const operand<real>& dw) {
        std::fill(sums_.begin(), sums_.end(), real(0));
        each_row(0, steps, [&](int token, int s, int b) {
            const real* __restrict from = dy_.at(s) + b * dy_.stride;
            real* __restrict to = sums_.data() + place(token);
            for (int f = 0; f < y_.width; ++f) to[f] += from[f];
        });
        if (dw)
            weights_.gradient(store_->values(rows_.table), inputs_, sums_.data(), y_.width, count_, dw.data, dw.stride,
                              dw.accumulate);
        if (rows_.d_table)
            weights_.send(sums_.data(), y_.width, rows_.d_table.accumulate, rows_.d_table.data, rows_.d_table.stride,
                          count_);
    }
    /// d_bias, after backward().
    void sum(const operand<real>& db) const {
        sum_rows(sums_.data(), y_.width, y_.width, count_, db.data, db.accumulate);
    }

private:
    template <class Body>
    void each_row(int t, int steps, Body body) const {
        for (int s = t; s < t + steps; ++s)
            for (int b = 0; b < batch_; ++b) body(static_cast<int>(rows_.index.at(s)[b * rows_.index.stride]), s, b);
    }
    std::size_t size() const { return static_cast<std::size_t>(count_) * static_cast<std::size_t>(y_.width); }
    std::ptrdiff_t place(int token) const { return std::ptrdiff_t{token} * y_.width; }

    int batch_, count_, inputs_;
    parameters<real>* store_;
    table_rows rows_;
    parameter bias_;
    operand<real> y_, dy_;
    aligned_vector<real> products_, sums_;  // [V, F]
    product_workspace<real> work_;
    weight_rows<real> weights_;
};

}  // namespace engram
