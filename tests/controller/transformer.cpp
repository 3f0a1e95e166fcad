// Transformer: laws, gradients, a restatement in loops, what a step may see, memory in T, bad settings.

#include "../oracle/loops.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/transformer.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>

#include "../model/prepare.hpp"

using namespace prepared;
using oracle::numbers;

namespace {

using model = agent<identity, transformer, no_memory, no_auxiliary, supervised>;
using backend = cpu<double>;

constexpr int F = 6, T = 9, B = 3;
const task_shape shape{{1, F, 1}, 0, 3};

model::settings sizes(const char* positions, const char* activation, int layers = 2) {
    model::settings s;
    s.controller = {.hidden = 8,
                    .layers = layers,
                    .heads = 2,
                    .inner = 7,
                    .positions = {"positions", positions},
                    .activation = {"activation", activation},
                    .longest = 12};
    s.learner.targets = "bits";
    return s;
}

numbers part(const numbers& x, int first, int count) {
    return {x.begin() + first, x.begin() + first + count};
}
numbers sum(numbers a, const numbers& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
}
numbers norm(const parameters<double>& store, const std::string& name, const numbers& x) {
    const double n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / n;
    for (const double v : x) variance += (v - mean) * (v - mean) / n;
    numbers y;
    for (std::size_t f = 0; f < x.size(); ++f)
        y.push_back((x[f] - mean) / std::sqrt(variance + 1e-5) *
                        oracle::weight(store, name + ".gain", 0, static_cast<int>(f)) +
                    oracle::weight(store, name + ".bias", 0, static_cast<int>(f)));
    return y;
}
numbers turn(const numbers& x, int n) {
    const std::size_t half = x.size() / 2;
    numbers y = x;
    for (std::size_t f = 0; f < half; ++f) {
        const double angle = n * std::pow(10000.0, -2.0 * static_cast<double>(f) / static_cast<double>(x.size()));
        y[f] = x[f] * std::cos(angle) - x[f + half] * std::sin(angle);
        y[f + half] = x[f] * std::sin(angle) + x[f + half] * std::cos(angle);
    }
    return y;
}

/// h of the steps of one episode, from their inputs.
std::vector<numbers> restated(const parameters<double>& store, const transformer::settings& s,
                              const std::vector<numbers>& in) {
    const int d = s.hidden / s.heads;
    std::vector<numbers> x;
    for (std::size_t t = 0; t < in.size(); ++t) {
        x.push_back(oracle::affine(store, "controller.input", in[t]));
        for (int f = 0; s.positions == "learned" && f < s.hidden; ++f)
            x[t][static_cast<std::size_t>(f)] += oracle::weight(store, "controller.positions", static_cast<int>(t), f);
    }
    for (int l = 0; l < s.layers; ++l) {
        const std::string at = "controller.layer." + std::to_string(l) + ".";
        std::vector<numbers> look;
        for (const numbers& row : x)
            look.push_back(oracle::affine(store, at + "attention.look", norm(store, at + "attention.norm", row)));
        for (std::size_t t = 0; t < x.size(); ++t) {
            numbers seen;
            for (int h = 0; h < s.heads; ++h) {
                const auto slice = [&](std::size_t i, int which) { return part(look[i], which * s.hidden + h * d, d); };
                const auto placed = [&](std::size_t i, int which) {
                    return s.positions == "rotary" ? turn(slice(i, which), static_cast<int>(i)) : slice(i, which);
                };
                numbers weight, mean(static_cast<std::size_t>(d), 0.0);
                double total = 0;
                for (std::size_t i = 0; i <= t; ++i) {
                    double score = 0;
                    for (std::size_t f = 0; f < mean.size(); ++f) score += placed(t, 0)[f] * placed(i, 1)[f];
                    weight.push_back(std::exp(score / std::sqrt(d)));
                    total += weight.back();
                }
                for (std::size_t i = 0; i <= t; ++i)
                    for (std::size_t f = 0; f < mean.size(); ++f) mean[f] += weight[i] / total * slice(i, 2)[f];
                seen.insert(seen.end(), mean.begin(), mean.end());
            }
            x[t] = sum(x[t], oracle::affine(store, at + "attention.combine", seen));
        }
        for (numbers& row : x) {
            numbers z = oracle::affine(store, at + "inner.widen", norm(store, at + "inner.norm", row));
            for (double& v : z)
                v = s.activation == "relu"
                        ? std::max(v, 0.0)
                        : v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
            row = sum(row, oracle::affine(store, at + "inner.narrow", z));
        }
    }
    for (numbers& row : x) row = norm(store, "controller.norm", row);
    return x;
}

}  // namespace

TEST_CASE("laws: a row alone, an episode's start and a second run give the same bits") {
    for (const char* positions : {"rotary", "learned"})
        for (const char* activation : {"gelu", "relu"}) keeps_the_laws<model>(sizes(positions, activation), shape);
}

TEST_CASE("gradients of the whole model equal central differences") {
    differentiates<model>(sizes("rotary", "gelu"), shape, 200);
    differentiates<model>(sizes("learned", "gelu", 1), shape, 100);
    differentiates<model>(sizes("rotary", "relu"), shape, 200);
}

TEST_CASE("the model equals its restatement in loops, episodes that end inside an unroll included") {
    for (const char* positions : {"rotary", "learned"})
        for (const char* activation : {"gelu", "relu"}) {
            const auto s = sizes(positions, activation);
            const auto a = traced<model, backend>(s, shape);
            program<backend> p(*a.g, a.store, {.steps = T, .batch = B}, {a.h});
            fill_randomly(p, a, 3);
            const std::vector<std::pair<int, int>> resets{{0, 0}, {4, 1}, {2, 2}, {3, 2}, {8, 2}};
            for (const auto& [t, b] : resets) p.input("reset")[static_cast<std::size_t>(t * B + b)] = 1;
            p.forward();
            for (int b = 0; b < B; ++b)
                for (int first = 0, end; first < T; first = end) {
                    std::vector<numbers> in;
                    for (end = first; end < T; ++end) {
                        if (end > first && p.input("reset")[static_cast<std::size_t>(end * B + b)] == 1) break;
                        in.push_back(oracle::row(p.input("observation"), F, B, end, b));
                    }
                    const auto h = restated(*a.store, s.controller, in);
                    for (int t = first; t < end; ++t)
                        oracle::check_near(oracle::row(p.output(a.h), t, b), h[static_cast<std::size_t>(t - first)]);
                }
        }
}

TEST_CASE("a step sees all earlier steps of its episode and no later one, and no gradient comes from the future") {
    const auto a = traced<model, backend>(sizes("rotary", "gelu"), shape);
    program<backend> p(*a.g, a.store, {.steps = T, .batch = 1}, {a.h});
    const auto after_changing = [&](int changed) {
        fill_randomly(p, a, 3);
        if (changed >= 0) p.input("observation")[static_cast<std::size_t>(changed * F)] += 1;
        p.forward();
        std::vector<numbers> h;
        for (int t = 0; t < T; ++t) h.push_back(oracle::row(p.output(a.h), t, 0));
        return h;
    };
    const auto before = after_changing(-1);
    for (int changed = 0; changed < T; ++changed) {
        const auto h = after_changing(changed);
        for (int t = 0; t < T; ++t)
            CHECK((h[static_cast<std::size_t>(t)] == before[static_cast<std::size_t>(t)]) == (t < changed));
    }

    // The loss counts steps up to 4 only: what comes later has slope zero.
    program<backend> learner(*a.g, a.store, {.steps = T, .batch = 1, .gradients = true}, {a.h});
    fill_randomly(learner, a, 3);
    for (int t = 0; t < T; ++t) learner.input("weight")[static_cast<std::size_t>(t)] = t <= 4;
    learner.forward();
    learner.backward();
    const auto early = std::vector<double>(learner.gradient().begin(), learner.gradient().end());
    for (int t = 5; t < T; ++t) learner.input("observation")[static_cast<std::size_t>(t * F)] = 17;
    learner.forward();
    learner.backward();
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < early.size(); ++i) {
        apart = std::max(apart, std::abs(early[i] - learner.gradient()[i]));
        size = std::max(size, std::abs(early[i]));
    }
    CHECK(apart <= 1e-12 * size);
}

TEST_CASE("a truncated Transformer sees its window: an unroll starts from nothing") {
    const auto a = traced<model, backend>(sizes("rotary", "gelu"), shape);
    program<backend> p(*a.g, a.store, {.steps = 4, .batch = 1}, {a.h});
    CHECK(p.state_names().empty());
    fill_randomly(p, a, 3);
    p.forward();
    const auto first = oracle::row(p.output(a.h), 3, 0);
    p.carry();
    p.forward();
    CHECK(oracle::row(p.output(a.h), 3, 0) == first);
}

TEST_CASE("memory of a learning program is linear in T") {
    const auto a = model::trace<backend>(sizes("rotary", "gelu"), shape, 1);
    const auto bytes = [&](int steps) {
        return double(program<backend>(*a.g, a.store, {.steps = steps, .batch = 2, .gradients = true}).memory());
    };
    // Scratch of the kernels: tests/kernels/attention.cpp.
    CHECK((bytes(2048) - bytes(1024)) / (bytes(1024) - bytes(512)) < 2.01);
}

TEST_CASE("bad settings and sequences beyond the learned positions are one sentence") {
    const auto fails = [](auto change, const char* sentence) {
        auto s = sizes("learned", "gelu");
        change(s.controller);
        CHECK_THROWS_WITH((model::trace<backend>(s, shape, 1)), sentence);
    };
    fails([](auto& c) { c.heads = 3; }, "controller.heads: 8 columns (controller.hidden) do not divide into 3 heads");
    fails([](auto& c) { c.heads = 8, c.positions = "rotary"; },
          "controller.heads: rotary positions turn pairs of columns, a head of 1 does not make pairs");
    fails([](auto& c) { c.layers = 0; }, "controller.layers: expected at least one layer, got 0");
    const auto a = model::trace<backend>(sizes("learned", "gelu"), shape, 1);
    program<backend> p(*a.g, a.store, {.steps = 13, .batch = 1}, {a.h});
    CHECK_THROWS_WITH(p.forward(),
                      "controller.position.index: an episode has more than the 12 steps that have a position");
    p.input("reset")[7] = 1;
    CHECK_NOTHROW(p.forward());
}
