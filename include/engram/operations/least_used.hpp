#pragma once
// SPDX-License-Identifier: MIT

// Least-recently-used access as operations (facts 4.5; equations in kernels/least_used.hpp).
//
//   joint_cosine_scores   M, keys [., R * W] (, written [., 1])              -> [., R * N], as cosine_scores
//   least_used            usage [., N]                                       -> [., R * N]: head r's slot has a one
//   clear_and_add         M, marks and weights [., R * N], add [., R * W]    -> M' [., N * W]
//
// The word W is given; N and R follow from the widths. Ranks and marks are constants; all other gradients go on.

#include <engram/kernels/least_used.hpp>
#include <engram/operations/matrix_memory.hpp>

namespace engram {

/// One epsilon under the root of both squares.
struct joint_norms {
    static constexpr int scratch = 2;
    template <class Real>
    static void compare(const Real* memory, int N, int W, const Real* keys, int R, Real* cosine, Real* key, Real* row) {
        joint_cosine(memory, N, W, keys, R, cosine, key, row);
    }
    template <class Real>
    static void gradient(const Real* memory, int N, int W, const Real* keys, int R, const Real* cosine, const Real* key,
                         const Real* row, const Real* d_cosine, Real* d_memory, Real* d_keys, Real* room) {
        joint_cosine_gradient(memory, N, W, keys, R, cosine, key, row, d_cosine, d_memory, d_keys, room);
    }
};

template <class Backend>
struct joint_cosine_kernel final : cosine_kernel<Backend, joint_norms> {
    using cosine_kernel<Backend, joint_norms>::cosine_kernel;
};

/// [., R * N]: cosine of every key with every slot, guarded by one epsilon under the root of both norms.
template <class Backend>
var<Backend> joint_cosine_scores(const std::string& name, const var<Backend>& memory, const var<Backend>& keys,
                                 int word, const std::vector<var<Backend>>& written = {}, bool by_age = false) {
    return internal::compare_slots<joint_cosine_kernel>(name, memory, keys, word, written, by_age);
}

template <class Backend>
struct least_used_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    least_used_kernel(const binder<Backend>& b, no_settings) : batch(b.batch()), usage(b.in(0)), out(b.out(0)) {}
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            mark_least_used(usage.at(t) + r * usage.stride, usage.width, out.width / usage.width,
                            out.at(t) + r * out.stride);
    }
    int batch;
    operand<real> usage, out;
};

/// [., heads * N]: head r has a one at the slot that is least used but for r others, zeros elsewhere. A constant.
template <class Backend>
var<Backend> least_used(const std::string& name, const var<Backend>& usage, int heads) {
    graph<Backend>& g = *usage.owner;
    require(heads > 0 && heads <= usage.width, g.full_name(name), ": ", heads, " heads need as many slots, there are ",
            usage.width);
    auto op = make_operation<least_used_kernel>(g, name, {stop_gradient(usage)}, no_settings{});
    const extent rows = g.common_rows(op->inputs);
    return stop_gradient(g.add(std::move(op), {heads * usage.width}, rows)[0]);
}

template <class Backend>
struct clear_and_add_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    clear_and_add_kernel(const binder<Backend>& b, const matrix_memory_shape& s)
        : shape(s), batch(b.batch()), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t i = 0; i < 4; ++i) in[i] = b.in(i);
        if (!b.needs_backward()) return;
        d_memory = {b.d_in(0), in[0].width, true};
        d_weights = {b.d_in(2), in[2].width, false};
        d_add = {b.d_in(3), in[3].width, false};
        kept.resize(static_cast<std::size_t>(s.slots));
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            clear_and_add(row(0, t, r), shape.slots, shape.word, row(1, t, r), row(2, t, r), row(3, t, r), shape.heads,
                          out.at(t) + r * out.stride);
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            real *dm = d_memory.begin(t, r), *dw = d_weights.begin(t, r), *da = d_add.begin(t, r);
            clear_and_add_gradient(shape.slots, shape.word, row(1, t, r), row(2, t, r), row(3, t, r), shape.heads,
                                   d_out.at(t) + r * d_out.stride, dm, dw, da, kept.data());
            d_memory.end(t, r);
            d_weights.end(t, r);
            d_add.end(t, r);
        }
    }

private:
    const real* row(int i, int t, int r) const { return in[i].at(t) + r * in[i].stride; }

    matrix_memory_shape shape;
    int batch;
    operand<real> in[4], out, d_out;
    gradient_row<real> d_memory, d_weights, d_add;
    aligned_vector<real> kept;
};

/// [., N * W]: the memory with the marked slots cleared and every head's content added at its weights.
template <class Backend>
var<Backend> clear_and_add(const std::string& name, const var<Backend>& memory, const var<Backend>& marks,
                           const var<Backend>& weights, const var<Backend>& add, int word) {
    graph<Backend>& g = *memory.owner;
    const int slots = memory_slots(g.full_name(name), memory.width, word);
    require(weights.width % slots == 0, g.full_name(name), ": weights of ", weights.width,
            " columns do not divide among the slots of the memory [", slots, ",", word, "]");
    const matrix_memory_shape shape{slots, word, weights.width / slots};
    require(add.width == shape.heads * word && marks.width == weights.width, g.full_name(name), ": ", shape.heads,
            " heads need ", shape.heads * word, " columns to add and ", weights.width, " marks, not ", add.width,
            " and ", marks.width);
    auto op = make_operation<clear_and_add_kernel>(g, name, {memory, stop_gradient(marks), weights, add}, shape);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {memory.width}, rows)[0];
}

}  // namespace engram
