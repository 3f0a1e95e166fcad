#pragma once
// SPDX-License-Identifier: MIT

// What the presets give each task of the Memory Tasks Suite.
//
//   paper   Table 18 of the source (facts 1.9): controller width, costs, batch, unroll, discount, optimiser, rate, CPC;
//           memory slots by Table 17 (facts 1.8: 2048 for the tasks of the Unity engine); the REC image weight where
//           facts 1.7 names one
//   small   ours: what was found to learn on two cores (docs/results/suite.md)

#include <array>
#include <string>
#include <vector>

#include <engram/version.hpp>

namespace engram {

struct preset_value {
    std::string setting, value;
    std::string with = {};  // only for agents that have this setting too
    std::string task = {};  // only for this task
};

/// One line of Table 18.
struct published_row {
    const char *task, *hidden, *baseline_cost, *entropy_cost, *batch, *unroll, *discount, *optimiser, *rate, *cpc_steps,
        *cpc_weight, *slots;
};

inline constexpr std::array<published_row, 13> published_rows{{
    {"arbitrary_visuomotor_mapping", "512", "0.5", "0.0052", "16", "50", "0.98", "adam", "0.00001", "10", "10", "1024"},
    {"continuous_recognition", "1024", "0.5", "0.01", "16", "50", "0.98", "adam", "0.00001", "10", "10", "1024"},
    {"change_detection", "512", "0.5", "0.01", "16", "50", "0.98", "adam", "0.00001", "10", "10", "1024"},
    {"what_then_where", "1024", "2", "0.01", "32", "100", "0.98", "adam", "0.00001", "10", "30", "1024"},
    {"spot_diff", "1024", "0.5", "0.003", "16", "200", "0.99", "rmsprop", "0.0001", "50", "20", "2048"},
    {"spot_diff_passive", "1024", "0.5", "0.003", "16", "200", "0.999", "rmsprop", "0.0001", "50", "20", "2048"},
    {"spot_diff_multi", "1024", "0.5", "0.003", "16", "200", "0.99", "rmsprop", "0.0001", "50", "20", "2048"},
    {"spot_diff_motion", "1024", "0.5", "0.003", "16", "200", "0.99", "rmsprop", "0.0001", "50", "20", "2048"},
    {"visible_goal_procedural_maze", "512", "0.5", "0.0052", "16", "50", "0.98", "adam", "0.00001", "10", "5", "1024"},
    {"visible_goal_with_buildings", "1024", "0.5", "0.003", "16", "200", "0.99", "rmsprop", "0.0001", "50", "20",
     "2048"},
    {"invisible_goal_with_buildings", "1024", "0.5", "0.003", "16", "200", "0.99", "rmsprop", "0.0001", "50", "20",
     "2048"},
    {"invisible_goal_empty_arena", "1024", "0.5", "0.003", "16", "200", "0.99", "rmsprop", "0.0001", "50", "20",
     "2048"},
    {"transitive_inference", "1024", "0.5", "0.003", "16", "200", "0.98", "adam", "0.0001", "50", "20", "2048"},
}};

inline std::vector<preset_value> paper_suite_values() {
    std::vector<preset_value> all;
    for (const auto& row : published_rows) {
        const std::string task = row.task;
        all.insert(all.end(), {{"controller.hidden", row.hidden, "", task},
                               {"learner.baseline_cost", row.baseline_cost, "", task},
                               {"learner.entropy_cost", row.entropy_cost, "", task},
                               {"rollout.environments", row.batch, "", task},
                               {"rollout.unroll", row.unroll, "", task},
                               {"learner.discount", row.discount, "", task},
                               {"optimiser.kind", row.optimiser, "", task},
                               {"optimiser.learning_rate", row.rate, "", task},
                               {"auxiliary.steps", row.cpc_steps, "", task},
                               {"auxiliary.weight", row.cpc_weight, "auxiliary.steps", task},
                               {"memory.slots", row.slots, "memory.neighbours", task}});
        // Table 17's epsilon of RMSProp; that of Adam is the preset's own.
        if (std::string(row.optimiser) == "rmsprop") all.push_back({"optimiser.epsilon", "0.1", "", task});
    }
    all.insert(all.end(), {{"auxiliary.image", "30", "", "arbitrary_visuomotor_mapping"},
                           {"auxiliary.image", "1.5", "", "continuous_recognition"},
                           {"auxiliary.image", "3", "", "change_detection"},
                           {"task.scheme", "staircase", "", "arbitrary_visuomotor_mapping"}});
    return all;
}

/// One task at the small fidelity. Where a trial's answer changes nothing later, the discount is 0. All of them without
/// the mean colour of an image: with it an LSTM stays at chance on change detection (docs/results/suite.md).
struct small_row {
    const char *task, *discount, *unroll, *entropy_cost, *rate;
};

inline constexpr std::array<small_row, 11> small_rows{{
    {"change_detection", "0", "20", "0.01", "0.001"},
    {"what_then_where", "0", "20", "0.01", "0.001"},
    {"spot_diff", "0.98", "40", "0.01", "0.001"},
    {"spot_diff_passive", "0.98", "40", "0.01", "0.001"},
    {"spot_diff_multi", "0.98", "40", "0.01", "0.001"},
    {"spot_diff_motion", "0.98", "40", "0.01", "0.001"},
    {"visible_goal_procedural_maze", "0.98", "50", "0.01", "0.001"},
    {"visible_goal_with_buildings", "0.98", "50", "0.01", "0.001"},
    {"invisible_goal_with_buildings", "0.98", "50", "0.01", "0.001"},
    {"invisible_goal_empty_arena", "0.98", "50", "0.01", "0.001"},
    {"transitive_inference", "0.98", "100", "0.003", "0.001"},
}};

inline std::vector<preset_value> small_suite_values() {
    std::vector<preset_value> all;
    for (const auto& row : small_rows)
        all.insert(all.end(), {{"learner.discount", row.discount, "", row.task},
                               {"rollout.unroll", row.unroll, "", row.task},
                               {"learner.entropy_cost", row.entropy_cost, "", row.task},
                               {"optimiser.learning_rate", row.rate, "", row.task},
                               {"encoder.subtract_mean", "true", "", row.task}});
    return all;
}

}  // namespace engram
