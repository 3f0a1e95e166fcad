#pragma once
// SPDX-License-Identifier: MIT

// Layer normalisation of a row of F columns:
//
//   z = (x - mean(x)) / sqrt(variance(x) + 1e-5),  y = gain z + bias
//   dx = (g - mean(g) - z mean(g z)) / sqrt(variance(x) + 1e-5),  g = gain dy
//
// The variance is the population's; gain is 1 and bias 0 at first. A row of equal numbers gives the bias.

#include <string>

#include <engram/operations/row_operation.hpp>

namespace engram {

/// Gain and bias [1, F].
struct layer_norm_weights {
    parameter gain, bias;
};

/// Gain 1 and bias 0, [1, width] each.
template <class Backend>
layer_norm_weights declare_layer_norm(graph<Backend>& g, const std::string& name, int width) {
    using real = typename Backend::real;
    return {g.declare(name + ".gain", 1, width, initial::constant<real>(1)),
            g.declare(name + ".bias", 1, width, initial::zero<real>())};
}

struct layer_norm_rows {
    using settings = no_settings;
    template <class Real>
    struct operands {
        input_row<Real> x;
        weight_row<Real> gain, bias;
        kept_row<Real, 2> moments;  // mean, 1 / deviation
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings) {
        const int n = o.x.width;
        const auto mean = row.mean(n, [&](auto i) { return o.x[i]; });
        const auto variance = row.mean(n, [&](auto i) { return square(o.x[i] - mean); });
        const auto scale = 1 / sqrt(variance + decltype(mean)(1e-5));
        row.each(n, [&](auto i) { o.y.put(i, (o.x[i] - mean) * scale * o.gain[i] + o.bias[i]); });
        row.once([&] {
            o.moments.put(0, mean);
            o.moments.put(1, scale);
        });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) {
        const int n = o.x.width;
        const auto scale = o.moments[1];
        const auto g = [&](auto i) { return o.y.d[i] * o.gain[i]; };
        const auto level = row.mean(n, g);
        const auto tilt = row.mean(n, [&](auto i) { return g(i) * normal(o, i); });
        row.each(n, [&](auto i) { o.x.d.put(i, (g(i) - level - normal(o, i) * tilt) * scale); });
    }
    static ENGRAM_HD void slopes(const auto& o, auto i, auto add) {
        add(o.gain, o.y.d[i] * normal(o, i));
        add(o.bias, o.y.d[i]);
    }

private:
    static ENGRAM_HD auto normal(const auto& o, auto i) { return (o.x[i] - o.moments[0]) * o.moments[1]; }
};

/// [T, B, F]: the rows of x [T, B, F] with mean 0 and variance 1, times gain, plus bias.
template <class Backend>
var<Backend> layer_norm(const std::string& name, const var<Backend>& x, const layer_norm_weights& w) {
    graph<Backend>& g = *x.owner;
    require(g.store()[w.gain].columns == x.width && g.store()[w.bias].columns == x.width, g.full_name(name), ": ",
            x.width, " columns, but gain and bias have ", g.store()[w.gain].columns, " and ",
            g.store()[w.bias].columns);
    return add_rows<layer_norm_rows>(g, name, {x}, {}, {x.width}, {w.gain, w.bias})[0];
}

}  // namespace engram
