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
    {"spot_diff", "train", 0.3895, 0.0109066, 1, 0, 2000},
    {"spot_diff", "holdout_interpolate", 0.3735, 0.0108193, 1, 0, 2000},
    {"spot_diff", "holdout_extrapolate", 0.374, 0.0108222, 1, 0, 2000},
    {"spot_diff_passive", "train", 0.3145, 0.010385, 1, 0, 2000},
    {"spot_diff_passive", "holdout_interpolate", 0.3105, 0.0103488, 1, 0, 2000},
    {"spot_diff_passive", "holdout_extrapolate", 0.2995, 0.0102446, 1, 0, 2000},
    {"spot_diff_multi", "train", 0.076, 0.00592702, 1, 0, 2000},
    {"spot_diff_multi", "holdout_interpolate", 0.065, 0.00551386, 1, 0, 2000},
    {"spot_diff_multi", "holdout_extrapolate", 0.0475, 0.00475744, 1, 0, 2000},
    {"spot_diff_motion", "train", 0.287, 0.0101176, 1, 0, 2000},
    {"spot_diff_motion", "holdout_interpolate", 0.309, 0.010335, 1, 0, 2000},
    {"spot_diff_motion", "holdout_extrapolate", 0.2985, 0.0102348, 1, 0, 2000},
    {"visible_goal_with_buildings", "train", 2.2995, 0.03897, 54.3855, 0.203647, 2000},
    {"visible_goal_with_buildings", "holdout_interpolate", 2.16, 0.0398057, 52.286, 0.133321, 2000},
    {"visible_goal_with_buildings", "holdout_extrapolate", 1.113, 0.0263242, 40.4055, 0.151536, 2000},
    {"invisible_goal_with_buildings", "train", 2.2995, 0.03897, 54.3855, 0.203647, 2000},
    {"invisible_goal_with_buildings", "holdout_interpolate", 2.16, 0.0398057, 52.286, 0.133321, 2000},
    {"invisible_goal_with_buildings", "holdout_extrapolate", 1.113, 0.0263242, 40.4055, 0.151536, 2000},
    {"invisible_goal_empty_arena", "train", 3.4705, 0.0595259, 63.966, 0.37474, 2000},
    {"invisible_goal_empty_arena", "holdout_interpolate", 2.6495, 0.0413785, 57.108, 0.184132, 2000},
    {"invisible_goal_empty_arena", "holdout_extrapolate", 1.2885, 0.0281874, 41.8025, 0.148739, 2000},
    {"visible_goal_procedural_maze", "train", 17.65, 0.767778, 380.93, 7.24104, 2000},
    {"visible_goal_procedural_maze", "holdout_interpolate", 8.735, 0.315237, 318.295, 3.34511, 2000},
    {"visible_goal_procedural_maze", "holdout_extrapolate", 3.05, 0.144946, 163.835, 1.25286, 2000},
    {"transitive_inference", "train", 5.0575, 0.0631553, 9.988, 0.0223647, 2000},
    {"transitive_inference", "holdout_interpolate", 4.9995, 0.0612056, 10, 0, 2000},
    {"transitive_inference", "holdout_extrapolate", 6.057, 0.0634026, 12, 0, 2000},
}};
// clang-format on

}  // namespace engram
