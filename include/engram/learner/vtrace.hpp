#pragma once
// SPDX-License-Identifier: MIT

// V-trace actor-critic, the learner of IMPALA and of the Memory Recall Agent (facts 1.5, errata M16).
//
//   L = sum_{t,b} [ -log pi(a_t) A_t + c_baseline 1/2 (v_t - V_t)^2 + c_entropy sum_a pi log pi ]
//
// Sums over time and batch, as IMPALA does: with Adam's epsilon of 1e-4 and a norm clip of 40 this scale is part of
// what makes learning robust (docs/results/mra.md). Targets v_t and advantages A_t are constants.
//
// Where an unroll is learnt from more than once (rollout.epochs, rollout.minibatches), `clip` c > 0 stops a step's
// policy gradient once its ratio has left 1 by c, as PPO's surrogate does (docs/decisions/0017): with ratio = pi / mu
// and advantages that have no ratio of their own, the first term is then
//
//     -min(ratio_t A_t, clip(ratio_t, 1 - c, 1 + c) A_t)
//
// whose gradient is the same as long as both policies are. With `standardise` the policy's A is what is left of A_t
// after the mean and the deviation of all T B of them are taken out, so that the scale of rewards does not weigh it
// against the entropy.
//
// Trajectory inputs, [T, B, 1] unless said: action (index), reward, continues (0 where the step ended the episode),
// behaviour_log_probability (log mu(a_t)), bootstrap [B, 1] (the value after the last step).

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/normalise.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/returns.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

struct policy_gradient {
    constexpr auto operator()(auto log_probability, auto advantage) const { return -(log_probability * advantage); }
};
/// What is lost by a step under the clipped surrogate.
struct clipped_surrogate {
    double clip;
    constexpr auto operator()(auto log_probability, auto behaviour, auto advantage) const {
        auto ratio = exp(log_probability - behaviour);
        // The smaller of the two products: the ratio is bounded from above for a gain, from below for a loss.
        return -(advantage * select(advantage > 0, min(ratio, 1 + clip), max(ratio, 1 - clip)));
    }
};
struct baseline_error {
    constexpr auto operator()(auto target, auto value) const { return 0.5f * square(target - value); }
};
struct negative_entropy {
    constexpr auto operator()(auto log_probability) const { return exp(log_probability) * log_probability; }
};
struct scale_by {
    double factor;
    constexpr auto operator()(auto x) const { return x * factor; }
};

/// The policy's advantages as a learner's settings have them: a constant.
template <class Backend, class Settings>
var<Backend> advantage_of(const Settings& s, const returns_of<Backend>& returns) {
    return s.standardise ? stop_gradient(standardise("standardised", returns.advantage)) : returns.advantage;
}

struct vtrace {
    using role = learner_role;

    struct settings {
        double discount = 0.98;      // gamma, a step
        double baseline_cost = 0.5;  // weight of half the squared error of the value
        double entropy_cost = 0.01;  // weight of the negative entropy
        double rho_bar = 1;          // clip of the importance ratio in targets
        double c_bar = 1;            // clip of the ratio that carries them back
        double clip = 0;             // how far the ratio may leave 1 before the policy's gradient stops; 0: any
        bool standardise = false;    // advantages with mean 0 and variance 1, over all rows: one shard
        void check() const {
            require(discount >= 0 && discount <= 1, "learner.discount: expected a number in 0..1, got ", discount);
            require(baseline_cost >= 0, "learner.baseline_cost: expected zero or more, got ", baseline_cost);
            require(entropy_cost >= 0, "learner.entropy_cost: expected zero or more, got ", entropy_cost);
            require(rho_bar > 0, "learner.rho_bar: expected a positive number, got ", rho_bar);
            require(c_bar > 0, "learner.c_bar: expected a positive number, got ", c_bar);
            require(clip >= 0 && clip < 1, "learner.clip: expected a number from 0 to below 1, got ", clip);
        }
    };

    /// What acting needs: logits and log-probabilities [T, B, A], value [T, B, 1].
    template <class Var>
    struct heads {
        Var logits, value, log_policy;
    };

    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>& g, const settings&, const var<Backend>& h,
                                         const task_shape& task) {
        return heads_on(g, h, h, task);
    }
    /// The heads on what either sees.
    template <class Backend>
    static heads<var<Backend>> heads_on(graph<Backend>& g, const var<Backend>& of_policy, const var<Backend>& of_value,
                                        const task_shape& task) {
        using real = typename Backend::real;
        // A nearly uniform policy and a value near zero: the first updates are not spent on undoing chance.
        const auto policy = g.declare_linear("policy", of_policy.width, task.actions, initial::fan_in<real>(0.1));
        const auto value = g.declare_linear("value", of_value.width, 1, initial::fan_in<real>(0.1));
        const auto logits = affine("policy", of_policy, policy);
        return {logits, affine("value", of_value, value), log_softmax("log_policy", logits)};
    }

    template <class Backend>
    static void add_losses(graph<Backend>& g, const settings& s, const heads<var<Backend>>& out) {
        const auto action = g.input("action", 1), reward = g.input("reward", 1), continues = g.input("continues", 1);
        const auto behaviour = g.input("behaviour_log_probability", 1);
        const auto bootstrap = g.input("bootstrap", 1, extent::batch);
        const auto taken = pick("taken", out.log_policy, action);
        const auto ratio = map("log_ratio", subtract{}, stop_gradient(taken), behaviour);
        const auto discount = map("discount", scale_by{s.discount}, continues);
        const auto returns = vtrace_targets("vtrace", ratio, reward, discount, stop_gradient(out.value), bootstrap,
                                            {s.rho_bar, s.c_bar, s.clip > 0 ? 0.0 : 1.0});
        const auto advantage = advantage_of(s, returns);
        if (s.clip > 0)
            add_loss("policy_loss", map("clipped_surrogate", clipped_surrogate{s.clip}, taken, behaviour, advantage));
        else
            add_loss("policy_loss", map("policy_gradient", policy_gradient{}, taken, advantage));
        add_loss("baseline_loss", map("baseline_error", baseline_error{}, returns.target, out.value), s.baseline_cost);
        add_loss("entropy_loss", sum_columns("entropy", map("negative_entropy", negative_entropy{}, out.log_policy)),
                 s.entropy_cost);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::vtrace::settings, discount, baseline_cost, entropy_cost, rho_bar, c_bar, clip, standardise);

static_assert(engram::learner_policy<engram::vtrace>);
