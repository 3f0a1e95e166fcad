#pragma once
// SPDX-License-Identifier: MIT

// What policies that do not learn earn on a level: uniformly random actions, and the oracle, which reads the whole
// state. They are the ends of the scale where no human was measured (reference_scores.hpp). Where the oracle knows what
// nobody can, the explorer stands between them (task/explorer.hpp), and who explores but forgets it all at each goal:
// from there to the explorer is what memory is worth.
//
//   mean = sum_i R_i / n,  stderr = sqrt(sum_i (R_i - mean)^2 / (n - 1) / n),  R_i the reward of episode i
//
// As in `evaluate_level`, every environment plays a number of episodes that is fixed beforehand. Nothing is drawn on
// the screen, so a measurement costs the rules alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/evaluate/levels.hpp>
#include <engram/task/environment.hpp>
#include <engram/task/explorer.hpp>

namespace engram {

enum class scripted_policy { random, oracle, explorer, forgetful };

/// The policies by the names that `--policy` takes.
inline constexpr std::array<std::pair<std::string_view, scripted_policy>, 4> scripted_policies{
    {{"oracle", scripted_policy::oracle},
     {"explorer", scripted_policy::explorer},
     {"forgetful", scripted_policy::forgetful},
     {"random", scripted_policy::random}}};

/// Whether it is played by `explore`.
constexpr bool explores(scripted_policy policy) {
    return policy == scripted_policy::explorer || policy == scripted_policy::forgetful;
}

/// Throws the sentence where a task has nobody who plays so.
inline void check_played(scripted_policy policy, const task_info& info) {
    require(policy != scripted_policy::oracle || info.has_oracle, info.name,
            ": this environment has no oracle (it would give `int oracle() const`); give --policy random");
    require(!explores(policy) || info.has_explorer, info.name,
            ": nobody explores this environment, or not at this fidelity; give --policy oracle");
}

/// One row's player through its episodes.
struct scripted_player {
    scripted_policy policy;
    philox random;
    explored all{};      // of the episode so far
    bool found = false;  // the goal, with the step before

    outcome step(batch_environment& environment, int row) {
        const outcome got = environment.step(row, act(environment, row));
        // Who has found the goal stands there for a step and is then put elsewhere.
        if (got.done || (found && policy == scripted_policy::forgetful)) all = {};
        found = !got.done && got.reward > 0;
        return got;
    }

private:
    int act(const batch_environment& environment, int row) {
        return policy == scripted_policy::oracle ? environment.oracle(row)
               : explores(policy)                ? environment.explore(row, all)
                                                 : random.below(environment.info().actions);
    }
};

/// `episodes` episodes of the level that `make` makes; the same seed gives the same episodes to all policies.
inline level_score play_scripted(const level_maker& make, const std::string& level, scripted_policy policy,
                                 int episodes, std::uint64_t seed, int batch = 50) {
    require(episodes > 0, "scripted play: expected at least one episode, got ", episodes);
    require(batch > 0, "scripted play: expected at least one environment, got ", batch);
    const int rows = std::min(batch, episodes);
    const std::uint64_t own = evaluation_seed(seed, level);
    const auto environment = make(level, rows, own, 0);
    check_played(policy, environment->info());
    level_score score{level, episodes, 0, 0};
    std::vector<double> rewards;
    for (int row = 0; row < rows; ++row) {
        scripted_player player{policy, philox(own, stream_id("scripted", static_cast<std::uint32_t>(row)))};
        for (int left = episodes / rows + (row < episodes % rows); left > 0; --left) {
            double reward = 0;
            for (bool done = false; !done;) {
                const outcome out = player.step(*environment, row);
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
