#pragma once
// SPDX-License-Identifier: MIT

// What an agent earns on a level: episodes of the sampled policy with fixed weights.
//
//   mean = sum_i R_i / n,  stderr = sqrt(sum_i (R_i - mean)^2 / (n - 1) / n),  R_i the reward of episode i
//
// Every environment plays a number of episodes fixed beforehand, so that short episodes are not counted more often than
// long ones. The episodes depend on the seed and the level alone, and are none of those of training. Several processes
// play some of the environments each, and have the score of one.

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
#include <engram/train/processes.hpp>

namespace engram {

/// Makes `count` environments of a level for a seed, the first of which has the number `first_row`.
using level_maker = std::function<std::unique_ptr<batch_environment>(const std::string& level, int count,
                                                                     std::uint64_t seed, int first_row)>;

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

/// `batch` environments play together, some of them in each of `others` where there are some: all of them call this
/// and have the same score. When `stop`, asked before every step, says so to one of them, it has no episodes.
template <class Backend>
level_score evaluate_level(const traced_agent<Backend>& agent,
                           std::shared_ptr<parameters<typename Backend::real>> store, const level_maker& make,
                           const std::string& level, int episodes, std::uint64_t seed, int batch = 50,
                           const std::function<bool()>& stop = {}, processes* others = nullptr) {
    require(episodes > 0, "evaluation: expected at least one episode, got ", episodes);
    require(batch > 0, "evaluation: expected at least one environment, got ", batch);
    const int rows = std::min(batch, episodes);
    const shard_range here = others ? shards_of(others->rank(), others->count(), rows) : shard_range{0, rows, rows};
    const int first = here.first, mine = here.count();
    const std::uint64_t own = evaluation_seed(seed, level);
    std::vector<std::vector<double>> rewards(static_cast<std::size_t>(mine));
    const auto quota = [&](int row) {
        return static_cast<std::size_t>(episodes / rows + (first + row < episodes % rows));
    };
    std::size_t left = 0;
    for (int row = 0; row < mine; ++row) left += quota(row);
    goal_clock clock(mine);
    bool stopped = false;
    if (mine > 0) {
        actor<Backend> player(agent, std::move(store), make(level, mine, own, first), own, first);
        const bool seeks_goal = player.environment().info().seeks_goal;
        while (left > 0 && !(stopped = stop && stop())) {
            player.step();
            if (seeks_goal)
                for (int row = 0; row < mine; ++row) {
                    const auto r = static_cast<std::size_t>(row);
                    if (rewards[r].size() < quota(row)) clock.step(row, player.reward()[r] > 0, player.done()[r] != 0);
                }
            auto next = player.finished().begin();
            for (int row = 0; row < mine; ++row) {
                const auto r = static_cast<std::size_t>(row);
                if (!player.done()[r]) continue;
                const double reward = *next++;
                if (rewards[r].size() == quota(row)) continue;
                rewards[r].push_back(reward);
                --left;
            }
            player.finished().clear();
        }
    }
    if (any_of_them(others, stopped)) return {level, 0, 0, 0};
    rewards = rows_of_all(others, rewards);
    const auto counted = rows_of_all(others, clock.counted());
    goal_clock together(0);
    for (std::size_t i = 0; i < counted.size(); i += 2) together.add(counted[i], counted[i + 1]);
    level_score score{level, episodes, 0, 0, together.times()};
    for (const auto& row : rewards)
        for (const double r : row) score.mean += r / episodes;
    double squares = 0;
    for (const auto& row : rewards)
        for (const double r : row) squares += (r - score.mean) * (r - score.mean);
    if (episodes > 1) score.standard_error = std::sqrt(squares / (episodes - 1) / episodes);
    return score;
}

}  // namespace engram
