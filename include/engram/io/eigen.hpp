#pragma once
// SPDX-License-Identifier: MIT

// Numbers of a program or of a parameter store as matrices of Eigen, and back, without a copy:
//
//   inputs, states   [T * B, F]         as_eigen(program.input("observation"), F)
//   outputs          [T * B, F]         as_eigen(program, variable), row t * B + b
//   weights          [rows, columns]    as_eigen(store, "encoder.weight"), and to write as_eigen(store, edit, ...)
//
// A view lives as long as what it looks at. Eigen does not check shapes in a release build, so values go in through
// fill(view, matrix), which does. Products inside the engine are its own (docs/decisions/0012): this header is for what
// lies before and behind it, and engram.hpp leaves it out.

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>
#include <type_traits>

#include <Eigen/Core>

#include <engram/core/error.hpp>
#include <engram/graph/parameters.hpp>

namespace engram {

/// A row-major matrix that lies elsewhere; `eigen_view<const float>` cannot be written to.
template <class Real>
using eigen_view = Eigen::Map<
    std::conditional_t<std::is_const_v<Real>,
                       const Eigen::Matrix<std::remove_const_t<Real>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>,
                       Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
    Eigen::Unaligned, Eigen::OuterStride<>>;

/// Numbers that lie densely as rows of `columns`; throws when a row would be incomplete.
template <class Real>
eigen_view<Real> as_eigen(std::span<Real> numbers, int columns) {
    const auto count = static_cast<std::ptrdiff_t>(numbers.size());
    require(columns > 0 && count % columns == 0, "as_eigen: ", count, " numbers do not make whole rows of ", columns);
    return {numbers.data(), count / columns, columns, Eigen::OuterStride<>(columns)};
}

/// What a program computed of a variable that is among its outputs: [T * B, F], or [B, F] of one without time. On a
/// device a copy, valid until the program runs again.
template <class Program, class Variable>
    requires requires(const Program& p, const Variable& v) {
        p.output(v).stride;
        p.options().batch;
    }
eigen_view<const typename Program::real> as_eigen(const Program& program, const Variable& variable) {
    const auto shown = program.output(variable);
    const auto& sizes = program.options();
    const std::ptrdiff_t rows = std::ptrdiff_t{sizes.batch} * (shown.step == 0 ? 1 : sizes.steps);
    return {shown.data, rows, shown.width, Eigen::OuterStride<>(shown.stride)};
}

/// A parameter to look at: [rows, columns]. Throws with the nearest name when there is none called so.
template <class Real>
eigen_view<const Real> as_eigen(const parameters<Real>& store, std::string_view name) {
    const parameter p = store.find(name);
    return {store.values(p), store[p].rows, store[p].columns, Eigen::OuterStride<>(store[p].columns)};
}

/// The same to write to, while `edit`, which store.edit() gave, lasts: products see new values when it has ended.
template <class Real>
eigen_view<Real> as_eigen(const parameters<Real>& store, typename parameters<Real>::edit_guard& edit,
                          std::string_view name) {
    const parameter p = store.find(name);
    return {edit.values(p), store[p].rows, store[p].columns, Eigen::OuterStride<>(store[p].columns)};
}

/// Writes a matrix, or an expression of one, into a view of its shape; throws otherwise, and then nothing is written.
template <class View, class Matrix>
void fill(View view, const Eigen::MatrixBase<Matrix>& from) {
    require(from.rows() == view.rows() && from.cols() == view.cols(), "fill: a matrix of [", from.rows(), ",",
            from.cols(), "] does not fit [", view.rows(), ",", view.cols(), "]");
    view = from;
}

}  // namespace engram
