// SPDX-License-Identifier: MIT
#include "engram/io/eigen.hpp"

#include <doctest/doctest.h>

#include <vector>

#include <engram/graph/program.hpp>
#include <engram/operations/affine.hpp>

#include "linear_model.hpp"
#include "temporary.hpp"

using namespace engram;
using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST_CASE("what goes in as a matrix comes out as the product with the weights") {
    const linear_model m;
    program<cpu<float>> p(m.g, m.store, {.steps = 4, .batch = 2}, {m.y, m.part});
    const matrix x = matrix::Random(8, 3);
    fill(as_eigen(p.input("x"), 3), x);
    p.forward();
    const matrix y = x * as_eigen(*m.store, "layer.weight");
    CHECK((as_eigen(p, m.y) - y).cwiseAbs().maxCoeff() < 1e-5f);
    // Two of the five columns: rows lie further apart than they are long.
    const auto part = as_eigen(p, m.part);
    CHECK(part.rows() == 8);
    CHECK(part.cols() == 2);
    CHECK(part.outerStride() == 5);
    CHECK((part - y.middleCols(1, 2)).cwiseAbs().maxCoeff() < 1e-5f);
    CHECK(as_eigen(p, m.y).data() == p.output(m.y).data);  // no copy
}

TEST_CASE("row t * B + b is step t of row b, and a state is [B, F]") {
    const linear_model m;
    program<cpu<float>> p(m.g, m.store, {.steps = 4, .batch = 2}, {m.y, m.twice});
    auto x = as_eigen(p.input("x"), 3);
    x(3 * 2 + 1, 2) = 7;
    CHECK(p.input("x")[(3 * 2 + 1) * 3 + 2] == 7);
    fill(as_eigen(p.input("held"), 3), matrix::Constant(2, 3, 0.5f));
    p.forward();
    CHECK(as_eigen(p, m.twice).rows() == 2);
    CHECK(as_eigen(p, m.twice)(1, 2) == 1);
}

TEST_CASE("weights are written through a view while they are edited, and products see them then") {
    const linear_model m;
    program<cpu<float>> p(m.g, m.store, {.steps = 1, .batch = 1}, {m.y});
    const auto version = m.store->version();
    {
        auto edit = m.store->edit();
        fill(as_eigen(*m.store, edit, "layer.weight"), 2 * matrix::Identity(3, 5));
    }
    CHECK(m.store->version() == version + 1);
    fill(as_eigen(p.input("x"), 3), matrix{{1, 2, 3}});
    p.forward();
    CHECK(as_eigen(p, m.y).isApprox(matrix{{2, 4, 6, 0, 0}}));
    CHECK(as_eigen(*m.store, "layer.weight")(2, 2) == 2);
}

TEST_CASE("a shape that does not fit and an unknown name are sentences, and nothing is written") {
    std::vector<float> numbers(12, 1);
    CHECK(sentence([&] { as_eigen(std::span(numbers), 5); }) == "as_eigen: 12 numbers do not make whole rows of 5");
    CHECK(sentence([&] { as_eigen(std::span(numbers), 0); }) == "as_eigen: 12 numbers do not make whole rows of 0");
    CHECK(sentence([&] { fill(as_eigen(std::span(numbers), 3), matrix::Zero(3, 4)); }) ==
          "fill: a matrix of [3,4] does not fit [4,3]");
    CHECK(numbers == std::vector<float>(12, 1));
    const linear_model m;
    CHECK(sentence([&] { as_eigen(*m.store, "layer.wait"); }) ==
          "unknown parameter 'layer.wait'; did you mean 'layer.weight'?");
}
