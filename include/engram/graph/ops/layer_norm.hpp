#pragma once
// SPDX-License-Identifier: MIT

// Layer normalisation of a row of F columns:
//
//   z = (x - mean(x)) / sqrt(variance(x) + 1e-5),  y = gain z + bias      (population variance; gain 1, bias 0 at
//   first) dx = (g - mean(g) - z mean(g z)) / sqrt(variance(x) + 1e-5),  g = gain dy
//
// A row of equal numbers gives the bias. Sums run over lanes, then over a tree of lanes, whatever the number of rows.

#include <cmath>

#include <engram/core/aligned.hpp>
#include <engram/graph/ops/rows.hpp>

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

template <class Backend>
struct layer_norm_kernel final : kernel<Backend> {
    using real = typename Backend::real;
    using P = pack<real>;

    layer_norm_kernel(const binder<Backend>& b, const layer_norm_weights& w)
        : all(b.steps()),
          batch(b.batch()),
          width(b.in(0).width),
          stepwise(b.stepwise()),
          store(&b.store()),
          weights(w),
          x(b.in(0)),
          dx(b.d_in(0)),
          y(b.out(0)),
          dy(b.d_out(0)),
          d_gain(b.d_parameter(w.gain)),
          d_bias(b.d_parameter(w.bias)),
          moments(2 * static_cast<std::size_t>(all) * static_cast<std::size_t>(batch)) {}

    void forward(int t, int steps) override {
        const real *gain = store->values(weights.gain), *bias = store->values(weights.bias);
        for (int r = 0; r < steps * batch; ++r) {
            const real* from = x.at(t) + r * x.stride;
            real* to = y.at(t) + r * y.stride;
            const real mean = sum([&](int c, int n) { return part(from + c, n); }) / real(width);
            const real square = sum([&](int c, int n) {
                const P apart = part(from + c, n) - P(mean);
                return clip(apart * apart, n);
            });
            const real scale = 1 / std::sqrt(square / real(width) + real(1e-5));
            real* kept = moments_of(t, r);
            kept[0] = mean;
            kept[1] = scale;
            each([&](int c, int n) {
                const P z = (part(from + c, n) - P(mean)) * P(scale);
                put(multiply_add(z, part(gain + c, n), part(bias + c, n)), to + c, n);
            });
        }
    }
    void backward(int t, int steps) override {
        if (!dy) return;
        const real* gain = store->values(weights.gain);
        for (int r = 0; dx && r < steps * batch; ++r) {
            const real *from = x.at(t) + r * x.stride, *slope = dy.at(t) + r * dy.stride, *kept = moments_of(t, r);
            real* to = dx.at(t) + r * dx.stride;
            const auto z = [&](int c, int n) { return (part(from + c, n) - P(kept[0])) * P(kept[1]); };
            const auto g = [&](int c, int n) { return part(slope + c, n) * part(gain + c, n); };
            const real level = sum(g) / real(width);
            const real tilt = sum([&](int c, int n) { return g(c, n) * z(c, n); }) / real(width);
            each([&](int c, int n) {
                const P d = multiply_add(z(c, n), P(-tilt), g(c, n) - P(level));
                put(dx.accumulate ? multiply_add(d, P(kept[1]), part(to + c, n)) : d * P(kept[1]), to + c, n);
            });
        }
        if (!stepwise) gather(steps);
    }
    void after() override { gather(all); }

private:
    template <class Body>
    void each(Body body) const {
        for (int c = 0; c < width; c += P::width) body(c, std::min(P::width, width - c));
    }
    template <class Body>
    real sum(Body body) const {
        P total(0);
        each([&](int c, int n) { total += body(c, n); });
        return total.sum();
    }
    // Whole packs are not counted out lane by lane.
    static P part(const real* from, int n) { return n == P::width ? P::load(from) : P::load(from, n); }
    static void put(P v, real* to, int n) { n == P::width ? v.store(to) : v.store(to, n); }
    /// Zero beyond the row, where a mean was subtracted from nothing.
    static P clip(P v, int n) {
        if (n == P::width) return v;
        real kept[P::width] = {};
        v.store(kept, n);
        return P::load(kept, n);
    }
    real* moments_of(int t, int r) { return moments.data() + 2 * (std::ptrdiff_t{t} * batch + r); }

    void gather(int steps) {
        if (!dy) return;
        for (const auto* d : {&d_gain, &d_bias})
            if (*d && !d->accumulate) std::fill_n(d->data, width, real(0));
        for (int r = 0; r < steps * batch; ++r) {
            const real *from = x.data + r * x.stride, *slope = dy.data + r * dy.stride, *kept = moments_of(0, r);
            each([&](int c, int n) {
                const P s = part(slope + c, n), z = (part(from + c, n) - P(kept[0])) * P(kept[1]);
                if (d_gain) put(multiply_add(s, z, part(d_gain.data + c, n)), d_gain.data + c, n);
                if (d_bias) put(part(d_bias.data + c, n) + s, d_bias.data + c, n);
            });
        }
    }

    int all, batch, width;
    bool stepwise;
    parameters<real>* store;
    layer_norm_weights weights;
    operand<real> x, dx, y, dy, d_gain, d_bias;
    aligned_vector<real> moments;  // mean and scale of every row
};

/// [T, B, F]: the rows of x [T, B, F] with mean 0 and variance 1, times gain, plus bias.
template <class Backend>
var<Backend> layer_norm(const std::string& name, const var<Backend>& x, const layer_norm_weights& w) {
    graph<Backend>& g = *x.owner;
    require(g.store()[w.gain].columns == x.width && g.store()[w.bias].columns == x.width, g.full_name(name), ": ",
            x.width, " columns, but gain and bias have ", g.store()[w.gain].columns, " and ",
            g.store()[w.bias].columns);
    auto op = make_operation<layer_norm_kernel>(g, name, {x}, w);
    op->parameters = {w.gain.id, w.bias.id};
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {x.width}, rows)[0];
}

}  // namespace engram
