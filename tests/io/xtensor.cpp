// SPDX-License-Identifier: MIT
#include "engram/io/xtensor.hpp"

#include <doctest/doctest.h>

#include <vector>

#include <xtensor/xmath.hpp>
#include <xtensor/xrandom.hpp>
#include <xtensor/xview.hpp>

#include <engram/io/eigen.hpp>

#include "linear_model.hpp"
#include "temporary.hpp"

using namespace engram;

TEST_CASE("observations from xtensor, answers as Eigen") {
    const linear_model m;
    constexpr int T = 4, B = 2;
    program<cpu<float>> p(m.g, m.store, {.steps = T, .batch = B}, {m.y});
    // [border]
    // Somebody's series, one after the other as [B, T, F]; a program takes time first.
    const xt::xarray<float> series = xt::random::rand<float>({B, T, 3});
    fill(as_xtensor(p.input("x"), {T, B, 3}), xt::transpose(series, {1, 0, 2}));
    p.forward();
    const Eigen::MatrixXf answers = as_eigen(p, m.y);                  // [T * B, 5], copied: row t * B + b
    const auto last = xt::view(as_xtensor(p, m.y), T - 1, xt::all());  // [B, 5], in place
    // [border]
    const auto w = as_xtensor(*m.store, "layer.weight");
    for (std::size_t t = 0; t < T; ++t)
        for (std::size_t b = 0; b < B; ++b)
            for (std::size_t j = 0; j < 5; ++j) {
                float sum = 0;
                for (std::size_t i = 0; i < 3; ++i) sum += series(b, t, i) * w(i, j);
                const auto row = static_cast<Eigen::Index>(t * B + b);
                CHECK(answers(row, static_cast<Eigen::Index>(j)) == doctest::Approx(sum).epsilon(1e-5));
                if (t == T - 1) CHECK(last(b, j) == answers(row, static_cast<Eigen::Index>(j)));
            }
}

TEST_CASE("views stride over columns, repeat what has no time, and copy nothing") {
    const linear_model m;
    program<cpu<float>> p(m.g, m.store, {.steps = 4, .batch = 2}, {m.y, m.part, m.twice});
    fill(as_xtensor(p.input("x"), {4, 2, 3}), xt::random::rand<float>({4, 2, 3}));
    auto held = as_xtensor(p.input("held"), {2, 3});
    held(1, 2) = 0.5f;
    p.forward();
    const auto whole = as_xtensor(p, m.y), part = as_xtensor(p, m.part), timeless = as_xtensor(p, m.twice);
    CHECK(part.shape() == std::array<std::size_t, 3>{4, 2, 2});
    for (std::size_t t = 0; t < 4; ++t) {
        for (std::size_t b = 0; b < 2; ++b) CHECK(part(t, b, 1) == whole(t, b, 2));
        CHECK(timeless(t, 1, 2) == 1);
    }
    CHECK(&whole(0, 0, 0) == p.output(m.y).data);
    CHECK(xt::sum(part)() == doctest::Approx(xt::sum(xt::view(whole, xt::all(), xt::all(), xt::range(1, 3)))()));
}

TEST_CASE("weights are written through a view while they are edited, and products see them then") {
    const linear_model m;
    program<cpu<float>> p(m.g, m.store, {.steps = 1, .batch = 1}, {m.y});
    {
        auto edit = m.store->edit();
        fill(as_xtensor(*m.store, edit, "layer.weight"), xt::ones<float>({3, 5}));
    }
    fill(as_xtensor(p.input("x"), {1, 1, 3}), xt::xarray<float>{{{1, 2, 3}}});
    p.forward();
    CHECK(as_xtensor(p, m.y)(0, 0, 4) == 6);
}

TEST_CASE("arrays of NumPy's format, from and to tensors") {
    const temporary_folder folder;
    const xt::xarray<float> cube = xt::random::rand<float>({2, 3, 4});
    write_npy(folder / "a.npy", cube);
    CHECK(read_xtensor<float>(folder / "a.npy") == cube);
    CHECK(read_npy<float>(folder / "a.npy").shape == std::vector<int>{2, 3, 4});
    write_npy(folder / "b.npy", xt::transpose(cube));  // an expression, column-major where it lies
    CHECK(read_xtensor<float>(folder / "b.npy") == xt::transpose(cube));
    CHECK(read_xtensor<float>(folder / "b.npy").shape()[0] == 4);
    write_npy(folder / "c.npy", xt::xarray<std::int32_t>{1, -2});
    CHECK(read_xtensor<std::int32_t>(folder / "c.npy")(1) == -2);
    CHECK(has(sentence([&] { read_xtensor<std::uint8_t>(folder / "c.npy"); }), "expected '|u1'"));
}

TEST_CASE("a shape that does not fit is a sentence, and nothing is written") {
    std::vector<float> numbers(12, 1);
    CHECK(sentence([&] { as_xtensor(std::span(numbers), {2, 5}); }) == "as_xtensor: 12 numbers do not fill [2,5]");
    CHECK(sentence([&] { as_xtensor(std::span(numbers), {-3, -4}); }) == "as_xtensor: an extent of -3 in the shape");
    const auto refused = [&](const xt::xarray<float>& from) {
        return sentence([&] { fill(as_xtensor(std::span(numbers), {4, 3}), from); });
    };
    CHECK(refused(xt::zeros<float>({3, 4})) == "fill: a tensor of [3,4] does not fit [4,3]");
    CHECK(refused(xt::zeros<float>({3})) == "fill: a tensor of [3] does not fit [4,3]");
    CHECK(refused(xt::zeros<float>({1, 4, 3})) == "fill: a tensor of [1,4,3] does not fit [4,3]");
    CHECK(numbers == std::vector<float>(12, 1));
}
