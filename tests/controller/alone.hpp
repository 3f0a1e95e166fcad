#pragma once
// A controller without an agent around it: what it sees and when episodes begin are inputs, and weights are set by
// name.

#include <functional>
#include <utility>

#include <engram/graph/scan.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/softmax.hpp>

#include "../model/prepare.hpp"
#include "../oracle/loops.hpp"

namespace alone {

using namespace engram;
using oracle::matrix;
using oracle::numbers;

struct uneven {
    auto operator()(auto x) const { return square(x + 0.3); }
};

/// Inputs and reset of a scan, and what a step makes of them.
template <class Backend>
struct stepped {
    using real = typename Backend::real;
    using variable = var<Backend>;

    std::shared_ptr<parameters<real>> store;
    std::unique_ptr<graph<Backend>> g;
    variable out;
    std::vector<std::pair<std::string, int>> inputs;

    stepped() : store(std::make_shared<parameters<real>>(3)), g(std::make_unique<graph<Backend>>(store)) {}

    /// body(what is shown, state) -> out, over the state that begin() gives.
    template <class Begin, class Body>
    void trace(std::vector<std::pair<std::string, int>> shown, Begin begin, Body body) {
        inputs = std::move(shown);
        const auto reset = g->input("reset", 1);
        std::vector<variable> given;
        for (const auto& [name, width] : inputs) given.push_back(g->input(name, width, extent::sequence, true));
        out = scan(*g, begin(), [&](auto& now) {
            reset_rows(now, reset);
            return body(given, now);
        });
        add_loss("loss", sum_columns("sum", map("uneven", uneven{}, out)));
    }
    std::unique_ptr<program<Backend>> plan(int steps, int batch) const {
        return std::make_unique<program<Backend>>(*g, store, plan_options{.steps = steps, .batch = batch},
                                                  std::vector<variable>{out});
    }
    void set(const std::string& name, const numbers& values) {
        const auto p = store->find(name);
        REQUIRE((*store)[p].size() == static_cast<std::ptrdiff_t>(values.size()));
        auto edit = store->edit();
        std::copy(values.begin(), values.end(), edit.values(p));
    }
    /// Weights that are all of them told apart.
    void unsettle(double by = 0.3) {
        philox random(7, 7);
        auto edit = store->edit();
        for (auto& w : edit.flat()) w += static_cast<real>(by * static_cast<double>(random.normal()));
    }
    void fill(program<Backend>& p, std::uint64_t seed) const {
        philox random(seed, 3);
        for (const auto& [name, width] : inputs)
            for (auto& x : p.input(name)) x = static_cast<real>(random.normal());
        for (auto& x : p.input("reset")) x = random.below(5) == 0;
    }
};

template <class Controller, class Backend = cpu<double>>
struct controller : stepped<Backend> {
    typename Controller::settings settings;

    controller(const typename Controller::settings& s, int width) : settings(s) {
        auto& on = *this->g;
        const auto scope = on.scope("controller");
        settings.check();
        const auto w = Controller::declare(on, s, width);
        this->trace(
            {{"x", width}}, [&] { return Controller::begin(on, s); },
            [&](const auto& given, auto& now) { return Controller::step(s, w, given, now); });
    }
};

/// The three steps of a test vector, and the same in a second row whose episode begins at the third: h of every step,
/// row after row.
inline std::vector<matrix> headline(const stepped<cpu<double>>& c, const std::vector<std::vector<numbers>>& shown) {
    const auto p = c.plan(3, 2);
    for (std::size_t i = 0; i < shown.size(); ++i)
        for (std::size_t t = 0; t < 3; ++t)
            for (std::size_t b = 0; b < 2; ++b)
                std::copy(shown[i][t].begin(), shown[i][t].end(),
                          p->input(c.inputs[i].first).begin() +
                              static_cast<std::ptrdiff_t>((t * 2 + b) * shown[i][t].size()));
    if (p->has_input("reset")) {
        std::fill(p->input("reset").begin(), p->input("reset").end(), 0);
        p->input("reset")[5] = 1;
    }
    p->forward();
    std::vector<matrix> h(2, matrix(3));
    for (int b = 0; b < 2; ++b)
        for (int t = 0; t < 3; ++t) h[oracle::at(b)][oracle::at(t)] = oracle::row(p->output(c.out), t, b);
    return h;
}

/// Twelve printed decimals.
inline void printed(const numbers& found, const numbers& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        CAPTURE(i);
        CHECK(std::abs(found[i] - expected[i]) <= 1e-11);
    }
}

/// Walks some unrolls of several rows beside plain loops: next(x, state) -> h, where a State of its own begins an
/// episode.
template <class State, class Next>
void walks_alike(const stepped<cpu<double>>& c, const State& fresh, Next next) {
    constexpr int T = 9, B = 3;
    const auto p = c.plan(T, B);
    std::vector<State> rows(B, fresh);
    int begins = 0;
    for (int unroll = 0; unroll < 4; ++unroll) {
        if (unroll > 0) p->carry();
        c.fill(*p, 20 + static_cast<std::uint64_t>(unroll));
        p->forward();
        for (int t = 0; t < T; ++t)
            for (int b = 0; b < B; ++b) {
                if (p->input("reset")[oracle::at(t * B + b)] == 1) rows[oracle::at(b)] = fresh, ++begins;
                const auto x = oracle::row(p->input("x"), c.inputs[0].second, B, t, b);
                oracle::check_near(oracle::row(p->output(c.out), t, b), next(x, rows[oracle::at(b)]));
            }
    }
    CHECK(begins > 5);
}

/// Backward against central differences, of inputs, weights and the states that an unroll begins with.
inline void differentiates(const stepped<cpu<double>>& c, int least) {
    const auto report = check_gradients<cpu<double>>(*c.g, c.store, {.steps = 5, .batch = 2}, [&](auto& p) {
        c.fill(p, 8);
        for (const auto& name : p.state_names()) {
            philox random(9, 9);
            for (auto& x : p.state(name)) x = 0.5 * static_cast<double>(random.uniform());
        }
    });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > least);
    CHECK(report.same_bits_twice);
}

/// In float: acting step by step has the bits of the unroll that learns.
inline void acts_as_it_learns(const stepped<cpu<float>>& c) {
    constexpr int T = 6, B = 3;
    const auto whole = c.plan(T, B), step = c.plan(1, B);
    c.fill(*whole, 5);
    whole->forward();
    for (int t = 0; t < T; ++t) {
        if (t > 0) step->carry();
        for (const auto& name : {std::string("x"), std::string("reset")}) {
            const auto from = whole->input(name), to = step->input(name);
            std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(to.size()) * t, to.size(), to.begin());
        }
        step->forward();
        for (int b = 0; b < B; ++b) {
            const auto x = whole->output(c.out), y = step->output(c.out);
            CHECK(std::memcmp(x.at(t) + b * x.stride, y.at(0) + b * y.stride,
                              sizeof(float) * static_cast<std::size_t>(x.width)) == 0);
        }
    }
}

}  // namespace alone
