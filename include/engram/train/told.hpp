#pragma once
// SPDX-License-Identifier: MIT

// Between two steps of acting, on the host and on a device: an action is drawn, and what it gave is told to the step
// after it.

#include <cmath>

#include <engram/core/device.hpp>

namespace engram {

/// What a step is told of the one before; by default the first step of an episode, which had none.
template <class Real>
struct told {
    Real last_action = -1, last_reward = 0, reset = 1;
};

/// What a step is told after this action, which gave this reward and may have ended the episode.
template <class Real>
ENGRAM_HD constexpr told<Real> told_after(Real action, Real reward, bool done) {
    return done ? told<Real>{} : told<Real>{action, reward, 0};
}

/// An action by its number, and whether the policy was finite as far as it was read.
struct drawn_action {
    int action;
    bool finite;
};

/// Draws an action by the logarithms of a policy and one uniform number, by the inverse of the distribution function.
template <class Real>
ENGRAM_HD drawn_action draw_action(const Real* log_policy, int actions, double uniform) {
    double sum = 0;
    for (int a = 0; a < actions - 1; ++a) {
        sum += std::exp(static_cast<double>(log_policy[a]));
        if (uniform < sum) return {a, sum - sum == 0};
    }
    return {actions - 1, sum - sum == 0};
}

}  // namespace engram
