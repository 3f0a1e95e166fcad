#pragma once
// SPDX-License-Identifier: MIT

// V-trace targets and advantages of an unroll as an operation (facts 1.5, errata M16), and those of generalised
// advantage estimation; all are constants.

#include <engram/kernels/scan_returns.hpp>
#include <engram/operations/points.hpp>

namespace engram {

/// The steps of a batch row, from the last one to the first.
template <class Real>
struct vtrace_of_row {
    const Real *log_ratio, *reward, *discount, *value, *bootstrap;
    Real *vs, *advantage;
    int steps, batch;
    vtrace_clips<Real> clips;
    ENGRAM_HD void operator()(std::ptrdiff_t b, int) const {
        vtrace_scan(log_ratio + b, reward + b, discount + b, value + b, bootstrap + b, steps, 1, batch, clips, vs + b,
                    advantage + b);
    }
};

template <class Backend>
struct vtrace_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    vtrace_kernel(const binder<Backend>& b, vtrace_clips<double> c)
        : point_kernel<Backend>(b),
          row{b.in(0).data,
              b.in(1).data,
              b.in(2).data,
              b.in(3).data,
              b.in(4).data,
              b.out(0).data,
              b.out(1).data,
              b.steps(),
              b.batch(),
              {static_cast<real>(c.rho_bar), static_cast<real>(c.c_bar), static_cast<real>(c.pg_rho_bar)}} {}
    void forward(int, int) override { this->each(this->batch, 1, row); }
    vtrace_of_row<real> row;
};

template <class Real>
struct generalised_advantages_of_row {
    const Real *reward, *discount, *value, *bootstrap;
    Real *returns, *advantage;
    int steps, batch;
    Real lambda;
    ENGRAM_HD void operator()(std::ptrdiff_t b, int) const {
        generalised_advantages(reward + b, discount + b, value + b, bootstrap + b, steps, 1, batch, lambda, returns + b,
                               advantage + b);
    }
};

template <class Backend>
struct generalised_advantage_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    generalised_advantage_kernel(const binder<Backend>& b, double decay)
        : point_kernel<Backend>(b), row{b.in(0).data, b.in(1).data,  b.in(2).data,
                                        b.in(3).data, b.out(0).data, b.out(1).data,
                                        b.steps(),    b.batch(),     static_cast<real>(decay)} {}
    void forward(int, int) override { this->each(this->batch, 1, row); }
    generalised_advantages_of_row<real> row;
};

template <class Backend>
struct returns_of {
    var<Backend> target, advantage;  // [T, B, 1]
};

namespace internal {

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

}  // namespace internal

/// log_ratio = log pi - log mu of the taken actions, reward, discount (zero where the episode ended) and value are
/// [T, B, 1], bootstrap is [B, 1]. All inputs must own their buffer (no slices).
template <class Backend>
returns_of<Backend> vtrace_targets(const std::string& name, const var<Backend>& log_ratio, const var<Backend>& reward,
                                   const var<Backend>& discount, const var<Backend>& value,
                                   const var<Backend>& bootstrap, vtrace_clips<double> clips = {}) {
    return internal::add_returns<vtrace_kernel, Backend>(name, {log_ratio, reward, discount, value, bootstrap}, clips);
}

/// Lambda returns and advantages of the policy whose values these are; shapes as above, lambda in 0..1.
template <class Backend>
returns_of<Backend> generalised_advantage(const std::string& name, const var<Backend>& reward,
                                          const var<Backend>& discount, const var<Backend>& value,
                                          const var<Backend>& bootstrap, double lambda) {
    require(lambda >= 0 && lambda <= 1, reward.owner->full_name(name), ": lambda is ", lambda, ", expected 0 to 1");
    return internal::add_returns<generalised_advantage_kernel, Backend>(name, {reward, discount, value, bootstrap},
                                                                        lambda);
}

}  // namespace engram
