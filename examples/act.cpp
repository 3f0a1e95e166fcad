// A trained agent acts in a program that is not engram's: it reads the run folder that `example-own_environment train`
// (or engram-lstm_mem) made, takes the likeliest action at every step, and prints what the episodes earn. It needs the
// headers alone:
//
//   build/bin/example-own_environment train --task match_to_sample --learner.discount 0 --steps 300000 --out runs/match
//   build/bin/example-act runs/match [EPISODES]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "act.hpp"
#include "own_environment.hpp"

int main(int argc, char** argv) try {
    engram::require(argc == 2 || argc == 3, "expected a run folder, and perhaps a number of episodes");
    const int episodes = argc == 3 ? engram::parse<int>("episodes", argv[2]) : 10;
    engram::require(episodes > 0, "episodes: expected 1 or more, got ", episodes);

    // [load]
    const engram::trained_run run(argv[1]);
    constexpr engram::own_task task = own::match_to_sample::specification;
    engram::require(run.task() == task.name, argv[1], ": its task is ", run.task(), ", expected ", task.name);
    const auto [height, width, channels] = task.observation;
    const auto agent = acting::load(run, {{height, width, channels}, task.actions});
    // [load]

    // [loop]
    acting::stream stream(agent);
    own::match_to_sample world;  // whatever is to be acted in
    engram::philox random(1, 1);
    double total = 0;
    int steps = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int episode = 0; episode < episodes; ++episode) {
        world.reset(random);
        stream.begin();
        for (engram::outcome now{}; !now.done; ++steps) {
            world.observe(stream.observation().data());
            const auto log_policy = stream.decide();
            const auto action = static_cast<int>(std::ranges::max_element(log_policy) - log_policy.begin());
            now = world.step(action);
            stream.done(action, now.reward);
            total += static_cast<double>(now.reward);
        }
    }
    // [loop]
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    std::printf("%s: %d episodes, %g each; %.1f us a step\n", run.ablation().c_str(), episodes, total / episodes,
                spent.count() / steps);
} catch (const std::exception& problem) {
    std::fprintf(stderr, "example-act: %s\n", problem.what());
    return 2;
}
