#pragma once
// SPDX-License-Identifier: MIT

// The thirteen tasks of the Memory Tasks Suite in the order of the paper's Tables 4 to 16, for tables and maps: their
// family, and how strongly training curves are smoothed before a score is read off them (facts 1.11, 2.1).

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <engram/version.hpp>

namespace engram {

struct suite_task {
    const char* name;   // in the registry, and below
    const char* also;   // another name of the same task
    const char* title;  // in a column's head
    const char* code;   // where there is little room
    const char* family;
    double alpha;  // of the exponential average over training episodes
};

// clang-format off
inline constexpr std::array<suite_task, 13> suite_tasks{{
    {"arbitrary_visuomotor_mapping",  "",                       "Visuomotor Mapping",     "AVM",   "PsychLab",            0.05},
    {"continuous_recognition",        "",                       "Continuous Recognition", "CR",    "PsychLab",            0.05},
    {"change_detection",              "",                       "Change Detection",       "CD",    "PsychLab",            0.05},
    {"what_then_where",               "",                       "What Then Where",        "WTW",   "PsychLab",            0.05},
    {"spot_diff",                     "spot_diff_basic",        "Basic",                  "SD",    "Spot the Difference", 0.001},
    {"spot_diff_passive",             "",                       "Passive",                "SD-P",  "Spot the Difference", 0.001},
    {"spot_diff_multi",               "spot_diff_multi_object", "Multi-Object",           "SD-MO", "Spot the Difference", 0.001},
    {"spot_diff_motion",              "",                       "Motion",                 "SD-M",  "Spot the Difference", 0.001},
    {"visible_goal_with_buildings",   "",                       "Visible, Buildings",     "VGB",   "Goal Navigation",     0.001},
    {"invisible_goal_with_buildings", "",                       "Invisible, Buildings",   "IGB",   "Goal Navigation",     0.001},
    {"invisible_goal_empty_arena",    "",                       "Invisible, Empty Arena", "IGE",   "Goal Navigation",     0.001},
    {"visible_goal_procedural_maze",  "explore_goal_locations", "Procedural Maze",        "MAZE",  "Goal Navigation",     0.05},
    {"transitive_inference",          "",                       "Transitive Inference",   "TI",    "Inference",           0.001},
}};

/// The levels by which the paper judges.
inline constexpr std::array<const char*, 3> suite_scores{"train", "holdout_interpolate", "holdout_extrapolate"};
// clang-format on

/// Position of a task in the suite; none of a task that is not in it.
inline std::optional<std::size_t> suite_index(std::string_view task) {
    for (std::size_t i = 0; i < suite_tasks.size(); ++i)
        if (suite_tasks[i].name == task || (*suite_tasks[i].also && suite_tasks[i].also == task)) return i;
    return {};
}

}  // namespace engram
