// SPDX-License-Identifier: MIT
#include "engram/task/permuted_mnist.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../io/temporary.hpp"
#include "coded_glyphs.hpp"

using namespace engram;

TEST_CASE("all pixels once, under one order for all sequences; the class is asked for at the end") {
    for (const int T : {196, 784, 3136}) {
        const auto glyphs = coded_glyphs();
        const permuted_mnist task({.steps = T}, glyphs), other({.steps = T}, glyphs);
        CHECK(task.order() == other.order());
        auto sorted = task.order();
        std::sort(sorted.begin(), sorted.end());
        for (int i = 0; i < T; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
        CHECK(task.order() != sorted);
        for (const char* level : {"train", "holdout_interpolate"})
            for (std::uint64_t index = 0; index < 20; ++index) {
                const drawn_sequence drawn(task, level, 1, index);
                std::vector<float> image(static_cast<std::size_t>(T), -1);
                for (int t = 0; t < T; ++t)
                    image[static_cast<std::size_t>(task.order()[static_cast<std::size_t>(t)])] =
                        drawn.observation[static_cast<std::size_t>(t)];
                const int id = glyph_of(image);
                CHECK((id < 300) == (std::string(level) == "train"));
                for (int i = 1; i < T; ++i)
                    if (i != 195) CHECK(image[static_cast<std::size_t>(i)] == 0);
                for (int t = 0; t < T; ++t) {
                    const auto at = static_cast<std::size_t>(t);
                    CHECK(drawn.weight[at] == (t == T - 1 ? 1 : 0));
                    CHECK(drawn.query[at] == (t == T - 1));
                    CHECK(drawn.target[at] == (t == T - 1 ? static_cast<float>(id % 10) : 0));
                }
            }
    }
}

TEST_CASE("sizes") {
    CHECK(permuted_mnist::describe({}).steps == 196);
    CHECK(permuted_mnist::describe({.fidelity = "paper"}).steps == 784);
    CHECK(permuted_mnist({.steps = 3136}).info().steps == 3136);
    CHECK(sentence([] { permuted_mnist::describe({.steps = 100}); }) ==
          "permuted_mnist: 100 steps were asked for; expected 196, 784 or 3136");
}
