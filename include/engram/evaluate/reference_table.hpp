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
    {"what_then_where", "train", 12.5385, 0.0682941, 50, 0, 2000},
    {"what_then_where", "holdout_interpolate", 12.5095, 0.067659, 50, 0, 2000},
    {"what_then_where", "holdout_extrapolate", 12.3935, 0.0680415, 50, 0, 2000},
    {"spot_diff", "train", 0.3265, 0.0104883, 1, 0, 2000},
    {"spot_diff", "holdout_interpolate", 0.331, 0.010525, 1, 0, 2000},
    {"spot_diff", "holdout_extrapolate", 0.3255, 0.01048, 1, 0, 2000},
    {"spot_diff_passive", "train", 0.3145, 0.010385, 1, 0, 2000},
    {"spot_diff_passive", "holdout_interpolate", 0.3105, 0.0103488, 1, 0, 2000},
    {"spot_diff_passive", "holdout_extrapolate", 0.2995, 0.0102446, 1, 0, 2000},
    {"spot_diff_multi", "train", 0.389, 0.0109041, 1, 0, 2000},
    {"spot_diff_multi", "holdout_interpolate", 0.3365, 0.0105683, 1, 0, 2000},
    {"spot_diff_multi", "holdout_extrapolate", 0.1925, 0.00881821, 1, 0, 2000},
    {"spot_diff_motion", "train", 0.476, 0.0111702, 1, 0, 2000},
    {"spot_diff_motion", "holdout_interpolate", 0.4995, 0.0111831, 1, 0, 2000},
    {"spot_diff_motion", "holdout_extrapolate", 0.497, 0.0111829, 1, 0, 2000},
    {"visible_goal_with_buildings", "train", 2.8545, 0.0516139, 45.77, 0.192212, 2000},
    {"visible_goal_with_buildings", "holdout_interpolate", 2.403, 0.0387885, 43.337, 0.106857, 2000},
    {"visible_goal_with_buildings", "holdout_extrapolate", 1.203, 0.0264999, 33.708, 0.0989761, 2000},
    {"invisible_goal_with_buildings", "train", 2.8545, 0.0516139, 45.77, 0.192212, 2000},
    {"invisible_goal_with_buildings", "holdout_interpolate", 2.403, 0.0387885, 43.337, 0.106857, 2000},
    {"invisible_goal_with_buildings", "holdout_extrapolate", 1.203, 0.0264999, 33.708, 0.0989761, 2000},
    {"invisible_goal_empty_arena", "train", 3.4545, 0.0604466, 47.6585, 0.209648, 2000},
    {"invisible_goal_empty_arena", "holdout_interpolate", 2.559, 0.0393323, 44.2215, 0.111537, 2000},
    {"invisible_goal_empty_arena", "holdout_extrapolate", 1.2695, 0.0275284, 34.4125, 0.103772, 2000},
    {"visible_goal_procedural_maze", "train", 1.8825, 0.0494375, 42.6375, 0.32858, 2000},
    {"visible_goal_procedural_maze", "holdout_interpolate", 1.4905, 0.0352573, 40.048, 0.240356, 2000},
    {"visible_goal_procedural_maze", "holdout_extrapolate", 0.808, 0.022546, 31.1135, 0.133224, 2000},
    {"transitive_inference", "train", 7.495, 0.0700031, 14.968, 0.0447268, 2000},
    {"transitive_inference", "holdout_interpolate", 7.4055, 0.0658992, 15, 0, 2000},
    {"transitive_inference", "holdout_extrapolate", 9.455, 0.0683324, 19, 0, 2000},
}};
// clang-format on

}  // namespace engram
