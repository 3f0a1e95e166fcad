// SPDX-License-Identifier: MIT
#include "engram/task/time_step.hpp"

#include <doctest/doctest.h>

#include "../io/temporary.hpp"

using namespace engram;

TEST_CASE("an episode: first, mid ..., last, and then only a reset") {
    task_options options;
    options.length = 5;
    options.length_spread = 0;
    single_environment maze("t_maze", "", 3, options);
    CHECK(maze.level() == "train");
    CHECK(sentence([&] { maze.step(0); }) == "t_maze: a step before the first reset()");
    CHECK(sentence([&] { maze.oracle(); }) == "t_maze: no episode is going on; reset() begins one");
    for (int episode = 0; episode < 3; ++episode) {
        time_step now = maze.reset();
        CHECK((now.first() && !now.mid() && !now.last()));
        CHECK((!now.reward && !now.discount));
        REQUIRE(now.observation.size() == 3);
        CHECK(now.observation[0] == (maze.oracle() == 1 ? 1 : -1));
        for (int t = 1; t < 5; ++t) {
            now = maze.step(0);
            CHECK((now.mid() && now.reward == 0.0f && now.discount == 1.0f));
            CHECK(now.observation[1] == (t == 4 ? 1 : 0));
        }
        const auto corner = now.observation;
        CHECK(maze.event());
        now = maze.step(maze.oracle());
        CHECK((now.last() && now.reward == 4.0f && now.discount == 0.0f));
        CHECK(now.observation == corner);
        CHECK(sentence([&] { maze.step(0); }) ==
              "t_maze: a step after the last one of an episode; reset() begins another");
        CHECK(sentence([&] { maze.event(); }) == "t_maze: no episode is going on; reset() begins one");
    }
}

TEST_CASE("the episodes are those of a batch, and a reset in the middle begins another") {
    const auto stimuli = task_stimuli("continuous_recognition");
    auto batch = make_environment("continuous_recognition", "train", 1, 5, 2, {}, stimuli);
    single_environment one("continuous_recognition", "train", 5, {}, stimuli, 2);
    std::vector<float> expected(static_cast<std::size_t>(batch->info().observation.size()));
    time_step now = one.reset();
    int episodes = 0;
    for (int t = 0; t < 120; ++t) {
        batch->observe(0, expected.data());
        REQUIRE(now.observation == expected);
        const int action = batch->oracle(0) ^ (t % 3 == 0);
        const outcome result = batch->step(0, action);
        now = one.step(action);
        REQUIRE(now.reward == result.reward);
        REQUIRE(now.last() == result.done);
        episodes += result.done;
        if (now.last()) now = one.reset();
    }
    CHECK(episodes == 2);
    const auto before = now.observation;
    CHECK(one.event()->trial == 20);
    CHECK(one.reset().first());
    CHECK(one.event()->trial == 0);
    batch->reset(0, 1);
    batch->observe(0, expected.data());
    CHECK(one.step(0).mid());
    CHECK(expected != before);
}

TEST_CASE("specifications and mistakes") {
    single_environment task("arbitrary_visuomotor_mapping", "holdout_interpolate", 1);
    const auto seen = task.observation_spec();
    CHECK(seen.name == "observation");
    CHECK(seen.shape == std::vector<int>{16, 16, 3});
    CHECK((seen.minimum == 0 && seen.maximum == 1));
    const auto done = task.action_spec();
    CHECK((done.name == "action" && done.shape.empty() && done.minimum == 0));
    CHECK(done.maximum == done.number - 1);
    CHECK(done.number == task.info().actions);
    task.reset();
    CHECK(sentence([&] { task.step(done.number); }) == message("arbitrary_visuomotor_mapping: action ", done.number,
                                                               " is out of range; expected 0 to ", done.maximum));
    CHECK(has(sentence([&] { task.step(-1); }), "action -1 is out of range"));
    CHECK(task.step(0).mid());  // a refused action is no step
    CHECK(sentence([] { single_environment("t_maze", "tran"); }) ==
          "unknown t_maze level 'tran'; did you mean 'train'?");
    CHECK(sentence([] { single_environment("t_mase"); }) == "unknown task 't_mase'; did you mean 't_maze'?");
}
