// A map that carries a state of its own: what clear_rows and a map of what it gives have, bit for bit, with resets
// anywhere and columns of every kind beside it; gradients are those of central differences; what it may not read is
// refused.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <engram/core/philox.hpp>
#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;

namespace {

// Beside the state's columns stand as many, one for all of them, or one for every three.
enum class beside { whole, one, spread };
constexpr std::array every_kind{beside::whole, beside::one, beside::spread};

struct fading {
    constexpr auto operator()(auto z, auto x, auto re, auto im) const {
        const auto keep = logistic(z);
        return std::tuple{keep * re - x * im, keep * im + x * re + z};
    }
};
template <class Var>
struct complex_state {
    BOOST_HANA_DEFINE_STRUCT(complex_state, (Var, re), (Var, im));
};

template <class Real>
struct traced {
    using backend = cpu<Real>;
    std::shared_ptr<parameters<Real>> store = std::make_shared<parameters<Real>>();
    graph<backend> g{store};
    var<backend> z, x, y;
    int width;

    /// `own`: the map clears what it carries; else clear_rows does.
    traced(beside kind, bool own, int columns = 18) : width(columns) {
        const auto reset = g.input("reset", 1), weight = g.input("weight", width);
        z = g.input("z", width, extent::sequence, true);
        x = g.input("x", kind == beside::whole ? width : kind == beside::one ? 1 : width / 3, extent::sequence, true);
        const auto begin = [&](const char* name) { return own ? g.own_state(name, width) : g.state(name, width); };
        y = scan(g, complex_state<var<backend>>{begin("re"), begin("im")}, [&](auto& now) {
            reset_rows(now, reset);
            const auto [re, im] = map("fade", fading{}, z, kind == beside::spread ? x.spread(3) : x, now.re, now.im);
            now = {re, im};
            return im;
        });
        add_loss("read", sum_columns("sum", map("weighed", times{}, y, weight), width));
    }
    void fill(program<backend>& p) const {
        philox random(5, 1);
        for (const char* name : {"z", "x", "weight"})
            for (auto& v : p.input(name)) v = static_cast<Real>(0.5 * static_cast<double>(random.normal()));
        const int B = p.options().batch;
        const auto reset = p.input("reset");
        for (std::size_t i = 0; i < reset.size(); ++i)
            reset[i] = static_cast<int>(i) / B % (3 + static_cast<int>(i) % B) == 1;
        for (const char* name : {"re", "im"})
            for (auto& v : p.state(name)) v = static_cast<Real>(random.normal());
    }
    std::vector<Real> all_of(const plan_options& options) {
        program<backend> p(g, store, options, {y});
        fill(p);
        p.forward(), p.backward();
        std::vector<Real> found;
        const auto keep = [&](const operand<const Real>& o, int columns) {
            found.insert(found.end(), o.data, o.data + options.steps * options.batch * columns);
        };
        keep(p.output(y), width), keep(p.gradient_of(z), width), keep(p.gradient_of(x), x.width);
        for (const char* name : {"re", "im"})
            found.insert(found.end(), p.next_state(name).begin(), p.next_state(name).end());
        return found;
    }
};

template <class Real>
void a_map_that_clears_has_the_bits_of_two_operations() {
    for (const beside kind : every_kind)
        for (const int columns : {18, 48})
            for (const int T : {1, 2, 9}) {
                INFO(static_cast<int>(kind), " ", columns, " ", T);
                const plan_options options{.steps = T, .batch = 3, .gradients = true};
                const auto one = traced<Real>(kind, true, columns).all_of(options);
                CHECK(one == traced<Real>(kind, false, columns).all_of(options));
                CHECK(std::any_of(one.begin(), one.end(), [](Real v) { return v != 0; }));
            }
}

}  // namespace

TEST_CASE("a map that clears what it carries has the bits of a map behind clear_rows") {
    a_map_that_clears_has_the_bits_of_two_operations<double>();
    a_map_that_clears_has_the_bits_of_two_operations<float>();
}

TEST_CASE("its gradients are those of central differences") {
    for (const beside kind : every_kind) {
        traced<double> m(kind, true, 6);
        const auto report =
            check_gradients<cpu<double>>(m.g, m.store, {.steps = 5, .batch = 2}, [&](auto& p) { m.fill(p); });
        INFO(report.where);
        CHECK(report.worst < 1e-6);
        CHECK(report.compared >= 30);
        CHECK(report.same_bits_twice);
    }
}

TEST_CASE("no number of an episode that has ended reaches the next one") {
    traced<float> m(beside::whole, true);
    program<cpu<float>> p(m.g, m.store, {.steps = 4, .batch = 3, .gradients = true}, {m.y});
    m.fill(p);
    for (auto& r : p.input("reset").first(3)) r = 1;
    for (const char* name : {"re", "im"})
        for (auto& v : p.state(name)) v = std::numeric_limits<float>::quiet_NaN();
    p.forward(), p.backward();
    CHECK(p.first_non_finite().empty());
    for (int i = 0; i < 4 * 3 * m.width; ++i) CHECK(std::isfinite(p.gradient_of(m.z).data[i]));
}

TEST_CASE("a state of one map is read by no other, not spread, and cleared once") {
    graph<cpu<double>> g(std::make_shared<parameters<double>>());
    auto first = g.own_state("first", 4), second = g.own_state("second", 4);
    const auto reset = g.input("reset", 1), other = g.input("other", 1), wide = g.input("wide", 8);
    first.reset = reset.value, second.reset = other.value;
    CHECK_THROWS_WITH_AS(softmax("soft", first), "soft: 'first' is a state of one operation, which alone may read it",
                         error);
    const std::string sentence = " is spread, or cleared at other steps than the states beside it";
    CHECK_THROWS_WITH_AS(map("sum", add{}, first.spread(2), wide), ("sum: 'first'" + sentence).c_str(), error);
    CHECK_THROWS_WITH_AS(map("sum", add{}, first, second), ("sum: 'first'" + sentence).c_str(), error);
    const auto reads_twice = [&](auto& now) {
        reset_rows(now, reset);
        now = {map("re", times{}, wide, now.re), map("im", add{}, map("read", times{}, now.re, wide), wide)};
        return now.im;
    };
    CHECK_THROWS_WITH_AS(scan(g, complex_state<var<cpu<double>>>{g.own_state("re", 8), g.state("im", 8)}, reads_twice),
                         "scan: 're' is a state of one operation, and 2 read it", error);
}
