// Layer normalisation: values against plain arithmetic, gradients against central differences, inside a scan and out.

#include <doctest/doctest.h>

#include <cmath>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

using backend = cpu<double>;

struct product_of {
    auto operator()(auto a, auto b) const { return a * b; }
};
struct half_of_both {
    auto operator()(auto a, auto b) const { return 0.5 * (a + b); }
};
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (var<backend>, h));
};

void fill(program<backend>& p) {
    philox random(1, 1);
    for (const char* name : {"x", "weight"})
        if (p.has_input(name))
            for (auto& v : p.input(name)) v = 3 + 2 * static_cast<double>(random.normal());
}

template <class Model>
gradient_report check(int width, Model model) {
    const auto store = std::make_shared<parameters<double>>(3);
    graph<backend> g(store);
    const auto x = g.input("x", width, extent::sequence, true), weight = g.input("weight", width);
    const auto w = declare_layer_norm(g, "norm", width);
    philox random(4, 4);
    for (auto& v : store->edit().flat()) v += 0.3 * static_cast<double>(random.normal());
    add_loss("loss", sum_columns("sum", map("weighted", product_of{}, model(g, x, w), weight)));
    return check_gradients<backend>(g, store, {.steps = 3, .batch = 2}, fill);
}

}  // namespace

TEST_CASE("a row has mean zero and variance one before gain and bias; equal numbers give the bias") {
    const int F = 11;
    const auto store = std::make_shared<parameters<double>>(3);
    graph<backend> g(store);
    const auto x = g.input("x", F);
    const auto w = declare_layer_norm(g, "norm", F);
    const auto y = layer_norm("y", x, w);
    {
        auto edit = store->edit();
        for (int f = 0; f < F; ++f) edit.values(w.gain)[f] = 1 + f, edit.values(w.bias)[f] = -f;
    }
    program<backend> p(g, store, {.steps = 2, .batch = 3}, {y});
    fill(p);
    std::fill_n(p.input("x").begin(), F, 7.0);
    p.forward();
    const auto out = p.output(y);
    for (int f = 0; f < F; ++f) CHECK(out.at(0)[f] == -f);
    for (int row = 1; row < 6; ++row) {
        const double* from = p.input("x").data() + row * F;
        double mean = 0, variance = 0;
        for (int f = 0; f < F; ++f) mean += from[f] / F;
        for (int f = 0; f < F; ++f) variance += (from[f] - mean) * (from[f] - mean) / F;
        for (int f = 0; f < F; ++f)
            CHECK(out.data[row * F + f] ==
                  doctest::Approx((1 + f) * (from[f] - mean) / std::sqrt(variance + 1e-5) - f).epsilon(1e-12));
    }
}

TEST_CASE("gradients agree with central differences") {
    for (const int width : {3, 5, 8, 19}) {  // of one column or two the gradient is zero, and its difference noise
        const auto report = check(width, [](auto&, auto x, const auto& w) { return layer_norm("y", x, w); });
        INFO(width, ": ", report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.same_bits_twice);
    }
}

TEST_CASE("gradients agree when x is used twice, and in the loop of a scan") {
    const auto twice = check(6, [](auto&, auto x, const auto& w) {
        return map("sum", half_of_both{}, layer_norm("y", x, w), layer_norm("z", x, w));
    });
    INFO(twice.where);
    CHECK(twice.worst < 1e-6);
    const auto looped = check(6, [](auto& g, auto x, const auto& w) {
        return scan(g, one_state{g.state("h", 6)}, [&](one_state& s) {
            s.h = layer_norm("y", map("in", half_of_both{}, x, s.h), w);
            return s.h;
        });
    });
    INFO(looped.where);
    CHECK(looped.worst < 1e-6);
    CHECK(looped.compared > 12);
}
