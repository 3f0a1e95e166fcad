#pragma once
// SPDX-License-Identifier: MIT

// What kernels share that are launched: the executor, the sizes of the plan, rows from a time step on, launches in the
// operation's name; and where the numbers of a named variable lie.

#include <string>

#include <engram/device/executor.hpp>
#include <engram/device/shared_sums.hpp>
#include <engram/graph/program.hpp>

namespace engram {

/// A kernel that knows its executor, its name and the plan's sizes, on any backend.
template <class Backend>
struct launched_kernel : kernel<Backend> {
    using real = typename Backend::real;
    static constexpr bool on_device = true;

    explicit launched_kernel(const binder<Backend>& b)
        : on(&b.executor()), name(b.op().name), all_steps(b.steps()), batch(b.batch()) {}

    executor<Backend>* on;
    std::string name;
    int all_steps, batch;
};

/// The body that a device alone has of an operation.
template <device_backend Backend>
struct device_kernel : launched_kernel<Backend> {
    using launched_kernel<Backend>::launched_kernel;

    /// One thread for each of `columns` columns of `steps` * B rows: functor(row * columns + column).
    template <class Functor>
    void launch(int steps, int columns, const Functor& functor) {
        this->on->launch(this->name, std::ptrdiff_t{steps} * this->batch * columns, functor);
    }
    /// A block for each of `steps` * B * `each` indices.
    template <class Functor>
    void launch_blocks(int steps, int each, int scratch, const Functor& functor) {
        this->on->launch_blocks(this->name, std::ptrdiff_t{steps} * this->batch * each, scratch, functor);
    }
    /// The sums of a body in every one of `steps` * B rows (row_sums).
    template <class Body>
    void launch_sums(int steps, const Body& body) {
        using sums = row_sums<typename Backend::real, Body>;
        launch_blocks(steps, 1, sums::scratch, sums{body});
    }
};

/// The rows of an operand from step t on, as a point or a functor of a device holds them.
template <class Real>
struct step_rows {
    Real* data = nullptr;
    std::ptrdiff_t stride = 0;
    int width = 0;
    bool accumulate = false;

    step_rows() = default;
    step_rows(const operand<Real>& o, int t)
        : data(o ? o.at(t) : nullptr), stride(o.stride), width(o.width), accumulate(o.accumulate) {}

    ENGRAM_HD Real* row(std::ptrdiff_t r) const { return data + r * stride; }
    ENGRAM_HD Real at(std::ptrdiff_t r, std::ptrdiff_t c) const { return row(r)[c]; }
    ENGRAM_HD bool wanted() const { return data != nullptr; }
    /// Stores v, or adds it, as the plan has it.
    ENGRAM_HD void put(std::ptrdiff_t r, std::ptrdiff_t c, Real v) const { give(row(r)[c], accumulate, v); }
};

/// Where the numbers of the input or state of this name lie; null where there is none or the plan does not use it.
template <class Backend>
operand<typename Backend::real> place_of(program<Backend>& p, graph<Backend>& g, const std::string& name) {
    const var<Backend> v = g.named(name);
    return v.value < 0 ? operand<typename Backend::real>{} : p.on_device(v);
}

}  // namespace engram
