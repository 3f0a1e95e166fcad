// Operations of least-recently-used access: gradients of each input alone and together, widths, constants.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/operations/least_used.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/softmax.hpp>

using namespace engram;
using backend = cpu<double>;

namespace {

struct uneven {
    auto operator()(auto x) const { return square(x + 0.3); }
};

}  // namespace

TEST_CASE("gradients of each input alone, and of one that several operations share") {
    const int N = 5, W = 3, R = 2;
    const std::vector<std::string> names{"M", "k", "w", "a", "u"};
    const std::vector<int> widths{N * W, R * W, R * N, R * W, N};
    for (const extent rows : {extent::sequence, extent::batch})
        for (int only = -1; only < 4; ++only) {
            CAPTURE(only);
            auto store = std::make_shared<parameters<double>>();
            graph<backend> g(store);
            std::vector<var<backend>> v;
            for (std::size_t i = 0; i < 5; ++i)
                v.push_back(g.input(names[i], widths[i], i == 1 ? extent::sequence : rows,
                                    i < 4 && (only < 0 || only == static_cast<int>(i))));
            const auto loss = [&](const std::string& name, const var<backend>& y) {
                add_loss(name, sum_columns("sum." + name, map("square." + name, uneven{}, y)));
            };
            if (only < 2) loss("cosine", joint_cosine_scores("cosine", v[0], v[1], W));
            if (only != 1) loss("write", clear_and_add("write", v[0], least_used("least", v[4], R), v[2], v[3], W));
            const auto report = check_gradients<backend>(
                g, store, {.steps = 2, .batch = 2},
                [&](auto& p) {
                    for (std::size_t i = 0; i < 5; ++i) {
                        if (!p.has_input(names[i])) continue;
                        philox random(2, i);
                        for (double& x : p.input(names[i])) x = 0.7 * static_cast<double>(random.normal());
                    }
                },
                60);
            INFO(report.where);
            CHECK(report.worst <= 1e-6);
            CHECK(report.compared >= 12);
            CHECK(report.same_bits_twice);
        }
}

TEST_CASE("usage and marks get no gradient: a rank is a constant") {
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto u = g.input("u", 4, extent::sequence, true), M = g.input("M", 8, extent::sequence, true),
               a = g.input("a", 2), m = g.input("m", 4, extent::sequence, true);
    const auto marks = least_used("least", u, 1);
    add_loss("loss", sum_columns("sum", clear_and_add("write", M, marks, marks, a, 2)));
    add_loss("none", sum_columns("sum.none", clear_and_add("zero", M, m, marks, a, 2)), 0);
    program<backend> p(g, std::make_shared<parameters<double>>(), {.steps = 1, .batch = 1, .gradients = true}, {marks});
    const double usage[] = {0.5, 0.1, 0.1, 0.9};
    std::copy_n(usage, 4, p.input("u").begin());
    p.forward();
    p.backward();
    CHECK_FALSE(p.gradient_of(u));
    CHECK_FALSE(p.gradient_of(m));
    const auto d = p.gradient_of(M);
    CHECK(std::vector<double>(d.data, d.data + 8) == std::vector<double>{1, 1, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("wrong widths are told when traced, with both sizes") {
    graph<backend> g(std::make_shared<parameters<double>>());
    const auto M = g.input("M", 12), x = g.input("x", 5), y = g.input("y", 6), w = g.input("w", 8);
    const auto scope = g.scope("memory");
    CHECK_THROWS_WITH_AS(joint_cosine_scores("cosine", M, y, 5),
                         "memory.cosine: a memory of 12 columns does not divide into words of 5", error);
    CHECK_THROWS_WITH_AS(joint_cosine_scores("cosine", M, x, 3),
                         "memory.cosine: keys of 5 columns do not divide into words of 3, those of the memory [4,3]",
                         error);
    CHECK_THROWS_WITH_AS(least_used("least", x, 6), "memory.least: 6 heads need as many slots, there are 5", error);
    CHECK_THROWS_WITH_AS(clear_and_add("write", M, x, x, y, 3),
                         "memory.write: weights of 5 columns do not divide among the slots of the memory [4,3]", error);
    CHECK_THROWS_WITH_AS(clear_and_add("write", M, y, w, x, 3),
                         "memory.write: 2 heads need 6 columns to add and 8 marks, not 5 and 6", error);
}
