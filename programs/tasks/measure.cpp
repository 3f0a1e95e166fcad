// SPDX-License-Identifier: MIT

// list, score, speed: the tables.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include <engram/core/thread_pool.hpp>
#include <engram/evaluate/published_scores.hpp>
#include <engram/evaluate/scripted.hpp>
#include <engram/io/file.hpp>

#include "tasks.hpp"

namespace engram {

namespace {

std::string shape_text(const observation_shape& shape) {
    return fmt::format("{} x {} x {}", shape.height, shape.width, shape.channels);
}

/// Threads that take one job after the other.
void share(int threads, std::size_t jobs, const std::function<void(std::size_t)>& work) {
    std::atomic<std::size_t> next = 0;
    thread_pool pool(static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), jobs)));
    pool.run([&](int) {
        for (std::size_t job; (job = next++) < jobs;) work(job);
    });
}

/// Episodes that are played together, whoever plays them.
constexpr int part = 25;

/// One score of several parts.
level_score together(const std::string& level, const std::vector<level_score>& parts) {
    level_score all{level, 0, 0, 0};
    for (const auto& p : parts) all.episodes += p.episodes;
    for (const auto& p : parts) all.mean += p.mean * p.episodes / all.episodes;
    double squares = 0;
    for (const auto& p : parts)
        squares += p.standard_error * p.standard_error * p.episodes * (p.episodes - 1) +
                   p.episodes * (p.mean - all.mean) * (p.mean - all.mean);
    if (all.episodes > 1) all.standard_error = std::sqrt(squares / (all.episodes - 1) / all.episodes);
    return all;
}

level_score score_level(const task_info& info, const std::string& level, const task_request& asked, int episodes,
                        int threads, const std::shared_ptr<const stimulus_set>& stimuli) {
    const auto policy = asked.player();
    const auto options = asked.options();
    const level_maker make = [&](const std::string& name, int count, std::uint64_t seed, int first) {
        return make_environment(info.name, name, count, seed, static_cast<std::uint32_t>(first), options, stimuli);
    };
    std::vector<level_score> parts(static_cast<std::size_t>((episodes + part - 1) / part));
    share(threads, parts.size(), [&](std::size_t i) {
        const int count = std::min(part, episodes - static_cast<int>(i) * part);
        const auto seed = evaluation_seed(asked.seed_or_default(), fmt::format("part.{}", i));
        parts[i] = play_scripted(make, level, policy, count, seed, part);
    });
    return together(level, parts);
}

/// What the paper reports beside it, at its own fidelity: random actions for random actions, humans for the oracle, and
/// how many standard errors lie between (the paper rounds to 0.01). Levels that it has no row for stay empty.
std::string published_beside(const task_info& info, const level_score& got, bool oracle) {
    const auto* table = find_published(info.name);
    const auto at = std::find(suite_scores.begin(), suite_scores.end(), got.level) - suite_scores.begin();
    if (!table || at == static_cast<std::ptrdiff_t>(suite_scores.size())) return "";
    const auto level = static_cast<std::size_t>(at);
    const published_value there = (oracle ? table->human : table->random)[level];
    if (oracle) return fmt::format("{:>10.2f}", there.mean);
    const double rounding = 0.01 / std::sqrt(12.0);
    const double apart = (got.mean - there.mean) / std::hypot(got.standard_error, there.standard_error, rounding);
    return fmt::format("{:>10.2f}{:>8.1f}", there.mean, apart);
}

/// Millions of steps per second with so many environments and threads: rules alone, and with every observation drawn.
struct speed {
    double bare = 0, drawn = 0;
};

speed measure(const task_info& info, const task_request& asked, int environments, int threads,
              const std::shared_ptr<const stimulus_set>& stimuli) {
    const auto batch = make_environment(info.name, info.levels.front(), environments, asked.seed_or_default(), 0,
                                        asked.options(), stimuli);
    philox random(asked.seed_or_default(), stream_id("action", 0));
    constexpr std::size_t different = 4096;  // a power of two: the remainder costs nothing
    std::vector<int> actions(different);
    for (int& action : actions) action = random.below(info.actions);
    const int workers = std::min(threads, environments), size = info.observation.size();
    thread_pool pool(workers);
    std::vector<std::vector<float>> pixels(static_cast<std::size_t>(workers),
                                           std::vector<float>(static_cast<std::size_t>(size)));
    // A worker steps its own rows in turn; which actions it takes depends on nothing that others do.
    const auto seconds = [&](int rounds, bool draw) {
        const auto start = std::chrono::steady_clock::now();
        pool.run([&](int w) {
            const auto self = static_cast<std::int64_t>(w);
            const int first = static_cast<int>(self * environments / workers),
                      last = static_cast<int>((self + 1) * environments / workers);
            std::size_t at = static_cast<std::size_t>(w) * 1000;
            for (int t = 0; t < rounds; ++t)
                for (int row = first; row < last; ++row) {
                    batch->step(row, actions[at++ % different]);
                    if (draw) batch->observe(row, pixels[static_cast<std::size_t>(w)].data());
                }
        });
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const auto best = [&](bool draw) {
        int rounds = 1;
        double took = seconds(rounds, draw);
        while (took < 0.01 && rounds < 1 << 24) took = seconds(rounds *= 2, draw);
        rounds = std::max(1, static_cast<int>(rounds * 0.05 / took));
        double least = 1e30;
        for (int i = 0; i < 5; ++i) least = std::min(least, seconds(rounds, draw));
        return 1e-6 * rounds * environments / least;
    };
    speed found;
    found.bare = best(false);
    found.drawn = best(true);
    return found;
}

}  // namespace

int list_tasks(const task_request& asked) {
    const auto options = asked.options();
    for (const auto& info : all_tasks(options)) {
        fmt::print("{}: {} actions, observes {} numbers\n", info.name, info.actions, shape_text(info.observation));
        for (const auto& level : info.level_details)
            fmt::print("  {:<22}{:>7} steps at most, maximum reward {}{}\n", level.name, level.longest_episode,
                       level.maximum_reward > 0 ? fmt::format("{:g}", level.maximum_reward) : "unlimited",
                       level.further ? " (further level)" : "");
    }
    return 0;
}

int score_tasks(const task_request& asked) {
    const int episodes = task_request::positive("--episodes", asked.episodes, 100);
    const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const int threads = task_request::positive("--threads", asked.threads, cores);
    require(threads <= 1024, "--threads: expected 1024 or less, got ", threads);
    const bool oracle = asked.player() == scripted_policy::oracle;
    const std::string policy = asked.policy.value_or("oracle");
    auto infos = asked.tasks();
    if (asked.task.empty() && explores(asked.player()))
        std::erase_if(infos, [](const task_info& info) { return !info.has_explorer; });
    for (const auto& info : infos) check_played(asked.player(), info);
    asked.seed_or_default();
    std::vector<std::string> known;
    for (const auto& info : infos) known.insert(known.end(), info.levels.begin(), info.levels.end());
    for (const auto& level : asked.level) require_known("level", level, known);
    if (asked.csv) atomic_file{*asked.csv};  // a file that cannot be written is better known now than afterwards

    std::string csv = "task,fidelity,policy,level,episodes,mean,standard_error,maximum\n";
    const bool beside = asked.options().fidelity == "paper";
    fmt::print("{:<33}{:<22}{:>9}{:>12}{:>10}{:>10}{}\n", "task", "level", "episodes", policy, "+-", "maximum",
               !beside  ? ""
               : oracle ? fmt::format("{:>10}", "human")
                        : fmt::format("{:>10}{:>8}", "paper", "apart"));
    for (const auto& info : infos) {
        const auto stimuli = task_stimuli(info.name, asked.options());
        for (const auto& level : asked.level.empty() ? info.judged_levels() : asked.level) {
            if (std::find(info.levels.begin(), info.levels.end(), level) == info.levels.end()) continue;
            const auto got = score_level(info, level, asked, episodes, threads, stimuli);
            const float most = info.maximum_reward(level);
            fmt::print("{:<33}{:<22}{:>9}{:>12.3f}{:>10.3f}{:>10}{}\n", info.name, level, got.episodes, got.mean,
                       got.standard_error, most > 0 ? fmt::format("{:g}", most) : "-",
                       beside ? published_beside(info, got, oracle) : "");
            std::fflush(stdout);
            csv += fmt::format("{},{},{},{},{},{},{},{}\n", info.name, asked.options().fidelity, policy, level,
                               got.episodes, got.mean, got.standard_error, most);
        }
    }
    if (asked.csv) write_file(*asked.csv, csv);
    return 0;
}

int time_tasks(const task_request& asked) {
    const auto environments = task_request::positives("--environments", asked.environments, {64});
    const auto threads = task_request::positives("--threads", asked.threads, {1});
    for (const int n : environments) require(n <= 1'000'000, "--environments: expected 1000000 or less, got ", n);
    for (const int n : threads) require(n <= 1024, "--threads: expected 1024 or less, got ", n);
    const auto infos = asked.tasks();
    asked.seed_or_default();
    fmt::print("{:<33}{:>12}{:>14}{:>9}{:>14}{:>14}\n", "task", "observation", "environments", "threads", "steps/s",
               "with pixels");
    for (const auto& info : infos) {
        const auto stimuli = task_stimuli(info.name, asked.options());
        for (const int n : environments)
            for (const int t : threads) {
                const speed s = measure(info, asked, n, t, stimuli);
                fmt::print("{:<33}{:>12}{:>14}{:>9}{:>12.3f} M{:>12.3f} M\n", info.name, shape_text(info.observation),
                           n, t, s.bare, s.drawn);
                std::fflush(stdout);
            }
    }
    return 0;
}

}  // namespace engram
