// Products of embeddings as rows of the product of their table, on a device.

#include <doctest/doctest.h>

#include <engram/controller/srnn.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

constexpr int tokens = 4, columns = 5;

struct weighted {
    constexpr auto operator()(auto x, auto weight) const { return x * weight; }
};

/// Embedded tokens through a recurrent controller, which meets them ahead of its time loop, and through a head, which
/// meets another table's in one sweep beside other numbers.
template <class Backend>
struct traced {
    using real = typename Backend::real;
    std::shared_ptr<parameters<real>> store = std::make_shared<parameters<real>>(3);
    graph<Backend> g{store};
    var<Backend> x, y, h;

    traced() {
        const auto index = g.input("token", 1), other = g.input("other", 2, extent::sequence, true);
        const auto table = g.declare("table", tokens, columns, initial::fan_in<real>()),
                   second = g.declare("second", tokens, columns, initial::fan_in<real>());
        x = embed("first", index, table);
        y = embed("again", index, second);
        const auto weights = srnn::declare(g, {.hidden = 4, .hyper = 3}, columns);
        h = scan(g, srnn::begin(g, srnn::settings{.hidden = 4, .hyper = 3}),
                 [&](auto& now) { return srnn::step({.hidden = 4, .hyper = 3}, weights, {x}, now); });
        const auto head = affine<Backend>("head", {y, other}, g.declare_linear("head", columns + 2, 4));
        add_loss("loss", sum_columns("sum", map("weighted", weighted{}, h, head)));
    }
    static void fill(program<Backend>& p) {
        philox random(7, 1);
        for (auto& v : p.input("other")) v = static_cast<real>(random.normal());
        for (auto& v : p.input("token")) v = static_cast<real>(random.below(tokens));
    }
    bool looks_up(const program<Backend>& p) const {
        const auto& by = p.planned().looked_up;
        return by[static_cast<std::size_t>(x.value)] >= 0 && by[static_cast<std::size_t>(y.value)] >= 0;
    }
};

/// Output, gradient and loss of three sweeps, the later of which a device replays.
template <class Backend>
std::vector<double> numbers(thread_order order, bool look_up = true) {
    traced<Backend> m;
    program<Backend> p(m.g, m.store, {.steps = 6, .batch = 3, .gradients = true, .look_up = look_up}, {m.h});
    CHECK(m.looks_up(p) == look_up);
    if constexpr (device_backend<Backend>) p.executor().order = order;
    std::vector<double> all;
    for (int turn = 0; turn < 3; ++turn) {
        traced<Backend>::fill(p);
        p.forward();
        p.backward();
        const auto h = p.output(m.h);
        all.insert(all.end(), h.data, h.data + 6 * 3 * m.h.width);
        for (const auto v : p.gradient()) all.push_back(static_cast<double>(v));
        all.push_back(p.loss());
        auto edit = m.store->edit();
        for (auto& v : edit.flat()) v *= 1.25;
    }
    return all;
}

}  // namespace

TEST_CASE("the product of a table on a device is that of the host, in any order of threads") {
    const auto host = numbers<cpu<double>>(thread_order::ascending);
    const auto device = numbers<emulated<double>>(thread_order::ascending);
    REQUIRE(host.size() == device.size());
    for (std::size_t i = 0; i < host.size(); ++i) CHECK(device[i] == doctest::Approx(host[i]).epsilon(1e-10));
    CHECK(numbers<emulated<double>>(thread_order::descending) == device);
    CHECK(numbers<emulated<double>>(thread_order::scrambled) == device);
    const auto written_out = numbers<emulated<double>>(thread_order::ascending, false);
    for (std::size_t i = 0; i < host.size(); ++i) CHECK(written_out[i] == doctest::Approx(host[i]).epsilon(1e-10));
}

TEST_CASE("its gradients agree with central differences") {
    traced<emulated<double>> m;
    const auto report =
        check_gradients<emulated<double>>(m.g, m.store, {.steps = 6, .batch = 3}, traced<emulated<double>>::fill);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 60);
    CHECK(report.same_bits_twice);
}

TEST_CASE("a token that is out of range is named though its row is not written out") {
    traced<emulated<double>> m;
    program<emulated<double>> p(m.g, m.store, {.steps = 6, .batch = 3, .gradients = true});
    REQUIRE(m.looks_up(p));
    traced<emulated<double>>::fill(p);
    p.input("token")[7] = tokens;
    CHECK_THROWS_WITH(p.forward(), doctest::Contains("an index is out of range"));
}
