// SPDX-License-Identifier: MIT

// Steps per second of every task on one thread, with and without drawing the observation, and nanoseconds of one
// observation. Random actions, 64 environments stepped in turn.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "engram/task/registry.hpp"

namespace {

using namespace engram;

/// The best of five runs: seconds for `steps` steps.
template <class F>
double best_seconds(F run) {
    double best = 1e30;
    for (int i = 0; i < 5; ++i) {
        const auto start = std::chrono::steady_clock::now();
        run();
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

void measure(const task_info& info, const task_options& options, const std::shared_ptr<const stimulus_set>& images) {
    constexpr int rows = 64, rounds = 1000, steps = rows * rounds;
    auto batch = make_environment(info.name, info.levels.front(), rows, 1, 0, options, images);
    std::vector<float> pixels(static_cast<std::size_t>(info.observation.size()) * rows);
    philox policy(1, stream_id("action", 0));
    const auto step_all = [&] {
        for (int row = 0; row < rows; ++row) batch->step(row, policy.below(info.actions));
    };
    const auto draw_all = [&] {
        for (int row = 0; row < rows; ++row) batch->observe(row, pixels.data() + row * info.observation.size());
    };
    const double bare = best_seconds([&] {
        for (int t = 0; t < rounds; ++t) step_all();
    });
    const double drawn = best_seconds([&] {
        for (int t = 0; t < rounds; ++t) {
            step_all();
            draw_all();
        }
    });
    const double drawing = best_seconds([&] {
        for (int t = 0; t < rounds; ++t) draw_all();
    });
    std::printf("%-30s %2d x %2d x %d  %8.2f M steps/s  %8.2f M with drawing  %8.1f ns an observation\n",
                info.name.c_str(), info.observation.height, info.observation.width, info.observation.channels,
                steps / bare * 1e-6, steps / drawn * 1e-6, drawing / steps * 1e9);
}

}  // namespace

int main() {
    const auto images = std::make_shared<const stimulus_set>(builtin_stimuli());
    for (const char* frame : {"small", "paper"}) {
        task_options options;
        options.fidelity = frame;
        for (const auto& info : all_tasks(options))
            if (options.fidelity == "small" || info.observation.channels * info.observation.width > 3)
                measure(info, options, images);
    }
}
