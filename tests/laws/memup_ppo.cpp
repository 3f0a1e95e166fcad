// SPDX-License-Identifier: MIT
// The laws of the agent that acts on a trained memory, and the gradients of all its phases.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/memup_ppo.hpp>
#include <engram/memory/no_memory.hpp>

using namespace prepared;

namespace {

using model = agent<mlp, lstm, no_memory, no_auxiliary, memup_ppo>;

model::settings small() {
    auto s = tiny<model>();
    s.learner.hidden = s.learner.detector_hidden = s.learner.memory.context = s.learner.memory.hidden = 5;
    s.learner.detector.atoms = 4;
    return s;
}

/// What the authors' code does otherwise.
model::settings published() {
    auto s = small();
    s.wiring.last_reward = s.wiring.memory_alone = true;
    s.learner.layers = 2;
    return s;
}

traced_agent<cpu<double>> phase(purpose why, const model::settings& s = small()) {
    auto a = model::trace<cpu<double>>(s, task(), 5, why);
    unsettle(a);
    return a;
}

bool is_memory(const std::string& name) {
    return name.starts_with("memory.");
}

}  // namespace

TEST_CASE("the policy keeps the laws; no gradient reaches the memory, and all others are right") {
    keeps_the_laws<model>(small());
    differentiates<model>(small(), task(), 60, 4, [](const std::string& name) { return !is_memory(name); });
    const auto a = phase(purpose::learning);
    program<cpu<double>> p(*a.g, a.store, {.steps = 4, .batch = 2, .gradients = true, .replay = true});
    fill_randomly(p, a, 1);
    p.forward();
    p.backward();
    int frozen = 0, trained = 0;
    for (const auto& e : a.store->entries())
        for (std::ptrdiff_t i = 0; i < e.size(); ++i) {
            const bool moves = p.gradient()[static_cast<std::size_t>(e.offset + i)] != 0;
            (is_memory(e.name) ? frozen : trained) += moves;
        }
    CHECK(frozen == 0);
    CHECK(trained > 50);
}

TEST_CASE("detector, memory and pairs: backward against central differences") {
    for (const auto& [why, settings] : {std::pair{purpose::detecting, small()},
                                        {purpose::remembering, small()},
                                        {purpose::remembering, published()}}) {
        const auto a = phase(why, settings);
        const auto report = check_gradients<cpu<double>>(
            *a.g, a.store, {.steps = 4, .batch = 2},
            [&](auto& p) {
                fill_randomly(p, a, 3);
                for (const auto& name : p.state_names()) std::fill(p.state(name).begin(), p.state(name).end(), 0.1);
            },
            16, 1e-4, [&, why = why](const std::string& name) { return why == purpose::detecting || is_memory(name); });
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.compared > 50);
        CHECK(report.same_bits_twice);
        if (!a.predictor) continue;
        const auto pairs = check_gradients<cpu<double>>(
            *a.predictor->g, a.store, {.steps = 3, .batch = 2},
            [&](auto& p) {
                philox random(8, 8);
                for (const char* name : {"memory", "observation", "target", "weight"})
                    for (double& x : p.input(name)) x = static_cast<double>(random.normal());
            },
            16, 1e-4, [](const std::string& name) { return !name.starts_with("memory.controller"); });
        INFO(pairs.where);
        CHECK(pairs.worst < 1e-6);
        CHECK(pairs.compared > 50);
        CHECK(pairs.same_bits_twice);
    }
}

TEST_CASE("a policy that sees its memory alone, and a memory that sees the last reward") {
    keeps_the_laws<model>(published());
    differentiates<model>(published(), task(), 40, 4, [](const std::string& name) { return !is_memory(name); });
    const auto plain = phase(purpose::learning), alone = phase(purpose::learning, published());
    const auto encoders = [](const auto& a) {
        int own = 0;
        for (const auto& e : a.store->entries()) own += e.name.starts_with("encoder.");
        return own;
    };
    CHECK(encoders(plain) > 0);
    CHECK(encoders(alone) == 0);  // but for the memory's
    // What is seen and done reaches the policy through m_t; the reward before is told to the memory, as it was paid.
    const auto logits = [&](const char* input, double by) {
        program<cpu<double>> p(*alone.g, alone.store, {.steps = 1, .batch = 1}, {alone.logits});
        fill_randomly(p, alone, 1);
        p.input(input)[0] += by;
        p.forward();
        return p.output(alone.logits).data[0];
    };
    CHECK(logits("last_reward", 0) != logits("last_reward", 1));
    CHECK(logits("last_reward", 4) != logits("last_reward", 10));
    program<cpu<double>> p(*plain.g, plain.store, {.steps = 1, .batch = 1}, {plain.logits});
    CHECK_FALSE(p.has_input("last_reward"));
    const auto frozen = [&](purpose why) {
        const auto a = phase(why, published());
        return (*a.store)[a.store->find("memory.controller.gates.weight")].rows;
    };
    CHECK(frozen(purpose::remembering) == (*alone.store)[alone.store->find("memory.controller.gates.weight")].rows);
    auto bad = small();
    bad.learner.layers = 0;
    CHECK_THROWS_WITH_AS(bad.learner.check(), "learner.layers: expected at least one, got 0", error);
}

TEST_CASE("a phase has the memory's names and sizes from the others") {
    const auto policy = phase(purpose::learning), fast = phase(purpose::remembering), slow = phase(purpose::generating);
    int shared = 0;
    for (const auto& e : slow.store->entries()) {
        CHECK((*fast.store)[fast.store->find(e.name)].offset == e.offset);
        if (!is_memory(e.name)) continue;
        const auto& other = (*policy.store)[policy.store->find(e.name)];
        CHECK(other.rows == e.rows);
        CHECK(other.columns == e.columns);
        ++shared;
    }
    CHECK(shared == 6);  // two layers of the encoder and the gates, each with a bias
}
