// SPDX-License-Identifier: MIT
// The laws of the stacked LSTM and of the token embedding, and of dropout.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/operations/softmax.hpp>

using namespace prepared;

using stacked = agent<identity, stacked_lstm, no_memory, no_auxiliary, vtrace>;
using embedded = agent<token_embedding, feed_forward, no_memory, no_auxiliary, vtrace>;

TEST_CASE("stacked_lstm of one and three layers") {
    for (const int layers : {1, 3}) {
        auto s = tiny<stacked>();
        s.controller.layers = layers;
        s.controller.forget_bias = 2;
        keeps_the_laws<stacked>(s);
        differentiates<stacked>(s, task(), 50);
    }
}

TEST_CASE("one layer with a forget bias of 1 is lstm") {
    const auto s = tiny<stacked>();
    const auto t = tiny<stacked::with<lstm>>();
    const auto a = traced<stacked, cpu<double>>(s);
    const auto b = traced<stacked::with<lstm>, cpu<double>>(t);
    const auto copy = [&](const char* from, const char* to) {
        const auto source = b.store->find(from), target = a.store->find(to);
        std::copy_n(b.store->values(source), (*b.store)[source].size(), a.store->edit().values(target));
    };
    copy("controller.gates.weight", "controller.gates.0.weight");
    copy("controller.gates.bias", "controller.gates.0.bias");
    program<cpu<double>> p(*a.g, a.store, {.steps = 4, .batch = 2}, {a.h}),
        q(*b.g, b.store, {.steps = 4, .batch = 2}, {b.h});
    fill_randomly(p, a, 3);
    fill_randomly(q, b, 3);
    p.forward();
    q.forward();
    CHECK(std::equal(p.output(a.h).data, p.output(a.h).data + 40, q.output(b.h).data));
}

TEST_CASE("token_embedding: numbers pass an MLP, tokens are rows of a table") {
    auto s = tiny<embedded>();
    s.encoder.width = 4;
    keeps_the_laws<embedded>(s);
    differentiates<embedded>(s, task(), 40);

    using model = embedded::with<supervised>;
    model::settings m;
    m.encoder.width = 4;
    m.controller.hidden = {5};
    const task_shape shape{{1, 1, 1, 7}, 0, 1, 3};
    const auto a = model::trace<cpu<double>>(m, shape, 1);
    CHECK((*a.store)[a.store->find("encoder.table")].rows == 7);
    const auto fill = [](program<cpu<double>>& p) {
        for (std::size_t i = 0; i < 6; ++i) {
            p.input("observation")[i] = static_cast<double>(i * 5 % 7);
            if (!p.has_input("target")) continue;
            p.input("target")[i] = static_cast<double>(i % 3);
            p.input("weight")[i] = 1;
        }
    };
    const auto report = check_gradients<cpu<double>>(*a.g, a.store, {.steps = 3, .batch = 2}, fill);
    INFO(report.where);
    CHECK(report.worst < 1e-7);
    program<cpu<double>> p(*a.g, a.store, {.steps = 3, .batch = 2}, {a.x, a.h});
    fill(p);
    p.forward();
    for (int i = 0; i < 6; ++i)
        for (int f = 0; f < 4; ++f)
            CHECK(p.output(a.x).data[4 * i + f] ==
                  a.store->values(a.store->find("encoder.table"))[4 * (i * 5 % 7) + f]);
    p.input("observation")[2] = 7;
    CHECK_THROWS_WITH(p.forward(), doctest::Contains("index 7 is outside 0..6"));
}

// 24000 numbers at 0.3: kept 16800 with a standard deviation of 71.
TEST_CASE("dropout: a share is dropped, the rest is larger; the same in both sweeps, other rows and replays differ") {
    const auto store = std::make_shared<parameters<double>>(1);
    graph<cpu<double>> g(store);
    const auto w = g.declare("w", 1, 60, initial::constant<double>(1));
    const auto x = affine("x", g.input("one", 1), linear{w, {}});
    const auto y = dropout("dropout", x, 0.3);
    add_loss("sum", sum_columns("sums", y));
    const plan_options options{.steps = 20, .batch = 20, .gradients = true};
    program<cpu<double>> p(g, store, options, {y});
    std::fill(p.input("one").begin(), p.input("one").end(), 1.0);
    p.forward();
    const std::vector<double> first(p.output(y).data, p.output(y).data + 24000);
    int kept = 0;
    for (const double v : first) {
        CHECK((v == 0 || v == doctest::Approx(1 / 0.7)));
        kept += v > 0;
    }
    CHECK(std::abs(kept - 16800) < 300);
    // Column f is dropped by word f % 4 of block f / 4.
    const auto key = static_cast<std::uint32_t>(stream_id("dropout", 0) >> 32);
    for (std::uint32_t r = 0, at = 0; r < 400; ++r)
        for (std::uint32_t f = 0; f < 60; ++f, ++at) {
            const auto bits = philox4x32({{r / 20, r % 20, f / 4, 1}}, key, 0).word[f % 4];
            CHECK((first[at] > 0) == (bits >= static_cast<std::uint32_t>(0.3 * 4294967296.0)));
        }
    p.backward();
    for (int f = 0; f < 60; ++f) {
        double sum = 0;
        for (int r = 0; r < 400; ++r) sum += first[static_cast<std::size_t>(60 * r + f)];
        CHECK(p.gradient()[static_cast<std::size_t>(f)] == doctest::Approx(sum));
    }
    p.forward();
    CHECK(!std::equal(first.begin(), first.end(), p.output(y).data));
    p.replay_count() = 0;
    p.forward();
    CHECK(std::equal(first.begin(), first.end(), p.output(y).data));

    // Row 5 alone, as a shard that begins there; and a plan without gradients.
    program<cpu<double>> shard(g, store,
                               {.steps = 20, .batch = 1, .gradients = true, .total_batch = 20, .first_row = 5}, {y});
    std::fill(shard.input("one").begin(), shard.input("one").end(), 1.0);
    shard.forward();
    for (int t = 0; t < 20; ++t)
        CHECK(std::equal(shard.output(y).at(t), shard.output(y).at(t) + 60, first.data() + (t * 20 + 5) * 60));
    program<cpu<double>> quiet(g, store, {.steps = 2, .batch = 1}, {y});
    std::fill(quiet.input("one").begin(), quiet.input("one").end(), 1.0);
    quiet.forward();
    CHECK(std::all_of(quiet.output(y).data, quiet.output(y).data + 120, [](double v) { return v == 1; }));
    CHECK_THROWS_WITH(dropout("all", x, 1.0), doctest::Contains("expected one in [0, 1)"));
    CHECK(dropout("none", x, 0.0).value == x.value);
}
