#pragma once
// SPDX-License-Identifier: MIT

// Rows [first, first + rows) of a weight W [K, n] as a factor of the products of an operation on the host, in the
// precision that its store has chosen (graph/parameters.hpp):
//
//   y (=|+=) x W,  dx (=|+=) dy W^T,  dW (=|+=) x^T dy

#include <algorithm>
#include <type_traits>

#include <engram/core/aligned.hpp>
#include <engram/graph/parameters.hpp>
#include <engram/kernels/product.hpp>

namespace engram {

/// Scratch memory of an operation's products, as much as the largest of them needs.
template <class Real>
struct product_workspace {
    aligned_vector<Real> numbers;
    aligned_vector<std::uint32_t> pairs;
};

template <class Real>
class weight_rows {
public:
    weight_rows() = default;
    /// Packs the rows, or finds them packed; their transpose too where gradients are `sent` to the input. Calls of up
    /// to m rows may follow, gradients among them if it `learns`; the workspace grows to what they need.
    weight_rows(parameters<Real>& store, parameter weight, int first, int rows, int m, bool sent, bool learns,
                product_workspace<Real>& work)
        : first_(first), rows_(rows), columns_(store[weight].columns), work_(&work) {
        if constexpr (can_pair)
            if (store.products() == product_precision::bfloat16) {
                pairs_ = store.paired_forward(weight, first, rows);
                if (sent) pairs_transposed_ = store.paired_transposed(weight, first, rows);
                need(work.pairs, std::max(paired_workspace(rows, m), paired_workspace(sent ? columns_ : 0, m)));
                if (learns) need(work.pairs, transposed_paired_workspace(rows, m));
                return;
            }
        weights_ = store.packed_forward(weight);
        if (sent) transposed_ = store.packed_transposed(weight, first, rows);
        if (learns) need(work.numbers, transposed_workspace<Real>(rows, columns_, m));
    }

    /// Whether products are of bfloat16.
    bool paired() const { return pairs_; }
    /// As one of several addends of multiply(), where they are not.
    product_part<Real> part(const Real* x, std::ptrdiff_t stride) const { return {x, stride, weights_, first_, rows_}; }

    /// y [m, n] = (accumulate ? y : bias or 0) + x W.
    void multiply(const Real* x, std::ptrdiff_t x_stride, const Real* bias, bool accumulate, Real* y,
                  std::ptrdiff_t y_stride, int m) const {
        if constexpr (can_pair)
            if (pairs_)
                return multiply_pairs(x, x_stride, rows_, *pairs_, bias, accumulate, y, y_stride, m,
                                      work_->pairs.data());
        const product_part<Real> one = part(x, x_stride);
        engram::multiply(&one, 1, bias, accumulate, y, y_stride, m);
    }
    /// dx [m, rows] (=|+=) dy W^T.
    void send(const Real* dy, std::ptrdiff_t dy_stride, bool accumulate, Real* dx, std::ptrdiff_t dx_stride,
              int m) const {
        const Real* none = nullptr;
        if constexpr (can_pair)
            if (pairs_)
                return multiply_pairs(dy, dy_stride, columns_, *pairs_transposed_, none, accumulate, dx, dx_stride, m,
                                      work_->pairs.data());
        const product_part<Real> one{dy, dy_stride, transposed_, 0, columns_};
        engram::multiply(&one, 1, none, accumulate, dx, dx_stride, m);
    }
    /// Its rows of dW [K, n] (=|+=) x^T dy over m rows.
    void gradient(const Real* x, std::ptrdiff_t x_stride, const Real* dy, std::ptrdiff_t dy_stride, int m, Real* dw,
                  std::ptrdiff_t dw_stride, bool accumulate) const {
        dw += first_ * dw_stride;
        if constexpr (can_pair)
            if (pairs_)
                return multiply_transposed_pairs(x, x_stride, rows_, dy, dy_stride, columns_, m, dw, dw_stride,
                                                 accumulate, work_->pairs.data());
        multiply_transposed(x, x_stride, rows_, dy, dy_stride, columns_, m, dw, dw_stride, accumulate,
                            work_->numbers.data());
    }

private:
    static constexpr bool can_pair = std::is_same_v<Real, float>;

    template <class Vector>
    static void need(Vector& v, std::ptrdiff_t size) {
        v.resize(std::max(v.size(), static_cast<std::size_t>(size)));
    }

    int first_ = 0, rows_ = 0, columns_ = 0;
    product_workspace<Real>* work_ = nullptr;
    const packed_weights<Real>*weights_ = nullptr, *transposed_ = nullptr;
    const paired_weights *pairs_ = nullptr, *pairs_transposed_ = nullptr;
};

}  // namespace engram
