#pragma once
// SPDX-License-Identifier: MIT

// Groups of columns brought to one size, without gain and bias:
//
//   centred     z = (x - mean(x)) / sqrt(variance(x) + epsilon)
//   otherwise   z = x / sqrt(mean(x^2) + epsilon)
//   y = size z
//   dx = (g - [mean(g)] - z mean(g z)) / sqrt(...),  g = size dy, and mean(g) only where it is centred
//
// over the N columns of each group, heads side by side. Times a learnt gain it is the normalisation of a head (xLSTM,
// gated DeltaNet); the second of size 1 / sqrt(N) has length one (keys of delta rules).

#include <string>

#include <engram/operations/row_operation.hpp>

namespace engram {

struct normalised_rows {
    struct settings {
        int group;
        bool centred;
        double epsilon, size;
    };
    template <class Real>
    struct operands {
        input_row<Real> x;
        kept_row<Real, 1> scale;
        output_row<Real> y;
    };
    static constexpr int pieces(settings s, int columns) { return columns / s.group; }
    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        const int n = o.x.width;
        auto level = row.mean(n, [&](auto i) { return o.x[i]; });
        if (!s.centred) level = 0;
        const auto power = row.mean(n, [&](auto i) { return square(o.x[i] - level); });
        const auto scale = 1 / sqrt(power + decltype(power)(s.epsilon));
        row.each(n, [&](auto i) { o.y.put(i, (o.x[i] - level) * (scale * decltype(scale)(s.size))); });
        row.once([&] { o.scale.put(0, scale); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        const int n = o.x.width;
        auto level = row.mean(n, [&](auto i) { return o.y.d[i]; });
        if (!s.centred) level = 0;
        const auto tilt = row.mean(n, [&](auto i) { return o.y.d[i] * o.y[i]; });
        const auto scale = o.scale[0];
        const auto size = decltype(tilt)(s.size);
        row.each(n, [&](auto i) { o.x.d.put(i, (size * (o.y.d[i] - level) - o.y[i] * (tilt / size)) * scale); });
    }
};

/// Every `group` columns of x [., F] with mean 0 (where centred) and mean square size^2.
template <class Backend>
var<Backend> normalise(const std::string& name, const var<Backend>& x, int group, bool centred = true,
                       double epsilon = 1e-5, double size = 1) {
    require(group > 0 && x.width % group == 0, x.owner->full_name(name), ": ", x.width,
            " columns do not divide into groups of ", group);
    require(epsilon > 0 && size > 0, x.owner->full_name(name), ": expected a positive epsilon and size, got ", epsilon,
            " and ", size);
    return add_rows<normalised_rows>(*x.owner, name, {x}, {group, centred, epsilon, size}, {x.width})[0];
}

}  // namespace engram
