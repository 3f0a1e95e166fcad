#pragma once
// SPDX-License-Identifier: MIT

// V-trace targets and advantages of an unroll as an operation (facts 1.5, errata M16), and those of generalised
// advantage estimation; all are constants.

#include <engram/graph/simple_operation.hpp>
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
struct generalised_advantage_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    generalised_advantage_kernel(const binder<Backend>& b, double decay)
        : steps(b.steps()),
          batch(b.batch()),
          reward(b.in(0)),
          discount(b.in(1)),
          value(b.in(2)),
          bootstrap(b.in(3)),
          returns(b.out(0)),
          advantage(b.out(1)),
          lambda(static_cast<real>(decay)) {}
    void forward(int, int) override {
        generalised_advantages(reward.data, discount.data, value.data, bootstrap.data, steps, batch, batch, lambda,
                               returns.data, advantage.data);
    }
    int steps, batch;
    operand<real> reward, discount, value, bootstrap, returns, advantage;
    real lambda;
};

template <class Backend>
struct returns_of {
    var<Backend> target, advantage;  // [T, B, 1]
};

namespace detail {

template <template <class> class Kernel, class Backend, class Settings>
returns_of<Backend> add_returns(const std::string& name, const std::vector<var<Backend>>& inputs,
                                const Settings& settings) {
    graph<Backend>& g = *inputs[0].owner;
    std::vector<var<Backend>> constants;
    for (const auto& v : inputs) {
        require(v.width == 1 && g.info(v).width == 1, g.full_name(name), ": inputs are columns of their own, not ",
                v.width, " of ", g.info(v).width);
        const bool last = constants.size() + 1 == inputs.size();
        require(g.info(v).rows == (last ? extent::batch : extent::sequence), g.full_name(name), ": '", g.info(v).name,
                last ? "' is the bootstrap and has steps; [B,1] is expected"
                     : "' has no steps; [T,B,1] is expected of all but the bootstrap");
        constants.push_back(stop_gradient(v));
    }
    auto op = make_operation<Kernel>(g, name, constants, settings);
    op->row_wise = false;
    const auto out = g.add(std::move(op), {1, 1}, extent::sequence);
    for (const auto& v : out) g.hold(v);
    return {stop_gradient(out[0]), stop_gradient(out[1])};
}

}  // namespace detail

/// log_ratio = log pi - log mu of the taken actions, reward, discount (zero where the episode ended) and value are
/// [T, B, 1], bootstrap is [B, 1]. All inputs must own their buffer (no slices).
template <class Backend>
returns_of<Backend> vtrace_targets(const std::string& name, const var<Backend>& log_ratio, const var<Backend>& reward,
                                   const var<Backend>& discount, const var<Backend>& value,
                                   const var<Backend>& bootstrap, vtrace_clips<double> clips = {}) {
    return detail::add_returns<vtrace_kernel, Backend>(name, {log_ratio, reward, discount, value, bootstrap}, clips);
}

/// Lambda returns and advantages of the policy whose values these are; shapes as above, lambda in 0..1.
template <class Backend>
returns_of<Backend> generalised_advantage(const std::string& name, const var<Backend>& reward,
                                          const var<Backend>& discount, const var<Backend>& value,
                                          const var<Backend>& bootstrap, double lambda) {
    require(lambda >= 0 && lambda <= 1, reward.owner->full_name(name), ": lambda is ", lambda, ", expected 0 to 1");
    return detail::add_returns<generalised_advantage_kernel, Backend>(name, {reward, discount, value, bootstrap},
                                                                      lambda);
}

}  // namespace engram
