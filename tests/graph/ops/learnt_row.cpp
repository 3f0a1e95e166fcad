// learnt_row: maps of parameters alone are computed for one row; all rows see it, and all rows' gradients go through
// it.

#include <doctest/doctest.h>

#include <engram/core/circular.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/learnt_row.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/outer.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

int packs = 0;  // that a map of parameters alone saw

struct turned {
    auto operator()(auto rate, auto angle) const {
        ++packs;
        return std::tuple{exp(-abs(rate)) * cosine(angle), exp(-abs(rate)) * sine(angle)};
    }
};
struct weigh {
    auto operator()(auto re, auto im, auto x) const { return re * x + im * square(x); }
};

constexpr int N = 3, K = 7;  // numbers of the row that is spread, columns of each

template <class Backend>
struct traced {
    std::shared_ptr<parameters<double>> store = std::make_shared<parameters<double>>(3);
    graph<Backend> g{store};
    var<Backend> x, re, y;

    traced() {
        x = g.input("x", N * K, extent::sequence, true);
        const auto rate = learnt_row("rate", x, g.declare("rate", 1, N, initial::fan_in<double>()));
        const auto angle = learnt_row("angle", x, g.declare("angle", 1, K, initial::fan_in<double>()));
        const auto all = outer("angles", map("one", always_one{}, rate), angle);
        const auto poles = map("poles", turned{}, rate.spread(K), all);
        re = poles[0];
        y = map("y", weigh{}, poles[0], poles[1], x);
        // Whoever else reads a row gives it a gradient, too.
        add_loss("loss", sum_columns("sum", map("more", weigh{}, y, rate.spread(K), all)));
    }
};

void fill(auto& p) {
    philox random(5, 1);
    for (auto& v : p.input("x")) v = random.normal();
}

}  // namespace

TEST_CASE("a map of parameters alone is computed once, whatever there are of steps and rows") {
    traced<cpu<double>> m;
    const auto seen = [&](int T, int B) {
        program<cpu<double>> p(m.g, m.store, {.steps = T, .batch = B, .gradients = true}, {m.re, m.y});
        fill(p);
        packs = 0;
        p.forward();
        p.backward();
        const auto re = p.output(m.re);
        for (int row = 1; row < T * B; ++row)
            for (int c = 0; c < N * K; ++c) CHECK(re.data[row * re.stride + c] == re.data[c]);
        return packs;
    };
    const int once = seen(1, 1);
    CHECK(once > 0);
    CHECK(seen(4, 3) == once);
}

TEST_CASE("an affine map of what is the same in every row is refused") {
    graph<cpu<double>> g{std::make_shared<parameters<double>>(3)};
    const auto x = g.input("x", 2);
    const auto gain = learnt_row("gain", x, g.declare("gain", 1, 2, initial::fan_in<double>()));
    const auto weights = g.declare_linear("out", 2, 3);
    CHECK_THROWS_WITH_AS(affine("out", gain, weights),
                         "out: 'gain' is made of parameters alone, the same in every row; such rows are for maps",
                         error);
}

TEST_CASE("the gradient of a map of parameters alone is that of all rows") {
    for (const int B : {1, 3}) {
        traced<cpu<double>> m;
        const auto report =
            check_gradients<cpu<double>>(m.g, m.store, {.steps = 4, .batch = B}, [](auto& p) { fill(p); });
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.compared >= N + K);
        CHECK(report.same_bits_twice);
    }
}
