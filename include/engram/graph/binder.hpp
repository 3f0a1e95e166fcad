#pragma once
// SPDX-License-Identifier: MIT

// The binder: what an operation may ask of the program that binds it.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <engram/device/executor.hpp>
#include <engram/graph/kernel.hpp>
#include <engram/graph/plan.hpp>

namespace engram {

template <class Backend>
class recorded_steps;
template <class Backend>
class program;
template <class Backend>
class binder;

/// The kernel of an operation. A device has a body of its own for each, found by specialisation in engram/device; a
/// kernel without one is refused here, never run elsewhere.
template <class Kernel, class Backend, class... Settings>
std::unique_ptr<kernel<Backend>> bind_kernel(const binder<Backend>& b, const Settings&... settings) {
    if constexpr (!device_backend<Backend> || requires { Kernel::on_device; })
        return std::make_unique<Kernel>(b, settings...);
    else
        fail(b.op().name, ": this operation has no body for the device '", Backend::name, "'; use the device 'cpu'");
}

/// What an operation asks for when it is bound.
template <class Backend>
class binder {
public:
    using real = typename Backend::real;

    binder(program<Backend>& owner, int op) : program_(&owner), op_(op) {}

    const operation<Backend>& op() const { return *program_->graph_.operations()[static_cast<std::size_t>(op_)]; }
    int steps() const { return program_->options_.steps; }
    int batch() const { return program_->options_.batch; }
    int total_batch() const { return program_->options_.whole_batch(); }
    int first_row() const { return program_->options_.first_row; }
    int first_step() const { return program_->options_.first_step; }
    bool side_effects() const { return program_->options_.side_effects; }

    /// Called one step at a time (in a time loop, or because some inputs have no time).
    bool stepwise() const { return program_->is_stepwise(op_); }
    /// Nothing else in its time loop reads what it gives, or is read by it.
    bool chained() const { return program_->plan_.chained[static_cast<std::size_t>(op_)]; }
    /// Input i is known before the time loop in which this operation stands.
    bool hoisted(std::size_t i) const {
        return summed_ahead(program_->graph_, program_->options_, program_->plan_, static_cast<std::size_t>(op_), i);
    }
    /// What it carries is given at the first step and left after the last; it runs all steps at once.
    bool scanned() const { return program_->plan_.scanned[static_cast<std::size_t>(op().inputs[0].value)]; }
    /// What it gives is one row, which is computed once for all steps and rows.
    bool gives_one_row() const {
        const auto& given = op().outputs;
        return !given.empty() &&
               std::all_of(given.begin(), given.end(), [&](int v) { return program_->layout_.one_row(v); });
    }
    bool needs_backward() const { return program_->plan_.backward[static_cast<std::size_t>(op_)]; }

    operand<real> in(std::size_t i) const { return program_->place_view(op().inputs[i], false); }
    operand<real> out(std::size_t i) const { return program_->place_view(program_->whole(op().outputs[i]), false); }
    /// Gradient of input i to write; null when nobody wants it.
    operand<real> d_in(std::size_t i) const {
        const view& v = op().inputs[i];
        if (!needs_backward() || v.detached || !program_->plan_.active[static_cast<std::size_t>(v.value)]) return {};
        operand<real> d = program_->place_view(v, true);
        d.accumulate = program_->layout_.adds[static_cast<std::size_t>(op_)][i];
        return d;
    }
    /// Gradient of output i to read; null when it is zero.
    operand<real> d_out(std::size_t i) const {
        const int v = op().outputs[i];
        if (!program_->plan_.active[static_cast<std::size_t>(v)]) return {};
        return program_->place_view(program_->whole(v), true);
    }

    /// Where input i, which then has no buffer, is to be found: row `index` [T, B, 1] of the table [V, F].
    struct table_rows {
        parameter table;
        operand<real> index;
        operand<real> d_table;  // null when nobody wants it
    };
    std::optional<table_rows> looked_up(std::size_t i) const {
        const view& v = op().inputs[i];
        const int by = program_->plan_.looked_up[static_cast<std::size_t>(v.value)];
        if (by < 0) return {};
        const auto& embedding = *program_->graph_.operations()[static_cast<std::size_t>(by)];
        const parameter table{embedding.table};
        return table_rows{table, program_->place_view(embedding.inputs[0], false),
                          v.detached ? operand<real>{} : d_parameter(table)};
    }

    /// What launches the kernels of a device, and where they read the values of a parameter.
    engram::executor<Backend>& executor() const { return program_->executor_; }
    const real* weights(parameter p) const { return program_->weights_->data() + store()[p].offset; }

    /// A word that a device kernel sets when its numbers are wrong; the program then fails with this sentence.
    int* alarm(const std::string& what) const { return program_->executor_.alarm(message(op().name, ": ", what)); }

    parameters<real>& store() const { return *program_->store_; }
    /// Gradient of a parameter; `accumulate` tells whether to add to it.
    operand<real> d_parameter(parameter p) const {
        operand<real> g;
        if (!needs_backward()) return g;
        const auto& entry = store()[p];
        g.data = program_->gradient_.data() + entry.offset;
        g.stride = g.width = entry.columns;
        g.accumulate = program_->layout_.parameter_writers[static_cast<std::size_t>(p.id)] != 1;
        return g;
    }
    /// The resource in use; read through the pointer at every call, because programs may exchange it.
    std::shared_ptr<resource>* bound_resource(int id) const {
        return &program_->resources_[static_cast<std::size_t>(id)];
    }
    /// Where a loss adds its value.
    double* loss_slot(const std::string& name) const { return program_->loss_slot(name); }
    /// Counter of forward() calls, which noise is keyed by.
    const std::uint64_t* replay_count() const {
        if constexpr (device_backend<Backend>)
            return program_->executor_.counter();
        else
            return &program_->replays_;
    }

private:
    program<Backend>* program_;
    int op_;
};

}  // namespace engram
