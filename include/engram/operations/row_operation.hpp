#pragma once
// SPDX-License-Identifier: MIT

// row_operation<Backend, Body>: an operation whose rows are independent, of one body for all backends.
//
//   struct twice {                                        // what the operation computes
//       using settings = no_settings;
//       template <class Real>
//       struct operands {                                 // in the order of its inputs, parameters and outputs
//           input_row<Real> x;
//           output_row<Real> y;
//       };
//       static ENGRAM_HD void forward(auto row, const auto& o, settings) {
//           row.each(o.y.width, [&](auto i) { o.y.put(i, 2 * o.x[i]); });
//       }
//       static ENGRAM_HD void backward(auto row, const auto& o, settings) {
//           row.each(o.y.width, [&](auto i) { o.x.d.put(i, 2 * o.y.d[i]); });
//       }
//   };
//   return add_rows<twice>(g, name, {x}, no_settings{}, {x.width})[0];
//
// What a body may ask of a row is in operations/row.hpp. Optional members of a body:
//
//   pieces(settings, columns)   equal parts of a row, of which the first input has `columns`, that are bodies of their
//                               own, such as heads side by side
//   sums(settings, inputs)      sums that row.sums takes at once
//   slopes(o, i, add)           add(o.w, number) for every parameter: what this row adds to its gradient in column i
//   taken_row(o)                the row of the parameters that this row is about, -1 for none; without it 0
//   index = "index"             uses row.index, and what it calls them
//
// The host calls a body for one row after the other; a device runs a block a row and piece. The gradients of parameters
// are gathered after the rows: on the host row by row, on a device by a block a number, so that no two threads add to
// one place. backward is not called where no input wants a gradient.

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/device/kernel.hpp>
#include <engram/graph/simple_operation.hpp>
#include <engram/operations/members.hpp>
#include <engram/operations/row.hpp>

namespace engram {

namespace internal {

template <class Member>
inline constexpr bool is_weight = false;
template <class Real>
inline constexpr bool is_weight<weight_row<Real>> = true;

template <class Body, class Real>
concept trains_parameters = requires(const typename Body::template operands<Real>& o) {
    Body::slopes(o, 0, [](const auto&, Real) {});
};

template <class Body>
inline constexpr const char* index_kind = "";
template <class Body>
    requires requires {
        Body::index;
    }
inline constexpr const char* index_kind<Body> = Body::index;

template <class Body, class O>
ENGRAM_HD int taken_row(const O& o) {
    if constexpr (requires { Body::taken_row(o); })
        return Body::taken_row(o);
    else
        return 0;
}

/// The operands of a body at one row, and how to come to another one.
template <class Real, class Body>
struct operands_at {
    typename Body::template operands<Real> all;

    ENGRAM_HD void move(std::ptrdiff_t rows, int pieces) {
        for_members(all, [&](auto& member) { move(member, rows, pieces); });
    }

private:
    template <class Member>
    static ENGRAM_HD void move(Member& m, std::ptrdiff_t rows, int pieces) {
        static_cast<row_columns<Real>&>(m).move(rows, pieces);
        if constexpr (requires { m.d; }) m.d.move(rows, pieces);
    }
    static ENGRAM_HD void move(weight_row<Real>&, std::ptrdiff_t, int) {}
    template <template <class> class List>
        requires(std::is_same_v<List<Real>, input_list<Real>> || std::is_same_v<List<Real>, output_list<Real>>)
    static ENGRAM_HD void move(List<Real>& m, std::ptrdiff_t rows, int pieces) {
        for (int k = 0; k < m.count; ++k) move(m.parts[k], rows, pieces);
    }
    template <int Count>
    static ENGRAM_HD void move(input_array<Real, Count>& m, std::ptrdiff_t rows, int pieces) {
        for (int k = 0; k < Count; ++k) move(m.parts[k], rows, pieces);
    }
};

/// What a program has for the operands of a body.
template <class Backend, class Body>
class bound_operands {
    using real = typename Backend::real;
    using columns = row_columns<real>;

public:
    using at_row = operands_at<real, Body>;

    bound_operands(const binder<Backend>& b, const typename Body::settings& settings) : binder_(b) {
        if constexpr (requires { Body::pieces(settings, 0); }) pieces = Body::pieces(settings, b.op().inputs[0].width);
        for_members(first_.all, [&](auto& member) { bind(member); });
        inputs_want &= comes_back_;
        parameters_want &= comes_back_;
    }

    /// The first row from step t on; of a list of inputs in the round `round`.
    at_row at(int t, int round = 0) const {
        at_row o = first_;
        for_members(o.all, [&, k = std::size_t{0}](auto& member) mutable {
            if constexpr (requires { choose(member, round); }) choose(member, round);
            if constexpr (is_weight<std::remove_cvref_t<decltype(member)>> && !device_backend<Backend>)
                member.data = const_cast<real*>(binder_.store().values(parameters_[k++]));
        });
        if (t > 0) for_members(o.all, [=](auto& member) { start(member, t); });
        return o;
    }
    /// A list of inputs is gone through in rounds of input_list::most.
    int rounds() const {
        const int all = static_cast<int>(listed_.size());
        return all == 0 ? 1 : (all + input_list<real>::most - 1) / input_list<real>::most;
    }

    int pieces = 1;
    int entries = 0, width = 0;  // of the parameters
    bool inputs_want = false, parameters_want = false;

private:
    static columns placed(const operand<real>& o, int pieces) {
        if (!o) return {};
        const int width = std::max(1, o.width / pieces);
        return {o.data, o.stride, o.step, width, o.width < pieces ? 0 : width, o.accumulate};
    }
    void bind(input_row<real>& m) {
        static_cast<columns&>(m) = placed(binder_.in(inputs_), pieces);
        m.d = placed(binder_.d_in(inputs_++), pieces);
        inputs_want |= static_cast<bool>(m.d);
    }
    void bind(constant_row<real>& m) {
        if (inputs_ < binder_.op().inputs.size()) static_cast<columns&>(m) = placed(binder_.in(inputs_++), pieces);
    }
    void bind(input_list<real>&) {
        for (int columns_before = 0; inputs_ < binder_.op().inputs.size();) {
            bind(listed_.emplace_back());
            listed_.back().before = columns_before;
            columns_before += listed_.back().width * pieces;
        }
    }
    void bind(weight_row<real>& m) {
        const parameter p{binder_.op().parameters[parameters_.size()]};
        entries = binder_.store()[p].rows;
        m.width = width = binder_.store()[p].columns;
        if constexpr (device_backend<Backend>) m.data = const_cast<real*>(binder_.weights(p));
        m.d = placed(binder_.d_parameter(p), 1);
        parameters_want |= static_cast<bool>(m.d);
        parameters_.push_back(p);
    }
    void bind(output_row<real>& m) {
        static_cast<columns&>(m) = placed(binder_.out(outputs_), pieces);
        m.d = placed(binder_.d_out(outputs_++), pieces);
        comes_back_ |= static_cast<bool>(m.d);
    }
    void bind(output_list<real>&) {
        while (outputs_ < binder_.op().outputs.size()) bind(listed_outputs_.emplace_back());
    }
    template <int Count>
    void bind(kept_row<real, Count>& m) {
        const std::ptrdiff_t row = std::ptrdiff_t{Count} * pieces, step = row * binder_.batch();
        room_ = typename executor<Backend>::buffer(static_cast<std::size_t>(step * binder_.steps()));
        static_cast<columns&>(m) = {room_.data(), row, step, Count, Count, false};
    }
    template <int Count>
    void bind(input_array<real, Count>& m) {
        for (auto& one : m.parts) bind(one);
    }

    void choose(input_list<real>& m, int round) const {
        m.first = round * input_list<real>::most;
        m.all = static_cast<int>(listed_.size());
        m.count = std::min(m.all - m.first, input_list<real>::most);
        std::copy_n(listed_.begin() + m.first, m.count, m.parts);
    }

    void choose(output_list<real>& m, int round) const {
        m.first = round * input_list<real>::most;
        m.count = std::min(static_cast<int>(listed_outputs_.size()) - m.first, input_list<real>::most);
        std::copy_n(listed_outputs_.begin() + m.first, m.count, m.parts);
    }

    template <class Member>
    static void start(Member& m, int t) {
        if (m) m.data += t * m.step;
        if constexpr (requires { m.d; })
            if (m.d) m.d.data += t * m.d.step;
    }
    static void start(weight_row<real>&, int) {}
    template <template <class> class List>
        requires(std::is_same_v<List<real>, input_list<real>> || std::is_same_v<List<real>, output_list<real>>)
    static void start(List<real>& m, int t) {
        for (int k = 0; k < m.count; ++k) start(m.parts[k], t);
    }
    template <int Count>
    static void start(input_array<real, Count>& m, int t) {
        for (auto& one : m.parts) start(one, t);
    }

    binder<Backend> binder_;
    at_row first_;
    std::vector<listed_input<real>> listed_;
    std::vector<output_row<real>> listed_outputs_;
    std::vector<parameter> parameters_;
    std::size_t inputs_ = 0, outputs_ = 0;
    typename executor<Backend>::buffer room_;
    bool comes_back_ = false;  // some output has a gradient
};

template <class Body, bool Backward, class Row, class O>
ENGRAM_HD void run_body(Row row, const O& o, const typename Body::settings& s) {
    if constexpr (!Backward)
        Body::forward(row, o, s);
    else if constexpr (requires { Body::backward(row, o, s); })
        Body::backward(row, o, s);
}

/// The kernel on the host.
template <class Backend, class Body>
struct row_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    row_kernel(const binder<Backend>& b, const typename Body::settings& s)
        : name(b.op().name), settings(s), operands(b, s), steps(b.steps()), batch(b.batch()), stepwise(b.stepwise()) {
        if constexpr (requires { Body::sums(s, 0); })
            room.resize(static_cast<std::size_t>(Body::sums(s, static_cast<int>(b.op().inputs.size()))));
    }
    void forward(int t, int count) override {
        for (int round = 0; round < operands.rounds(); ++round) run<false>(operands.at(t, round), count * batch);
    }
    void backward(int t, int count) override {
        for (int round = 0; operands.inputs_want && round < operands.rounds(); ++round)
            run<true>(operands.at(t, round), count * batch);
        if constexpr (trains_parameters<Body, real>)
            if (!stepwise) gather(count * batch);
    }
    void after() override {
        if constexpr (trains_parameters<Body, real>) gather(steps * batch);
    }

private:
    // Flat, since packs must not leave the registers between a body and its lambdas.
    template <bool Backward>
    [[gnu::flatten]] void run(operands_at<real, Body> o, int rows) {
        const host_row<real> row(name, index_kind<Body>, room.data());
        const typename Body::settings chosen = settings;
        constexpr bool whole = !requires {
            Body::pieces(chosen, 0);
        };
        const int pieces = whole ? 1 : operands.pieces;
        for (; rows > 0; --rows, o.move(1, whole ? 0 : -pieces))
            for (int piece = 0; piece < pieces; ++piece) {
                run_body<Body, Backward>(row, o.all, chosen);
                if (!whole) o.move(0, 1);
            }
    }
    [[gnu::flatten]] void gather(int rows) requires trains_parameters<Body, real> {
        if (!operands.parameters_want) return;
        auto o = operands.at(0);
        for_members(o.all, [&](auto& member) {
            if constexpr (is_weight<std::remove_cvref_t<decltype(member)>>)
                if (member.d && !std::exchange(member.d.accumulate, true))
                    std::fill_n(member.d.data, std::ptrdiff_t{operands.entries} * operands.width, real(0));
        });
        const host_row<real> row(name);
        for (; rows > 0; --rows, o.move(1, 0))
            if (const int entry = taken_row<Body>(o.all); entry >= 0)
                row.each(operands.width, [&](auto i) {
                    Body::slopes(o.all, i, [&](const weight_row<real>& w, pack<real> slope) {
                        w.d.put(i + entry * operands.width, slope);
                    });
                });
    }

    std::string name;
    typename Body::settings settings;
    bound_operands<Backend, Body> operands;
    int steps, batch;
    bool stepwise;
    aligned_vector<pack<real>> room;
};

/// A block a row and piece.
template <class Real, class Body, bool Backward>
struct row_block {
    static constexpr int lanes = 32;
    operands_at<Real, Body> first;
    typename Body::settings settings;
    int pieces;
    int* alarm;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        operands_at<Real, Body> here = first;
        here.move(index / pieces, index % pieces);
        run_body<Body, Backward>(block_row<Block>(block, alarm), here.all, settings);
    }
};

/// A block a number of the parameters, which looks for the rows that add to it.
template <class Real, class Body>
struct gather_block {
    static constexpr int lanes = 128;
    operands_at<Real, Body> first;
    int rows, width;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int entry = index / width, column = index % width;
        operands_at<Real, Body> gradients = first;
        for_members(gradients.all, [&](auto& member) {
            if constexpr (is_weight<std::remove_cvref_t<decltype(member)>>) {
                if (!member.d) return;
                const Real sum = block_sum(block, rows, [&](int r) {
                    operands_at<Real, Body> here = first;
                    here.move(r, 0);
                    Real slope = 0;
                    if (taken_row<Body>(here.all) == entry)
                        Body::slopes(here.all, column, [&](const weight_row<Real>& w, Real by) {
                            if (w.d.data == member.d.data) slope = by;
                        });
                    return slope;
                });
                block_for(block, 1, [&](int) { member.d.put(index, sum); });
            }
        });
    }
};

template <device_backend Backend, class Body>
struct row_kernel<Backend, Body> final : device_kernel<Backend> {
    using real = typename Backend::real;

    row_kernel(const binder<Backend>& b, const typename Body::settings& s)
        : device_kernel<Backend>(b), settings(s), operands(b, s), stepwise(b.stepwise()) {
        if constexpr (requires { Body::sums(s, 0); }) sums = Body::sums(s, static_cast<int>(b.op().inputs.size()));
        if constexpr (requires { Body::index; }) alarm = b.alarm(std::string("an ") + Body::index + " is out of range");
    }
    void forward(int t, int steps) override { run<false>(t, steps); }
    void backward(int t, int steps) override {
        if (operands.inputs_want) run<true>(t, steps);
        if constexpr (trains_parameters<Body, real>)
            if (!stepwise) gather(steps);
    }
    void after() override {
        if constexpr (trains_parameters<Body, real>) gather(this->all_steps);
    }

private:
    template <bool Backward>
    void run(int t, int steps) {
        for (int round = 0; round < operands.rounds(); ++round)
            this->launch_blocks(
                steps, operands.pieces, std::max(sums, 1) * row_block<real, Body, Backward>::lanes,
                row_block<real, Body, Backward>{operands.at(t, round), settings, operands.pieces, alarm});
    }
    void gather(int steps) {
        if (operands.parameters_want)
            this->on->launch_blocks(this->name, std::ptrdiff_t{operands.entries} * operands.width,
                                    gather_block<real, Body>::lanes,
                                    gather_block<real, Body>{operands.at(0), steps * this->batch, operands.width});
    }

    typename Body::settings settings;
    bound_operands<Backend, Body> operands;
    bool stepwise;
    int sums = 0;
    int* alarm = nullptr;
};

}  // namespace internal

/// An operation of a trace that a body computes row by row.
template <class Backend, class Body>
struct row_operation final : operation<Backend> {
    typename Body::settings settings;
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        return std::make_unique<internal::row_kernel<Backend, Body>>(b, settings);
    }
};

/// Traces Body of `inputs`; its outputs have the columns `widths`, its parameters are in the order of its operands.
template <class Body, class Backend>
std::vector<var<Backend>> add_rows(graph<Backend>& g, const std::string& name, const std::vector<var<Backend>>& inputs,
                                   const typename Body::settings& settings, const std::vector<int>& widths,
                                   const std::vector<parameter>& parameters = {},
                                   const std::type_identity_t<std::function<void(operation<Backend>&)>>& mark = {}) {
    auto op = std::make_unique<row_operation<Backend, Body>>();
    op->name = name;
    op->settings = settings;
    for (const var<Backend>& v : inputs) op->inputs.push_back(g.own(name, v));
    for (const parameter p : parameters) op->parameters.push_back(p.id);
    if (mark) mark(*op);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), widths, rows);
}

}  // namespace engram
