#pragma once
// SPDX-License-Identifier: MIT

// convolve_steps: a causal convolution of four steps, every column by itself, bent:
//
//   z_t = w_0 x_t + w_1 x_{t-1} + w_2 x_{t-2} + w_3 x_{t-3} + b,  y = silu(z) = z sigma(z)
//
// where steps ahead of the episode are zeros. It carries the three steps before, [B, 3 F], the last one first.

#include <array>
#include <string>

#include <engram/operations/recurrent_rows.hpp>

namespace engram {

struct convolved_rows {
    using settings = no_settings;
    template <class Real>
    struct operands {
        input_row<Real> carried, x;
        constant_row<Real> reset;
        weight_row<Real> now, last, before, first, bias;
        output_row<Real> y, next;
    };

    static ENGRAM_HD void forward(auto row, const auto& o, settings) { go_on<true>(row, o); }
    static ENGRAM_HD void advance(auto row, const auto& o, settings) { go_on<false>(row, o); }
    static ENGRAM_HD void backward(auto row, const auto& o, settings) { go_back<false>(row, o); }
    static ENGRAM_HD void backward_and_slopes(auto row, const auto& o, settings) { go_back<true>(row, o); }
    static ENGRAM_HD void slopes(const auto& o, auto i, auto add) {
        const int F = o.x.width;
        const auto zero = zero_of(o.x[i]);
        const bool starts = begins(o.reset);
        const auto a = starts ? zero : o.carried[i], b = starts ? zero : o.carried[i + F],
                   c = starts ? zero : o.carried[i + 2 * F];
        each_slope(o, slope_of(o, i, a, b, c), o.x[i], a, b, c, add);
    }

private:
    static ENGRAM_HD auto sum_of(const auto& o, auto i, auto a, auto b, auto c) {
        return multiply_add(
            o.first[i], c,
            multiply_add(o.before[i], b, multiply_add(o.last[i], a, multiply_add(o.now[i], o.x[i], o.bias[i]))));
    }
    /// Of z.
    static ENGRAM_HD auto slope_of(const auto& o, auto i, auto a, auto b, auto c) {
        const auto z = sum_of(o, i, a, b, c);
        const auto share = logistic(z);
        return o.y.d ? o.y.d[i] * (share * multiply_add(z, 1 - share, zero_of(z) + 1)) : zero_of(z);
    }
    /// Of every parameter, from that of z and the steps.
    static ENGRAM_HD void each_slope(const auto& o, auto slope, auto x, auto a, auto b, auto c, auto add) {
        add(o.now, slope * x);
        add(o.last, slope * a);
        add(o.before, slope * b);
        add(o.first, slope * c);
        add(o.bias, slope);
    }
    template <bool Reads>
    static ENGRAM_HD void go_on(auto row, const auto& o) {
        const int F = o.x.width;
        const auto step = [&](auto was) {
            row.each(F, [&](auto i) {
                const auto x = o.x[i], a = was(i, 0), b = was(i, 1), c = was(i, 2);
                if constexpr (Reads) {
                    const auto z = sum_of(o, i, a, b, c);
                    o.y.put(i, z * logistic(z));
                }
                o.next.put(i, x);
                o.next.put(i + F, a);
                o.next.put(i + 2 * F, b);
            });
        };
        if (begins(o.reset))
            step([&](auto i, int) { return zero_of(o.x[i]); });
        else
            step([&](auto i, int k) { return o.carried[i + k * F]; });
    }
    template <bool Slopes>
    static ENGRAM_HD void go_back(auto row, const auto& o) {
        const int F = o.x.width;
        const auto carried = alone(o.carried), d_carried = alone(o.carried.d), d_next = alone(o.next.d);
        const auto x = alone(o.x), d_x = alone(o.x.d), now = alone(o.now), last = alone(o.last);
        const auto before = alone(o.before), first = alone(o.first);
        const bool starts = begins(o.reset);
        row.each(F, [&](auto i) {
            const auto zero = zero_of(x[i]);
            const auto a = starts ? zero : carried[i], b = starts ? zero : carried[i + F],
                       c = starts ? zero : carried[i + 2 * F];
            const auto slope = slope_of(o, i, a, b, c);
            const auto later = [&](int k) { return d_next ? d_next[i + k * F] : zero; };
            const auto of_x = multiply_add(now[i], slope, later(0)), of_a = multiply_add(last[i], slope, later(1)),
                       of_b = multiply_add(before[i], slope, later(2)), of_c = first[i] * slope;
            d_x.put(i, of_x);
            d_carried.put(i, starts ? zero : of_a);
            d_carried.put(i + F, starts ? zero : of_b);
            d_carried.put(i + 2 * F, starts ? zero : of_c);
            if constexpr (Slopes)
                each_slope(o, slope, x[i], a, b, c, [&](const auto& parameter, auto v) { parameter.d.put(i, v); });
        });
    }
};

/// What a step gives and the steps that it leaves.
template <class Backend>
struct convolved_steps {
    var<Backend> y;     // [., F]
    var<Backend> seen;  // [., 3 F]
};

/// A step of `x` [., F] behind `seen` [., 3 F]: `taps` of this step and the three before, and `bias`, [1, F] each.
template <class Backend>
convolved_steps<Backend> convolve_steps(const std::string& name, const var<Backend>& seen, const var<Backend>& x,
                                        const std::array<parameter, 4>& taps, parameter bias) {
    graph<Backend>& g = *seen.owner;
    require(seen.width == 3 * x.width, g.full_name(name), ": three steps of ", x.width, " columns are not ",
            seen.width);
    for (const parameter p : {taps[0], taps[1], taps[2], taps[3], bias})
        require(g.store()[p].rows == 1 && g.store()[p].columns == x.width, g.full_name(name), ": a tap of [",
                g.store()[p].rows, ", ", g.store()[p].columns, "] does not fit ", x.width, " columns");
    const auto found = add_recurrent_rows<convolved_rows>(g, name, {seen, x}, {}, {x.width, seen.width},
                                                          {taps[0], taps[1], taps[2], taps[3], bias});
    return {found[0], found[1]};
}

}  // namespace engram
