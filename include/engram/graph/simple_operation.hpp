#pragma once
// SPDX-License-Identifier: MIT

// simple_operation: an operation with a kernel of its own on each backend.

#include <memory>
#include <string>
#include <vector>

#include <engram/graph/program.hpp>

namespace engram {

/// An operation whose kernel is Kernel<Backend>(binder, settings).
template <class Backend, template <class> class Kernel, class Settings>
struct simple_operation final : operation<Backend> {
    Settings settings;
    std::unique_ptr<kernel<Backend>> bind(const binder<Backend>& b) const override {
        return bind_kernel<Kernel<Backend>>(b, settings);
    }
};

/// An operation with its inputs, checked to be of this graph, and settings.
template <template <class> class Kernel, class Backend, class Settings>
std::unique_ptr<simple_operation<Backend, Kernel, Settings>> make_operation(graph<Backend>& g, const std::string& name,
                                                                            const std::vector<var<Backend>>& inputs,
                                                                            const Settings& settings) {
    auto op = std::make_unique<simple_operation<Backend, Kernel, Settings>>();
    op->name = name;
    op->settings = settings;
    for (const auto& v : inputs) op->inputs.push_back(g.own(name, v));
    return op;
}

struct no_settings {};

}  // namespace engram
