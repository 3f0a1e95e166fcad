// previous: shift, its gradient, and where it may stand.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/previous.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {
struct product_of {
    auto operator()(auto a, auto b) const { return a * b + square(a); }
};
template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, value));
};
}  // namespace

TEST_CASE("previous shifts by one step and starts from zero, also on a slice") {
    const int T = 4, B = 2;
    auto store = std::make_shared<parameters<double>>();
    graph<cpu<double>> g(store);
    const auto x = g.input("x", 5);
    const auto y = previous("before", x.columns(1, 3));
    program<cpu<double>> p(g, store, {.steps = T, .batch = B}, {y});
    for (int i = 0; i < T * B * 5; ++i) p.input("x")[static_cast<std::size_t>(i)] = i + 1;
    p.forward();
    for (int t = 0; t < T; ++t)
        for (int b = 0; b < B; ++b)
            for (int f = 0; f < 3; ++f)
                CHECK(p.output(y).at(t)[b * 3 + f] == (t == 0 ? 0 : ((t - 1) * B + b) * 5 + 1 + f + 1));
}

TEST_CASE("the gradient of previous is the shift back") {
    for (const int T : {1, 2, 5}) {
        auto store = std::make_shared<parameters<double>>();
        graph<cpu<double>> g(store);
        const auto x = g.input("x", 3, extent::sequence, true);
        add_loss("loss", sum_columns("sum", map("product", product_of{}, x, previous("twice", previous("before", x)))));
        add_loss("stored",
                 sum_columns("sum2", map("square", product_of{}, previous("again", x), previous("other", x))));
        const auto report = check_gradients<cpu<double>>(g, store, {.steps = T, .batch = 2}, [](auto& p) {
            philox random(5, 1);
            for (auto& v : p.input("x")) v = random.normal();
        });
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.compared >= 6 * T);
        CHECK(report.same_bits_twice);
    }
}

TEST_CASE("previous refuses a scan's body and variables without time") {
    auto store = std::make_shared<parameters<double>>();
    graph<cpu<double>> g(store);
    const auto x = g.input("x", 3);
    CHECK_THROWS_WITH_AS(previous("before", g.input("level", 2, extent::batch)),
                         "before: 'level' is [B,2] and has no steps; a [T,B,F] variable is needed", error);
    one_state<var<cpu<double>>> s{g.state("s", 3)};
    const auto body = [&](auto& state) {
        state.value = previous("before", x);
        return x;
    };
    CHECK_THROWS_WITH_AS(scan(g, s, body),
                         "before: a step of a scan does not see the step before; carry the variable as a state", error);
}
