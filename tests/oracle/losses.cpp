// V-trace, CPC and reconstruction as policies, on trajectories with episode ends inside (facts 1.5, 1.6, 1.7).

#include "loops.hpp"

#include <algorithm>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

#include "../model/prepare.hpp"

using namespace engram;
using oracle::numbers;
using backend = cpu<double>;
using oracle::operator+;

namespace {

constexpr int T = 9, B = 3, A = 3;

template <class Agent>
struct unroll {
    traced_agent<backend> a;
    program<backend> p;

    explicit unroll(const typename Agent::settings& s)
        : a(prepared::traced<Agent, backend>(s)),
          p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true}, {a.x, a.h, a.logits, a.value}) {
        fill_randomly(p, a, 7);
        if (p.has_input("reset"))
            for (const int i : {0, 4 * B + 1, 7 * B + 1, 8 * B + 2}) p.input("reset")[static_cast<std::size_t>(i)] = 1;
        p.forward();
    }
    double loss(const std::string& end) const {
        for (const auto& [name, value] : p.losses())
            if (name.ends_with(end)) return value;
        FAIL("no loss ends in ", end);
        return 0;
    }
    double in(const char* name, int t, int b) { return p.input(name)[static_cast<std::size_t>(t * B + b)]; }
    numbers of(const var<backend>& v, int t, int b) const { return oracle::row(p.output(v), t, b); }
};

using contrastive = agent<mlp, feed_forward, no_memory, cpc, vtrace>;
using reconstructing = contrastive::with<reconstruction>;

void near(double a, double b) {
    oracle::check_near({a}, {b});
}

}  // namespace

namespace {

void compare_vtrace(double clip, bool standardise = false) {
    auto s = prepared::tiny<contrastive>();
    // Numbers that a float holds exactly, as the discount is one.
    s.learner = {.discount = 0.9375,
                 .baseline_cost = 0.7,
                 .entropy_cost = 0.02,
                 .rho_bar = 0.9,
                 .c_bar = 0.8,
                 .clip = clip,
                 .standardise = standardise};
    unroll<contrastive> u(s);
    double policy = 0, baseline = 0, entropy = 0;
    int clipped = 0;
    numbers ratios, gains, logs;
    for (int b = 0; b < B; ++b) {
        numbers V, ratio, discount;
        for (int t = 0; t < T; ++t) {
            V.push_back(u.of(u.a.value, t, b)[0]);
            const auto log_pi = oracle::log_softmax(u.of(u.a.logits, t, b));
            ratio.push_back(std::exp(log_pi[static_cast<std::size_t>(u.in("action", t, b))] -
                                     u.in("behaviour_log_probability", t, b)));
            discount.push_back(0.9375 * u.in("continues", t, b));
            clipped += ratio.back() > 1;
        }
        V.push_back(u.p.input("bootstrap")[static_cast<std::size_t>(b)]);
        numbers v = V;  // v_T is the bootstrap
        for (int t = T - 1; t >= 0; --t) {
            const auto i = static_cast<std::size_t>(t);
            const double delta = std::min(0.9, ratio[i]) * (u.in("reward", t, b) + discount[i] * V[i + 1] - V[i]);
            v[i] = V[i] + delta + discount[i] * std::min(0.8, ratio[i]) * (v[i + 1] - V[i + 1]);
        }
        for (int t = 0; t < T; ++t) {
            const auto i = static_cast<std::size_t>(t);
            const auto log_pi = oracle::log_softmax(u.of(u.a.logits, t, b));
            const double bare = u.in("reward", t, b) + discount[i] * v[i + 1] - V[i];
            gains.push_back(clip > 0 ? bare : std::min(1.0, ratio[i]) * bare);
            ratios.push_back(ratio[i]);
            logs.push_back(log_pi[static_cast<std::size_t>(u.in("action", t, b))]);
            baseline += 0.7 * 0.5 * (v[i] - V[i]) * (v[i] - V[i]);
            for (const double l : log_pi) entropy += 0.02 * std::exp(l) * l;
        }
    }
    if (standardise) oracle::standardise(gains);
    for (std::size_t i = 0; i < gains.size(); ++i)
        policy -= clip > 0 ? std::min(ratios[i] * gains[i], std::clamp(ratios[i], 1 - clip, 1 + clip) * gains[i])
                           : logs[i] * gains[i];
    CHECK(clipped > 3);
    CHECK(clipped < T * B - 3);
    near(u.loss("policy_loss"), policy);
    near(u.loss("baseline_loss"), baseline);
    near(u.loss("entropy_loss"), entropy);
}

}  // namespace

TEST_CASE("V-trace: three losses with clips, discounts and episode ends") {
    compare_vtrace(0);
}
TEST_CASE("V-trace with a clipped surrogate in place of the policy gradient") {
    compare_vtrace(0.25);
}
TEST_CASE("V-trace with standardised advantages, with and without the surrogate") {
    compare_vtrace(0, true);
    compare_vtrace(0.25, true);
}

TEST_CASE("CPC: positives, negatives of the same episode, and the weight") {
    auto s = prepared::tiny<contrastive>();
    for (const int N : {1, 3, 12}) {
        s.auxiliary.steps = N;
        s.auxiliary.weight = 3;
        unroll<contrastive> u(s);
        const int X = 4;
        double total = 0;
        int pairs = 0;
        for (int b = 0; b < B; ++b)
            for (int t = 1; t <= T; ++t)
                for (int k = 1; k <= std::min(N, T - 1) && t + k <= T; ++k) {
                    // Episode of each step, counted from 1 as the facts do.
                    const auto episode = [&](int step) {
                        int e = 0;
                        for (int i = 2; i <= step; ++i) e += u.in("reset", i - 1, b) > 0.5;
                        return e;
                    };
                    if (episode(t + k) != episode(t)) continue;
                    const numbers h = u.of(u.a.h, t - 1, b);
                    numbers score, is_positive;
                    for (int j = k + 1; j <= T; ++j) {
                        if (episode(j) != episode(t)) continue;
                        const numbers x = u.of(u.a.x, j - 1, b);
                        double sum = 0;
                        for (std::size_t row = 0; row < h.size(); ++row)
                            for (int i = 0; i < X; ++i)
                                sum += x[static_cast<std::size_t>(i)] *
                                       oracle::weight(*u.a.store, "auxiliary.predict.weight", static_cast<int>(row),
                                                      (k - 1) * X + i) *
                                       h[row];
                        score.push_back(sum);
                        is_positive.push_back(j == t + k);
                    }
                    if (score.size() < 2) continue;  // nothing to tell it from
                    ++pairs;
                    const numbers log_p = oracle::log_softmax(score);
                    for (std::size_t j = 0; j < score.size(); ++j)
                        total -= is_positive[j] > 0
                                     ? log_p[j]
                                     : std::log(1 - std::exp(log_p[j])) / static_cast<double>(score.size() - 1);
                }
        CHECK(pairs > 10);
        near(u.loss("auxiliary.loss"), 3 * total);
    }
}

TEST_CASE("reconstruction: image, action and reward of the step before") {
    auto s = prepared::tiny<reconstructing>();
    s.auxiliary = {.image = 3, .action = 0.5, .reward = 2, .weight = 0.25};
    unroll<reconstructing> u(s);
    const auto& store = *u.a.store;
    double image = 0, action = 0, reward = 0, largest = 0;
    for (int t = 0; t < T; ++t)
        for (int b = 0; b < B; ++b) {
            const numbers h = u.of(u.a.h, t, b);
            // The MLP 16 -> 6 -> 4 backwards: h -> 6 -> 16.
            const numbers logits = oracle::affine(store, "auxiliary.image.pixels",
                                                  oracle::relu(oracle::affine(store, "auxiliary.image.layers.0", h)));
            const numbers pixels = oracle::row(u.p.input("observation"), 16, B, t, b);
            for (std::size_t i = 0; i < 16; ++i) {
                const double p = oracle::sigmoid(logits[i]);
                image -= 0.25 * 3 * (pixels[i] * std::log(p) + (1 - pixels[i]) * std::log(1 - p));
            }
            const numbers guess = oracle::affine(store, "auxiliary.action", h);
            for (int i = 0; i < A; ++i) {
                const double d =
                    guess[static_cast<std::size_t>(i)] - (static_cast<int>(u.in("last_action", t, b)) == i);
                action += 0.25 * 0.5 * 0.5 * d * d;
            }
            largest = std::max(largest, u.in("last_reward", t, b));
            const double r = u.in("last_reward", t, b) - oracle::affine(store, "auxiliary.reward", h)[0];
            reward += 0.25 * 2 * 0.5 * r * r;
        }
    near(u.loss("auxiliary.image"), image);
    near(u.loss("auxiliary.action"), action);
    near(u.loss("auxiliary.reward"), reward);
    CHECK(largest > 1);  // beyond what the controller is told: rewards are predicted as they were paid
}

TEST_CASE("the feed-forward controller") {
    unroll<contrastive> u(prepared::tiny<contrastive>());
    for (int t = 0; t < T; ++t)
        for (int b = 0; b < B; ++b) {
            numbers last(A, 0);
            last[static_cast<std::size_t>(u.in("last_action", t, b))] = 1;
            const numbers in = u.of(u.a.x, t, b) + last + numbers{std::clamp(u.in("last_reward", t, b), -1.0, 1.0)};
            oracle::check_near(u.of(u.a.h, t, b), oracle::relu(oracle::affine(*u.a.store, "controller.layer", in)));
        }
}
