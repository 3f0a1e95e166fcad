// SPDX-License-Identifier: MIT
// A model cut in two programs: the gradient handed over at the cut gives the gradients of the model in one piece.

#include "engram/operations/receive_gradient.hpp"

#include <doctest/doctest.h>

#include <engram/controller/lstm.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

using backend = cpu<double>;
using variable = var<backend>;

struct square {
    auto operator()(auto x) const { return x * x; }
};

/// An LSTM over the input; [T, B, 4].
variable trace_lower(graph<backend>& g) {
    const auto x = g.input("x", 3);
    const lstm::settings s{4};
    const auto w = lstm::declare(g, s, 3);
    return scan(g, lstm::begin(g, s), [&](lstm::state<variable>& now) { return lstm::step(s, w, {x}, now); });
}
void trace_upper(graph<backend>& g, const variable& h) {
    const auto y = affine("upper", h, g.declare_linear("upper", 4, 2));
    add_loss("loss", sum_columns("sum", map("square", square{}, y)), 1, reduction::mean);
}

void fill(std::span<double> to, std::uint64_t seed) {
    philox random(seed, 3);
    for (double& v : to) v = static_cast<double>(random.normal());
}

}  // namespace

TEST_CASE("two programs give the gradients of one") {
    const auto whole_store = std::make_shared<parameters<double>>(1), store = std::make_shared<parameters<double>>(1);
    graph<backend> whole(whole_store), lower(store), upper(store);
    trace_upper(whole, trace_lower(whole));
    const auto h = trace_lower(lower);
    receive_gradient("h.gradient", h);
    const auto entering = upper.input("h", 4, extent::sequence, true);
    trace_upper(upper, entering);

    const plan_options options{.steps = 5, .batch = 3, .gradients = true};
    program<backend> a(whole, whole_store, options), b(lower, store, options, {h}), c(upper, store, options);
    for (int repeat = 0; repeat < 2; ++repeat) {
        fill(a.input("x"), 5);
        fill(b.input("x"), 5);
        a.forward();
        a.backward();
        b.forward();
        std::copy_n(b.output(h).data, 5 * 3 * 4, c.input("h").begin());
        c.forward();
        c.backward();
        std::copy_n(c.gradient_of(entering).data, 5 * 3 * 4, b.input("h.gradient").begin());
        b.backward();
        CHECK(c.loss() == doctest::Approx(a.loss()).epsilon(1e-14));
        REQUIRE(a.gradient().size() == b.gradient().size());
        double most = 0;
        for (std::size_t i = 0; i < a.gradient().size(); ++i) {
            CHECK(b.gradient()[i] + c.gradient()[i] == doctest::Approx(a.gradient()[i]).epsilon(1e-12));
            most = std::max(most, std::abs(a.gradient()[i]));
        }
        CHECK(most > 0.01);
    }
}

TEST_CASE("central differences") {
    const auto store = std::make_shared<parameters<double>>(1);
    graph<backend> g(store);
    const auto h = trace_lower(g);
    receive_gradient("h.gradient", h);
    trace_upper(g, h);  // beside another reader of h
    const auto report = check_gradients<backend>(g, store, {.steps = 4, .batch = 2}, [](program<backend>& p) {
        fill(p.input("x"), 5);
        fill(p.input("h.gradient"), 6);
        for (const auto& name : p.state_names()) fill(p.state(name), 7);
    });
    INFO(report.where);
    CHECK(report.worst < 1e-7);
    CHECK(report.compared > 40);
    CHECK(report.same_bits_twice);
}

TEST_CASE("graphs over one store share what they declare") {
    const auto store = std::make_shared<parameters<double>>(1);
    graph<backend> a(store), b(store);
    const auto first = a.declare("table", 3, 2, initial::zero<double>());
    CHECK_THROWS_WITH(b.declare("table", 3, 2, initial::zero<double>()), doctest::Contains("declared twice"));
    b.share_parameters();
    CHECK(b.declare("table", 3, 2, initial::zero<double>()).id == first.id);
    CHECK(store->entries().size() == 1);
    CHECK_THROWS_WITH(b.declare("table", 3, 3, initial::zero<double>()),
                      doctest::Contains("parameter 'table' is [3,2] in another graph and [3,3] here"));
}
