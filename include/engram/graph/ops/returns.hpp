#pragma once
// SPDX-License-Identifier: MIT

// V-trace targets and advantages of an unroll as an operation (facts 1.5, errata M16); both are constants.

#include <engram/graph/ops/rows.hpp>
#include <engram/kernels/scan_returns.hpp>

namespace engram {

template <class Backend>
struct vtrace_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    vtrace_kernel(const binder<Backend>& b, vtrace_clips<double> c)
        : steps(b.steps()),
          batch(b.batch()),
          log_ratio(b.in(0)),
          reward(b.in(1)),
          discount(b.in(2)),
          value(b.in(3)),
          bootstrap(b.in(4)),
          vs(b.out(0)),
          advantage(b.out(1)),
          clips{static_cast<real>(c.rho_bar), static_cast<real>(c.c_bar), static_cast<real>(c.pg_rho_bar)} {}
    void forward(int, int) override {
        vtrace_scan(log_ratio.data, reward.data, discount.data, value.data, bootstrap.data, steps, batch, batch, clips,
                    vs.data, advantage.data);
    }
    int steps, batch;
    operand<real> log_ratio, reward, discount, value, bootstrap, vs, advantage;
    vtrace_clips<real> clips;
};

template <class Backend>
struct vtrace_returns {
    var<Backend> target, advantage;  // [T, B, 1]
};

/// log_ratio = log pi - log mu of the taken actions, reward, discount (zero where the episode ended) and value are
/// [T, B, 1], bootstrap is [B, 1]. All inputs must own their buffer (no slices).
template <class Backend>
vtrace_returns<Backend> vtrace_targets(const std::string& name, const var<Backend>& log_ratio,
                                       const var<Backend>& reward, const var<Backend>& discount,
                                       const var<Backend>& value, const var<Backend>& bootstrap,
                                       vtrace_clips<double> clips = {}) {
    graph<Backend>& g = *value.owner;
    std::vector<var<Backend>> inputs;
    for (const auto& v : {log_ratio, reward, discount, value, bootstrap}) {
        require(v.width == 1 && g.info(v).width == 1, g.full_name(name), ": inputs are columns of their own, not ",
                v.width, " of ", g.info(v).width);
        inputs.push_back(stop_gradient(v));
    }
    auto op = make_operation<vtrace_kernel>(g, name, inputs, clips);
    op->row_wise = false;
    const auto out = g.add(std::move(op), {1, 1}, extent::sequence);
    for (const auto& v : out) g.hold(v);
    return {stop_gradient(out[0]), stop_gradient(out[1])};
}

}  // namespace engram
