// The laws of the hybrid memory, its gradients read by read and together, and what its settings refuse.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/core/settings.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/hybrid.hpp>

using namespace prepared;

namespace {

using mixing = agent<identity, lstm, hybrid, no_auxiliary, vtrace>;
using nearest = mixing::with<fifo_knn>;

mixing::settings reading(const std::string& reads) {
    auto s = tiny<mixing>();
    s.memory.reads = reads;
    return s;
}

/// Everything the other way round than where nothing is said.
mixing::settings literal(const std::string& reads) {
    auto s = reading(reads);
    s.memory.input = "held";
    s.memory.values = "all";
    s.memory.store_gradient = false;
    s.memory.gate = false;
    s.memory.hidden = 0;
    s.memory.order = "position";
    s.memory.masked = false;
    s.memory.attention = "softmax";
    s.memory.bounded = true;
    s.memory.cosine = "joint";
    s.memory.sharpness = "one";
    return s;
}

}  // namespace

TEST_CASE("laws, of the reads together") {
    keeps_the_laws<mixing>(reading("age,content,nearest,after"));
    keeps_the_laws<mixing>(literal("nearest,content,age"));
}

TEST_CASE("gradients, of each read and of their mixtures") {
    for (const char* reads : {"age", "content", "nearest", "content,age", "age,content,nearest"}) {
        CAPTURE(reads);
        differentiates<mixing>(reading(reads), task(), 80);
        differentiates<mixing>(literal(reads), task(), 80);
    }
    for (const char* reads : {"after,content", "age,after", "age,content,nearest,after"}) {
        CAPTURE(reads);
        differentiates<mixing>(reading(reads), task(), 80);
    }
}

TEST_CASE("the nearest alone are fifo_knn: its weights, numbers and gradients, bit for bit") {
    auto s = reading("nearest");
    s.memory.heads = 1;
    s.memory.gate = false;
    for (const bool tied : {false, true}) {
        auto k = tiny<nearest>();
        k.memory.tied_start = s.memory.tied_start = tied;
        k.memory.values = s.memory.values = tied ? memory_values("held") : memory_values("all");
        const auto a = traced<mixing, cpu<double>>(s);
        const auto b = traced<nearest, cpu<double>>(k);
        REQUIRE(std::ranges::equal(a.store->flat(), b.store->flat()));
        const auto plan = [](const auto& m) {
            auto p = std::make_unique<program<cpu<double>>>(*m.g, m.store,
                                                            plan_options{.steps = 6, .batch = 2, .gradients = true},
                                                            std::vector{m.h, m.logits, *m.read_weight, *m.read_when});
            warm_up(*p, m, 1);
            p->input("reset")[5] = 1;
            p->forward();
            p->backward();
            return p;
        };
        const auto p = plan(a), q = plan(b);
        const auto same = [&](const auto& x, const auto& y) {
            const auto one = p->output(x), two = q->output(y);
            REQUIRE(one.width == two.width);
            for (int t = 0; t < 6; ++t)
                for (int row = 0; row < 2; ++row)
                    CHECK(std::equal(one.at(t) + row * one.stride, one.at(t) + row * one.stride + one.width,
                                     two.at(t) + row * two.stride));
        };
        same(a.h, b.h), same(a.logits, b.logits);
        same(*a.read_weight, *b.read_weight), same(*a.read_when, *b.read_when);
        CHECK(std::ranges::equal(p->gradient(), q->gradient()));
        CHECK(std::ranges::any_of(p->gradient(), [](double g) { return g != 0; }));
    }
}

TEST_CASE("gradients go back through writes where they are asked to, and the numbers stay") {
    std::vector<std::vector<double>> h, slopes;
    for (const bool store_gradient : {false, true}) {
        auto s = reading("age,content");
        s.memory.store_gradient = store_gradient;
        const auto a = traced<mixing, cpu<double>>(s);
        program<cpu<double>> p(*a.g, a.store, {.steps = 6, .batch = 2, .gradients = true}, {a.h});
        fill_randomly(p, a, 1);
        p.forward();
        p.backward();
        const auto out = p.output(a.h);
        h.emplace_back(out.at(5), out.at(5) + 5);
        const auto& gates = (*a.store)[a.store->find("controller.gates.weight")];
        const auto from = p.gradient().begin() + gates.offset;
        slopes.emplace_back(from, from + gates.size());
    }
    CHECK(h[0] == h[1]);
    CHECK(slopes[0] != slopes[1]);
}

TEST_CASE("settings are refused in the user's words") {
    const auto refused = [](const char* assignment, const char* sentence) {
        hybrid::settings s;
        CHECK_THROWS_WITH_AS(assign(s, assignment), sentence, error);
    };
    refused("reads=", "memory.reads: expected one or more of age, content, nearest and after, got none");
    refused("reads=contents", "unknown read in memory.reads 'contents'; did you mean 'content'?");
    refused("reads=age,", "unknown read in memory.reads ''; expected one of age, content, nearest, after");
    refused("reads=age,content,age", "memory.reads: age stands there twice");
    refused("reads=nearest,after", "memory.reads: after follows what age or content have found, and neither is there");
    hybrid::settings follows;
    follows.reads = "age,after";
    CHECK_THROWS_WITH_AS(assign(follows, "order=position"),
                         "memory.reads: after needs memory.order=age and memory.masked=true", error);
    CHECK_THROWS_WITH_AS(assign(follows, "masked=false"),
                         "memory.reads: after needs memory.order=age and memory.masked=true", error);
    refused("slots=0", "memory.slots: expected at least one slot, got 0");
    refused("heads=0", "memory.heads: expected at least one head, got 0");
    refused("neighbours=0", "memory.neighbours: expected at least one neighbour, got 0");
    refused("key=0", "memory.key: expected at least one column, got 0");
    refused("epsilon=0", "memory.epsilon: expected a positive number, got 0");
    refused("hidden=-1", "memory.hidden: expected a number of units, or 0 for a linear layer, got -1");
    refused("input=hold", "unknown input 'hold'; did you mean 'held'?");
    refused("values=hold", "unknown values 'hold'; did you mean 'held'?");
    refused("order=aged", "unknown order 'aged'; did you mean 'age'?");
    refused("attention=softmin", "unknown attention 'softmin'; did you mean 'softmax'?");
    refused("cosine=eech", "unknown cosine 'eech'; did you mean 'each'?");
    refused("sharpness=on", "unknown sharpness 'on'; did you mean 'one'?");
}
