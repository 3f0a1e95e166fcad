// SPDX-License-Identifier: MIT
#include "engram/task/recall_sequences.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "../io/temporary.hpp"
#include "coded_glyphs.hpp"

using namespace engram;

namespace {

/// What holds for every recall task: l items, no two alike, of the level's split, labelled; a step repeats exactly the
/// step that its origin names.
void check_items(const drawn_sequence& drawn, int l, const std::string& level) {
    const auto ids = drawn.glyphs();
    std::set<int> distinct;
    for (int t = 0; t < static_cast<int>(ids.size()); ++t) {
        const auto at = static_cast<std::size_t>(t);
        CHECK((ids[at] < 300) == (level == "train"));
        CHECK(drawn.label[at] == ids[at] % 10);
        CHECK(drawn.weight[at] == 0);
        if (drawn.origin[at] < 0) {
            CHECK(drawn.origin[at] == -1);
            CHECK(distinct.insert(ids[at]).second);
        } else {
            CHECK(t >= l);
            CHECK(drawn.origin[at] < t);
            CHECK(std::ranges::equal(drawn.frame(t, 196), drawn.frame(drawn.origin[at], 196)));
        }
        if (t < l) CHECK(drawn.origin[at] == -1);
    }
}

template <class Rule, class Check>
void check_law(const task_options& options, int l, int k, Check check) {
    const recall_task<Rule> task(options, coded_glyphs());
    CHECK(task.info().name == Rule::facts.name);
    CHECK(task.info().steps == l + k);
    CHECK(task.info().recall == l);
    CHECK(task.info().observation == observation_shape{14, 14, 1});
    CHECK(task.info().actions == 0);
    CHECK(task.info().targets == 0);
    for (const auto& level : task.info().levels)
        for (std::uint64_t index = 0; index < 200; ++index) {
            const drawn_sequence drawn(task, level, 9, index);
            check_items(drawn, l, level);
            check(drawn, l, k);
        }
    CHECK(is_pure(task));
    for (const auto& level : task.info().levels) CHECK(batch_equals_singles(task, level));
}

}  // namespace

TEST_CASE("perfect and one-shot recall give the first items again") {
    const auto check = [](const drawn_sequence& drawn, int l, int k) {
        for (int j = 0; j < k; ++j) CHECK(drawn.origin[static_cast<std::size_t>(l + j)] == j);
    };
    check_law<perfect_recall>({}, 10, 5, check);
    check_law<one_shot_recall>({}, 20, 5, check);
    check_law<perfect_recall>({.items = 50}, 50, 5, check);
    check_law<one_shot_recall>({.items = 3, .recalled = 3}, 3, 3, check);
    const recall_task<perfect_recall> least({.items = 1, .recalled = 1}, coded_glyphs());
    CHECK(drawn_sequence(least, "train", 1, 1).origin == std::vector<int>{-1, 0});
}

TEST_CASE("parity recall shows a new 0 for an even item and a new 1 for an odd one") {
    const auto check = [](const drawn_sequence& drawn, int l, int k) {
        for (int j = 0; j < k; ++j) {
            const auto asked = static_cast<std::size_t>(j), answered = static_cast<std::size_t>(l + j);
            CHECK(drawn.label[answered] == drawn.label[asked] % 2);
            CHECK(drawn.origin[answered] == -1);  // which check_items takes to mean: not shown before
        }
    };
    check_law<parity_recall>({}, 10, 5, check);
    check_law<parity_recall>({.items = 7, .recalled = 7}, 7, 7, check);
}

TEST_CASE("the level wrong_parity differs from the holdout in the parity of the last image alone") {
    const recall_task<parity_recall> task({}, coded_glyphs());
    CHECK(task.info().levels == std::vector<std::string>{"train", "holdout_interpolate"});
    CHECK(task.info().asked_levels == std::vector<std::string>{"wrong_parity"});
    for (std::uint64_t index = 0; index < 200; ++index) {
        const drawn_sequence right(task, "holdout_interpolate", 9, index), wrong(task, "wrong_parity", 9, index);
        for (std::size_t t = 0; t < 14; ++t) CHECK(right.glyphs()[t] == wrong.glyphs()[t]);
        CHECK(right.label[14] == right.label[4] % 2);
        CHECK(wrong.label[14] == 1 - right.label[14]);
        CHECK(wrong.origin[14] == -1);
        check_items(wrong, 10, "wrong_parity");
    }
    const recall_task<perfect_recall> other({}, coded_glyphs());
    CHECK(sentence([&] { drawn_sequence(other, "wrong_parity", 9, 0); }).starts_with("unknown perfect_recall level"));
}

TEST_CASE("dynamic dependency goes where the label of the last step points") {
    const auto check = [](const drawn_sequence& drawn, int l, int k) {
        for (int j = 0; j < k; ++j) {
            const auto t = static_cast<std::size_t>(l + j);
            CHECK(drawn.origin[t] == drawn.label[t - 1]);
        }
    };
    check_law<dynamic_dependency>({}, 20, 5, check);
    check_law<dynamic_dependency>({.items = 10, .recalled = 12}, 10, 12, check);
}

// The example of the source (errata G27): the last digit is 8, position 8 holds 3, position 3 holds 0.
TEST_CASE("dynamic dependency by hand") {
    const auto glyphs = coded_glyphs();  // the label of image i is i % 10
    glyph_sequence sequence(*glyphs, split::train, philox(1, 1));
    for (const int id : {47, 11, 22, 30, 14, 5, 6, 17, 3, 9, 21, 28}) sequence.show(id);
    dynamic_dependency::recall(sequence, 12, 4);
    std::vector<int> origin(16), label(16);
    sequence.write({.origin = origin.data(), .label = label.data()});
    CHECK(std::vector<int>(origin.begin() + 12, origin.end()) == std::vector<int>{8, 3, 0, 7});
    CHECK(std::vector<int>(label.begin() + 12, label.end()) == std::vector<int>{3, 0, 7, 7});
}

// 8000 draws of r from 16 values, 500 each: chi squared with 15 degrees of freedom exceeds 44.3 with probability 1e-4.
TEST_CASE("similarity-cued recall gives k items in a row, from every place alike") {
    check_law<similarity_cued_recall>({}, 20, 5, [](const drawn_sequence& drawn, int l, int k) {
        const int r = drawn.origin[static_cast<std::size_t>(l)];
        CHECK(r >= 0);
        CHECK(r <= l - k);
        for (int j = 0; j < k; ++j) CHECK(drawn.origin[static_cast<std::size_t>(l + j)] == r + j);
    });
    const recall_task<similarity_cued_recall> task({}, coded_glyphs());
    std::vector<int> count(16), origin(25);
    for (std::uint64_t index = 0; index < 8000; ++index) {
        task.draw("train", 2, index, {.origin = origin.data()});
        ++count[static_cast<std::size_t>(origin[20])];
    }
    double chi = 0;
    for (const int n : count) chi += (n - 500.0) * (n - 500.0) / 500;
    CHECK(chi < 44.3);
    const recall_task<similarity_cued_recall> whole({.items = 4, .recalled = 4}, coded_glyphs());
    for (std::uint64_t index = 0; index < 20; ++index) CHECK(drawn_sequence(whole, "train", 1, index).origin[4] == 0);
}

TEST_CASE("sizes and glyphs that cannot serve are one sentence") {
    const auto said = [](const task_options& options, auto rule) {
        return sentence([&] { recall_task<decltype(rule)>(options, coded_glyphs(300, 200)); });
    };
    CHECK(said({.items = 9}, dynamic_dependency{}) ==
          "dynamic_dependency: 9 items were asked for; expected 10 to 100000");
    CHECK(said({.items = -1}, perfect_recall{}) == "perfect_recall: -1 items were asked for; expected 1 to 100000");
    CHECK(said({.recalled = -3}, perfect_recall{}) ==
          "perfect_recall: -3 recalled items were asked for; expected 1 to 100000");
    CHECK(said({.recalled = 11}, parity_recall{}) == "parity_recall: 11 items cannot be recalled of 10");
    CHECK(said({.items = 4}, similarity_cued_recall{}) == "similarity_cued_recall: 5 items cannot be recalled of 4");
    CHECK(said({.items = 201}, perfect_recall{}) ==
          "perfect_recall: a sequence shows up to 201 images, but the coded set has 200 to hold out");
    CHECK(said({.items = 16}, parity_recall{}) ==
          "parity_recall: a sequence shows up to 21 images of the digit 0, but the coded set has 20 to hold out");
    CHECK(said({.fidelity = "paper"}, perfect_recall{}) == "perfect_recall: glyphs of 14 pixels, expected 28");
    CHECK(said({.fidelity = "big"}, perfect_recall{}) == "unknown fidelity 'big'; expected one of small, paper");
    CHECK(sentence([] { recall_task<parity_recall>({}, coded_glyphs(300, 200, 50)); }) ==
          "parity_recall: the coded set has 50 classes, expected the 10 digits");
    const recall_task<perfect_recall> task({}, coded_glyphs());
    CHECK(sentence([&] { task.draw("holdout_extrapolate", 1, 1, {}); }) ==
          "unknown perfect_recall level 'holdout_extrapolate'; did you mean 'holdout_interpolate'?");
}

TEST_CASE("built-in glyphs serve when there is no data, and the splits show different images") {
    const recall_task<perfect_recall> digits({});
    const recall_task<one_shot_recall> characters({.fidelity = "paper"});
    CHECK(characters.info().observation == observation_shape{28, 28, 1});
    std::set<int> trained, held;
    for (std::uint64_t index = 0; index < 100; ++index) {
        const drawn_sequence train(characters, "train", 1, index), holdout(characters, "holdout_interpolate", 1, index);
        trained.insert(train.label.begin(), train.label.end());
        held.insert(holdout.label.begin(), holdout.label.end());
        for (const int label : drawn_sequence(digits, "train", 1, index).label) CHECK(label < 10);
    }
    CHECK(held.size() == 150);  // 2000 draws: every held-out character, with a probability of 0.9998
    for (const int label : held) CHECK_FALSE(trained.contains(label));
}
