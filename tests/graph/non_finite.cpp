// program::first_non_finite names the first value, in the order of computation, that is not a number.

#include <doctest/doctest.h>

#include <limits>

#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>

using namespace engram;
using backend = cpu<float>;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

struct logarithm {
    auto operator()(auto x) const { return log(x); }
};
struct sum_of {
    auto operator()(auto a, auto b) const { return a + b; }
};
template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, value));
};

struct traced {
    std::shared_ptr<parameters<float>> store = std::make_shared<parameters<float>>(2);
    graph<backend> g{store};
    linear encoder, head;
    var<backend> out;

    traced() {
        const auto x = g.input("x", 3);
        const auto positive = g.input("positive", 2);
        encoder = g.declare_linear("encoder", 3, 2);
        head = g.declare_linear("head", 2, 1);
        one_state<var<backend>> start{g.state("memory", 2)};
        out = scan(g, start, [&](auto& s) {
            const auto seen = affine<backend>("encoder", {x}, encoder);
            const auto logs = map("log", logarithm{}, positive);
            s.value = map("add", sum_of{}, map("add2", sum_of{}, s.value, seen), logs);
            return affine<backend>("head", {s.value}, head);
        });
        add_loss("loss", out);
    }
};

struct filled : program<backend> {
    explicit filled(const traced& m, bool gradients = true)
        : program<backend>(m.g, m.store, {.steps = 4, .batch = 2, .gradients = gradients}, {m.out}) {
        for (auto& v : input("x")) v = 1;
        for (auto& v : input("positive")) v = 2;
    }
};

}  // namespace

TEST_CASE("finite numbers name nothing") {
    traced m;
    for (const bool gradients : {false, true}) {
        filled p(m, gradients);
        p.forward();
        CHECK(p.first_non_finite() == "");
    }
}

TEST_CASE("a NaN or an infinity in an input names the first operation that sees it") {
    traced m;
    for (const float bad : {not_a_number, infinity, -infinity})
        for (const std::size_t at : {0, 13, 23}) {
            filled p(m);
            p.input("x")[at] = bad;
            p.forward();
            CHECK(p.first_non_finite() == "encoder");
        }
}

TEST_CASE("an operation that makes one of finite numbers is named, whichever step or row it happens in") {
    traced m;
    for (const std::size_t at : {0, 9, 15}) {
        filled p(m);
        p.input("positive")[at] = 0;
        p.forward();
        CHECK(p.first_non_finite() == "log");
        CHECK_FALSE(std::isfinite(p.loss()));
        p.input("positive")[at] = 1;
        p.forward();
        CHECK(p.first_non_finite() == "");
        CHECK(std::isfinite(p.loss()));
    }
}

TEST_CASE("a carried state and a weight are found where they first do harm") {
    traced m;
    filled p(m);
    p.state("memory")[3] = not_a_number;
    p.forward();
    CHECK(p.first_non_finite() == "add2");
    p.state("memory")[3] = 0;
    m.store->edit().values(m.head.bias)[0] = infinity;
    p.forward();
    CHECK(p.first_non_finite() == "head");
    m.store->edit().values(m.head.bias)[0] = 0;
    m.store->edit().values(m.encoder.weight)[2] = not_a_number;
    p.forward();
    CHECK(p.first_non_finite() == "encoder");
}

TEST_CASE("overflow in a state is found in the step in which it happens, and names are full") {
    auto store = std::make_shared<parameters<float>>();
    graph<backend> g(store);
    const auto x = g.input("x", 1);
    const auto scope = g.scope("core");
    one_state<var<backend>> start{g.state("sum", 1)};
    const auto out = scan(g, start, [&](auto& s) { return s.value = map("add", sum_of{}, s.value, x); });
    program<backend> p(g, store, {.steps = 3, .batch = 1}, {out});
    for (auto& v : p.input("x")) v = 2e38f;
    p.forward();
    CHECK(std::isfinite(p.output(out).at(0)[0]));
    CHECK_FALSE(std::isfinite(p.output(out).at(1)[0]));
    CHECK(p.first_non_finite() == "core.add");
}
