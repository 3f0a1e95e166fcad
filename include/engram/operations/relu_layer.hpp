#pragma once
// SPDX-License-Identifier: MIT

// A fully connected layer by its name alone.

#include <cmath>
#include <string>
#include <vector>

#include <engram/operations/affine.hpp>
#include <engram/operations/map.hpp>

namespace engram {

/// relu(x W + b) [T, B, units] of all inputs side by side; W is He-scaled, b zero.
template <class Backend>
var<Backend> relu_layer(const std::string& name, const std::vector<var<Backend>>& inputs, int units) {
    graph<Backend>& g = *inputs.at(0).owner;
    const auto weights =
        g.declare_linear(name, columns_of(inputs), units, initial::fan_in<typename Backend::real>(std::sqrt(2.0)));
    return map(name + ".relu", rectify{}, affine(name, inputs, weights));
}

}  // namespace engram
