#pragma once
// SPDX-License-Identifier: MIT

// What the device bodies of all operations share: the executor, the sizes of the plan, launches in the operation's
// name; and where the numbers of a named variable lie.

#include <string>

#include <engram/device/executor.hpp>
#include <engram/graph/program.hpp>

namespace engram {

template <device_backend Backend>
struct device_kernel : kernel<Backend> {
    using real = typename Backend::real;
    static constexpr bool on_device = true;

    explicit device_kernel(const binder<Backend>& b)
        : on(&b.executor()), name(b.op().name), all_steps(b.steps()), batch(b.batch()) {}

    /// One thread for each of `columns` columns of `steps` * B rows: functor(row * columns + column).
    template <class Functor>
    void launch(int steps, int columns, const Functor& functor) {
        on->launch(name, std::ptrdiff_t{steps} * batch * columns, functor);
    }
    /// A block for each of `steps` * B * `each` indices.
    template <class Functor>
    void launch_blocks(int steps, int each, int scratch, const Functor& functor) {
        on->launch_blocks(name, std::ptrdiff_t{steps} * batch * each, scratch, functor);
    }

    executor<Backend>* on;
    std::string name;
    int all_steps, batch;
};

/// The rows of an operand from step t on, as a functor holds them.
template <class Real>
struct device_rows {
    Real* data = nullptr;
    std::ptrdiff_t stride = 0;
    int width = 0;
    bool accumulate = false;

    device_rows() = default;
    device_rows(const operand<Real>& o, int t)
        : data(o ? o.at(t) : nullptr), stride(o.stride), width(o.width), accumulate(o.accumulate) {}

    ENGRAM_HD Real* row(std::ptrdiff_t r) const { return data + r * stride; }
    ENGRAM_HD bool wanted() const { return data != nullptr; }
    /// data[r][c] (+)= by.
    ENGRAM_HD void take(std::ptrdiff_t r, std::ptrdiff_t c, Real by) const { give(row(r)[c], accumulate, by); }
};

/// The variable of that name; none if there is none.
template <class Backend>
var<Backend> named_value(graph<Backend>& g, const std::string& name) {
    var<Backend> found;
    for (std::size_t i = 0; i < g.values().size(); ++i)
        if (g.values()[i].name == name) {
            found.value = static_cast<int>(i);
            found.width = g.values()[i].width;
            found.owner = &g;
        }
    return found;
}
/// Where its numbers lie; null where the plan does not use them.
template <class Backend>
operand<typename Backend::real> place_of(program<Backend>& p, graph<Backend>& g, const std::string& name) {
    const var<Backend> v = named_value(g, name);
    return v.value < 0 ? operand<typename Backend::real>{} : p.on_device(v);
}

}  // namespace engram
