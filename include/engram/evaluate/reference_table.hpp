#pragma once
// SPDX-License-Identifier: MIT

// What random actions and the oracle earn at small fidelity. Generated:
// engram-report --measure-references 2000 > include/engram/evaluate/reference_table.hpp

#include <array>

#include <engram/evaluate/reference_row.hpp>

namespace engram {

// clang-format off
inline constexpr std::array<reference_row, 12> reference_table{{
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
}};
// clang-format on

}  // namespace engram
