// SPDX-License-Identifier: MIT

// Gradients that share memory: how much an update has, and that whoever gives to one comes in turn.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

using backend = cpu<double>;

struct bend {
    auto operator()(auto a) const { return tanh(a); }
};
struct squared {
    auto operator()(auto a) const { return square(a); }
};
struct keep_a_part {
    auto operator()(auto kept, auto a, auto b) const { return 0.5 * kept + a * b; }
};

template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, kept));
};

struct model {
    std::shared_ptr<parameters<double>> store = std::make_shared<parameters<double>>(7);
    graph<backend> g{store};
    var<backend> x;

    explicit model(int columns) : x(g.input("x", columns, extent::sequence, true)) {}
    void end(const var<backend>& y) { add_loss("error", sum_columns("sum", map("square", squared{}, y))); }
};

void fill(program<backend>& p) {
    philox random(3, 1);
    for (auto& v : p.input("x")) v = random.normal();
}

void agrees(const model& m) {
    const auto report = check_gradients<backend>(m.g, m.store, {.steps = 5, .batch = 3}, fill);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 20);
    CHECK(report.same_bits_twice);
}

}  // namespace

TEST_CASE("another layer has memory for its values, and for its gradients none") {
    const auto bytes = [](int layers) {
        model m(16);
        auto y = m.x;
        for (int k = 0; k < layers; ++k) y = map("layer." + std::to_string(k), bend{}, y);
        m.end(y);
        agrees(m);
        return program<backend>(m.g, m.store, {.steps = 5, .batch = 3, .gradients = true}).memory();
    };
    CHECK(bytes(12) == bytes(4) + 8 * sizeof(double) * 5 * 3 * 16);
}

TEST_CASE("the first to give stores, and those that follow add, whichever columns they have") {
    model whole_first(8), parts_first(8), twice(8), overlapping(8);
    const auto part = [](const char* name, const auto& v, int first, int count) {
        return map(name, bend{}, v.columns(first, count));
    };
    {
        // What is traced last gives first.
        const auto a = map("a", bend{}, whole_first.x);
        const auto left = part("left", a, 0, 4), right = part("right", a, 4, 4), whole = map("whole", bend{}, a);
        whole_first.end(map("both", add{}, whole, concatenate("halves", std::vector{left, right})));
    }
    {
        const auto a = map("a", bend{}, parts_first.x);
        const auto whole = map("whole", bend{}, a);
        const auto left = part("left", a, 0, 4), right = part("right", a, 4, 4);
        parts_first.end(map("both", add{}, whole, concatenate("halves", std::vector{left, right})));
    }
    {
        const auto a = map("a", bend{}, twice.x);
        twice.end(map("both", times{}, a, a));
    }
    {
        const auto a = map("a", bend{}, overlapping.x);
        overlapping.end(map("both", add{}, part("left", a, 0, 5), part("right", a, 3, 5)));
    }
    for (const model* m : {&whole_first, &parts_first, &twice, &overlapping}) agrees(*m);
}

TEST_CASE("readers in a time loop, ahead of it and behind it") {
    for (const bool behind : {false, true}) {
        model m(4);
        const auto a = map("a", bend{}, m.x), b = map("b", bend{}, a);
        const auto mix = m.g.declare_linear("mix", 8, 4);
        one_state<var<backend>> start{m.g.state("kept", 4)};
        const auto y = scan(m.g, start, [&](auto& s) {
            // Sums over a are made ahead of the loop, and their gradient behind it.
            const auto z = affine<backend>("mix", {a, s.kept}, mix);
            s.kept = map("next", keep_a_part{}, s.kept, z, b);
            return map("out", times{}, s.kept, a);
        });
        m.end(behind ? map("sum", add{}, y, map("behind", times{}, a, b)) : y);
        agrees(m);
    }
}

TEST_CASE("a gradient in between is there afterwards where it was asked for") {
    model m(4);
    const auto a = map("a", bend{}, m.x), b = map("b", bend{}, a);
    m.end(map("c", bend{}, b));
    program<backend> p(m.g, m.store, {.steps = 5, .batch = 3, .gradients = true}, {a});
    fill(p);
    p.forward();
    p.backward();
    const auto d_x = p.gradient_of(m.x), d_a = p.gradient_of(a), y = p.output(a);
    for (int i = 0; i < 5 * 3 * 4; ++i)
        CHECK(d_x.data[i] == doctest::Approx((1 - y.data[i] * y.data[i]) * d_a.data[i]).epsilon(1e-12));
    CHECK_THROWS_WITH_AS(p.gradient_of(b),
                         "gradient_of: 'b' has no gradient left after the backward sweep; name it among the outputs",
                         error);
}
