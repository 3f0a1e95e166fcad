// SPDX-License-Identifier: MIT

// Ten million random steps through every task at both fidelities and all levels: rewards and pixels in their ranges, no
// episode beyond its limit, no body of the state that `restore` would refuse. Meant for a build under the address and
// undefined-behaviour sanitizers (-DENGRAM_SANITIZE=ON); docs/results/suite.md has the command and the last result.
// ENGRAM_RANDOM_STEPS sets another number of steps.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/program/compiled_tasks.hpp>

using namespace engram;

namespace {

struct finding {
    std::int64_t steps = 0, episodes = 0, frames = 0;
    int longest = 0;
    float lowest = 0, highest = 0;
    std::string trouble;
};

/// Steps of one task, divided evenly among its levels and rows.
finding walk_through(const task_info& info, const task_options& options, std::int64_t steps, int seed) {
    constexpr int rows = 4;
    finding found;
    const auto stimuli = task_stimuli(info.name, options);
    const auto complain = [&](const std::string& level, const std::string& what) {
        if (found.trouble.empty()) found.trouble = info.name + " " + level + ": " + what;
    };
    const auto each = steps / static_cast<std::int64_t>(info.levels.size() * rows) + 1;
    // Observations cost more than steps: some of them are enough to see every room.
    const int look_every = options.fidelity == "paper" ? 499 : 13;
    std::vector<float> pixels(static_cast<std::size_t>(info.observation.size()));
    for (const auto& level : info.levels) {
        const auto limit = info.level(level).longest_episode;
        auto batch = make_environment(info.name, level, rows, static_cast<std::uint64_t>(seed), 0, options, stimuli);
        philox policy(static_cast<std::uint64_t>(seed), stream_id("random steps." + level, 0));
        std::vector<int> length(rows);
        for (std::int64_t t = 0; t < each; ++t)
            for (int row = 0; row < rows; ++row) {
                const outcome result = batch->step(row, policy.below(info.actions));
                auto& steps_so_far = length[static_cast<std::size_t>(row)];
                ++steps_so_far, ++found.steps;
                if (!std::isfinite(result.reward)) complain(level, "a reward that is no number");
                found.lowest = std::min(found.lowest, result.reward);
                found.highest = std::max(found.highest, result.reward);
                if (steps_so_far > limit) complain(level, "an episode beyond its limit of " + std::to_string(limit));
                if (result.done) {
                    found.longest = std::max(found.longest, steps_so_far);
                    steps_so_far = 0, ++found.episodes;
                    batch->restore(row, std::vector<std::byte>(batch->state(row).begin(), batch->state(row).end()));
                }
                if (found.steps % look_every) continue;
                batch->observe(row, pixels.data());
                ++found.frames;
                for (const float x : pixels)
                    if (!(x >= info.lowest && x <= info.highest)) complain(level, "a pixel of " + std::to_string(x));
            }
    }
    return found;
}

}  // namespace

TEST_CASE("millions of random steps find nothing out of its range") {
    const char* wanted = std::getenv("ENGRAM_RANDOM_STEPS");
    const std::int64_t steps = wanted ? std::atoll(wanted) : 10'000'000;
    struct job {
        task_info info;
        task_options options;
        finding found{};
    };
    std::vector<job> jobs;
    for (const char* fidelity : {"small", "paper"}) {
        task_options options;
        options.fidelity = fidelity;
        options.stimulus_count = 200;
        for (const auto& info : all_tasks(options)) jobs.push_back({info, options});
    }
    thread_pool pool(2);
    pool.run([&](int thread) {
        for (std::size_t i = static_cast<std::size_t>(thread); i < jobs.size(); i += 2)
            jobs[i].found = walk_through(jobs[i].info, jobs[i].options, steps, 1 + static_cast<int>(i));
    });
    for (const auto& job : jobs) {
        const auto& info = job.info;
        const auto& options = job.options;
        const auto& found = job.found;
        std::printf("%-33s %-6s %10lld steps %8lld episodes %8lld frames, longest %5d, rewards %g to %g\n",
                    info.name.c_str(), options.fidelity.c_str(), static_cast<long long>(found.steps),
                    static_cast<long long>(found.episodes), static_cast<long long>(found.frames), found.longest,
                    static_cast<double>(found.lowest), static_cast<double>(found.highest));
        CHECK_MESSAGE(found.trouble.empty(), found.trouble);
        CHECK(found.steps >= steps);
        CHECK(found.episodes > 0);
        CHECK(found.lowest >= -3);  // the T-Maze's wrong side
        CHECK(found.highest <= 10);
    }
}
