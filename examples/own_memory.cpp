// Trains an agent whose memory is examples/own_memory.hpp on arbitrary visuomotor mapping, through the public trainer,
// and prints its reward: a memoryless agent stays below 30 of 50, this one passes 48 within 500,000 steps (half a
// minute).
//
//   build/bin/example-own_memory [steps] [seed]
//
// engram_add_ablation(NAME own_memory TYPE own::model HEADER own_memory.hpp INCLUDE examples) makes a whole program of
// the same type: train, evaluate, describe, sample.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <engram/task/registry.hpp>
#include <engram/train/trainer.hpp>

#include "own_memory.hpp"

int main(int argc, char** argv) {
    using namespace engram;
    const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 600'000;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 4);

    const std::string task = "arbitrary_visuomotor_mapping";
    const task_options options;
    const auto info = describe_task(task, options);
    const auto& seen = info.observation;
    const auto stimuli = load_stimuli(options);

    own::model::settings settings;
    settings.controller.hidden = 64;
    settings.learner.discount = 0;  // one step a trial: nothing is gained by waiting
    const auto agent =
        own::model::trace<cpu<float>>(settings, {{seen.height, seen.width, seen.channels}, info.actions}, seed);
    trainer<cpu<float>> training(
        agent,
        [&](int count, int first_row) {
            return make_environment(task, "train", count, seed, first_row, options, stimuli);
        },
        {.rollout = {.environments = 32, .unroll = 10}, .optimiser = {}}, seed, threads, steps);

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
