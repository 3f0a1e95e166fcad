#pragma once
// SPDX-License-Identifier: MIT

// What random actions and the oracle earn at small fidelity. Generated:
// engram-report --measure-references 2000 > include/engram/evaluate/reference_table.hpp

#include <array>

#include <engram/evaluate/reference_row.hpp>

namespace engram {

// clang-format off
inline constexpr std::array<reference_row, 39> reference_table{{
    {"arbitrary_visuomotor_mapping", "train", 12.582, 0.0694049, 50, 0, 2000},
    {"arbitrary_visuomotor_mapping", "holdout_interpolate", 10.0395, 0.0599814, 40, 0, 2000},
    {"arbitrary_visuomotor_mapping", "holdout_extrapolate", 18.667, 0.0826013, 75, 0, 2000},
    {"continuous_recognition", "train", 25.005, 0.0815402, 50, 0, 2000},
    {"continuous_recognition", "holdout_interpolate", 19.993, 0.0688792, 40, 0, 2000},
    {"continuous_recognition", "holdout_extrapolate", 37.4715, 0.0972848, 75, 0, 2000},
    {"change_detection", "train", 25.047, 0.0797752, 50, 0, 2000},
    {"change_detection", "holdout_interpolate", 25.209, 0.0790208, 50, 0, 2000},
    {"change_detection", "holdout_extrapolate", 24.8915, 0.0797311, 50, 0, 2000},
    {"what_then_where", "train", 12.546, 0.0681635, 50, 0, 2000},
    {"what_then_where", "holdout_interpolate", 12.527, 0.0687641, 50, 0, 2000},
    {"what_then_where", "holdout_extrapolate", 12.51, 0.0684967, 50, 0, 2000},
    {"spot_diff", "train", 0.1115, 0.00703979, 1, 0, 2000},
    {"spot_diff", "holdout_interpolate", 0.114, 0.00710825, 1, 0, 2000},
    {"spot_diff", "holdout_extrapolate", 0.0705, 0.00572549, 1, 0, 2000},
    {"spot_diff_passive", "train", 0.0745, 0.005873, 1, 0, 2000},
    {"spot_diff_passive", "holdout_interpolate", 0.0805, 0.0060851, 1, 0, 2000},
    {"spot_diff_passive", "holdout_extrapolate", 0.032, 0.00393646, 1, 0, 2000},
    {"spot_diff_multi", "train", 0.0935, 0.00651153, 1, 0, 2000},
    {"spot_diff_multi", "holdout_interpolate", 0.0785, 0.00601556, 1, 0, 2000},
    {"spot_diff_multi", "holdout_extrapolate", 0.048, 0.00478115, 1, 0, 2000},
    {"spot_diff_motion", "train", 0.174, 0.00847927, 1, 0, 2000},
    {"spot_diff_motion", "holdout_interpolate", 0.1585, 0.00816837, 1, 0, 2000},
    {"spot_diff_motion", "holdout_extrapolate", 0.126, 0.00742223, 1, 0, 2000},
    {"visible_goal_with_buildings", "train", 0.473, 0.0170082, 25.133, 0.227149, 2000},
    {"visible_goal_with_buildings", "holdout_interpolate", 0.37, 0.0141828, 21.232, 0.0881333, 2000},
    {"visible_goal_with_buildings", "holdout_extrapolate", 0.135, 0.00830193, 12.792, 0.0592167, 2000},
    {"invisible_goal_with_buildings", "train", 0.473, 0.0170082, 25.133, 0.227149, 2000},
    {"invisible_goal_with_buildings", "holdout_interpolate", 0.37, 0.0141828, 21.232, 0.0881333, 2000},
    {"invisible_goal_with_buildings", "holdout_extrapolate", 0.135, 0.00830193, 12.792, 0.0592167, 2000},
    {"invisible_goal_empty_arena", "train", 0.4725, 0.0163785, 26.9245, 0.24939, 2000},
    {"invisible_goal_empty_arena", "holdout_interpolate", 0.351, 0.01336, 23.3265, 0.0961513, 2000},
    {"invisible_goal_empty_arena", "holdout_extrapolate", 0.1515, 0.00862038, 13.2885, 0.0629215, 2000},
    {"visible_goal_procedural_maze", "train", 3.16, 0.149728, 164.445, 2.03182, 2000},
    {"visible_goal_procedural_maze", "holdout_interpolate", 2.195, 0.113015, 150.91, 1.09934, 2000},
    {"visible_goal_procedural_maze", "holdout_extrapolate", 0.75, 0.064582, 62.25, 0.497838, 2000},
    {"transitive_inference", "train", 5.7935, 0.067355, 9.961, 0.0223493, 2000},
    {"transitive_inference", "holdout_interpolate", 6.0175, 0.0673488, 10, 0, 2000},
    {"transitive_inference", "holdout_extrapolate", 6.243, 0.071425, 12, 0, 2000},
}};
// clang-format on

}  // namespace engram
