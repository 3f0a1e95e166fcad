// The check itself: it finds a derivative that is wrong, and calls none wrong for the rounding of the loss.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/graph/ops/loss.hpp>
#include <engram/graph/ops/map.hpp>

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
