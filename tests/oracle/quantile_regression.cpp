// QR-DQN from the equations, in loops (facts 3.8, errata U12, U29), and its gradient against central differences.

#include "loops.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/quantile_regression.hpp>
#include <engram/memory/no_memory.hpp>

#include "../model/prepare.hpp"

using namespace engram;
using oracle::numbers;

namespace {

using detector = agent<mlp, feed_forward, no_memory, no_auxiliary, quantile_regression>;

double huber_loss(const numbers& z, const numbers& y, double kappa) {
    const auto N = static_cast<double>(z.size());
    double total = 0;
    for (std::size_t i = 0; i < z.size(); ++i)
        for (std::size_t j = 0; j < y.size(); ++j) {
            const double d = y[j] - z[i], tau = (2.0 * static_cast<double>(i + 1) - 1) / (2 * N);
            const double huber = std::abs(d) <= kappa ? d * d / 2 : kappa * (std::abs(d) - kappa / 2);
            total += std::abs(tau - (d < 0 ? 1.0 : 0.0)) * huber / kappa / N;
        }
    return total;
}

/// The loss of one row of atoms by the operation, and its slopes.
template <class Real>
std::pair<double, std::vector<Real>> traced_loss(const std::vector<Real>& atoms, const std::vector<Real>& targets,
                                                 double kappa) {
    const int n = static_cast<int>(atoms.size());
    const auto store = std::make_shared<parameters<Real>>(1);
    graph<cpu<Real>> g(store);
    const auto z = g.input("z", n, extent::sequence, true), y = g.input("y", n);
    add_loss("loss", quantile_huber_loss("huber", z, y, kappa));
    program<cpu<Real>> p(g, store, {.steps = 1, .batch = 1, .gradients = true});
    std::copy(atoms.begin(), atoms.end(), p.input("z").begin());
    std::copy(targets.begin(), targets.end(), p.input("y").begin());
    p.forward();
    p.backward();
    const auto slope = p.gradient_of(z);
    return {p.loss(), {slope.data, slope.data + n}};
}

/// The entropy of atoms in nats by the operation.
double traced_entropy(const numbers& atoms) {
    const int n = static_cast<int>(atoms.size());
    const auto store = std::make_shared<parameters<double>>(1);
    graph<cpu<double>> g(store);
    const auto entropy = entropy_of_atoms("entropy", g.input("z", n));
    program<cpu<double>> p(g, store, {.steps = 1, .batch = 1}, {entropy});
    std::copy(atoms.begin(), atoms.end(), p.input("z").begin());
    p.forward();
    return p.output(entropy).data[0];
}

}  // namespace

TEST_CASE("the loss of a row, and its slopes, at sizes beside those of a register") {
    philox random(3, 1);
    for (const int n : {2, 3, 8, 21, 200})
        for (const double kappa : {1.0, 0.3}) {
            CAPTURE(n);
            numbers z, y;
            for (int i = 0; i < n; ++i) z.push_back(2 * random.normal()), y.push_back(2 * random.normal());
            y[1] = z[0];  // a difference of exactly zero
            const auto [loss, slope] = traced_loss(z, y, kappa);
            CHECK(loss == doctest::Approx(huber_loss(z, y, kappa)).epsilon(1e-12));
            for (std::size_t i = 0; i < z.size(); ++i) {
                numbers above = z, below = z;
                above[i] += 1e-5, below[i] -= 1e-5;
                const double slope_i = (huber_loss(above, y, kappa) - huber_loss(below, y, kappa)) / 2e-5;
                // Huber's second derivative jumps by 1 / N at kappa: a difference across it is wrong by that times
                // 1e-5.
                CHECK(slope[i] == doctest::Approx(slope_i).epsilon(1e-5).scale(1));
            }
            const std::vector<float> zf(z.begin(), z.end()), yf(y.begin(), y.end());
            CHECK(traced_loss(zf, yf, kappa).first == doctest::Approx(loss).epsilon(1e-5));
        }
}

TEST_CASE("the spread of the atoms, population deviation, in nats; a point has the least") {
    CHECK(traced_entropy({1, 3, 5, 7}) == doctest::Approx(std::log(std::sqrt(5.0 * 2 * M_PI * M_E))));
    CHECK(traced_entropy({2, 2, 2}) == doctest::Approx(std::log(least_spread * std::sqrt(2 * M_PI * M_E))));
    CHECK(std::isnan(traced_entropy({2, NAN, 2})));
}

TEST_CASE("targets: the best action of the target network by its mean; nothing beyond an end") {
    const quantile_regression::settings s{.atoms = 2, .discount = 0.5};
    const numbers next{1, 3, 0, 5, /**/ 9, 9, 1, 1, /**/ NAN, NAN, NAN, NAN}, reward{1, -1, 4}, continues{1, 1, 0};
    numbers target(6);
    quantile_regression::fill_targets<double>(s, reward, continues, next, 2, target);
    CHECK(target == numbers{1, 3.5, 3.5, 3.5, 4, 4});
    quantile_regression::fill_targets<double>({.atoms = 2, .discount = 0}, reward, continues, next, 2, target);
    CHECK(target == numbers{1, 1, -1, -1, 4, 4});
    numbers few(4);
    CHECK_THROWS_WITH_AS(quantile_regression::fill_targets<double>(s, reward, continues, next, 2, few),
                         doctest::Contains("do not go together"), error);
}

TEST_CASE("the policy: loss and uncertainty of the action that was taken") {
    constexpr int T = 4, B = 3, N = 5;
    auto s = prepared::tiny<detector>();
    s.learner = {.atoms = N, .kappa = 0.5};
    const auto a = prepared::traced<detector, cpu<double>>(s);
    program<cpu<double>> p(*a.g, a.store, {.steps = T, .batch = B, .gradients = true}, {a.h, a.logits, a.value});
    fill_randomly(p, a, 7);
    p.forward();
    double loss = 0;
    for (int t = 0; t < T; ++t)
        for (int b = 0; b < B; ++b) {
            const numbers all = oracle::affine(*a.store, "learner.atoms", oracle::row(p.output(a.h), t, b));
            REQUIRE(all.size() == 15);
            numbers mean(3, 0.0);
            for (std::size_t i = 0; i < 15; ++i) mean[i / N] += all[i] / N;
            oracle::check_near(oracle::row(p.output(a.logits), t, b), mean);
            oracle::check_near(oracle::row(p.output(a.value), t, b), {*std::max_element(mean.begin(), mean.end())});
            const auto action = static_cast<std::size_t>(p.input("action")[static_cast<std::size_t>(t * B + b)]);
            const numbers z(all.begin() + static_cast<std::ptrdiff_t>(action) * N,
                            all.begin() + static_cast<std::ptrdiff_t>(action + 1) * N);
            loss += huber_loss(z, oracle::row(p.input("target_atoms"), N, B, t, b), 0.5) / (T * B);
        }
    oracle::check_near({p.loss()}, {loss});
}

TEST_CASE("laws and gradients") {
    auto s = prepared::tiny<detector>();
    s.learner.atoms = 4;
    prepared::keeps_the_laws<detector>(s);
    prepared::differentiates<detector>(s, prepared::task(), 50);
}
