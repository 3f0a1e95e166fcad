// Batch normalisation: statistics and gradients against plain loops and differences, and which plan uses which
// statistics.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/batch_norm.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

struct weighted_square {
    auto operator()(auto a, auto b) const { return a * b + 0.3 * square(a) * a; }
};
struct sum_of {
    auto operator()(auto a, auto b) const { return a + b; }
};
template <class Var>
struct one_state {
    BOOST_HANA_DEFINE_STRUCT(one_state, (Var, value));
};

void draw(std::span<double> to, std::uint64_t stream) {
    philox random(2, stream);
    for (double& v : to) v = 0.4 + 1.3 * static_cast<double>(random.normal());
}

// 2 pixels of 3 channels a row, with scale and offset off their first values.
struct traced {
    static constexpr int C = 3, width = 6;
    std::shared_ptr<parameters<double>> store = std::make_shared<parameters<double>>(4);
    graph<backend> g{store};
    var<backend> x, y;
    batch_norm_weights weights;

    explicit traced(batch_norm_settings settings = {}, extent rows = extent::sequence, bool wanted = true) {
        x = g.input("x", width + 1, rows, wanted);
        weights = declare_batch_norm(g, "norm", C);
        auto edit = store->edit();
        for (int c = 0; c < C; ++c) {
            edit.values(weights.scale)[c] = 0.5 + c;
            edit.values(weights.offset)[c] = 1 - c;
        }
        y = batch_norm("norm", x.columns(1, width), weights, settings);
        add_loss("loss", sum_columns("sum", map("square", weighted_square{}, y, x.columns(0, width))));
    }
    running_statistics<double>& running(program<backend>& p) {
        return static_cast<running_statistics<double>&>(
            *p.bound_resource(static_cast<std::size_t>(weights.statistics)));
    }
};

double largest_error(traced& m, program<backend>& p, int rows, const std::vector<double>& mean,
                     const std::vector<double>& variance) {
    double worst = 0;
    for (int r = 0; r < rows; ++r)
        for (int i = 0; i < traced::width; ++i) {
            const auto c = static_cast<std::size_t>(i % 3);
            const double in = p.input("x")[static_cast<std::size_t>(r * 7 + 1 + i)];
            const double expected = (0.5 + double(c)) * (in - mean[c]) / std::sqrt(variance[c] + 1e-5) + 1 - double(c);
            worst = std::max(worst, std::abs(expected - p.output(m.y).data[r * traced::width + i]));
        }
    return worst;
}

}  // namespace

TEST_CASE("a plan with gradients uses and remembers its own statistics, any other the running ones") {
    const int T = 3, B = 2;
    traced m({.rate = 0.2});
    program<backend> learner(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.y});
    program<backend> actor(m.g, m.store, {.steps = 1, .batch = 4}, {m.y});
    std::vector<double> kept_mean(3, 0), kept_variance(3, 0);
    draw(actor.input("x"), 9);
    actor.forward();
    CHECK(largest_error(m, actor, 4, {0, 0, 0}, {1, 1, 1}) < 1e-14);
    CHECK(m.running(actor).updates == 0);
    for (int update = 1; update <= 7; ++update) {
        draw(learner.input("x"), static_cast<std::uint64_t>(update));
        std::vector<double> mean(3, 0), variance(3, 0);
        const double n = T * B * 2;
        for (int pass = 0; pass < 2; ++pass)
            for (int r = 0; r < T * B; ++r)
                for (int i = 0; i < 6; ++i) {
                    const auto c = static_cast<std::size_t>(i % 3);
                    const double in = learner.input("x")[static_cast<std::size_t>(r * 7 + 1 + i)];
                    if (pass == 0)
                        mean[c] += in / n;
                    else
                        variance[c] += (in - mean[c]) * (in - mean[c]) / n;
                }
        learner.forward();
        CHECK(largest_error(m, learner, T * B, mean, variance) < 1e-13);
        // Plain averages for five updates, then an exponential one of rate 0.2.
        const double rate = std::max(0.2, 1.0 / update);
        for (std::size_t c = 0; c < 3; ++c) {
            kept_mean[c] += rate * (mean[c] - kept_mean[c]);
            kept_variance[c] += rate * (variance[c] - kept_variance[c]);
            CHECK(m.running(learner).mean[c] == doctest::Approx(kept_mean[c]).epsilon(1e-13));
            CHECK(m.running(learner).variance[c] == doctest::Approx(kept_variance[c]).epsilon(1e-13));
        }
    }
    const auto before = m.running(learner).mean;
    actor.forward();
    CHECK(largest_error(m, actor, 4, kept_mean, kept_variance) < 1e-13);
    CHECK(m.running(actor).mean == before);
    CHECK(m.running(actor).updates == 7);
}

TEST_CASE("gradients pass through the statistics, or around them when frozen") {
    for (const bool frozen : {false, true})
        for (const extent rows : {extent::sequence, extent::batch}) {
            CAPTURE(frozen);
            traced m({.frozen = frozen}, rows);
            const auto report = check_gradients<backend>(m.g, m.store, {.steps = 3, .batch = 4}, [&](auto& p) {
                draw(p.input("x"), 3);
                if (frozen) m.running(p).mean = {0.3, -1, 2}, m.running(p).variance = {0.5, 2, 1};
            });
            INFO(report.where);
            CHECK(report.worst < 1e-6);
            CHECK(report.compared > 20);
            CHECK(report.same_bits_twice);
            program<backend> p(m.g, m.store, {.steps = 1, .batch = 1}, {m.y});
            CHECK((m.running(p).updates == 0) == frozen);
        }
}

TEST_CASE("an input that wants no gradient still trains scale and offset; weights may be used twice") {
    traced m({}, extent::sequence, false);
    const auto z = batch_norm("again", m.y, m.weights);
    add_loss("again", sum_columns("sum2", map("square2", weighted_square{}, z, z)));
    const auto report =
        check_gradients<backend>(m.g, m.store, {.steps = 2, .batch = 3}, [](auto& p) { draw(p.input("x"), 3); });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared == 6);
    CHECK(report.same_bits_twice);
}

TEST_CASE("frozen statistics may stand in a scan") {
    auto store = std::make_shared<parameters<double>>(4);
    graph<backend> g(store);
    const auto x = g.input("x", 4, extent::sequence, true);
    const auto goal = g.input("goal", 4, extent::batch, true);
    const auto w = declare_batch_norm(g, "norm", 2), still = declare_batch_norm(g, "still", 2);
    const batch_norm_settings frozen{.frozen = true};
    one_state<var<backend>> s{g.state("s", 4)};
    const auto y = scan(g, s, [&](auto& state) {
        const auto seen = map("add", sum_of{}, x, batch_norm("still", goal, still, frozen));
        state.value = batch_norm("norm", map("add2", sum_of{}, state.value, seen), w, frozen);
        return state.value;
    });
    add_loss("loss", sum_columns("sum", map("square", weighted_square{}, y, x)));
    const auto report = check_gradients<backend>(g, store, {.steps = 3, .batch = 2}, [](auto& p) {
        draw(p.input("x"), 3);
        draw(p.input("goal"), 4);
        auto& running = static_cast<running_statistics<double>&>(*p.bound_resource(0));
        running.mean = {0.3, -1};
        running.variance = {3, 2};
    });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 30);
    CHECK(report.same_bits_twice);
}

TEST_CASE("statistics are kept byte by byte") {
    traced m;
    program<backend> p(m.g, m.store, {.steps = 2, .batch = 2, .gradients = true});
    draw(p.input("x"), 3);
    p.forward();
    traced other;
    program<backend> q(other.g, other.store, {.steps = 2, .batch = 2, .gradients = true});
    CHECK(other.running(q).mean != m.running(p).mean);
    const auto from = m.running(p).bytes(), to = other.running(q).bytes();
    REQUIRE(from.size() == to.size());
    for (std::size_t i = 0; i < from.size(); ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
    CHECK(other.running(q).mean == m.running(p).mean);
    CHECK(other.running(q).variance == m.running(p).variance);
    CHECK(other.running(q).updates == 1);
}

TEST_CASE("shards, scans and wrong widths are refused") {
    traced m;
    CHECK_THROWS_WITH_AS(program<backend>(m.g, m.store, {.steps = 2, .batch = 2, .gradients = true, .total_batch = 4}),
                         "norm: rows of the batch meet in it, so the batch cannot be split; expected a single shard",
                         error);
    CHECK_THROWS_WITH_AS(batch_norm("odd", m.x, m.weights),
                         "odd: 7 columns do not divide into images of 3 channels, those of 'norm.scale'", error);
    CHECK_THROWS_WITH_AS(batch_norm("rate", m.y, m.weights, {.rate = 0}),
                         "rate: epsilon 1e-05 must be positive, rate 0 in (0, 1]", error);
    one_state<var<backend>> s{m.g.state("s", 6)};
    CHECK_THROWS_WITH_AS(
        scan(m.g, s, [&](auto& state) { return state.value = batch_norm("in", state.value, m.weights); }),
        "in: statistics of a batch need all its steps at once; normalise outside the scan or freeze them", error);
}
