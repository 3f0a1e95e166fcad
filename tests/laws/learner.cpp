// The laws of learners.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

using namespace prepared;

using critic = agent<identity, lstm, fifo_knn, no_auxiliary, vtrace>;
using taught = critic::with<supervised>;

TEST_CASE("vtrace") {
    keeps_the_laws<critic>();
    differentiates<critic>();
    auto s = tiny<critic>();
    s.learner = {.discount = 0.9, .baseline_cost = 2, .entropy_cost = 0.3, .rho_bar = 0.8, .c_bar = 0.7};
    differentiates<critic>(s);
    s.learner.clip = 0.2;
    keeps_the_laws<critic>(s);
    differentiates<critic>(s);
}

TEST_CASE("ppo") {
    using clipped = critic::with<ppo>;
    keeps_the_laws<clipped>();
    differentiates<clipped>();
    auto s = tiny<clipped>();
    s.learner = {.discount = 0.9, .lambda = 0.7, .clip = 0.2, .value_cost = 2, .entropy_cost = 0.3};
    differentiates<clipped>(s);
    s.learner.head_layers = {5, 4};
    keeps_the_laws<clipped>(s);
    differentiates<clipped>(s);
    s.learner.divergence_cost = 0.2;
    keeps_the_laws<clipped>(s);
    differentiates<clipped>(s);
}

TEST_CASE("ppo: layers of their own before either head") {
    auto s = tiny<critic::with<ppo>>();
    s.learner.head_layers = {5, 4};
    const auto a = traced<critic::with<ppo>, cpu<double>>(s);
    program<cpu<double>> p(*a.g, a.store, {.steps = 1, .batch = 1}, {a.h, a.logits, a.value});
    fill_randomly(p, a, 1);
    p.forward();
    const auto h = p.output(a.h), logits = p.output(a.logits), value = p.output(a.value);
    // W [inputs, outputs] and b by name, and x W + b in loops.
    const auto layer = [&](const std::vector<double>& x, const std::string& name, bool relu) {
        const auto& w = (*a.store)[a.store->find("learner." + name + ".weight")];
        const auto& b = (*a.store)[a.store->find("learner." + name + ".bias")];
        std::vector<double> y;
        for (int c = 0; c < w.columns; ++c) {
            double sum = a.store->flat()[static_cast<std::size_t>(b.offset + c)];
            for (std::size_t r = 0; r < x.size(); ++r)
                sum +=
                    x[r] *
                    a.store->flat()[static_cast<std::size_t>(w.offset + c) + r * static_cast<std::size_t>(w.columns)];
            y.push_back(relu ? std::max(sum, 0.0) : sum);
        }
        return y;
    };
    const auto head = [&](const std::string& name) {
        auto x = layer(std::vector<double>(h.data, h.data + h.width), name + "_layers.0", true);
        x = layer(x, name + "_layers.1", true);
        return layer(x, name, false);
    };
    const auto policy = head("policy");
    REQUIRE(static_cast<int>(policy.size()) == logits.width);
    for (int c = 0; c < logits.width; ++c)
        CHECK(logits.data[c] == doctest::Approx(policy[static_cast<std::size_t>(c)]).epsilon(1e-12));
    CHECK(value.data[0] == doctest::Approx(head("value")[0]).epsilon(1e-12));
}

TEST_CASE("supervised") {
    keeps_the_laws<taught>();
    differentiates<taught>();
}

TEST_CASE("supervised: cross-entropy of the targets, weighted, over the number of rows") {
    const auto a = traced<taught, cpu<double>>();
    program<cpu<double>> p(*a.g, a.store, {.steps = 4, .batch = 2, .gradients = true}, {a.logits});
    fill_randomly(p, a, 1);
    p.input("weight")[3] = 0;
    p.forward();
    const auto y = p.output(a.logits);
    double expected = 0;
    for (int r = 0; r < 8; ++r) {
        double sum = 0;
        for (int c = 0; c < 3; ++c) sum += std::exp(y.data[r * y.stride + c]);
        const int target = static_cast<int>(p.input("target")[static_cast<std::size_t>(r)]);
        expected -=
            p.input("weight")[static_cast<std::size_t>(r)] * (y.data[r * y.stride + target] - std::log(sum)) / 8;
    }
    CHECK(p.loss() == doctest::Approx(expected).epsilon(1e-12));
}
