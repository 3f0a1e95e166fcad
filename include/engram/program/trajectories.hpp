#pragma once
// SPDX-License-Identifier: MIT

// Whole episodes as arrays, for whoever analyses behaviour elsewhere. Of an episode of T steps:
//
//     <folder>/episode-0000/observations.npy   float32 [T, height, width, channels], what was seen before the action
//                           actions.npy        int32   [T]
//                           rewards.npy        float32 [T], what the action earned
//                           resets.npy         uint8   [T], 1 where an episode begins: at its first step alone
//     <folder>/episodes.csv                    episode,seed,steps,reward
//
// Arrays of several folders, one behind the other, are one trajectory with its resets.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <engram/io/npy.hpp>
#include <engram/program/episode.hpp>

namespace engram {

/// The three arrays that every look at an episode has.
inline void write_steps(const std::string& folder, const observation_shape& shape,
                        const std::vector<recorded_step>& steps) {
    std::vector<float> observations, rewards;
    std::vector<std::int32_t> actions;
    for (const auto& step : steps) {
        observations.insert(observations.end(), step.observation.begin(), step.observation.end());
        actions.push_back(step.action);
        rewards.push_back(step.reward);
    }
    const int T = static_cast<int>(steps.size());
    write_npy<float>(folder + "/observations.npy", observations, {T, shape.height, shape.width, shape.channels});
    write_npy<std::int32_t>(folder + "/actions.npy", actions, {T});
    write_npy<float>(folder + "/rewards.npy", rewards, {T});
}

/// Plays `episodes` episodes of a level, with the seeds `seed`, `seed + 1` and so on, and writes them; false when
/// `stop` ended it early, and then the table holds those that are whole.
bool write_trajectories(const prepared_run& run, const std::string& level, int episodes, std::uint64_t seed,
                        const std::string& folder, const std::function<bool()>& stop);

}  // namespace engram
