// PPO on trajectories with episode ends inside: advantages and three losses from the equations (facts 3.9).

#include "loops.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/memory/no_memory.hpp>

#include "../model/prepare.hpp"

using namespace engram;
using oracle::numbers;

namespace {

void compare_ppo(bool standardise, double divergence_cost = 0) {
    using model = agent<mlp, feed_forward, no_memory, no_auxiliary, ppo>;
    constexpr int T = 9, B = 3;
    auto s = prepared::tiny<model>();
    // A discount that a float holds exactly.
    s.learner = {.discount = 0.9375,
                 .lambda = 0.75,
                 .clip = 0.2,
                 .value_cost = 0.7,
                 .entropy_cost = 0.02,
                 .standardise = standardise,
                 .divergence_cost = divergence_cost};
    const auto a = prepared::traced<model, cpu<double>>(s);
    program<cpu<double>> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true, .replay = true},
                           {a.logits, a.value});
    fill_randomly(p, a, 7);
    p.forward();
    const bool held = p.has_input("behaviour_policy");
    CHECK(held == (divergence_cost > 0));
    CHECK(held == p.has_input("divergence_weight"));
    const auto in = [&](const char* name, int t, int b) { return p.input(name)[static_cast<std::size_t>(t * B + b)]; };
    double policy = 0, value = 0, entropy = 0, divergence = 0;
    int bounded = 0, ends = 0;
    numbers advantages, ratios;
    for (int b = 0; b < B; ++b)
        for (int t = 0; t < T; ++t) {
            // A_t = sum_k (gamma lambda)^k delta_{t+k}, up to the end of the episode or of the unroll.
            double advantage = 0, weight = 1;
            for (int k = t; k < T && weight > 0; ++k) {
                const double next = k + 1 < T ? in("behaviour_value", k + 1, b) : in("bootstrap", 0, b);
                const double gamma = 0.9375 * in("continues", k, b);
                advantage += weight * (in("reward", k, b) + gamma * next - in("behaviour_value", k, b));
                weight *= gamma * 0.75;
            }
            ends += in("continues", t, b) < 0.5;
            const double goal = advantage + in("behaviour_value", t, b);
            const numbers log_pi = oracle::log_softmax(oracle::row(p.output(a.logits), t, b));
            const double ratio =
                std::exp(log_pi[static_cast<std::size_t>(in("action", t, b))] - in("behaviour_log_probability", t, b));
            advantages.push_back(advantage);
            ratios.push_back(ratio);
            const double v = oracle::row(p.output(a.value), t, b)[0];
            value += 0.7 * 0.5 * (goal - v) * (goal - v) / (T * B);
            for (const double l : log_pi) entropy += 0.02 * std::exp(l) * l / (T * B);
            const std::size_t actions = log_pi.size();
            for (std::size_t k = 0; held && k < actions; ++k) {
                const double log_mu = p.input("behaviour_policy")[static_cast<std::size_t>(t * B + b) * actions + k];
                divergence += in("divergence_weight", t, b) * std::exp(log_mu) * (log_mu - log_pi[k]) / (T * B);
            }
        }
    if (standardise) oracle::standardise(advantages);
    for (std::size_t i = 0; i < ratios.size(); ++i) {
        const double all = ratios[i] * advantages[i], kept = std::clamp(ratios[i], 0.8, 1.2) * advantages[i];
        bounded += all > kept;
        policy -= std::min(all, kept) / (T * B);
    }
    CHECK(bounded > 2);
    CHECK(bounded < T * B - 2);
    CHECK(ends > 2);
    const auto loss = [&](const std::string& end) {
        for (const auto& [name, found] : p.losses())
            if (name.ends_with(end)) return found;
        FAIL("no loss ends in ", end);
        return 0.0;
    };
    oracle::check_near({loss("policy_loss"), loss("value_loss"), loss("entropy_loss")}, {policy, value, entropy});
    if (held) oracle::check_near({loss("divergence_loss")}, {divergence});
}

}  // namespace

TEST_CASE("PPO: advantages of the behaviour's values, clipped ratios, means over the rows") {
    compare_ppo(false);
}
TEST_CASE("PPO with advantages of mean 0 and variance 1") {
    compare_ppo(true);
}

TEST_CASE("PPO with what it costs to leave the behaviour's policy") {
    compare_ppo(true, 0.2);
}

TEST_CASE("PPO: no gradient beyond the clip, and none back to where the ratio is at its bound") {
    const clipped_surrogate loss{0.2};
    const auto at = [&](double ratio, double advantage) { return loss(std::log(ratio), 0.0, advantage); };
    CHECK(at(1.1, 2.0) == doctest::Approx(-2.2));
    CHECK(at(1.5, 2.0) == doctest::Approx(-2.4));
    CHECK(at(0.5, 2.0) == doctest::Approx(-1.0));  // a gain that became rarer is pulled back
    CHECK(at(0.5, -2.0) == doctest::Approx(1.6));
    CHECK(at(1.5, -2.0) == doctest::Approx(3.0));
}
