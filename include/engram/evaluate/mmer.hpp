#pragma once
// SPDX-License-Identifier: MIT

// MMER, the score of POPGym's tables: the maximum over training iterations of the mean reward of the training episodes
// that ended in the iteration. An iteration has 65,536 steps. Where fewer than a hundred episodes ended in it, the most
// recent older ones fill them up, as in the published runs.
//
// Told from the rows of metrics.csv, of which a program that acts writes one at least every 65,536 steps or every
// update: an iteration ends with the first row that completes it, and an older row that is not needed whole counts as
// far as it is needed. The rest behind the last whole iteration counts only where there is no other. A maximum of many
// means is higher than what an agent would earn again: it goes beside other MMERs and nothing else.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <engram/evaluate/run_folder.hpp>

namespace engram {

inline constexpr double mmer_iteration = 65'536, mmer_episodes = 100;

/// None where no episode has ended.
inline std::optional<double> mmer(const metrics_columns& metrics) {
    const auto *steps = metrics.steps(), *rewards = metrics.find("reward"), *counts = metrics.find("episodes");
    if (!steps || !rewards || !counts) return {};
    struct part {
        double episodes, reward;
    };
    std::vector<part> parts;
    std::optional<double> best;
    double step = 0, counted = 0, begun = 0;
    std::size_t first = 0;  // of the iteration's parts
    const auto finish = [&] {
        double episodes = 0, sum = 0;
        const auto add = [&](const part& p, double count) { episodes += count, sum += count * p.reward; };
        for (std::size_t i = first; i < parts.size(); ++i) add(parts[i], parts[i].episodes);
        for (std::size_t i = first; i > 0 && episodes < mmer_episodes; --i)
            add(parts[i - 1], std::min(parts[i - 1].episodes, mmer_episodes - episodes));
        first = parts.size();
        if (episodes > 0) best = std::max(best.value_or(-std::numeric_limits<double>::infinity()), sum / episodes);
    };
    for (std::size_t i = 0; i < steps->size(); ++i) {
        if (!std::isfinite((*steps)[i]) || (*steps)[i] <= step) continue;  // what a resumed run repeated
        step = (*steps)[i];
        if (std::isfinite((*counts)[i]) && std::isfinite((*rewards)[i]) && (*counts)[i] > counted) {
            parts.push_back({(*counts)[i] - counted, (*rewards)[i]});
            counted = (*counts)[i];
        }
        if (step - begun < mmer_iteration) continue;
        begun = step;
        finish();
    }
    if (!best) finish();
    return best;
}

}  // namespace engram
