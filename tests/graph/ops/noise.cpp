// Noise: repeatable by replay count, different in every step, row, name and seed, with the right moments.

#include <doctest/doctest.h>

#include <set>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/noise.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

struct reparameterised {
    auto operator()(auto mean, auto spread, auto noise) const { return square(mean + exp(spread) * noise); }
};
struct sum_of {
    auto operator()(auto a, auto b) const { return a + b; }
};
template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, value));
};

std::vector<float> drawn(program<cpu<float>>& p, const var<cpu<float>>& v, int count) {
    p.forward();
    const auto o = p.output(v);
    return {o.data, o.data + count};
}

}  // namespace

TEST_CASE("numbers depend on replay, seed and name, and come back when the replay count does") {
    auto store = std::make_shared<parameters<float>>();
    graph<cpu<float>> g(store);
    const auto a = normal_noise(g, "a", 6), b = normal_noise(g, "b", 6), other = normal_noise(g, "other", 6, 2);
    graph<cpu<float>> twin(store);
    const auto c = normal_noise(twin, "other", 6, 1);
    const plan_options o{.steps = 5, .batch = 3};
    const int n = 5 * 3 * 6;
    program<cpu<float>> p(g, store, o, {a, b, other}), q(twin, store, o, {c}), resumed(g, store, o, {a});
    const auto first = drawn(p, a, n), other_first = drawn(q, c, n);
    CHECK(std::set<float>(first.begin(), first.end()).size() == static_cast<std::size_t>(n));
    for (const auto& v : {b, other}) {
        const auto y = p.output(v);
        CHECK_FALSE(std::equal(first.begin(), first.end(), y.data));
    }
    CHECK_FALSE(std::equal(other_first.begin(), other_first.end(), p.output(other).data));
    const auto second = drawn(p, a, n);
    CHECK(first != second);
    resumed.replay_count() = 1;
    CHECK(drawn(resumed, a, n) == second);
    p.replay_count() = 0;
    CHECK(drawn(p, a, n) == first);
    p.replay_count() = (std::uint64_t{1} << 32);
    CHECK(drawn(p, a, n) != first);
}

TEST_CASE("a number does not depend on the size of the plan") {
    auto store = std::make_shared<parameters<float>>();
    graph<cpu<float>> g(store);
    const auto a = uniform_noise(g, "a", 3);
    program<cpu<float>> large(g, store, {.steps = 4, .batch = 5}, {a}), small(g, store, {.steps = 2, .batch = 2}, {a});
    large.forward();
    small.forward();
    for (int t = 0; t < 2; ++t)
        for (int i = 0; i < 2 * 3; ++i) CHECK(large.output(a).at(t)[i] == small.output(a).at(t)[i]);
}

TEST_CASE("moments are those of the distribution") {
    auto store = std::make_shared<parameters<float>>();
    graph<cpu<float>> g(store);
    const auto normal = normal_noise(g, "normal", 10), uniform = uniform_noise(g, "uniform", 10);
    program<cpu<float>> p(g, store, {.steps = 100, .batch = 100}, {normal, uniform});
    p.forward();
    const int n = 100000;
    double m[5] = {}, u1 = 0, u2 = 0, neighbours = 0;
    float low = 1, high = 0;
    for (int i = 0; i < n; ++i) {
        const double z = static_cast<double>(p.output(normal).data[i]);
        for (int k = 1; k <= 4; ++k) m[k] += std::pow(z, k) / n;
        if (i > 0) neighbours += z * static_cast<double>(p.output(normal).data[i - 1]) / n;
        const float u = p.output(uniform).data[i];
        u1 += static_cast<double>(u) / n;
        u2 += static_cast<double>(u) * static_cast<double>(u) / n;
        low = std::min(low, u);
        high = std::max(high, u);
    }
    // Five standard errors of each moment of n independent numbers: sqrt(1, 2, 15, 96; 1/12, 4/45; 1 for products) /
    // sqrt(n).
    const double e = 5 / std::sqrt(n);
    CHECK(std::abs(m[1]) < e);
    CHECK(std::abs(m[2] - 1) < e * std::sqrt(2.0));
    CHECK(std::abs(m[3]) < e * std::sqrt(15.0));
    CHECK(std::abs(m[4] - 3) < e * std::sqrt(96.0));
    CHECK(std::abs(neighbours) < e);
    CHECK(std::abs(u1 - 0.5) < e * std::sqrt(1.0 / 12));
    CHECK(std::abs(u2 - 1.0 / 3) < e * std::sqrt(4.0 / 45));
    CHECK(low > 0);
    CHECK(high < 1);
}

TEST_CASE("in a scan every step has its own row, and gradients pass around the noise") {
    const int T = 4, B = 2, F = 3;
    auto store = std::make_shared<parameters<double>>(3);
    graph<cpu<double>> g(store);
    const auto x = g.input("x", F, extent::sequence, true);
    const auto spread = g.input("spread", F, extent::batch, true);
    const auto start = normal_noise(g, "start", F, 1, extent::batch);
    one_state<var<cpu<double>>> s{g.state("s", F)};
    var<cpu<double>> n;
    const auto y = scan(g, s, [&](auto& state) {
        n = normal_noise(g, "noise", F);
        state.value = map("add", sum_of{}, state.value, map("sample", reparameterised{}, x, spread, n));
        return map("shift", sum_of{}, state.value, start);
    });
    add_loss("loss", sum_columns("sum", map("square", reparameterised{}, y, x, n)));
    const auto prepare = [](program<cpu<double>>& p) {
        philox random(5, 1);
        for (auto& v : p.input("x")) v = 0.3 * random.normal();
        for (auto& v : p.input("spread")) v = 0.3 * random.normal();
        p.replay_count() = 11;
    };
    for (const bool hoist : {true, false}) {
        const auto report = check_gradients<cpu<double>>(g, store, {.steps = T, .batch = B, .hoist = hoist}, prepare);
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.compared >= 24);
        CHECK(report.same_bits_twice);
    }
    program<cpu<double>> p(g, store, {.steps = T, .batch = B}, {n, start, y}),
        q(g, store, {.steps = T, .batch = B, .hoist = false}, {n, y});
    prepare(p);
    prepare(q);
    p.forward();
    q.forward();
    CHECK(std::equal(p.output(n).data, p.output(n).data + T * B * F, q.output(n).data));
    std::set<double> distinct(p.output(n).data, p.output(n).data + T * B * F);
    distinct.insert(p.output(start).data, p.output(start).data + B * F);
    CHECK(distinct.size() == static_cast<std::size_t>((T + 1) * B * F));
}

TEST_CASE("two noises of one name are refused") {
    graph<cpu<float>> g(std::make_shared<parameters<float>>());
    normal_noise(g, "prior", 3);
    CHECK_THROWS_WITH_AS(uniform_noise(g, "prior", 3), "prior: two noises of one name would draw the same numbers",
                         error);
    const auto scope = g.scope("memory");
    CHECK_NOTHROW(normal_noise(g, "prior", 3));
}

TEST_CASE("splitting a batch changes no number") {
    auto store = std::make_shared<parameters<float>>();
    graph<cpu<float>> g(store);
    const auto a = normal_noise(g, "a", 3);
    program<cpu<float>> whole(g, store, {.steps = 2, .batch = 4}, {a}),
        part(g, store, {.steps = 2, .batch = 2, .total_batch = 4, .first_row = 2}, {a});
    whole.forward();
    part.forward();
    for (int t = 0; t < 2; ++t)
        for (int i = 0; i < 6; ++i) CHECK(part.output(a).at(t)[i] == whole.output(a).at(t)[6 + i]);
}
