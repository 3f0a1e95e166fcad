// The laws of memories.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/operations/pick.hpp>

using namespace prepared;

using none = agent<identity, lstm, no_memory, no_auxiliary, vtrace>;
using knn = none::with<fifo_knn>;
using still = none::with<fifo_knn_no_jumpy>;

TEST_CASE("fifo_knn") {
    keeps_the_laws<knn>();
    differentiates<knn>();
    for (const memory_values values : {memory_values("observed"), memory_values("all")}) {
        CAPTURE(values.word());
        auto s = tiny<knn>();
        s.memory.values = values;
        keeps_the_laws<knn>(s);
        differentiates<knn>(s);
    }
}

TEST_CASE("fifo_knn_no_jumpy") {
    keeps_the_laws<still>();
    // Cached keys depend on W_k, but are constants of the loss: its differences are not what backward gives, zero.
    differentiates<still>(tiny<still>(), task(), 80, 4,
                          [](const std::string& name) { return !name.starts_with("memory.key"); });
}

TEST_CASE("no_memory is neutral: the same agent written without a slot for it") {
    using backend = cpu<double>;
    const auto s = tiny<none>();
    const auto a = none::trace<backend>(s, task(), 5);

    auto store = std::make_shared<parameters<double>>(5);
    graph<backend> g(store);
    const auto x = g.input("observation", 16), reset = g.input("reset", 1);
    const auto action = one_hot("action", g.input("last_action", 1), 3);
    const auto reward = map("reward", clip_reward{}, g.input("last_reward", 1));
    const auto h = [&] {
        const auto scope = g.scope("controller");
        const auto w = lstm::declare(g, s.controller, 16 + 3 + 1);
        return scan(g, lstm::begin(g, s.controller), [&](lstm::state<var<backend>>& now) {
            reset_rows(now, reset);
            return lstm::step<backend>(s.controller, w, {x, action, reward}, now);
        });
    }();
    const auto heads = [&] {
        const auto scope = g.scope("learner");
        return vtrace::add_heads(g, s.learner, h, task());
    }();

    REQUIRE(store->entries().size() == a.store->entries().size());
    for (std::size_t i = 0; i < store->entries().size(); ++i)
        CHECK(store->entries()[i].name == a.store->entries()[i].name);
    CHECK(std::equal(store->flat().begin(), store->flat().end(), a.store->flat().begin()));
    program<backend> p(*a.g, a.store, {.steps = 4, .batch = 2}, {a.h, a.logits}),
        q(g, store, {.steps = 4, .batch = 2}, {h, heads.logits});
    fill_randomly(p, a, 1);
    p.input("reset")[5] = 1;
    for (const char* name : {"observation", "last_action", "last_reward", "reset"})
        std::copy(p.input(name).begin(), p.input(name).end(), q.input(name).begin());
    p.forward();
    q.forward();
    CHECK(p.resource_count() == 0);
    CHECK(std::memcmp(p.output(a.h).data + 10, q.output(h).data + 10, sizeof(double) * 10) == 0);
    CHECK(std::memcmp(p.output(a.logits).data, q.output(heads.logits).data, sizeof(double) * 24) == 0);
}

TEST_CASE("jumpy backpropagation alone reaches the key weights") {
    const auto slopes = [](const auto& a) {
        program<cpu<double>> p(*a.g, a.store, {.steps = 5, .batch = 2, .gradients = true, .replay = true});
        warm_up(p, a, 1);
        p.forward();
        p.backward();
        std::pair<double, double> largest;  // of the keys' map, of the queries'
        for (const char* part : {"weight", "bias"})
            for (const bool query : {false, true}) {
                const auto& e = (*a.store)[a.store->find(std::string(query ? "memory.query." : "memory.key.") + part)];
                double& to = query ? largest.second : largest.first;
                for (std::ptrdiff_t i = 0; i < e.size(); ++i)
                    to = std::max(to, std::abs(p.gradient()[static_cast<std::size_t>(e.offset + i)]));
            }
        return largest;
    };
    const auto on = slopes(traced<knn, cpu<double>>()), off = slopes(traced<still, cpu<double>>());
    CHECK(on.first > 1e-6);
    CHECK(on.second > 1e-6);
    CHECK(off.first == 0);
    CHECK(off.second > 1e-6);
}

TEST_CASE("contents of NaN die with their episode, and an empty memory recalls zero") {
    const auto a = traced<knn, cpu<double>>();
    program<cpu<double>> p(*a.g, a.store, {.steps = 3, .batch = 2, .gradients = true}, {a.h});
    auto& rings = static_cast<knn_rings<double>&>(*p.bound_resource(0));
    const std::vector<double> bad(32, std::numeric_limits<double>::quiet_NaN());
    for (int b = 0; b < 2; ++b)
        for (int i = 0; i < 6; ++i) {
            auto ring = rings.ring(b);
            knn_write(ring, bad.data(), bad.data());
        }
    fill_randomly(p, a, 1);
    p.input("reset")[0] = p.input("reset")[1] = 1;
    p.forward();
    p.backward();
    const auto h = p.output(a.h);
    CHECK(std::all_of(h.data, h.data + 30, [](double v) { return std::isfinite(v); }));
    CHECK(std::isfinite(p.loss()));
    CHECK(std::all_of(p.gradient().begin(), p.gradient().end(), [](double v) { return std::isfinite(v); }));
    CHECK(knn_valid(rings.ring(0)) == 3);
}

TEST_CASE("keys and queries start equal and blind to h unless told otherwise") {
    auto s = tiny<knn>();
    s.memory.tied_start = true;
    const auto a = knn::trace<cpu<double>>(s, task(), 5);
    const double* key = a.store->values(a.store->find("memory.key.weight"));
    const double* query = a.store->values(a.store->find("memory.query.weight"));
    CHECK(std::equal(key, key + 21 * 3, query));
    CHECK(std::all_of(key, key + 16 * 3, [](double v) { return v != 0; }));
    CHECK(std::all_of(key + 16 * 3, key + 21 * 3, [](double v) { return v == 0; }));
    s.memory.tied_start = false;
    const auto b = knn::trace<cpu<double>>(s, task(), 5);
    CHECK_FALSE(std::equal(key, key + 21 * 3, b.store->values(b.store->find("memory.query.weight"))));
}
