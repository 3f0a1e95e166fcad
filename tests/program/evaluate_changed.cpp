// A run is evaluated on its task played otherwise than it was trained, and keeps its own levels.

#include <doctest/doctest.h>

#include <engram/io/json.hpp>

#include "child.hpp"

TEST_CASE("a longer task is scored beside the levels of the run") {
    const temporary_folder folder;
    const finished trained =
        run({"train", "--task", "t_maze", "--out", folder / "run", "--threads", "1", "--quiet", "--steps", "960",
             "--evaluate", "20", "--set", "task.length=5", "--set", "task.length_spread=0"});
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const auto summary = [&] { return engram::read_json(folder / "run/summary.json"); };
    const auto before = summary();
    CHECK_FALSE(before.contains("changed"));

    const std::vector<std::string> longer{"evaluate", "--from", folder / "run", "--episodes", "30", "--level", "train"};
    auto changed = longer;
    changed.insert(changed.end(), {"--set", "task.length=20"});
    const finished scored = run(changed);
    INFO(scored.err);
    REQUIRE(scored.code == 0);
    CHECK(has(scored.out, "train"));
    auto after = summary();
    REQUIRE(after.contains("changed"));
    CHECK(after["changed"].size() == 1);
    CHECK(after["changed"]["task.length=20"]["train"]["episodes"] == 30);
    after.erase("changed");
    CHECK(after == before);

    // The run as it was trained, once more: its own levels change, what was noted of others stays.
    REQUIRE(run(longer).code == 0);
    CHECK(summary()["levels"]["train"]["episodes"] == 30);
    CHECK(summary()["changed"].size() == 1);

    const auto refused = [&](const char* setting) {
        auto asked = longer;
        asked.insert(asked.end(), {"--set", setting});
        const finished wrong = run(asked);
        CHECK(wrong.code == 2);
        return wrong.err;
    };
    CHECK(has(refused("memory.slots=4"),
              "a model is evaluated as it was trained; only options of its task can be others"));
    CHECK(has(refused("task.decks=4"),
              "task.decks: the task t_maze does not read it; it reads task.length, task.length_spread"));
    CHECK(has(refused("task.length=1"), "a length of 1 was asked for; expected 2 to 1000000"));
    CHECK(summary()["changed"].size() == 1);
}
