#pragma once
// SPDX-License-Identifier: MIT

// check_gradients: backward() against central differences, for whoever writes an operation or a policy.
//
// Differences use the five-point stencil, whose error in double is about 1e-12 of the loss. An error is relative to the
// larger of the two slopes, but at least to a thousandth of the largest slope of the same tensor, below which rounding
// of the loss drowns both. Every evaluation starts where the first one did, states, resources and noise included: a
// ring that kept what the last evaluation wrote would be another loss. Differences through a stop-gradient or a changed
// selection are wrong by design: give such values as inputs (a replaying plan does so for what a memory stores).

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <engram/graph/snapshot.hpp>

namespace engram {

/// What a check saw: the worst relative error, where, and how many slopes were compared.
struct gradient_report {
    double worst = 0;
    std::string where;
    int compared = 0;
    bool same_bits_twice = true;
};

/// `prepare` fills inputs; it may fill states and resources too, which are those of a new program otherwise. It is
/// called before every evaluation and must give the same each time. At most `samples` entries of every parameter, and
/// of every input that was traced with a gradient, are compared; `only` may choose them by name.
template <class Backend>
gradient_report check_gradients(const graph<Backend>& g, std::shared_ptr<parameters<typename Backend::real>> store,
                                plan_options options, const std::function<void(program<Backend>&)>& prepare,
                                int samples = 24, double width = 1e-4,
                                const std::function<bool(const std::string&)>& only = {}) {
    using real = typename Backend::real;
    options.gradients = true;
    program<Backend> p(g, store, options);
    const program_snapshot<Backend> start(p, g);
    const auto begin = [&] {
        start.restore(p);
        prepare(p);
    };
    const auto loss = [&] {
        begin();
        p.forward();
        return p.loss();
    };
    loss();
    p.spoil_gradients();
    p.backward();
    const std::vector<real> analytic(p.gradient().begin(), p.gradient().end());
    std::vector<std::vector<real>> input_slopes;
    const auto wanted_of = [&](int v) {
        var<Backend> x;
        x.value = v;
        x.width = g.value(v).width;
        return p.gradient_of(x);
    };
    const auto length = [&](int v) { return p.input(g.value(v).name).size(); };
    for (const int v : g.wanted_gradients()) {
        const auto d = wanted_of(v);
        require(static_cast<bool>(d), "check_gradients: input '", g.value(v).name, "' reaches no loss");
        input_slopes.emplace_back(d.data, d.data + length(v));
    }

    gradient_report report;
    p.hold_constants();
    loss();
    p.spoil_gradients();
    p.backward();
    report.same_bits_twice = std::equal(analytic.begin(), analytic.end(), p.gradient().begin());

    // What rounding of the losses alone, in double, can leave of a difference: nothing smaller is seen. Large terms may
    // cancel in their sum, but their rounding does not.
    double magnitude = 0;
    for (const auto& [name, value] : p.losses()) magnitude += std::abs(value);
    const double unseen = 4 * std::numeric_limits<double>::epsilon() * magnitude / width;
    const auto compare = [&](const std::string& name, std::span<const real> slopes, const auto& nudge) {
        if (only && !only(name)) return;
        const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(slopes.size());
        double largest = 0;
        for (const real s : slopes) largest = std::max(largest, std::abs(static_cast<double>(s)));
        // A stride that is odd and near count / samples visits all columns of a matrix.
        const std::ptrdiff_t stride = count <= samples ? 1 : (count / samples) | 1;
        for (std::ptrdiff_t i = 0; i < count; i += stride) {
            double difference = 0;
            for (const auto& [offset, weight] : {std::pair{-2.0, 1.0}, {-1.0, -8.0}, {1.0, 8.0}, {2.0, -1.0}})
                difference += weight * nudge(i, offset * width);
            difference /= 12 * width;
            const double slope = static_cast<double>(slopes[static_cast<std::size_t>(i)]);
            const double size = std::max({std::abs(slope), std::abs(difference), 1e-3 * largest, 1e-9});
            const double apart = std::abs(slope - difference), wrong = apart <= unseen ? 0 : apart / size;
            ++report.compared;
            if (!(wrong <= report.worst)) {
                report.worst = std::isnan(wrong) ? INFINITY : wrong;
                report.where = message(name, "[", i, "]: backward ", slope, ", difference ", difference);
            }
        }
    };

    for (std::size_t id = 0; id < store->entries().size(); ++id) {
        const auto& e = store->entries()[id];
        const parameter param{static_cast<int>(id)};
        compare(e.name,
                std::span(analytic).subspan(static_cast<std::size_t>(e.offset), static_cast<std::size_t>(e.size())),
                [&](std::ptrdiff_t i, double by) {
                    const real before = store->values(param)[i];
                    store->edit().values(param)[i] = before + static_cast<real>(by);
                    const double l = loss();
                    store->edit().values(param)[i] = before;
                    return l;
                });
    }
    for (std::size_t k = 0; k < input_slopes.size(); ++k) {
        const std::string name = g.value(g.wanted_gradients()[k]).name;
        compare(name, input_slopes[k], [&](std::ptrdiff_t i, double by) {
            begin();
            p.input(name)[static_cast<std::size_t>(i)] += static_cast<real>(by);
            p.forward();
            return p.loss();
        });
    }
    return report;
}

}  // namespace engram
