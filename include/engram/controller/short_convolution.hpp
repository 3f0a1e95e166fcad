#pragma once
// SPDX-License-Identifier: MIT

// The causal convolution of four steps that stands ahead of a matrix memory (xLSTM, gated DeltaNet), every column by
// itself: y_t = silu(w_0 x_t + w_1 x_{t-1} + w_2 x_{t-2} + w_3 x_{t-3} + b), silu(a) = a sigma(a). What it saw before
// is a state like any other: an episode begins with zeros.

#include <array>
#include <string>

#include <engram/core/device.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/learnt_row.hpp>

namespace engram {

struct convolve_and_bend {
    ENGRAM_HD constexpr auto operator()(auto x, auto a, auto b, auto c, auto w0, auto w1, auto w2, auto w3,
                                        auto bias) const {
        const auto y = w0 * x + w1 * a + w2 * b + w3 * c + bias;
        return y * logistic(y);
    }
};

struct short_convolution {
    std::array<parameter, 4> taps;  // [1, F] each
    parameter bias;

    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, last), (Var, before), (Var, first));
    };

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
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const std::string& name, int width) {
        return {g.state(name + ".last", width), g.state(name + ".before", width), g.state(name + ".first", width)};
    }
    template <class Backend>
    var<Backend> operator()(const std::string& name, const var<Backend>& x, state<var<Backend>>& seen) const {
        const auto row = [&](parameter p) { return learnt_row(name, x, p); };
        const auto y = map(name, convolve_and_bend{}, x, seen.last, seen.before, seen.first, row(taps[0]), row(taps[1]),
                           row(taps[2]), row(taps[3]), row(bias));
        seen = {x, seen.last, seen.before};
        return y;
    }
};

}  // namespace engram
