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
//   puts_back = true            backward undoes what forward did to its first input where its last output lies there,
//   and
//                               is called also where no input wants a gradient
//   lanes = 256                 of a device's block, where rows are wide and nothing is summed up; without it 32
//   whole_column = true         its row is a column of the unroll: inputs and outputs are [T, B, 1], seen as one row of
//                               T B numbers, a step after the other
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

/// What slopes() calls. To nvcc 13 a lambda in a requirement is never satisfied.
struct body_of_a_slope {
    template <class Weights, class Real>
    void operator()(const Weights&, Real) const {}
};

template <class Body, class Real>
concept trains_parameters = requires(const typename Body::template operands<Real>& o) {
    Body::slopes(o, 0, body_of_a_slope{});
};

template <class Body>
inline constexpr const char* index_kind = "";
template <class Body>
    requires requires {
        Body::index;
    }
inline constexpr const char* index_kind<Body> = Body::index;

template <class Body>
concept in_pieces = requires(const typename Body::settings& s) {
    Body::pieces(s, 0);
};

/// Whether backward has something to do besides gradients.
template <class Body>
inline constexpr bool always_goes_back = false;
template <class Body>
    requires requires {
        Body::puts_back;
    }
inline constexpr bool always_goes_back<Body> = Body::puts_back;

/// Whether its one row is a column over all steps and batch rows.
template <class Body>
inline constexpr bool of_a_column = false;
template <class Body>
    requires requires {
        Body::whole_column;
    }
inline constexpr bool of_a_column<Body> = Body::whole_column;

/// Lanes of a device's block.
template <class Body>
inline constexpr int lanes_of_rows = of_a_column<Body> ? 256 : 32;
template <class Body>
    requires requires {
        Body::lanes;
    }
inline constexpr int lanes_of_rows<Body> = Body::lanes;

template <class Body, class O>
ENGRAM_HD int taken_row(const O& o) {
    if constexpr (requires { Body::taken_row(o); })
        return Body::taken_row(o);
    else
        return 0;
}

/// Whether some of the operands are a list.
template <class Operands>
consteval bool has_lists() {
    Operands all{};
    bool found = false;
    for_members(all, [&](auto& member) {
        found = found || requires {
            member.first;
        };
    });
    return found;
}

/// visit(columns) for all that a member has at a row; a parameter has nothing there.
template <class Member, class Visit>
ENGRAM_HD void each_columns(Member& m, Visit visit) {
    if constexpr (requires { m.parts; }) {
        each_part(m, [&](int k) { each_columns(m.parts[k], visit); });
    } else if constexpr (!is_weight<Member>) {
        visit(m);
        if constexpr (requires { m.d; }) visit(m.d);
    }
}

/// The operands of a body at one row, and how to come to another one.
template <class Real, class Body>
struct operands_at {
    typename Body::template operands<Real> all;

    ENGRAM_HD void move(std::ptrdiff_t steps, std::ptrdiff_t rows, int pieces) {
        for_members(all, [&](auto& member) {
            each_columns(member, [&](row_columns<Real>& c) { c.move(steps, rows, pieces); });
        });
    }
};

/// What a program has for the operands of a body.
template <class Backend, class Body>
class bound_operands {
    using real = typename Backend::real;
    using columns = row_columns<real>;

public:
    using at_row = operands_at<real, Body>;

    // Cold: run once, compiled for every body.
    [[gnu::cold]] bound_operands(const binder<Backend>& b, const typename Body::settings& settings) : binder_(b) {
        if constexpr (in_pieces<Body>) pieces = Body::pieces(settings, b.op().inputs[0].width);
        at_row first;
        for_members(first.all, [&](auto& member) { bind(member); });
        inputs_want &= comes_back_;
        parameters_want &= comes_back_;
        // A list is gone through in rounds.
        do {
            for_members(first.all, [&](auto& member) {
                if constexpr (requires { member.first; }) choose(member, rounds());
            });
            rounds_.push_back({first, first});
        } while (rounds() * input_list<real>::most < static_cast<int>(listed_.size()));
    }

    int rounds() const { return static_cast<int>(rounds_.size()); }

    /// Whether the rows of a step lie behind those of the one before, whatever the operand.
    bool all_have_steps() const {
        bool all = true;
        at_row first = rounds_[0].first;
        for_members(first.all, [&](auto& member) {
            each_columns(member, [&](const columns& c) { all &= !c || c.step == binder_.batch() * c.stride; });
        });
        return all;
    }

    /// At the first row and piece of step t, in a round. Whoever moves them says afterwards where they are left: to
    /// make them anew costs an acting network as much as its one row.
    at_row& at(int t, int round) {
        place& p = rounds_[static_cast<std::size_t>(round)];
        if (!p.left) p.here = p.first, p.t = p.row = 0;
        if constexpr (!device_backend<Backend>)
            for_members(p.here.all, [&, k = std::size_t{0}](auto& member) mutable {
                if constexpr (is_weight<std::remove_cvref_t<decltype(member)>>)
                    member.data = const_cast<real*>(binder_.store().values(parameters_[k++]));
            });
        if (t != p.t || p.row != 0) p.here.move(t - p.t, -p.row, 0);
        p.t = t, p.left = false;
        return p.here;
    }
    void left_at(int row, int round) {
        place& p = rounds_[static_cast<std::size_t>(round)];
        p.row = row, p.left = true;
    }

    int pieces = 1;
    int entries = 0, width = 0;  // of the parameters
    bool inputs_want = false, parameters_want = false;

private:
    struct place {
        at_row first, here;
        int t = 0, row = 0;
        bool left = false;  // here, as far as t and row say; a body that throws leaves nowhere
    };

    columns placed(const operand<real>& o, int parts) const {
        if (!o) return {};
        if constexpr (of_a_column<Body>) {
            require(o.stride == 1 && o.step == binder_.batch(), binder_.op().name, ": a column has gaps");
            return {{o.data, o.accumulate}, 0, 0, binder_.steps() * binder_.batch(), 0};
        }
        const int columns_each = std::max(1, o.width / parts);
        return {{o.data, o.accumulate}, o.stride, o.step, columns_each, o.width < parts ? 0 : columns_each};
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
        static_cast<columns&>(m) = {{room_.data(), false}, row, step, Count, Count};
    }
    template <int Count>
    void bind(input_array<real, Count>& m) {
        for (auto& one : m.parts) bind(one);
    }

    void choose(input_list<real>& m, int round) const {
        m.all = static_cast<int>(listed_.size());
        choose(m, listed_, round);
    }
    void choose(output_list<real>& m, int round) const { choose(m, listed_outputs_, round); }
    template <class List, class All>
    void choose(List& m, const All& all, int round) const {
        m.first = round * input_list<real>::most;
        m.count = std::min(static_cast<int>(all.size()) - m.first, input_list<real>::most);
        std::copy_n(all.begin() + m.first, m.count, m.parts);
    }

    binder<Backend> binder_;
    std::vector<place> rounds_;
    std::vector<listed_input<real>> listed_;
    std::vector<output_row<real>> listed_outputs_;
    std::vector<parameter> parameters_;
    std::size_t inputs_ = 0, outputs_ = 0;
    typename executor<Backend>::buffer room_;
    bool comes_back_ = false;  // some output has a gradient
};

/// A body that is a step of a recurrence (recurrent_rows.hpp).
template <class Body>
concept carries_state = requires(const typename Body::template operands<float>& o) {
    o.carried;
    o.next;
};

/// A step of such a body on the host, compiled whole and once: inlined into every kernel that runs it the largest take
/// the compiler longer than all other operations together.
template <class Real, class Body>
struct host_step {
    using operands = typename Body::template operands<Real>;
    using settings = typename Body::settings;

    [[gnu::noinline, gnu::flatten]] static void forward(const host_row<Real>& on, const operands& o,
                                                        const settings& s) {
        Body::forward(on, o, s);
    }
    [[gnu::noinline, gnu::flatten]] static void advance(const host_row<Real>& on, const operands& o,
                                                        const settings& s) {
        Body::advance(on, o, s);
    }
    [[gnu::noinline, gnu::flatten]] static void backward(const host_row<Real>& on, const operands& o,
                                                         const settings& s) {
        Body::backward(on, o, s);
    }
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
        : name(b.op().name),
          settings(s),
          operands(b, s),
          steps(b.steps()),
          batch(b.batch()),
          stepwise(b.stepwise()),
          one_row(b.gives_one_row()) {
        if constexpr (requires { Body::sums(s, 0); })
            room.resize(static_cast<std::size_t>(Body::sums(s, static_cast<int>(b.op().inputs.size()))));
    }
    void forward(int t, int count) override { run<false>(t, count); }
    void backward(int t, int count) override {
        const bool wanted = operands.inputs_want || always_goes_back<Body>;
        if (wanted && (!one_row || t == 0)) run<true>(t, count);  // one row: behind all steps
        if constexpr (trains_parameters<Body, real>)
            if (!stepwise) gather(count);
    }
    void after() override {
        if constexpr (trains_parameters<Body, real>) gather(steps);
    }

private:
    using at_row = operands_at<real, Body>;
    static constexpr bool in_place = has_lists<typename Body::template operands<real>>();

    template <bool Backward>
    void run(int t, int count) {
        const int rows = of_a_column<Body> || one_row ? 1 : count * batch;
        for (int round = 0; round < operands.rounds(); ++round) {
            each_row<Backward>(operands.at(t, round), rows);
            operands.left_at(in_place ? rows : 0, round);
        }
    }
    // Flat, since packs must not leave the registers between a body and its lambdas, and a copy of few operands stays
    // in registers too.
    template <bool Backward>
    [[gnu::flatten]] void each_row(at_row& first, int rows) {
        std::conditional_t<in_place, at_row&, at_row> here = first;
        const host_row<real> on(name, index_kind<Body>, room.data());
        const typename Body::settings chosen = settings;
        const int pieces = in_pieces<Body> ? operands.pieces : 1;
        for (; rows > 0; --rows, here.move(0, 1, in_pieces<Body> ? -pieces : 0))
            for (int piece = 0; piece < pieces; ++piece) {
                if constexpr (!carries_state<Body>)
                    run_body<Body, Backward>(on, here.all, chosen);
                else if constexpr (Backward)
                    host_step<real, Body>::backward(on, here.all, chosen);
                else
                    host_step<real, Body>::forward(on, here.all, chosen);
                if constexpr (in_pieces<Body>) here.move(0, 0, 1);
            }
    }
    [[gnu::flatten]] void gather(int count) requires trains_parameters<Body, real> {
        if (!operands.parameters_want) return;
        auto here = operands.at(0, 0);
        for_members(here.all, [&](auto& member) {
            if constexpr (is_weight<std::remove_cvref_t<decltype(member)>>)
                if (member.d && !std::exchange(member.d.accumulate, true))
                    std::fill_n(member.d.data, std::ptrdiff_t{operands.entries} * operands.width, real(0));
        });
        const host_row<real> on(name);
        for (int rows = one_row ? 1 : count * batch; rows > 0; --rows, here.move(0, 1, 0))
            if (const int entry = taken_row<Body>(here.all); entry >= 0)
                on.each(operands.width, [&](auto i) {
                    Body::slopes(here.all, i, [&](const weight_row<real>& w, pack<real> slope) {
                        w.d.put(i + entry * operands.width, slope);
                    });
                });
    }

    std::string name;
    typename Body::settings settings;
    bound_operands<Backend, Body> operands;
    int steps, batch;
    bool stepwise, one_row;
    aligned_vector<pack<real>> room;
};

/// A block a row and piece. Of a chain it is one of the first step's rows, or of the last one's, and runs those of the
/// other steps after it.
template <class Real, class Body, bool Backward>
struct row_block {
    static constexpr int lanes = lanes_of_rows<Body>;
    operands_at<Real, Body> first;
    typename Body::settings settings;
    int pieces;
    int* alarm;
    int steps = 1, rows = 0;  // rows from a step to the one that is next
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        operands_at<Real, Body> here = first;
        here.move(0, index / pieces, index % pieces);
        for (int left = steps;;) {
            run_body<Body, Backward>(block_row<Block>(block, alarm), here.all, settings);
            if (--left == 0) return;
            here.move(0, rows, 0);
        }
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
                    here.move(0, r, 0);
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
        : device_kernel<Backend>(b),
          settings(s),
          operands(b, s),
          stepwise(b.stepwise()),
          in_order(b.chained() && !of_a_column<Body> && operands.rounds() == 1 && operands.all_have_steps() &&
                   (carries_state<Body> || operands.pieces == 1)) {
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
    bool runs_loop() const override { return in_order; }

private:
    template <bool Backward>
    void run(int t, int steps) {
        using block = row_block<real, Body, Backward>;
        const int chain = in_order ? steps : 1;  // steps of a block
        const int rows = of_a_column<Body> ? 1 : steps / chain * this->batch;
        for (int round = 0; round < operands.rounds(); ++round)
            this->on->launch_blocks(this->name, std::ptrdiff_t{rows} * operands.pieces,
                                    std::max(sums, 1) * block::lanes,
                                    block{operands.at(Backward ? t + chain - 1 : t, round), settings, operands.pieces,
                                          alarm, chain, Backward ? -this->batch : this->batch});
    }
    void gather(int steps) {
        if (operands.parameters_want)
            this->on->launch_blocks(this->name, std::ptrdiff_t{operands.entries} * operands.width,
                                    gather_block<real, Body>::lanes,
                                    gather_block<real, Body>{operands.at(0, 0), steps * this->batch, operands.width});
    }

    typename Body::settings settings;
    bound_operands<Backend, Body> operands;
    bool stepwise, in_order;  // in_order: several steps are a step after the other
    int sums = 0;
    int* alarm = nullptr;
};

template <class Backend, class Body>
struct scan_kernel;

}  // namespace internal

/// An operation of a trace that a body computes row by row.
template <class Backend, class Body>
struct row_operation final : operation<Backend> {
    typename Body::settings settings;
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        if constexpr (!device_backend<Backend> && internal::carries_state<Body>)
            if (b.scanned()) return std::make_unique<internal::scan_kernel<Backend, Body>>(b, settings);
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
    if constexpr (internal::of_a_column<Body>) {
        for (const view& in : op->inputs)
            require(in.width == 1 && g.info(in).width == 1 && g.info(in).rows == extent::sequence, g.full_name(name),
                    ": '", g.info(in).name, "' is no column of its own over all steps, [T,B,1]");
        require(!g.in_scan(), g.full_name(name), ": all steps are needed at once, and a scan has one at a time");
        op->row_wise = false, op->mixes_batch = true;
    }
    if constexpr (internal::always_goes_back<Body>) op->in_place = true;
    if (mark) mark(*op);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), widths, rows);
}

}  // namespace engram
