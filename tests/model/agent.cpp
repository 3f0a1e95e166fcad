// The composed agent: gradients of the whole update, and what acting shares with learning.

#include <doctest/doctest.h>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>

using namespace engram;

namespace {

using full = agent<mlp, lstm, fifo_knn, cpc, vtrace>;

template <class Backend>
void prepare(program<Backend>& p, const traced_agent<Backend>& a, int T, int B) {
    philox random(11, 5);
    const auto fill = [&](const char* name, auto draw) {
        if (p.has_input(name))
            for (auto& v : p.input(name)) v = static_cast<typename Backend::real>(draw());
    };
    fill("observation", [&] { return random.uniform(); });
    fill("last_action", [&] { return random.below(a.task.actions); });
    fill("last_reward", [&] { return random.normal(); });
    fill("action", [&] { return random.below(a.task.actions); });
    fill("reward", [&] { return random.normal(); });
    fill("continues", [&] { return random.below(4) > 0; });
    fill("behaviour_log_probability", [&] { return -1 + 0.3 * random.normal(); });
    fill("bootstrap", [&] { return random.normal(); });
    for (const auto& r : a.records) fill(a.g->info(r).name.c_str(), [&] { return random.normal(); });
    auto reset = p.input("reset");
    for (int i = 0; i < T * B; ++i) reset[static_cast<std::size_t>(i)] = i == B + 1 || i == 3 * B;
    for (const auto& name : p.state_names())
        for (auto& v : p.state(name)) v = random.normal();
    for (std::size_t r = 0; r < p.resource_count(); ++r) {
        auto& rings = static_cast<knn_rings<typename Backend::real>&>(*p.bound_resource(r));
        for (int b = 0; b < B; ++b) {
            auto ring = rings.ring(b);
            std::vector<typename Backend::real> content(static_cast<std::size_t>(ring.content_width)),
                key(static_cast<std::size_t>(ring.key_width));
            for (int i = 0; i < 2 + b; ++i) {
                for (auto& v : content) v = random.normal();
                for (auto& v : key) v = random.normal();
                knn_write(ring, content.data(), key.data());
            }
        }
    }
}

template <class Agent>
typename Agent::settings tiny() {
    typename Agent::settings s;
    s.controller.hidden = 5;
    if constexpr (requires { s.encoder.layers; }) s.encoder.layers = {6, 4};
    if constexpr (requires { s.memory.slots; }) {
        s.memory.slots = 4;
        s.memory.key = 3;
        s.memory.neighbours = 3;
        s.memory.tied_start = false;
        s.memory.epsilon = 0.1;
    }
    if constexpr (requires { s.auxiliary.steps; }) s.auxiliary.steps = 2;
    return s;
}

template <class Agent>
void check_update() {
    using backend = cpu<double>;
    const int T = 5, B = 2;
    auto a = Agent::template trace<backend>(tiny<Agent>(), {{2, 2, 1}, 3}, 5);
    {
        // Off the kinks: zero biases behind dead units leave a ReLU exactly at its corner.
        philox random(2, 2);
        auto edit = a.store->edit();
        for (auto& w : edit.flat()) w += 0.1 * random.normal();
    }
    const auto report = check_gradients<backend>(
        *a.g, a.store, {.steps = T, .batch = B, .replay = true}, [&](auto& p) { prepare(p, a, T, B); }, 16);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 100);
    CHECK(report.same_bits_twice);
}

}  // namespace

TEST_CASE("the whole update runs and repeats its bits") {
    check_update<full>();
    check_update<full::with<reconstruction>::with<feed_forward>>();
}

TEST_CASE("an actor's steps give the learner's bits, memory included") {
    using backend = cpu<float>;
    const int T = 6, B = 3;
    auto a = full::trace<backend>(tiny<full>(), {{2, 2, 1}, 3}, 5);
    program<backend> learner(*a.g, a.store, {.steps = T, .batch = B, .gradients = true, .replay = true},
                             {a.logits, a.value});
    std::vector<var<backend>> outputs{a.logits, a.value};
    outputs.insert(outputs.end(), a.records.begin(), a.records.end());
    program<backend> actor(*a.g, a.store, {.steps = 1, .batch = B}, outputs);
    CHECK_FALSE(actor.has_input("bootstrap"));
    prepare(learner, a, T, B);
    program<backend> scratch(*a.g, a.store, {.steps = T, .batch = B, .gradients = true, .replay = true},
                             {a.logits, a.value});
    prepare(scratch, a, T, B);
    for (const auto& n : actor.state_names())
        std::copy_n(scratch.state(n).data(), actor.state(n).size(), actor.state(n).data());
    // The same rings for the actor.
    const auto from = scratch.bound_resource(0)->bytes();
    const auto to = actor.bound_resource(0)->bytes();
    for (std::size_t i = 0; i < from.size(); ++i) std::memcpy(to[i].data(), from[i].data(), from[i].size());
    std::vector<float> logits;
    for (int t = 0; t < T; ++t) {
        for (const char* name : {"observation", "last_action", "last_reward", "reset"}) {
            const auto all = scratch.input(name);
            const auto one = actor.input(name);
            std::copy_n(all.data() + one.size() * static_cast<std::size_t>(t), one.size(), one.data());
        }
        actor.forward();
        const auto y = actor.output(a.logits);
        logits.insert(logits.end(), y.data, y.data + B * 3);
        const auto stored = actor.output(a.records[0]);
        std::copy_n(stored.data, B * stored.width,
                    learner.input(a.g->info(a.records[0]).name).data() + t * B * stored.width);
        actor.carry();
    }
    learner.forward();
    const auto y = learner.output(a.logits);
    int different = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) different += logits[i] != y.data[i];
    CHECK(different == 0);
    const auto after_learning = learner.bound_resource(0)->bytes(), after_acting = actor.bound_resource(0)->bytes();
    for (std::size_t i = 0; i < after_learning.size(); ++i)
        CHECK(std::memcmp(after_learning[i].data(), after_acting[i].data(), after_learning[i].size()) == 0);
}
