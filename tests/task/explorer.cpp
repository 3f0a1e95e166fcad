// Who explores acts on what was seen alone, and finds what there is.

#include "engram/task/explorer.hpp"

#include <doctest/doctest.h>

#include "engram/evaluate/scripted.hpp"
#include "engram/task/goal_arena.hpp"
#include "engram/task/procedural_maze.hpp"

using namespace engram;

namespace {

template <class E>
level_maker maker() {
    return
        [](const std::string& level, int count, std::uint64_t seed, int first) -> std::unique_ptr<batch_environment> {
            return std::make_unique<batch_of<E>>(level, count, seed, static_cast<std::uint32_t>(first), task_options{},
                                                 nullptr);
        };
}

/// Plays to the first reward; the number of steps, 0: none.
template <class E>
int steps_to_goal(E& environment, explored& all) {
    for (int t = 1; t < 200; ++t)
        if (environment.step(environment.explore(all)).reward > 0) return t;
    return 0;
}

}  // namespace

TEST_CASE_TEMPLATE("an explorer stands between random actions and the oracle", E, visible_goal_with_buildings,
                   invisible_goal_with_buildings, invisible_goal_empty_arena, procedural_maze) {
    const auto info = E::describe({});
    CHECK(info.has_explorer);
    for (const auto& level : info.judged_levels()) {
        const auto random = play_scripted(maker<E>(), level, scripted_policy::random, 30, 1);
        const auto explorer = play_scripted(maker<E>(), level, scripted_policy::explorer, 30, 1);
        const auto oracle = play_scripted(maker<E>(), level, scripted_policy::oracle, 30, 1);
        const auto forgetful = play_scripted(maker<E>(), level, scripted_policy::forgetful, 30, 1);
        CAPTURE(level);
        CHECK(explorer.mean > random.mean + 0.3 * (oracle.mean - random.mean));
        CHECK(explorer.mean < oracle.mean);
        CHECK(forgetful.mean < 0.9 * explorer.mean);
        CHECK(forgetful.mean > random.mean);
    }
}

TEST_CASE("what was not seen does not change what an explorer does") {
    auto maze = procedural_maze::make("train", {}, nullptr);
    maze.random = philox(3, 0);
    int told = 0, looked = 0;
    for (int episode = 0; episode < 60; ++episode) {
        maze.reset();
        explored all;
        for (int t = 0; t < 60; ++t) {
            const int action = maze.explore(all);
            // The same maze with every cell that was not seen turned over, and the goal in another such cell.
            auto other = maze;
            for (int y = 1; y + 1 < maze.place.height; ++y)
                for (int x = 1; x + 1 < maze.place.width; ++x)
                    if (!all.seen.at(x, y)) {
                        auto& there = other.place.at(x, y);
                        there.kind = there.solid() ? cell_kind::ground : cell_kind::wall;
                        if (!all.goal) other.goal = {static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y)};
                    }
            auto same = all;
            looked += !all.goal;
            told += other.explore(same) != action;
            maze.step(action);
        }
    }
    CHECK(looked > 100);
    CHECK(told == 0);
}

TEST_CASE_TEMPLATE("an explorer finds every goal, and comes back sooner than one that has forgotten it", E,
                   visible_goal_with_buildings, invisible_goal_with_buildings, invisible_goal_empty_arena,
                   procedural_maze) {
    auto environment = E::make("extrapolate", {}, nullptr);
    environment.random = philox(5, 0);
    double known = 0, forgotten = 0;
    for (int episode = 0; episode < 40; ++episode) {
        environment.reset();
        explored all;
        REQUIRE(steps_to_goal(environment, all) > 0);
        environment.step(environment.explore(all));  // it is put elsewhere
        auto same = environment;
        explored nothing;
        const int by_memory = steps_to_goal(environment, all), by_search = steps_to_goal(same, nothing);
        REQUIRE(by_memory > 0);
        if (by_search > 0) known += by_memory, forgotten += by_search;
    }
    CHECK(forgotten > 0);
    CHECK(known < 0.75 * forgotten);
}

TEST_CASE("nobody explores where bodies walk freely") {
    task_options paper;
    paper.fidelity = "paper";
    CHECK_FALSE(procedural_maze::describe(paper).has_explorer);
    CHECK_THROWS_WITH_AS(
        check_played(scripted_policy::explorer, procedural_maze::describe(paper)),
        "visible_goal_procedural_maze: nobody explores this environment, or not at this fidelity; give "
        "--policy oracle",
        error);
}
