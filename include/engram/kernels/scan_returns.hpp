#pragma once
// SPDX-License-Identifier: MIT

// Reversed scans over an unroll: V-trace (facts 1.5, errata M16) and generalised advantage estimation.
//
//   V-trace  ratio_t = pi / mu,  rho_t = min(rho_bar, ratio_t),  c_t = min(c_bar, ratio_t)
//            delta_t = rho_t (r_t + gamma_t V_{t+1} - V_t),  a_t = delta_t + gamma_t c_t a_{t+1},  a_T = 0
//            v_t = V_t + a_t,  A_t = min(pg_rho_bar, ratio_t) (r_t + gamma_t v_{t+1} - V_t),  v_T = V_T = bootstrap
//   GAE      delta_t = r_t + gamma_t V_{t+1} - V_t,  A_t = delta_t + gamma_t lambda A_{t+1},  A_T = 0,
//            return_t = V_t + A_t
//
// Arrays are [T, B] with B numbers in a row and `stride` numbers between rows; bootstrap is [B]. gamma_t is the
// discount of the step, zero where the episode ended. Targets and advantages are constants for the gradient. NaN passes
// through.

#include <cmath>
#include <cstddef>

#include "engram/core/device.hpp"

namespace engram {

/// Upper bounds of the importance ratios: of the temporal difference, of the trace, of the policy gradient (0: the
/// advantage has no ratio, for a surrogate that has it).
template <class Real>
struct vtrace_clips {
    Real rho_bar = 1, c_bar = 1, pg_rho_bar = 1;
};

/// V-trace targets vs [T, B] and policy-gradient advantages [T, B]; log_ratio = log pi - log mu of the taken actions.
template <class Real>
ENGRAM_HD_CALL void vtrace_scan(const Real* log_ratio, const Real* reward, const Real* discount, const Real* value,
                                const Real* bootstrap, int T, int B, std::ptrdiff_t stride, vtrace_clips<Real> clips,
                                Real* vs, Real* advantage) {
    // Not std::min, which would turn a NaN ratio into its bound and hide it.
    const auto clipped = [](Real ratio, Real bar) { return ratio > bar ? bar : ratio; };
    for (int b = 0; b < B; ++b) {
        Real trace = 0, next_value = bootstrap[b], next_target = bootstrap[b];
        for (int t = T - 1; t >= 0; --t) {
            const std::ptrdiff_t i = t * stride + b;
            const Real ratio = std::exp(log_ratio[i]), gamma = discount[i], v = value[i];
            trace = clipped(ratio, clips.rho_bar) * (reward[i] + gamma * next_value - v) +
                    gamma * clipped(ratio, clips.c_bar) * trace;
            const Real weight = clips.pg_rho_bar > 0 ? clipped(ratio, clips.pg_rho_bar) : Real(1);
            advantage[i] = weight * (reward[i] + gamma * next_target - v);
            next_value = v;
            next_target = vs[i] = v + trace;
        }
    }
}

/// Lambda returns [T, B] and advantages [T, B] of the behaviour policy itself.
template <class Real>
ENGRAM_HD_CALL void generalised_advantages(const Real* reward, const Real* discount, const Real* value,
                                           const Real* bootstrap, int T, int B, std::ptrdiff_t stride, Real lambda,
                                           Real* returns, Real* advantage) {
    for (int b = 0; b < B; ++b) {
        Real sum = 0, next_value = bootstrap[b];
        for (int t = T - 1; t >= 0; --t) {
            const std::ptrdiff_t i = t * stride + b;
            sum = reward[i] + discount[i] * next_value - value[i] + discount[i] * lambda * sum;
            next_value = value[i];
            advantage[i] = sum;
            returns[i] = value[i] + sum;
        }
    }
}

}  // namespace engram
