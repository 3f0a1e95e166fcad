// The engine itself: an LSTM traced once, planned several ways, against plain loops and central differences.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

struct lstm_cell {
    auto operator()(auto i, auto f, auto g, auto o, auto c) const {
        auto next = logistic(f + 1) * c + logistic(i) * tanh(g);
        return std::tuple{next, logistic(o) * tanh(next)};
    }
};
struct squared {
    auto operator()(auto a, auto b) const { return square(a - b); }
};
struct keep {
    auto operator()(auto reset, auto x) const { return select(reset > 0.5, 0, x); }
};

template <class Var>
struct lstm_state {
    BOOST_HANA_DEFINE_STRUCT(lstm_state, (Var, cell), (Var, hidden));
};

template <class Backend>
struct traced {
    std::shared_ptr<parameters<typename Backend::real>> store = std::make_shared<parameters<typename Backend::real>>(7);
    graph<Backend> g{store};
    var<Backend> x, h, out;

    explicit traced(int X = 3, int H = 5) {
        x = g.input("x", X, extent::sequence, true);
        const auto reset = g.input("reset", 1);
        const auto target = g.input("target", 2);
        const auto gates = g.declare_linear("gates", X + H, 4 * H);
        const auto head = g.declare_linear("head", H + X, 2);
        lstm_state<var<Backend>> start{g.state("cell", H), g.state("hidden", H)};
        out = scan(g, start, [&](auto& s) {
            const auto c = map("mask.cell", keep{}, reset, s.cell);
            const auto prev = map("mask.hidden", keep{}, reset, s.hidden);
            const auto z = split_columns<4>(affine<Backend>("gates", {x, prev}, gates));
            const auto [cell, hidden] = map("cell", lstm_cell{}, z[0], z[1], z[2], z[3], c);
            s.cell = cell;
            s.hidden = h = hidden;
            return affine<Backend>("head", {hidden, x}, head);
        });
        add_loss("error", sum_columns("sum", map("square", squared{}, out, target)));
    }
};

template <class Backend>
void fill(program<Backend>& p, int T, int B) {
    philox random(3, 1);
    for (auto& v : p.input("x")) v = random.normal();
    auto reset = p.input("reset");
    for (int i = 0; i < T * B; ++i) reset[static_cast<std::size_t>(i)] = i % 5 == 3;
    for (auto& v : p.state("cell")) v = random.normal();
    for (auto& v : p.state("hidden")) v = random.normal();
    if (p.has_input("target"))
        for (auto& v : p.input("target")) v = random.normal();
}

}  // namespace

TEST_CASE("gradients of a recurrent model agree with central differences") {
    traced<cpu<double>> m;
    for (const bool hoist : {true, false}) {
        plan_options o{.steps = 4, .batch = 3, .hoist = hoist};
        const auto report = check_gradients<cpu<double>>(m.g, m.store, o, [](auto& p) { fill(p, 4, 3); });
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.compared > 60);
        CHECK(report.same_bits_twice);
    }
}

TEST_CASE("forward equals plain loops") {
    const int T = 4, B = 3, X = 3, H = 5;
    traced<cpu<double>> m(X, H);
    program<cpu<double>> p(m.g, m.store, {.steps = T, .batch = B}, {m.out, m.h});
    const bool has_target = p.has_input("target");
    CHECK_FALSE(has_target);
    fill(p, T, B);
    std::vector<double> c(p.state("cell").begin(), p.state("cell").end()),
        h(p.state("hidden").begin(), p.state("hidden").end());
    p.forward();
    const auto x = p.input("x");
    const auto reset = p.input("reset");
    const double* W = m.store->values(m.store->find("gates.weight"));
    const double* V = m.store->values(m.store->find("head.weight"));
    const auto sigma = [](double v) { return 1 / (1 + std::exp(-v)); };
    double worst = 0;
    for (int t = 0; t < T; ++t)
        for (int b = 0; b < B; ++b) {
            double z[20] = {};
            if (reset[static_cast<std::size_t>(t * B + b)] > 0.5)
                for (int j = 0; j < H; ++j)
                    c[static_cast<std::size_t>(b * H + j)] = h[static_cast<std::size_t>(b * H + j)] = 0;
            for (int j = 0; j < 4 * H; ++j) {
                for (int i = 0; i < X; ++i) z[j] += x[static_cast<std::size_t>((t * B + b) * X + i)] * W[i * 4 * H + j];
                for (int i = 0; i < H; ++i) z[j] += h[static_cast<std::size_t>(b * H + i)] * W[(X + i) * 4 * H + j];
            }
            for (int j = 0; j < H; ++j) {
                double& cell = c[static_cast<std::size_t>(b * H + j)];
                cell = sigma(z[H + j] + 1) * cell + sigma(z[j]) * std::tanh(z[2 * H + j]);
                h[static_cast<std::size_t>(b * H + j)] = sigma(z[3 * H + j]) * std::tanh(cell);
            }
            for (int k = 0; k < 2; ++k) {
                double y = 0;
                for (int i = 0; i < H; ++i) y += h[static_cast<std::size_t>(b * H + i)] * V[i * 2 + k];
                for (int i = 0; i < X; ++i) y += x[static_cast<std::size_t>((t * B + b) * X + i)] * V[(H + i) * 2 + k];
                const auto o = p.output(m.out);
                worst = std::max(worst, std::abs(y - o.at(t)[b * o.stride + k]));
            }
        }
    CHECK(worst < 1e-13);
    for (std::size_t i = 0; i < h.size(); ++i) CHECK(p.next_state("hidden")[i] == doctest::Approx(h[i]).epsilon(1e-12));
}

TEST_CASE("one trace serves learner and actor with the same bits, hoisted or not, sharded or not") {
    const int T = 6, B = 4;
    traced<cpu<float>> m(7, 9);
    program<cpu<float>> learner(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.out});
    fill(learner, T, B);
    program<cpu<float>> plain(m.g, m.store, {.steps = T, .batch = B, .hoist = false}, {m.out});
    fill(plain, T, B);
    program<cpu<float>> actor(m.g, m.store, {.steps = 1, .batch = 1}, {m.out});
    learner.forward();
    plain.forward();
    const auto y = learner.output(m.out);
    int different = 0, unhoisted = 0;
    program<cpu<float>> fresh(m.g, m.store, {.steps = T, .batch = B}, {m.out});
    fill(fresh, T, B);
    for (int b = 0; b < B; ++b) {
        for (const char* s : {"cell", "hidden"}) std::copy_n(fresh.state(s).data() + b * 9, 9, actor.state(s).data());
        for (int t = 0; t < T; ++t) {
            std::copy_n(learner.input("x").data() + (t * B + b) * 7, 7, actor.input("x").data());
            actor.input("reset")[0] = learner.input("reset")[static_cast<std::size_t>(t * B + b)];
            actor.forward();
            actor.carry();
            for (int k = 0; k < 2; ++k) {
                different += y.at(t)[b * y.stride + k] != actor.output(m.out).at(0)[k];
                unhoisted += y.at(t)[b * y.stride + k] != plain.output(m.out).at(t)[b * y.stride + k];
            }
        }
    }
    CHECK(different == 0);
    CHECK(unhoisted == 0);
}

TEST_CASE("body operations are hoisted, looped and sunk by dependence") {
    traced<cpu<float>> m;
    const plan_options o{.steps = 3, .batch = 2};
    const auto p = make_plan(m.g, o, {m.out});
    std::vector<std::string> loop, after;
    for (std::size_t i = 0; i < p.live.size(); ++i) {
        if (!p.live[i]) continue;
        if (p.place[i] == placement::loop) loop.push_back(m.g.operations()[i]->name);
        if (p.place[i] == placement::after) after.push_back(m.g.operations()[i]->name);
    }
    CHECK(loop == std::vector<std::string>{"mask.cell", "mask.hidden", "gates", "cell"});
    CHECK(after == std::vector<std::string>{"head"});
}

namespace {

struct leak {
    auto operator()(auto x, auto held) const { return tanh(x) + 0.5 * held; }
};

template <class Var>
struct tower_state {
    BOOST_HANA_DEFINE_STRUCT(tower_state, (Var, lower), (Var, upper), (Var, top), (Var, seen));
};

/// Two layers that carry what they make of their input, an LSTM-like one that sees itself above them, and what one of
/// the maps between them was one step ago.
template <class Backend>
struct tower {
    std::shared_ptr<parameters<typename Backend::real>> store = std::make_shared<parameters<typename Backend::real>>(7);
    graph<Backend> g{store};
    var<Backend> out;

    tower() {
        const auto x = g.input("x", 3, extent::sequence, true), reset = g.input("reset", 1);
        const auto first = g.declare_linear("first", 3, 4), second = g.declare_linear("second", 4, 4),
                   third = g.declare_linear("third", 4 + 4 + 5, 5), last = g.declare_linear("last", 5, 2);
        tower_state<var<Backend>> start{g.state("lower", 4), g.state("upper", 4), g.state("top", 5),
                                        g.state("seen", 4)};
        out = scan(g, start, [&](auto& s) {
            const auto fed = affine<Backend>("first", x, first), low = map("keep.lower", keep{}, reset, s.lower);
            s.lower = map("lower", leak{}, fed, low);
            const auto between = affine<Backend>("second", s.lower, second);
            const auto before = map("keep.seen", keep{}, reset, s.seen);
            s.seen = between;
            const auto high = map("keep.upper", keep{}, reset, s.upper);
            s.upper = map("upper", leak{}, between, high);
            const auto held = map("keep.top", keep{}, reset, s.top);
            s.top = map("top", leak{}, affine<Backend>("third", {s.upper, before, held}, third), held);
            return affine<Backend>("last", s.top, last);
        });
        add_loss("error", sum_columns("sum", map("square", squared{}, out, g.input("target", 2))));
    }
    template <class Program>
    static void fill(Program& p) {
        philox random(3, 1);
        for (const char* name : {"x", "target"})
            for (auto& v : p.input(name)) v = random.normal();
        for (std::size_t i = 0; i < p.input("reset").size(); ++i) p.input("reset")[i] = i % 5 == 3;
        for (const char* name : {"lower", "upper", "top", "seen"})
            for (auto& v : p.state(name)) v = random.normal();
    }
};

}  // namespace

TEST_CASE("layers that nothing feeds back have a time loop each, and what stands between them runs over all steps") {
    tower<cpu<float>> m;
    const auto p = make_plan(m.g, {.steps = 3, .batch = 2}, {m.out});
    std::vector<std::vector<std::string>> loops, ahead;
    for (const auto& s : p.segments) {
        if (s.scan < 0) continue;
        const auto names = [&](const std::vector<int>& list) {
            std::vector<std::string> all;
            for (const int i : list) all.push_back(m.g.operations()[static_cast<std::size_t>(i)]->name);
            return all;
        };
        loops.push_back(names(s.loop));
        ahead.push_back(names(s.before));
        CHECK(s.first == (loops.size() == 1));
        CHECK(names(s.after) == (loops.size() == 3 ? std::vector<std::string>{"last"} : std::vector<std::string>{}));
    }
    using lists = std::vector<std::vector<std::string>>;
    CHECK(loops == lists{{"keep.lower", "lower"}, {"keep.upper", "upper"}, {"keep.top", "third", "top"}});
    CHECK(ahead == lists{{"first"}, {"second", "keep.seen"}, {}});
}

TEST_CASE("several loops give the numbers and gradients of one, and any cut of the steps gives the same") {
    constexpr int T = 7, B = 3;
    tower<cpu<float>> m;
    program<cpu<float>> several(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.out});
    program<cpu<float>> one(m.g, m.store, {.steps = T, .batch = B, .gradients = true, .hoist = false}, {m.out});
    program<cpu<float>> step(m.g, m.store, {.steps = 1, .batch = B}, {m.out});
    m.fill(several);
    m.fill(one);
    several.forward(), one.forward();
    several.backward(), one.backward();
    for (const auto& name : step.state_names())
        std::copy_n(several.state(name).data(), step.state(name).size(), step.state(name).data());
    for (int t = 0; t < T; ++t) {
        std::copy_n(several.input("x").data() + t * B * 3, B * 3, step.input("x").data());
        std::copy_n(several.input("reset").data() + t * B, B, step.input("reset").data());
        step.forward();
        for (int i = 0; i < B * 2; ++i) {
            CHECK(several.output(m.out).at(t)[i] == one.output(m.out).at(t)[i]);
            CHECK(several.output(m.out).at(t)[i] == step.output(m.out).at(0)[i]);
        }
        step.carry();
    }
    for (const auto& name : step.state_names())
        for (std::size_t i = 0; i < step.state(name).size(); ++i) {
            CHECK(several.next_state(name)[i] == one.next_state(name)[i]);
            CHECK(several.next_state(name)[i] == step.state(name)[i]);
        }
    for (std::size_t i = 0; i < one.gradient().size(); ++i)
        CHECK(several.gradient()[i] == doctest::Approx(one.gradient()[i]).epsilon(1e-4).scale(1));

    tower<cpu<double>> exact;
    const auto report =
        check_gradients<cpu<double>>(exact.g, exact.store, {.steps = 4, .batch = 2}, [&](auto& p) { exact.fill(p); });
    CHECK(report.worst < 1e-6);
}

TEST_CASE("wrong shapes and names are told when traced, with both shapes") {
    auto store = std::make_shared<parameters<float>>();
    graph<cpu<float>> g(store);
    const auto x = g.input("x", 3);
    const auto w = g.declare_linear("lstm", 10, 4);
    CHECK_THROWS_WITH_AS(affine<cpu<float>>("lstm.gates", {x}, w),
                         "lstm.gates: inputs have 3 columns, the weight 'lstm.weight' is [10,4]", error);
    CHECK_THROWS_WITH_AS(map("gate", squared{}, x, g.input("y", 2)),
                         "gate: inputs of 3 and 2 columns do not go together; widths must be equal or 1", error);
    lstm_state<var<cpu<float>>> s{g.state("memory.c", 3), g.state("memory.h", 3)};
    CHECK_THROWS_WITH_AS(g.input("x", 3), "graph: 'x' is the name of two inputs or states", error);
    CHECK_THROWS_WITH_AS(g.state("x", 3), "graph: 'x' is the name of two inputs or states", error);
    CHECK(g.named("memory.c").value == s.cell.value);
    CHECK(g.named("lstm.gates").value < 0);
    const auto wide = g.input("wide", 4);
    CHECK_THROWS_WITH_AS(scan(g, s,
                              [&](auto& state) {
                                  state.hidden = wide;
                                  return state.cell;
                              }),
                         "scan: state 'memory.h' enters as [B,3] and leaves as [B,4]", error);
    traced<cpu<float>> m;
    program<cpu<float>> p(m.g, m.store, {.steps = 2, .batch = 2}, {m.out});
    CHECK_THROWS_WITH_AS((program<cpu<float>>(m.g, m.store, {.steps = 1 << 16, .batch = 1 << 15}, {m.out})),
                         doctest::Contains("in 65536 steps of 32768 rows; expected at most 2147483647"), error);
    CHECK_THROWS_WITH_AS(p.input("rest"), "unknown input 'rest'; did you mean 'reset'?", error);
    CHECK_THROWS_AS(p.backward(), error);
    CHECK_THROWS_AS(store->declare("lstm.weight", 1, 1, initial::zero<float>()), error);
}
