// Trains an agent whose memory is examples/own_memory.hpp on arbitrary visuomotor mapping, through the public loop,
// and prints its reward: a memoryless agent stays below 30 of 50, this one passes 48 within 500,000 steps (half a
// minute).
//
//   build/bin/example-own_memory [steps] [seed]
//
// engram_add_ablation(NAME own_memory TYPE own::model HEADER own_memory.hpp INCLUDE examples) makes a whole program of
// the same type: train, evaluate, describe, sample.

#include <algorithm>
#include <cstdio>
#include <thread>

#include <engram/core/settings.hpp>
#include <engram/task/registry.hpp>
#include <engram/train/acting_update.hpp>

#include "own_memory.hpp"

namespace {

void train(int argc, char** argv) {
    using namespace engram;
    const auto number = [&](int at, const char* name, std::int64_t least, std::int64_t otherwise) {
        const auto given = argc > at ? parse<std::int64_t>(name, argv[at]) : otherwise;
        require(given >= least, name, ": expected ", least, " or more, got ", given);
        return given;
    };
    const std::int64_t steps = number(1, "steps", 1, 600'000);
    const auto seed = static_cast<std::uint64_t>(number(2, "seed", 0, 1));
    const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);

    const std::string task = "arbitrary_visuomotor_mapping";
    const task_options options;
    const auto info = describe_task(task, options);
    const auto stimuli = load_stimuli(options);

    own::model::settings settings;
    settings.controller.hidden = 64;
    settings.learner.discount = 0;  // one step a trial: nothing is gained by waiting
    const auto agent = own::model::trace<cpu<float>>(settings, shape_of(info), seed);
    training_loop<acting_update<cpu<float>>> training(
        {seed, threads, steps}, agent,
        [&](int count, int first_row) {
            return make_environment(task, "train", count, seed, first_row, options, stimuli);
        },
        acting_settings{.rollout = {.environments = 32, .unroll = 10}, .optimiser = {}});

    std::printf("%lld parameters, %d threads\n", static_cast<long long>(agent.store->total()), threads);
    for (std::int64_t next = steps / 12; training.steps() < steps;) {
        training.iterate();
        if (training.steps() < next) continue;
        next += steps / 12;
        const auto window = training.take_window();
        double mean = 0;
        for (const double reward : window.episodes) mean += reward / static_cast<double>(window.episodes.size());
        std::printf("%9lld steps   reward %5.2f of %.0f\n", static_cast<long long>(training.steps()), mean,
                    info.maximum_reward("train"));
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        train(argc, argv);
    } catch (const engram::error& problem) {
        std::fprintf(stderr, "example-own_memory: %s\n", problem.what());
        return 2;
    }
}
