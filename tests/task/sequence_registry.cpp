// SPDX-License-Identifier: MIT
#include "engram/task/sequence_registry.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../io/temporary.hpp"
#include "coded_glyphs.hpp"

using namespace engram;

TEST_CASE("the sequence tasks have their names and own sizes") {
    const auto names = sequence_names();
    struct own {
        std::string name;
        int steps, recall;
    };
    for (const auto& [name, steps, recall] : std::vector<own>{{"perfect_recall", 15, 10},
                                                              {"parity_recall", 15, 10},
                                                              {"one_shot_recall", 25, 20},
                                                              {"dynamic_dependency", 25, 20},
                                                              {"similarity_cued_recall", 25, 20},
                                                              {"mnist_map", 25, -1},
                                                              {"rotation", 30, 15},
                                                              {"bit_copy", 42, -1},
                                                              {"copy", 120, -1},
                                                              {"scattered_copy", 120, -1},
                                                              {"add", 100, -1},
                                                              {"permuted_mnist", 196, -1}}) {
        const std::string which = name;  // clang before 16 captures no binding
        CAPTURE(which);
        CHECK(std::count(names.begin(), names.end(), name) == 1);
        const auto info = describe_sequence(name);
        CHECK(info.name == name);
        CHECK(info.steps == steps);
        CHECK(info.recall == recall);
        CHECK(info.levels[0] == "train");
    }
}

TEST_CASE("every task is made, describes itself as before, fills what it promises, and is pure") {
    for (const auto& name : sequence_names())
        for (const int items : {0, 12}) {
            CAPTURE(name);
            const task_options options{.items = items};
            const auto info = describe_sequence(name, options);
            const auto task = make_sequence(name, options);
            CHECK(task->info().name == name);
            CHECK(task->info().steps == info.steps);
            CHECK(task->info().observation == info.observation);
            CHECK(task->info().levels == info.levels);
            CHECK(task->info().recall == info.recall);
            for (const auto& level : {info.levels.front(), info.levels.back()}) {
                CHECK(batch_equals_singles(*task, level));
                const drawn_sequence drawn(*task, level, 1, 1);
                const auto [low, high] = std::minmax_element(drawn.observation.begin(), drawn.observation.end());
                CHECK(*low >= 0);
                CHECK(*high <= (info.tokens > 0 ? static_cast<float>(info.tokens - 1) : 1.0f));
                for (int t = 0; t < info.steps; ++t) {
                    CHECK(drawn.origin[static_cast<std::size_t>(t)] >= -1);
                    CHECK(drawn.origin[static_cast<std::size_t>(t)] < t);
                    CHECK(drawn.label[static_cast<std::size_t>(t)] >= -1);
                }
                CHECK(std::find(drawn.condition.begin(), drawn.condition.end(), -7) == drawn.condition.end());
                CHECK(std::find(drawn.target.begin(), drawn.target.end(), -7) == drawn.target.end());
                CHECK(std::find(drawn.weight.begin(), drawn.weight.end(), -7) == drawn.weight.end());
            }
            CHECK(is_pure(*task));
        }
}

TEST_CASE("what cannot be made is one sentence") {
    CHECK(sentence([] { make_sequence("perfect_recal"); }) ==
          "unknown sequence task 'perfect_recal'; did you mean 'perfect_recall'?");
    CHECK(sentence([] { describe_sequence("copy_bits"); }).starts_with("unknown sequence task 'copy_bits'"));
    CHECK(sentence([] { make_sequence("perfect_recall", {.data = "/nowhere"}); }) ==
          "perfect_recall: data folder '/nowhere' has no folder mnist");
    CHECK(sentence([] { make_sequence("parity_recall", {.data = "/nowhere", .stimuli = "omniglot"}); }) ==
          "parity_recall: stimuli 'omniglot' do not serve, the task shows digits; expected builtin or mnist");
    CHECK(sentence([] { describe_sequence("dynamic_dependency", {.items = 5}); }) ==
          "dynamic_dependency: 5 items were asked for; expected 10 to 100000");
    CHECK_NOTHROW(describe_sequence("one_shot_recall", {.data = "/nowhere"}));  // describing reads no data
}
