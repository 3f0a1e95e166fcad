#pragma once
// SPDX-License-Identifier: MIT

// What policies that do not learn earn on a level: uniformly random actions, and the oracle, which reads the whole
// state. They are the ends of the scale where no human was measured (reference_scores.hpp).
//
//   mean = sum_i R_i / n,  stderr = sqrt(sum_i (R_i - mean)^2 / (n - 1) / n),  R_i the reward of episode i
//
// As in `evaluate_level`, every environment plays a number of episodes that is fixed beforehand. Nothing is drawn on
// the screen, so a measurement costs the rules alone.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/evaluate/levels.hpp>
#include <engram/task/environment.hpp>

namespace engram {

enum class scripted_policy { random, oracle };

/// `episodes` episodes of the level that `make` makes; the same seed gives the same episodes to both policies.
inline level_score play_scripted(const level_maker& make, const std::string& level, scripted_policy policy,
                                 int episodes, std::uint64_t seed, int batch = 50) {
    require(episodes > 0, "scripted play: expected at least one episode, got ", episodes);
    require(batch > 0, "scripted play: expected at least one environment, got ", batch);
    const int rows = std::min(batch, episodes);
    const std::uint64_t own = evaluation_seed(seed, level);
    const auto environment = make(level, rows, own, 0);
    const int actions = environment->info().actions;
    require(policy != scripted_policy::oracle || environment->info().has_oracle, environment->info().name,
            ": this environment has no oracle (it would give `int oracle() const`)");
    level_score score{level, episodes, 0, 0};
    std::vector<double> rewards;
    for (int row = 0; row < rows; ++row) {
        philox random(own, stream_id("scripted", static_cast<std::uint32_t>(row)));
        for (int left = episodes / rows + (row < episodes % rows); left > 0; --left) {
            double reward = 0;
            for (bool done = false; !done;) {
                const int action = policy == scripted_policy::oracle ? environment->oracle(row) : random.below(actions);
                const outcome out = environment->step(row, action);
                reward += static_cast<double>(out.reward);
                done = out.done;
            }
            rewards.push_back(reward);
        }
    }
    for (const double r : rewards) score.mean += r;
    score.mean /= episodes;
    double squares = 0;
    for (const double r : rewards) squares += (r - score.mean) * (r - score.mean);
    if (episodes > 1) score.standard_error = std::sqrt(squares / (episodes - 1) / episodes);
    return score;
}

}  // namespace engram
