// What PPO learns with a memory that reaches far enough, and without.

#include <doctest/doctest.h>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/t_maze.hpp>
#include <engram/train/acting_update.hpp>

using namespace engram;

namespace {

using backend = cpu<float>;

/// Mean reward of the last quarter of the updates in T-Mazes of this length.
double reward_in_maze(int length, int updates) {
    using maze_agent = agent<identity, lstm, no_memory, no_auxiliary, ppo>;
    task_options maze;
    maze.length = length;
    maze.length_spread = length <= 10 ? 2 : 10;
    maze_agent::settings s;
    s.controller.hidden = 32;
    const auto a = maze_agent::trace<backend>(s, {{1, 1, 3}, 2}, 1);
    acting_settings t;
    t.rollout = {.environments = 64, .unroll = 5, .epochs = 4, .minibatches = 4};
    t.optimiser.learning_rate = 3e-3;
    t.optimiser.epsilon = 1e-8;
    t.optimiser.clip = 1;
    training_loop<acting_update<backend>> training(
        {3, 1, 0}, a,
        [&](int count, int first) {
            return std::make_unique<batch_of<t_maze>>("train", count, 7, static_cast<std::uint32_t>(first), maze,
                                                      nullptr);
        },
        t);
    double sum = 0;
    int episodes = 0;
    for (int i = 0; i < updates; ++i) {
        training.iterate();
        for (const double r : training.take_window().episodes)
            if (i >= updates * 3 / 4) sum += r, ++episodes;
    }
    REQUIRE(episodes > 100);
    return sum / episodes;
}

}  // namespace

TEST_CASE("an LSTM learns a T-Maze of about its unroll, and not one twenty times as long") {
    constexpr int updates = 400;  // the same for both
    const double near = reward_in_maze(5, updates);
    MESSAGE("length 5 to 7: ", near);
    CHECK(near > 3.5);
    const double far = reward_in_maze(100, updates);
    MESSAGE("length 100 to 110: ", far);
    CHECK(std::abs(far - 0.5) < 0.5);
}
