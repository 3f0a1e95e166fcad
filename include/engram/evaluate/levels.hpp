#pragma once
// SPDX-License-Identifier: MIT

// What an agent earns on a level: episodes of the sampled policy with fixed weights.
//
//   mean = sum_i R_i / n,  stderr = sqrt(sum_i (R_i - mean)^2 / (n - 1) / n),  R_i the reward of episode i
//
// Every environment plays a number of episodes fixed beforehand, so that short episodes are not counted more often than
// long ones. The episodes depend on the seed and the level alone, and are none of those of training.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/evaluate/goal_times.hpp>
#include <engram/train/actor.hpp>

namespace engram {

/// Makes `count` environments of a level for a seed.
using level_maker =
    std::function<std::unique_ptr<batch_environment>(const std::string& level, int count, std::uint64_t seed)>;

struct level_score {
    std::string level;
    int episodes = 0;
    double mean = 0, standard_error = 0;
    goal_times goals = {};  // of tasks that seek one
};

/// A seed for evaluation on a level, apart from the seed of training.
inline std::uint64_t evaluation_seed(std::uint64_t seed, const std::string& level) {
    philox random(seed, stream_id("evaluation." + level, 0));
    const std::uint64_t high = random.next();
    return high << 32 | random.next();
}

/// `batch` environments play together. When `stop`, asked before every step, says so, the score has no episodes.
template <class Backend>
level_score evaluate_level(const traced_agent<Backend>& agent,
                           std::shared_ptr<parameters<typename Backend::real>> store, const level_maker& make,
                           const std::string& level, int episodes, std::uint64_t seed, int batch = 50,
                           const std::function<bool()>& stop = {}) {
    require(episodes > 0, "evaluation: expected at least one episode, got ", episodes);
    require(batch > 0, "evaluation: expected at least one environment, got ", batch);
    const int rows = std::min(batch, episodes);
    const std::uint64_t own = evaluation_seed(seed, level);
    actor<Backend> player(agent, std::move(store), make(level, rows, own), own, 0);
    std::vector<std::vector<double>> rewards(static_cast<std::size_t>(rows));
    const auto quota = [&](int row) { return static_cast<std::size_t>(episodes / rows + (row < episodes % rows)); };
    const bool seeks_goal = player.environment().info().seeks_goal;
    goal_clock clock(rows);
    for (int left = episodes; left > 0;) {
        if (stop && stop()) return {level, 0, 0, 0};
        player.step();
        if (seeks_goal)
            for (int row = 0; row < rows; ++row) {
                const auto r = static_cast<std::size_t>(row);
                if (rewards[r].size() < quota(row)) clock.step(row, player.reward()[r] > 0, player.done()[r] != 0);
            }
        auto next = player.finished().begin();
        for (int row = 0; row < rows; ++row) {
            const auto r = static_cast<std::size_t>(row);
            if (!player.done()[r]) continue;
            const double reward = *next++;
            if (rewards[r].size() == quota(row)) continue;
            rewards[r].push_back(reward);
            --left;
        }
        player.finished().clear();
    }
    level_score score{level, episodes, 0, 0, clock.times()};
    for (const auto& row : rewards)
        for (const double r : row) score.mean += r / episodes;
    double squares = 0;
    for (const auto& row : rewards)
        for (const double r : row) squares += (r - score.mean) * (r - score.mean);
    if (episodes > 1) score.standard_error = std::sqrt(squares / (episodes - 1) / episodes);
    return score;
}

}  // namespace engram
