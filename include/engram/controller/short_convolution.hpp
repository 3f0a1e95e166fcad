#pragma once
// SPDX-License-Identifier: MIT

// The causal convolution of four steps that stands ahead of a matrix memory (xLSTM, gated DeltaNet), every column by
// itself: y_t = silu(w_0 x_t + w_1 x_{t-1} + w_2 x_{t-2} + w_3 x_{t-3} + b), silu(a) = a sigma(a). What it saw before
// is a state like any other: an episode begins with zeros.

#include <array>
#include <string>

#include <engram/model/slots.hpp>
#include <engram/operations/convolve_steps.hpp>

namespace engram {

struct short_convolution {
    std::array<parameter, 4> taps;  // [1, F] each
    parameter bias;

    /// Normal taps of variance 1/4.
    template <class Backend>
    static short_convolution declare(graph<Backend>& g, const std::string& name, int width) {
        using real = typename Backend::real;
        short_convolution w;
        for (std::size_t k = 0; k < 4; ++k)
            w.taps[k] = g.declare(message(name, ".tap.", k), 1, width, initial::fan_in<real>(0.5));
        w.bias = g.declare(name + ".bias", 1, width, initial::zero<real>());
        return w;
    }
    /// Three steps, [B, 3 F].
    template <class Backend>
    static var<Backend> begin(graph<Backend>& g, const std::string& name, int width) {
        return g.own_state(name, 3 * width);
    }
    template <class Backend>
    var<Backend> operator()(const std::string& name, const var<Backend>& x, var<Backend>& seen) const {
        const auto found = convolve_steps(name, seen, x, taps, bias);
        seen = found.seen;
        return found.y;
    }
};

}  // namespace engram
