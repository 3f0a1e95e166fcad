#pragma once
// SPDX-License-Identifier: MIT

// Numbers of a program or of a parameter store as tensors of xtensor, and back, without a copy; and NPY files as such:
//
//   inputs, states   any shape          as_xtensor(program.input("observation"), {T, B, F})
//   outputs          [T, B, F]          as_xtensor(program, variable)
//   weights          [rows, columns]    as_xtensor(store, "encoder.weight")
//   files            any shape          read_xtensor<float>("observations.npy"), write_npy(path, tensor)
//
// A view lives as long as what it looks at. Values go in through fill(view, tensor), which refuses another shape and
// broadcasts nothing. Host only; engram.hpp leaves this header out (docs/decisions/0012).

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <xtensor/xadapt.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xnoalias.hpp>

#include <engram/core/error.hpp>
#include <engram/graph/parameters.hpp>
#include <engram/io/npy.hpp>

namespace engram {

/// [3,2,5] of a shape, for messages.
template <class Shape>
std::string shape_text(const Shape& shape) {
    std::string all;
    for (const auto extent : shape) {
        if (!all.empty()) all += ",";
        all += std::to_string(extent);
    }
    return message("[", all, "]");
}

/// Numbers that lie densely, row-major, in a shape such as {T, B, F}; throws when their number is another.
template <class Real, std::size_t Rank>
auto as_xtensor(std::span<Real> numbers, const int (&shape)[Rank]) {
    std::array<std::size_t, Rank> extents{};
    std::size_t count = 1;
    for (std::size_t i = 0; i < Rank; ++i) {
        require(shape[i] >= 0, "as_xtensor: an extent of ", shape[i], " in the shape");
        count *= extents[i] = static_cast<std::size_t>(shape[i]);
    }
    require(count == numbers.size(), "as_xtensor: ", numbers.size(), " numbers do not fill ", shape_text(extents));
    return xt::adapt<xt::layout_type::row_major>(numbers.data(), numbers.size(), xt::no_ownership(), extents);
}

/// What a program computed of a variable that is among its outputs: [T, B, F]; one without time is the same at every
/// step. On a device a copy, valid until the program runs again.
template <class Program, class Variable>
    requires requires(const Program& p, const Variable& v) {
        p.output(v).stride;
        p.options().batch;
    }
auto as_xtensor(const Program& program, const Variable& variable) {
    const auto shown = program.output(variable);
    const auto T = static_cast<std::size_t>(program.options().steps),
               B = static_cast<std::size_t>(program.options().batch);
    const std::array<std::size_t, 3> shape{T, B, static_cast<std::size_t>(shown.width)};
    const std::array<std::ptrdiff_t, 3> strides{shown.step, shown.stride, 1};
    // xtensor wants the number of elements here, not of the numbers that they are spread over.
    return xt::adapt(shown.data, T * B * shape[2], xt::no_ownership(), shape, strides);
}

/// A parameter to look at: [rows, columns]. Throws with the nearest name when there is none called so.
template <class Real>
auto as_xtensor(const parameters<Real>& store, std::string_view name) {
    const auto& entry = store[store.find(name)];
    return as_xtensor(
        store.flat().subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size())),
        {entry.rows, entry.columns});
}

/// The same to write to, while `edit`, which store.edit() gave, lasts: products see new values when it has ended.
template <class Real>
auto as_xtensor(const parameters<Real>& store, typename parameters<Real>::edit_guard& edit, std::string_view name) {
    const auto& entry = store[store.find(name)];
    return as_xtensor(
        edit.flat().subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size())),
        {entry.rows, entry.columns});
}

/// Writes a tensor, or an expression of one, into a view of its shape; throws otherwise, and then nothing is written.
template <class View, class Tensor>
void fill(View view, const xt::xexpression<Tensor>& from) {
    const auto& values = from.derived_cast();
    require(std::ranges::equal(values.shape(), view.shape()), "fill: a tensor of ", shape_text(values.shape()),
            " does not fit ", shape_text(view.shape()));
    xt::noalias(view) = values;
}

/// An array of NumPy's format, such as those of `sample --episodes`.
template <npy_number Number>
xt::xarray<Number, xt::layout_type::row_major> read_xtensor(const std::string& path) {
    const npy_array<Number> file = read_npy<Number>(path);
    return xt::adapt<xt::layout_type::row_major>(file.values,
                                                 std::vector<std::size_t>(file.shape.begin(), file.shape.end()));
}

/// A tensor, or an expression of one, in NumPy's format; its numbers must be float, std::int32_t or std::uint8_t.
template <class Tensor>
    requires npy_number<typename Tensor::value_type>
void write_npy(const std::string& path, const xt::xexpression<Tensor>& tensor) {
    using number = typename Tensor::value_type;
    const xt::xarray<number, xt::layout_type::row_major> whole = tensor.derived_cast();
    write_npy<number>(path, std::span<const number>(whole.data(), whole.size()),
                      std::vector<int>(whole.shape().begin(), whole.shape().end()));
}

}  // namespace engram
