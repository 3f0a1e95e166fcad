// The check itself: it finds a derivative that is wrong, and calls none wrong for the rounding of the loss.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/scan.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/dropout.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

struct raised_square {
    auto operator()(auto x) const { return square(x + 1); }
};
struct spelled_out {
    auto operator()(auto x) const { return square(x) + 2 * x + 1; }
};
struct itself {
    auto operator()(auto x) const { return 1 * x; }
};
struct product {
    auto operator()(auto a, auto b) const { return a * b; }
};

gradient_report checked(graph<backend>& g) {
    return check_gradients<backend>(g, std::make_shared<parameters<double>>(), {.steps = 3, .batch = 2}, [](auto& p) {
        double next = 0.3;
        for (double& x : p.input("x")) x = next += 0.17;
    });
}

}  // namespace

TEST_CASE("a gradient that is held back is found and named") {
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto x = g.input("x", 1, extent::sequence, true);
    add_loss("loss", map("square", product{}, x, stop_gradient(x)));
    const auto report = checked(g);
    CHECK(report.compared == 6);
    CHECK(report.worst == doctest::Approx(0.5));
    CHECK(report.where.starts_with("x["));
}

TEST_CASE("terms that cancel in their sum leave their rounding, which is no error of a small slope") {
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto x = g.input("x", 1, extent::sequence, true);
    add_loss("up", map("up", raised_square{}, x), 1e4);
    add_loss("down", map("down", spelled_out{}, x), -1e4);
    add_loss("small", map("small", itself{}, x), 1e-3);
    const auto report = checked(g);
    INFO(report.where);
    CHECK(report.compared == 6);
    CHECK(report.worst < 1e-6);
}

namespace {

template <class Var>
struct sum_state {
    BOOST_HANA_DEFINE_STRUCT(sum_state, (Var, sum));
};

}  // namespace

// `checked` fills the input and nothing else.
TEST_CASE("every evaluation starts from the same states, rings and noise, which nobody has to put back") {
    const auto store = std::make_shared<parameters<double>>(3);
    graph<backend> g(store);
    const auto x = g.input("x", 2);
    const auto query = g.declare_linear("query", 2, 3), key = g.declare_linear("key", 2, 3),
               map_of = g.declare_linear("map", 2, 2);
    const auto ring = add_knn_memory(g, "ring", 4, 2, 3);
    knn_read_settings how;
    how.memory = ring;
    how.neighbours = 3;
    how.epsilon = 0.1;
    how.value_width = 2;
    const auto sums = scan(g, sum_state<var<backend>>{g.state("sum", 2)}, [&](auto& now) {
        const auto seen = knn_read(affine("asked", x, query), key, how).value;
        const auto thinned = dropout("thinned", affine("seen", seen, map_of), 0.5);
        now.sum = map("sum", add{}, now.sum, thinned);
        knn_write(ring, x, affine("stored", x, key));
        return now.sum;
    });
    add_loss("loss", sum_columns("rows", map("square", product{}, sums, sums)));
    const auto report = check_gradients<backend>(g, store, {.steps = 6, .batch = 2}, [](auto& p) {
        double next = 0.3;
        for (double& v : p.input("x")) v = std::sin(next += 1.7);
    });
    CHECK_MESSAGE(report.worst < 1e-6, report.where);
    CHECK(report.same_bits_twice);
    CHECK(report.compared == 2 * 9 + 6);
}
