#pragma once
// SPDX-License-Identifier: MIT

// QR-DQN: the distribution of the return of every action as N atoms, by quantile regression (Dabney et al. 2018; facts
// 3.8). MemUP's detector for reinforcement learning: where the return of what was done is uncertain, memory may help.
//
//   y_j = r + gamma continues z'_j(o', argmax_a Q'(o', a)),  z' the target network,  Q = mean of the atoms
//   L = mean over rows of sum_i mean_j |tau_i - 1[d_ij < 0]| Huber(d_ij) / kappa,  d_ij = y_j - z_i(a_t)
//   s_t = ln(sigma_t sqrt(2 pi e)), sigma_t the deviation of the atoms of a_t (errata U12, U29)
//
// Trajectory inputs: action (index) [T, B, 1], target_atoms [T, B, N]: `fill_targets` makes them from a program of the
// target network. As a policy it is the softmax of Q; behaviour in MemUP is uniform (epsilon 1), so nothing depends on
// it. Outputs nobody trains are constants.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/quantiles.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

struct quantile_regression {
    using role = learner_role;

    struct settings {
        int atoms = 200;      // N of an action
        double kappa = 1;     // where Huber's loss becomes linear
        double discount = 0;  // facts 3.8: 0 for the T-Maze, 0.8 for Two Colors
        void check() const {
            require(atoms > 1, "learner.atoms: expected at least two, got ", atoms);
            require(kappa > 0, "learner.kappa: expected a positive number, got ", kappa);
            require(discount >= 0 && discount <= 1, "learner.discount: expected a number in 0..1, got ", discount);
        }
    };
    template <class Var>
    struct heads {
        Var logits, value, log_policy;  // Q [T, B, A]; its largest [T, B, 1]; log softmax Q
        Var atoms;                      // [T, B, A * N]
    };

    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>& g, const settings& s, const var<Backend>& h,
                                         const task_shape& task) {
        const auto atoms = affine("atoms", h, g.declare_linear("atoms", h.width, task.actions * s.atoms));
        const auto mean = mean_of_atoms("action_value", atoms, task.actions);
        return {mean, largest_column("value", mean), log_softmax("log_policy", mean), atoms};
    }
    /// The uncertainty of what is done [T, B, 1], nats.
    template <class Backend>
    static var<Backend> add_losses(graph<Backend>& g, const settings& s, const heads<var<Backend>>& out) {
        const auto action = g.input("action", 1), target = g.input("target_atoms", s.atoms);
        const auto taken = atoms_of("taken", out.atoms, action, s.atoms);
        add_loss("quantile_loss", quantile_huber_loss("quantile_huber", taken, target, s.kappa), 1, reduction::mean);
        return entropy_of_atoms("uncertainty", taken);
    }

    /// Target atoms [rows, N] from atoms of what came next [rows, A * N], given by the target network; `reward` and
    /// `continues` (0 where the step ended the episode) are [rows].
    template <class Real>
    static void fill_targets(const settings& s, std::span<const Real> reward, std::span<const Real> continues,
                             std::span<const Real> next, int actions, std::span<Real> target) {
        const auto n = static_cast<std::size_t>(s.atoms), A = static_cast<std::size_t>(actions);
        require(
            target.size() == reward.size() * n && next.size() == target.size() * A && continues.size() == reward.size(),
            "quantile regression: ", reward.size(), " rewards, ", continues.size(), " continuations, ", next.size(),
            " next atoms and ", target.size(), " target atoms do not go together");
        for (std::size_t r = 0; r < reward.size(); ++r) {
            const Real* z = next.data() + r * A * n;
            const Real* best = z;
            Real most = 0;
            for (std::size_t a = 0; a < A; ++a) {
                Real sum = 0;
                for (std::size_t i = 0; i < n; ++i) sum += z[a * n + i];
                if (a == 0 || sum > most) most = sum, best = z + a * n;
            }
            const Real gamma = static_cast<Real>(s.discount) * continues[r];
            // Nothing of what came after an end may count, NaN included.
            for (std::size_t j = 0; j < n; ++j) target[r * n + j] = gamma > 0 ? reward[r] + gamma * best[j] : reward[r];
        }
    }

private:
    template <class Backend>
    static var<Backend> largest_column(const std::string& name, const var<Backend>& x) {
        return largest(name, x);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::quantile_regression::settings, atoms, kappa, discount);

static_assert(engram::learner_policy<engram::quantile_regression>);
