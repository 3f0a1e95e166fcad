// SRNN: the laws of a controller, and facts 3.6 in loops.

#include "../oracle/loops.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/srnn.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>

#include "../model/prepare.hpp"

using namespace prepared;
using oracle::numbers;

namespace {

using model = agent<identity, srnn, no_memory, no_auxiliary, supervised>;

constexpr int T = 7, B = 2, H = 5;

model::settings sizes(int layers) {
    model::settings s;
    s.controller = {.hidden = H, .hyper = 4, .layers = layers};
    s.learner.targets = "bits";
    return s;
}
const task_shape shape{{1, 6, 1}, 0, 3};

numbers product(const numbers& a, const numbers& b) {
    numbers c;
    for (std::size_t i = 0; i < a.size(); ++i) c.push_back(a[i] * b[i]);
    return c;
}

}  // namespace

TEST_CASE("laws and gradients") {
    for (const int layers : {0, 1, 2}) {
        keeps_the_laws<model>(sizes(layers), shape);
        differentiates<model>(sizes(layers), shape, 60);
    }
}

TEST_CASE("a step is relu(F(x) sigma(x W + c) + h shifted by one unit), and a reset starts from zero") {
    for (const int layers : {0, 1, 3}) {
        const auto a = traced<model, cpu<double>>(sizes(layers), shape);
        program<cpu<double>> p(*a.g, a.store, {.steps = T, .batch = B}, {a.h});
        fill_randomly(p, a, 3);
        for (const int i : {0, 1, 4 * B + 1}) p.input("reset")[static_cast<std::size_t>(i)] = 1;
        p.forward();
        for (int b = 0; b < B; ++b) {
            numbers h(H, 0.0);
            for (int t = 0; t < T; ++t) {
                if (p.input("reset")[static_cast<std::size_t>(t * B + b)] == 1) h.assign(H, 0.0);
                const numbers x = oracle::row(p.input("observation"), 6, B, t, b);
                numbers f = x, gate = oracle::affine(*a.store, "controller.gate", x);
                for (int i = 0; i < layers; ++i)
                    f = oracle::relu(oracle::affine(*a.store, "controller.hyper." + std::to_string(i), f));
                f = oracle::affine(*a.store, "controller.sum", f);
                for (double& g : gate) g = oracle::sigmoid(g);
                numbers next = product(f, gate);
                for (int j = 0; j < H; ++j)
                    next[static_cast<std::size_t>(j)] += h[static_cast<std::size_t>((j + H - 1) % H)];
                h = oracle::relu(next);
                oracle::check_near(oracle::row(p.output(a.h), t, b), h);
            }
        }
    }
}

TEST_CASE("nothing but the shift and the rectifier stands in the time loop") {
    const auto a = traced<model, cpu<double>>(sizes(2), shape);
    const plan_options options{.steps = T, .batch = B, .gradients = true};
    const program<cpu<double>> p(*a.g, a.store, options);
    for (std::size_t i = 0; i < a.g->operations().size(); ++i)
        if (p.planned().live[i] && p.planned().place[i] == placement::loop)
            CHECK(a.g->operations()[i]->parameters.empty());
}

TEST_CASE("bad settings are one sentence") {
    auto s = sizes(1);
    s.controller.hidden = 1;
    CHECK_THROWS_WITH((model::trace<cpu<double>>(s, shape, 1)),
                      "controller.hidden: expected at least two units to shift, got 1");
}
