// The device's kernels, emulated: against the host, against central differences, and in any order of threads.

#include <doctest/doctest.h>

#include <engram/device/operations.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/channels.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/dropout.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/noise.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/previous.hpp>
#include <engram/operations/receive_gradient.hpp>
#include <engram/operations/returns.hpp>
#include <engram/operations/softmax.hpp>
#include <engram/train/device_optimiser.hpp>

using namespace engram;

namespace {

struct lstm_cell {
    constexpr auto operator()(auto i, auto f, auto g, auto o, auto c) const {
        auto next = logistic(f + 1) * c + logistic(i) * tanh(g);
        return std::tuple{next, logistic(o) * tanh(next)};
    }
};
struct squared {
    constexpr auto operator()(auto a, auto b) const { return square(a - b); }
};
struct keep {
    constexpr auto operator()(auto reset, auto x) const { return select(reset > 0.5, 0, x); }
};

template <class Var>
struct lstm_state {
    BOOST_HANA_DEFINE_STRUCT(lstm_state, (Var, cell), (Var, hidden));
};

// An LSTM whose heads use every operation of rows, overlapping slices and a column against a row.
template <class Backend>
struct traced {
    using real = typename Backend::real;
    std::shared_ptr<parameters<real>> store = std::make_shared<parameters<real>>(7);
    graph<Backend> g{store};
    var<Backend> out;

    explicit traced(int X = 3, int H = 5) {
        const auto x = g.input("x", X, extent::sequence, true);
        const auto reset = g.input("reset", 1), target = g.input("target", 4), token = g.input("token", 1);
        const auto context = g.input("context", 2, extent::batch, true);
        const auto gates = g.declare_linear("gates", X + H + 2, 4 * H);
        const auto head = g.declare_linear("head", H + X, 4);
        const auto table = g.declare("table", 3, 4, initial::fan_in<real>());
        lstm_state<var<Backend>> start{g.state("cell", H), g.state("hidden", H)};
        out = scan(g, start, [&](auto& s) {
            const auto c = map("mask.cell", keep{}, reset, s.cell);
            const auto prev = map("mask.hidden", keep{}, reset, s.hidden);
            const auto z = split_columns<4>(affine<Backend>("gates", {x, prev, context}, gates));
            const auto [cell, hidden] = map("cell", lstm_cell{}, z[0], z[1], z[2], z[3], c);
            s.cell = cell;
            s.hidden = hidden;
            return affine<Backend>("head", {hidden, x}, head);
        });
        const auto scaled = map("scaled", times{}, out.columns(1, 1), out);
        const auto slid = map("slid", times{}, out.columns(0, 3), out.columns(1, 3));
        const auto before = previous("before", softmax("soft", concatenate<Backend>("both", {scaled, slid})));
        const auto said = pick("said", log_softmax("log", out), token);
        const auto named = map("named", times{}, embed("embed", token, table), one_hot("one", token, 4));
        add_loss("error", sum_columns("sum", map("square", squared{}, out, target)), 0.5);
        add_loss(
            "before",
            sum_columns("sum.before", map("squares", squared{}, before, concatenate<Backend>("again", {scaled, slid}))),
            2, reduction::mean);
        add_loss("said", said, -1);
        const auto norm = declare_layer_norm(g, "norm", 4);
        const auto thin = dropout("thin", layer_norm("normal", out, norm), 0.3);
        receive_gradient("given", thin);
        add_loss("named", sum_columns("sum.named", map("scaled.named", times{}, named, scaled)));
    }
};

template <class Backend>
void fill(program<Backend>& p) {
    philox random(3, 1);
    using real = typename Backend::real;
    for (const char* name : {"x", "target", "context", "given"})
        if (p.has_input(name))
            for (auto& v : p.input(name)) v = static_cast<real>(random.normal());
    for (const char* name : {"cell", "hidden"})
        for (auto& v : p.state(name)) v = static_cast<real>(random.normal());
    int i = 0;
    for (auto& v : p.input("reset")) v = i++ % 5 == 3;
    for (auto& v : p.input("token")) v = static_cast<real>(i++ % 3);
}

template <class Backend>
std::vector<typename Backend::real> weights_after(int updates, bool hoist, double* loss) {
    using real = typename Backend::real;
    traced<Backend> m;
    program<Backend> p(m.g, m.store, {.steps = 4, .batch = 3, .gradients = true, .hoist = hoist});
    optimiser<real> adam({}, *m.store);
    fill(p);
    for (int i = 0; i < updates; ++i) {
        p.forward();
        p.backward();
        adam.update(*m.store, p.gradient(), 0);
        p.carry();
        *loss = p.loss();
    }
    return {m.store->flat().begin(), m.store->flat().end()};
}

}  // namespace

TEST_CASE("device kernels differentiate") {
    traced<emulated<double>> m;
    for (const bool hoist : {true, false}) {
        plan_options o{.steps = 4, .batch = 3, .hoist = hoist};
        const auto report = check_gradients<emulated<double>>(m.g, m.store, o, [](auto& p) { fill(p); });
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.compared > 60);
        CHECK(report.same_bits_twice);
    }
}

TEST_CASE("ten updates on the device equal those of the host") {
    for (const bool hoist : {true, false}) {
        double here = 0, there = 0;
        const auto host = weights_after<cpu<double>>(10, hoist, &here);
        const auto device = weights_after<emulated<double>>(10, hoist, &there);
        REQUIRE(host.size() == device.size());
        for (std::size_t i = 0; i < host.size(); ++i) CHECK(device[i] == doctest::Approx(host[i]).epsilon(1e-10));
        CHECK(there == doctest::Approx(here).epsilon(1e-10));
    }
}

TEST_CASE("ten updates by the device's own optimiser equal those of the host") {
    using kinds = decltype(optimiser_settings::kind);
    for (const kinds kind : {kinds("adam"), kinds("rmsprop")}) {
        const optimiser_settings settings{.kind = kind, .final_fraction = 0.5, .momentum = 0.3, .clip = 0.7};
        traced<cpu<double>> a;
        traced<emulated<double>> b;
        program<cpu<double>> host(a.g, a.store, {.steps = 4, .batch = 3, .gradients = true});
        program<emulated<double>> device(b.g, b.store, {.steps = 4, .batch = 3, .gradients = true});
        optimiser<double> here(settings, *a.store);
        device_optimiser<emulated<double>> there(settings, *b.store);
        fill(host);
        fill(device);
        for (int i = 0; i < 10; ++i) {
            host.forward();
            host.backward();
            const double norm = here.update(*a.store, host.gradient(), 0.1 * i);
            device.forward();
            device.backward();
            there.update(device, 0.1 * i);
            CHECK(there.norm(device.executor()) == doctest::Approx(norm).epsilon(1e-9));
            CHECK(norm > 0.7);  // clipped
        }
        const std::vector<double> before(b.store->flat().begin(), b.store->flat().end());
        device.device_weights_in_use().fetch(device.executor(), *b.store);
        double moved = 0;
        for (std::size_t i = 0; i < before.size(); ++i) {
            CHECK(b.store->flat()[i] == doctest::Approx(a.store->flat()[i]).epsilon(1e-9));
            moved = std::max(moved, std::abs(before[i] - b.store->flat()[i]));
        }
        CHECK(moved > 1e-4);
    }
}

TEST_CASE("a gradient that is not finite changes no weight on the device") {
    traced<emulated<double>> m;
    program<emulated<double>> p(m.g, m.store, {.steps = 4, .batch = 3, .gradients = true});
    device_optimiser<emulated<double>> adam({}, *m.store);
    fill(p);
    p.input("x")[0] = std::numeric_limits<double>::quiet_NaN();
    p.forward();
    p.backward();
    adam.update(p, 0);
    CHECK(std::isnan(adam.norm(p.executor())));
    const std::vector<double> before(m.store->flat().begin(), m.store->flat().end());
    p.device_weights_in_use().fetch(p.executor(), *m.store);
    CHECK(std::equal(before.begin(), before.end(), m.store->flat().begin()));
    CHECK(p.first_non_finite() != "");
}

TEST_CASE("no kernel depends on the order of its threads") {
    traced<emulated<double>> m;
    std::vector<std::vector<double>> gradients;
    for (const auto order : {thread_order::ascending, thread_order::descending, thread_order::scrambled}) {
        program<emulated<double>> p(m.g, m.store, {.steps = 4, .batch = 3, .gradients = true});
        p.executor().order = order;
        fill(p);
        p.forward();
        p.backward();
        gradients.emplace_back(p.gradient().begin(), p.gradient().end());
        gradients.back().push_back(p.loss());
    }
    CHECK(gradients[0] == gradients[1]);
    CHECK(gradients[0] == gradients[2]);
}

TEST_CASE("a number that is out of range is named") {
    traced<emulated<double>> m;
    program<emulated<double>> p(m.g, m.store, {.steps = 1, .batch = 2, .gradients = true});
    fill(p);
    p.input("token")[1] = 7;
    CHECK_THROWS_WITH(p.forward(), doctest::Contains("an index is out of range"));
}

namespace {

template <class Backend>
struct unknown_kernel final : kernel<Backend> {
    unknown_kernel(const binder<Backend>&, no_settings) {}
    void forward(int, int) override {}
};

}  // namespace

TEST_CASE("an operation without a device body is refused when it is bound") {
    graph<emulated<double>> g(std::make_shared<parameters<double>>(1));
    const auto x = g.input("x", 3);
    const auto y = g.add(make_operation<unknown_kernel>(g, "strange", {x}, no_settings{}), {3}, extent::sequence)[0];
    using plan = program<emulated<double>>;
    CHECK_THROWS_WITH(plan(g, std::make_shared<parameters<double>>(1), {}, {y}),
                      "strange: this operation has no body for the device 'emulated'; use the device 'cpu'");
}

TEST_CASE("a store whose products are in bfloat16 is refused") {
    const auto store = std::make_shared<parameters<float>>(1);
    graph<emulated<float>> g(store);
    const auto x = g.input("x", 3);
    const auto y = affine<emulated<float>>("y", {x}, g.declare_linear("y", 3, 2));
    store->set_products(product_precision::bfloat16);
    using device_program = program<emulated<float>>;
    CHECK_THROWS_WITH(device_program(g, store, {.steps = 1, .batch = 1}, {y}),
                      "plan: products in bfloat16 are the host's; the device 'emulated' has float ones");
}
