#pragma once
// SPDX-License-Identifier: MIT

// PPO: proximal policy optimisation with a clipped ratio (Schulman et al. 2017; facts 3.9, errata U17).
//
//   ratio_t = pi(a_t) / mu(a_t),  A_t and G_t by generalised advantage estimation from the behaviour's own values
//   L = mean_{t,b} [ -min(ratio_t A_t, clip(ratio_t, 1 - c, 1 + c) A_t) + c_value 1/2 (G_t - V_t)^2
//                    + c_entropy sum_a pi log pi ]
//
// Means over the rows of the minibatch. With `standardise` the policy's A is what is left of A_t after the mean and the
// deviation of the minibatch's T B advantages are taken out, so that the scale of rewards does not weigh it against the
// entropy. mu and its values are those of acting: they are recorded once and stay as they are for all epochs
// (rollout.epochs, rollout.minibatches of train/acting_update.hpp). Defaults are rlpyt's, which the paper does not
// state: clip 0.1, value cost 1, entropy 0.01, lambda 1, advantages as they are. Where the rate falls, rlpyt lets the
// clip fall with it; here it stays.
//
// With a `divergence_cost` the loss has beta mean_{t,b} KL(mu || pi) too, which holds the policy near the behaviour's
// in all actions, not in the taken one alone. beta is that cost at first; it grows by half after an iteration whose
// updates had more than twice `divergence_target` in the mean, and is halved after one below half of it
// (popgym.md 3.2).
//
// With `head_layers` policy and value have layers of their own between h and their heads: log pi = log_softmax(
// relu(relu(h W_1 + b_1) ...) W + b), V the same with other weights.
//
// Trajectory inputs, [T, B, 1] unless said: action (index), reward, continues (0 where the step ended the episode),
// behaviour_log_probability (log mu(a_t)), behaviour_value, bootstrap [B, 1] (the value after the last step); with a
// divergence_cost behaviour_policy [T, B, A] (log mu) and divergence_weight (beta).

#include <vector>

#include <engram/encoder/layers.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

/// What one action adds to KL(mu || pi), from the logarithms of its probabilities.
struct divergence_of_action {
    constexpr auto operator()(auto behaviour, auto now) const { return exp(behaviour) * (behaviour - now); }
};

struct ppo {
    using role = learner_role;

    struct settings {
        double discount = 0.99;           // gamma, a step
        double lambda = 1;                // of generalised advantage estimation
        double clip = 0.1;                // c, how far the ratio may leave 1
        double value_cost = 1;            // weight of half the squared error of the value
        double entropy_cost = 0.01;       // weight of the negative entropy
        bool standardise = false;         // advantages of a minibatch with mean 0 and variance 1: one shard
        double divergence_cost = 0;       // beta, of how far the policy has gone from the behaviour's; 0: without
        double divergence_target = 0.01;  // nats
        std::vector<int> head_layers{};   // widths of the layers with ReLU that either head has before it
        void check() const {
            require(discount >= 0 && discount <= 1, "learner.discount: expected a number in 0..1, got ", discount);
            require(lambda >= 0 && lambda <= 1, "learner.lambda: expected a number in 0..1, got ", lambda);
            require(clip > 0 && clip < 1, "learner.clip: expected a number between 0 and 1, got ", clip);
            require(value_cost >= 0, "learner.value_cost: expected zero or more, got ", value_cost);
            require(entropy_cost >= 0, "learner.entropy_cost: expected zero or more, got ", entropy_cost);
            require(divergence_cost >= 0, "learner.divergence_cost: expected zero or more, got ", divergence_cost);
            require(divergence_target > 0, "learner.divergence_target: expected a positive number, got ",
                    divergence_target);
            for (const int n : head_layers) require(n > 0, "learner.head_layers: expected positive widths, got ", n);
        }
    };

    template <class Var>
    using heads = vtrace::heads<Var>;

    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>& g, const settings& s, const var<Backend>& h,
                                         const task_shape& task) {
        const auto layers = [&](const char* name) {
            return apply_layers(name, h, declare_layers(g, name, h.width, s.head_layers));
        };
        const auto of_policy = layers("policy_layers"), of_value = layers("value_layers");
        return vtrace::heads_on(g, of_policy, of_value, task);
    }

    template <class Backend>
    static void add_losses(graph<Backend>& g, const settings& s, const heads<var<Backend>>& out) {
        const auto action = g.input("action", 1), reward = g.input("reward", 1), continues = g.input("continues", 1);
        const auto behaviour = g.input("behaviour_log_probability", 1), value = g.input("behaviour_value", 1);
        const auto bootstrap = g.input("bootstrap", 1, extent::batch);
        const auto discount = map("discount", scale_by{s.discount}, continues);
        const auto returns = generalised_advantage("advantage", reward, discount, value, bootstrap, s.lambda);
        const auto taken = pick("taken", out.log_policy, action);
        add_loss("policy_loss",
                 map("clipped_surrogate", clipped_surrogate{s.clip}, taken, behaviour, advantage_of(s, returns)), 1,
                 reduction::mean);
        add_loss("value_loss", map("value_error", baseline_error{}, returns.target, out.value), s.value_cost,
                 reduction::mean);
        add_loss("entropy_loss", sum_columns("entropy", map("negative_entropy", negative_entropy{}, out.log_policy)),
                 s.entropy_cost, reduction::mean);
        if (s.divergence_cost == 0) return;
        const auto behaviour_policy = record("behaviour_policy", {out.log_policy});
        const auto divergence = sum_columns(
            "divergence", map("divergence_of_actions", divergence_of_action{}, behaviour_policy, out.log_policy));
        const auto weight =
            g.adaptive_weight("divergence_weight", "divergence_loss", s.divergence_cost, s.divergence_target);
        add_loss("divergence_loss", map("weighted_divergence", times{}, divergence, weight), 1, reduction::mean);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::ppo::settings, discount, lambda, clip, value_cost, entropy_cost, standardise, divergence_cost,
               divergence_target, head_layers);

static_assert(engram::learner_policy<engram::ppo>);
