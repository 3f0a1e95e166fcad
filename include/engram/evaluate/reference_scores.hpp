#pragma once
// SPDX-License-Identifier: MIT

// What counts as 0 and as 100 on a level.
//
//   paper   random actions and humans, as the paper measured them (published_scores.hpp)
//   small   random actions and the scripted oracle, as measured with engram's own environments (reference_table.hpp):
//           panels take an action a trial there and episodes are shorter, so that neither the paper's Random nor its
//           Human applies (ours)

#include <optional>
#include <string>
#include <string_view>

#include <engram/evaluate/human_score.hpp>
#include <engram/evaluate/published_scores.hpp>
#include <engram/evaluate/reference_table.hpp>

namespace engram {

/// None where the task is not in the suite, the fidelity is unknown, or nothing was measured.
inline std::optional<score_scale> scale_of(std::string_view task, std::size_t level, std::string_view fidelity) {
    const auto at = suite_index(task);
    if (!at || level >= suite_scores.size()) return {};
    if (fidelity == "paper")
        return score_scale{published_tables[*at].random[level].mean, published_tables[*at].human[level].mean};
    if (fidelity != "small") return {};
    for (const auto& row : reference_table)
        if (suite_index(row.task) == at && std::string_view(row.level) == suite_scores[level] &&
            row.oracle > row.random)
            return score_scale{row.random, row.oracle};
    return {};
}

/// The ends of the scale in words.
inline std::string scale_in_words(std::string_view fidelity) {
    return fidelity == "paper" ? "0 is acting at random and 100 a human, as the paper measured them"
                               : "0 is acting at random and 100 a player who reads the whole state";
}

}  // namespace engram
