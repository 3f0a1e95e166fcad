#pragma once
// SPDX-License-Identifier: MIT

// V-trace and generalised advantages on a device: one thread a batch row runs the host's scan over its T steps.

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/returns.hpp>

namespace engram {

template <class Real>
struct vtrace_row {
    const Real *log_ratio, *reward, *discount, *value, *bootstrap;
    Real *vs, *advantage;
    int steps, batch;
    vtrace_clips<Real> clips;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        vtrace_scan(log_ratio + b, reward + b, discount + b, value + b, bootstrap + b, steps, 1, batch, clips, vs + b,
                    advantage + b);
    }
};

template <device_backend Backend>
struct vtrace_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    vtrace_kernel(const binder<Backend>& b, vtrace_clips<double> c)
        : device_kernel<Backend>(b),
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
    void forward(int, int) override { this->launch(1, 1, row); }
    vtrace_row<real> row;
};

template <class Real>
struct generalised_advantage_row {
    const Real *reward, *discount, *value, *bootstrap;
    Real *returns, *advantage;
    int steps, batch;
    Real lambda;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        generalised_advantages(reward + b, discount + b, value + b, bootstrap + b, steps, 1, batch, lambda, returns + b,
                               advantage + b);
    }
};

template <device_backend Backend>
struct generalised_advantage_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    generalised_advantage_kernel(const binder<Backend>& b, double decay)
        : device_kernel<Backend>(b), row{b.in(0).data, b.in(1).data,  b.in(2).data,
                                         b.in(3).data, b.out(0).data, b.out(1).data,
                                         b.steps(),    b.batch(),     static_cast<real>(decay)} {}
    void forward(int, int) override { this->launch(1, 1, row); }
    generalised_advantage_row<real> row;
};

}  // namespace engram
