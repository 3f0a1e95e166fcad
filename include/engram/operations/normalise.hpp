#pragma once
// SPDX-License-Identifier: MIT

// Groups of columns brought to one size, without gain and bias:
//
//   centred     z = (x - mean(x)) / sqrt(variance(x) + epsilon)
//   otherwise   z = x / sqrt(mean(x^2) + epsilon)
//   y = size z
//   dx = (g - [mean(g)] - z mean(g z)) / sqrt(...),  g = size dy, and mean(g) only where it is centred
//
// over the N columns of each group, heads side by side, or over the T B numbers of a column of the unroll, which is how
// advantages are brought to one scale (standardise). Times a learnt gain it is the normalisation of a head (xLSTM,
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

/// The same over all steps and batch rows of one column.
struct standardised_column : normalised_rows {
    static constexpr bool whole_column = true;
    static constexpr int pieces(settings, int) { return 1; }
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

/// x [T, B, 1] with mean 0 and variance 1 over all steps and batch rows. Not for a scan, nor for sharded batches: rows
/// of different batch entries meet.
template <class Backend>
var<Backend> standardise(const std::string& name, const var<Backend>& x, double epsilon = 1e-8) {
    require(epsilon > 0, x.owner->full_name(name), ": expected a positive epsilon, got ", epsilon);
    return add_rows<standardised_column>(*x.owner, name, {x}, {1, true, epsilon, 1}, {1})[0];
}

}  // namespace engram
