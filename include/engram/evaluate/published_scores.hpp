#pragma once
// SPDX-License-Identifier: MIT

// What the paper of MRA reports: Tables 4 to 16, episode rewards with their standard errors over three seeds of nine
// agents, of random actions and of humans, on the three levels of each task (facts 2.7).
//
//     score = 100 (R - Random) / (Human - Random), in % of the way from random actions to a human
//
// Not all of it is to be trusted, and `published_doubt` says so entry by entry:
//   M28   the paper's own averages (its Table 3) do not follow from its Tables 4 to 16; they are quoted, never compared
//   M29   FF+MEM+REC on Continuous Recognition and on Transitive Inference
// And one choice is ours (M42): of Procedural Maze and Transitive Inference, Random and Human are given for the small
// and for the large train level, the agents for train; `train` of these two rows is the mean of both.

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <engram/evaluate/suite_tasks.hpp>

namespace engram {

struct published_value {
    double mean = 0, standard_error = 0;
};

/// The mean of two independent values.
inline published_value mean_of(published_value a, published_value b) {
    return {(a.mean + b.mean) / 2, std::hypot(a.standard_error, b.standard_error) / 2};
}

/// On the levels of `suite_scores`.
using published_levels = std::array<published_value, 3>;

struct published_agent {
    const char* ablation;
    published_value train, interpolate, extrapolate;
    published_levels levels() const { return {train, interpolate, extrapolate}; }
};

struct published_table {
    const char* task;
    int number;  // of the paper's table
    std::array<published_agent, 9> agents;
    published_levels random, human;

    const published_agent* find(std::string_view ablation) const {
        for (const auto& agent : agents)
            if (agent.ablation == ablation) return &agent;
        return nullptr;
    }
};

// clang-format off
inline const std::array<published_table, 13> published_tables{{
    {"arbitrary_visuomotor_mapping", 4,
     {{
         {"ff", {25.90, 0.32}, {19.37, 0.43}, {35.74, 0.37}},
         {"ff_mem", {43.14, 6.12}, {33.34, 5.92}, {60.16, 13.56}},
         {"ff_mem_cpc", {49.98, 0.00}, {38.86, 0.32}, {73.66, 0.63}},
         {"ff_mem_rec", {50.00, 0.00}, {39.76, 0.14}, {73.17, 0.46}},
         {"lstm", {33.35, 0.24}, {27.20, 0.25}, {32.34, 1.20}},
         {"lstm_cpc", {30.75, 0.21}, {25.64, 0.26}, {35.50, 1.09}},
         {"lstm_mem", {50.00, 0.00}, {39.99, 0.01}, {72.32, 0.98}},
         {"lstm_mem_rec", {50.00, 0.00}, {39.63, 0.36}, {73.91, 0.28}},
         {"mra", {50.00, 0.00}, {39.99, 0.00}, {74.32, 0.13}}}},
     {{{0.06, 0.00}, {0.06, 0.00}, {0.06, 0.00}}},
     {{{50.00, 0.00}, {40.00, 0.00}, {75.00, 0.00}}}},
    {"continuous_recognition", 5,
     {{
         {"ff", {26.90, 0.28}, {20.62, 0.28}, {38.45, 0.34}},
         {"ff_mem", {26.51, 0.06}, {20.54, 0.49}, {37.96, 0.51}},
         {"ff_mem_cpc", {49.60, 0.01}, {39.51, 0.15}, {71.40, 0.15}},
         {"ff_mem_rec", {49.78, 0.08}, {39.90, 0.03}, {65.57, 0.56}},
         {"lstm", {27.11, 0.29}, {20.92, 0.11}, {37.28, 0.18}},
         {"lstm_cpc", {26.25, 0.26}, {20.11, 0.55}, {37.46, 0.36}},
         {"lstm_mem", {42.18, 6.93}, {39.68, 0.06}, {56.59, 9.84}},
         {"lstm_mem_rec", {49.78, 0.08}, {39.90, 0.03}, {65.57, 0.56}},
         {"mra", {49.92, 0.03}, {39.83, 0.00}, {72.52, 0.25}}}},
     {{{0.04, 0.00}, {0.05, 0.00}, {0.05, 0.00}}},
     {{{49.40, 0.24}, {39.40, 0.40}, {74.20, 0.58}}}},
    {"change_detection", 6,
     {{
         {"ff", {26.40, 0.08}, {24.17, 0.10}, {24.73, 0.48}},
         {"ff_mem", {25.76, 0.16}, {24.95, 0.12}, {24.97, 0.36}},
         {"ff_mem_cpc", {44.76, 0.05}, {36.07, 0.46}, {36.95, 0.40}},
         {"ff_mem_rec", {25.82, 0.22}, {23.99, 0.29}, {24.89, 0.23}},
         {"lstm", {26.39, 0.21}, {25.24, 0.43}, {25.37, 0.22}},
         {"lstm_cpc", {48.37, 0.39}, {41.43, 0.12}, {42.72, 0.11}},
         {"lstm_mem", {26.21, 0.10}, {24.77, 0.28}, {24.63, 0.52}},
         {"lstm_mem_rec", {39.12, 5.88}, {42.12, 1.97}, {37.31, 6.38}},
         {"mra", {49.14, 0.24}, {42.24, 0.07}, {43.00, 0.39}}}},
     {{{0.00, 0.00}, {0.00, 0.00}, {0.00, 0.00}}},
     {{{47.60, 0.40}, {48.80, 0.58}, {46.80, 1.07}}}},
    {"what_then_where", 7,
     {{
         {"ff", {12.71, 0.06}, {12.19, 0.06}, {8.39, 0.16}},
         {"ff_mem", {12.11, 0.14}, {12.05, 0.12}, {8.34, 0.11}},
         {"ff_mem_cpc", {12.92, 0.32}, {12.21, 0.20}, {7.73, 0.29}},
         {"ff_mem_rec", {6.54, 0.50}, {6.10, 0.35}, {6.30, 0.10}},
         {"lstm", {37.18, 0.14}, {25.06, 0.34}, {17.51, 0.38}},
         {"lstm_cpc", {24.21, 6.04}, {20.68, 3.89}, {12.99, 2.79}},
         {"lstm_mem", {26.19, 6.23}, {23.74, 2.65}, {14.72, 1.22}},
         {"lstm_mem_rec", {2.96, 0.04}, {1.71, 0.27}, {2.34, 0.22}},
         {"mra", {24.22, 5.45}, {23.10, 1.82}, {15.54, 1.39}}}},
     {{{0.02, 0.00}, {0.03, 0.00}, {0.01, 0.00}}},
     {{{50.00, 0.00}, {50.00, 0.00}, {49.60, 0.24}}}},
    {"spot_diff", 8,
     {{
         {"ff", {0.46, 0.00}, {0.43, 0.00}, {0.43, 0.01}},
         {"ff_mem", {0.46, 0.01}, {0.45, 0.01}, {0.44, 0.00}},
         {"ff_mem_cpc", {0.93, 0.02}, {0.71, 0.04}, {0.69, 0.05}},
         {"ff_mem_rec", {0.44, 0.01}, {0.45, 0.02}, {0.45, 0.00}},
         {"lstm", {0.46, 0.01}, {0.45, 0.01}, {0.46, 0.01}},
         {"lstm_cpc", {0.54, 0.03}, {0.48, 0.03}, {0.49, 0.01}},
         {"lstm_mem", {0.47, 0.00}, {0.45, 0.01}, {0.45, 0.00}},
         {"lstm_mem_rec", {0.46, 0.01}, {0.44, 0.01}, {0.45, 0.00}},
         {"mra", {0.90, 0.07}, {0.81, 0.00}, {0.78, 0.00}}}},
     {{{0.05, 0.00}, {0.04, 0.00}, {0.04, 0.00}}},
     {{{1.00, 0.00}, {1.00, 0.00}, {1.00, 0.00}}}},
    {"spot_diff_passive", 9,
     {{
         {"ff", {0.22, 0.09}, {0.23, 0.00}, {0.14, 0.11}},
         {"ff_mem", {0.54, 0.05}, {0.46, 0.00}, {0.49, 0.04}},
         {"ff_mem_cpc", {0.80, 0.01}, {0.66, 0.03}, {0.68, 0.01}},
         {"ff_mem_rec", {0.45, 0.00}, {0.45, 0.00}, {0.45, 0.01}},
         {"lstm", {0.95, 0.00}, {0.85, 0.01}, {0.84, 0.00}},
         {"lstm_cpc", {0.91, 0.01}, {0.77, 0.00}, {0.75, 0.00}},
         {"lstm_mem", {0.97, 0.01}, {0.78, 0.04}, {0.83, 0.03}},
         {"lstm_mem_rec", {0.74, 0.12}, {0.54, 0.06}, {0.52, 0.09}},
         {"mra", {0.96, 0.01}, {0.82, 0.01}, {0.78, 0.01}}}},
     {{{0.03, 0.00}, {0.03, 0.00}, {0.02, 0.00}}},
     {{{1.00, 0.00}, {1.00, 0.00}, {1.00, 0.00}}}},
    {"spot_diff_multi", 10,
     {{
         {"ff", {0.02, 0.01}, {0.01, 0.00}, {0.00, 0.00}},
         {"ff_mem", {0.01, 0.00}, {0.01, 0.00}, {0.00, 0.00}},
         {"ff_mem_cpc", {0.12, 0.08}, {0.11, 0.06}, {0.04, 0.02}},
         {"ff_mem_rec", {0.18, 0.02}, {0.17, 0.01}, {0.01, 0.01}},
         {"lstm", {0.52, 0.20}, {0.14, 0.07}, {0.05, 0.02}},
         {"lstm_cpc", {0.58, 0.03}, {0.24, 0.01}, {0.09, 0.00}},
         {"lstm_mem", {0.39, 0.05}, {0.14, 0.07}, {0.05, 0.03}},
         {"lstm_mem_rec", {0.18, 0.04}, {0.15, 0.02}, {0.07, 0.00}},
         {"mra", {0.69, 0.02}, {0.27, 0.00}, {0.10, 0.00}}}},
     {{{0.01, 0.00}, {0.01, 0.00}, {0.00, 0.00}}},
     {{{1.00, 0.00}, {1.00, 0.00}, {1.00, 0.00}}}},
    {"spot_diff_motion", 11,
     {{
         {"ff", {0.12, 0.04}, {0.00, 0.01}, {0.00, 0.00}},
         {"ff_mem", {0.08, 0.05}, {0.07, 0.05}, {0.08, 0.06}},
         {"ff_mem_cpc", {0.13, 0.09}, {0.24, 0.10}, {0.23, 0.11}},
         {"ff_mem_rec", {0.46, 0.01}, {0.42, 0.01}, {0.43, 0.00}},
         {"lstm", {0.45, 0.00}, {0.44, 0.01}, {0.43, 0.01}},
         {"lstm_cpc", {0.46, 0.00}, {0.43, 0.00}, {0.44, 0.01}},
         {"lstm_mem", {0.45, 0.01}, {0.46, 0.00}, {0.45, 0.00}},
         {"lstm_mem_rec", {0.44, 0.02}, {0.44, 0.01}, {0.42, 0.01}},
         {"mra", {0.47, 0.01}, {0.45, 0.00}, {0.46, 0.01}}}},
     {{{0.02, 0.00}, {0.02, 0.00}, {0.02, 0.00}}},
     {{{1.00, 0.00}, {1.00, 0.00}, {1.00, 0.00}}}},
    {"visible_goal_with_buildings", 12,
     {{
         {"ff", {12.27, 0.83}, {3.74, 1.70}, {0.14, 0.14}},
         {"ff_mem", {13.58, 1.45}, {1.52, 0.28}, {0.47, 0.02}},
         {"ff_mem_cpc", {31.87, 0.25}, {22.99, 0.70}, {9.83, 0.40}},
         {"ff_mem_rec", {31.01, 0.77}, {23.42, 0.33}, {9.84, 1.09}},
         {"lstm", {28.72, 0.34}, {11.37, 0.00}, {2.66, 0.00}},
         {"lstm_cpc", {29.46, 0.23}, {11.52, 0.08}, {2.52, 0.02}},
         {"lstm_mem", {30.92, 0.28}, {11.74, 0.22}, {3.29, 0.10}},
         {"lstm_mem_rec", {35.95, 0.28}, {25.16, 0.05}, {12.54, 0.34}},
         {"mra", {32.45, 0.39}, {12.66, 0.06}, {3.38, 0.05}}}},
     {{{1.08, 0.02}, {0.58, 0.01}, {0.22, 0.01}}},
     {{{23.60, 1.69}, {23.50, 0.75}, {14.30, 0.60}}}},
    {"invisible_goal_with_buildings", 13,
     {{
         {"ff", {9.30, 0.33}, {1.80, 0.01}, {0.28, 0.02}},
         {"ff_mem", {9.95, 0.65}, {1.54, 0.02}, {0.48, 0.00}},
         {"ff_mem_cpc", {10.65, 0.28}, {1.52, 0.10}, {0.31, 0.01}},
         {"ff_mem_rec", {12.29, 0.24}, {0.70, 0.05}, {0.20, 0.00}},
         {"lstm", {27.22, 0.48}, {2.01, 0.19}, {0.79, 0.01}},
         {"lstm_cpc", {28.46, 0.63}, {2.25, 0.01}, {0.86, 0.01}},
         {"lstm_mem", {30.15, 0.04}, {3.10, 0.08}, {1.17, 0.08}},
         {"lstm_mem_rec", {32.10, 0.05}, {2.75, 0.24}, {1.17, 0.09}},
         {"mra", {30.51, 0.21}, {2.39, 0.09}, {1.09, 0.03}}}},
     {{{0.95, 0.02}, {0.53, 0.01}, {0.20, 0.01}}},
     {{{17.37, 1.91}, {12.40, 1.45}, {4.90, 0.71}}}},
    {"invisible_goal_empty_arena", 14,
     {{
         {"ff", {1.78, 0.11}, {0.38, 0.04}, {0.05, 0.00}},
         {"ff_mem", {2.21, 0.05}, {0.28, 0.02}, {0.07, 0.01}},
         {"ff_mem_cpc", {2.37, 0.07}, {0.22, 0.02}, {0.05, 0.00}},
         {"ff_mem_rec", {3.25, 0.25}, {0.27, 0.02}, {0.06, 0.01}},
         {"lstm", {7.60, 0.14}, {0.14, 0.01}, {0.05, 0.01}},
         {"lstm_cpc", {10.48, 0.35}, {0.12, 0.02}, {0.03, 0.01}},
         {"lstm_mem", {10.32, 0.12}, {0.19, 0.02}, {0.03, 0.01}},
         {"lstm_mem_rec", {12.40, 0.08}, {0.08, 0.01}, {0.04, 0.00}},
         {"mra", {13.04, 0.60}, {0.23, 0.04}, {0.07, 0.01}}}},
     {{{0.15, 0.01}, {0.15, 0.01}, {0.03, 0.00}}},
     {{{4.90, 1.32}, {1.70, 0.67}, {0.30, 0.30}}}},
    {"visible_goal_procedural_maze", 15,
     {{
         {"ff", {174.63, 4.27}, {43.55, 3.08}, {11.93, 2.17}},
         {"ff_mem", {224.53, 11.31}, {37.80, 2.28}, {8.52, 0.87}},
         {"ff_mem_cpc", {272.99, 5.31}, {33.38, 1.51}, {9.99, 1.10}},
         {"ff_mem_rec", {607.48, 36.98}, {59.64, 9.41}, {43.07, 19.35}},
         {"lstm", {463.43, 12.84}, {27.09, 1.69}, {6.52, 1.86}},
         {"lstm_cpc", {473.42, 3.84}, {19.72, 0.98}, {4.90, 0.36}},
         {"lstm_mem", {523.14, 10.52}, {22.39, 3.65}, {7.83, 1.25}},
         {"lstm_mem_rec", {655.10, 11.65}, {49.53, 24.78}, {57.21, 23.92}},
         {"mra", {546.08, 2.26}, {40.64, 0.00}, {14.21, 0.00}}}},
     {{mean_of({7.79, 0.14}, {1.97, 0.06}), {3.89, 0.10}, {1.19, 0.05}}},
     {{mean_of({364.00, 43.20}, {104.00, 23.58}), {198.00, 24.98}, {86.00, 20.15}}}},
    {"transitive_inference", 16,
     {{
         {"ff", {3.71, 0.07}, {3.52, 0.06}, {3.73, 0.04}},
         {"ff_mem", {4.34, 0.51}, {4.09, 0.48}, {5.76, 0.18}},
         {"ff_mem_cpc", {4.64, 0.76}, {5.16, 0.01}, {5.62, 0.41}},
         {"ff_mem_rec", {0.47, 0.22}, {0.30, 0.01}, {0.69, 0.12}},
         {"lstm", {8.67, 0.55}, {5.31, 0.10}, {7.32, 0.38}},
         {"lstm_cpc", {9.65, 0.53}, {5.59, 0.02}, {7.77, 0.08}},
         {"lstm_mem", {8.98, 0.42}, {6.76, 0.75}, {8.84, 0.41}},
         {"lstm_mem_rec", {10.86, 0.02}, {8.88, 0.11}, {9.80, 0.16}},
         {"mra", {10.34, 0.10}, {7.21, 0.19}, {9.81, 0.09}}}},
     {{mean_of({1.44, 0.02}, {1.44, 0.02}), {1.42, 0.02}, {1.43, 0.02}}},
     {{mean_of({5.40, 2.20}, {6.60, 2.69}), {6.00, 2.45}, {7.20, 2.94}}}},
}};

/// Table 3 as printed: averages over the tasks in % of human. They cannot be recomputed from the tables above (M28).
inline constexpr std::array<published_agent, 9> printed_averages{{
    {"mra", {92.9, 3.9}, {56.2, 5.8}, {52.6, 6.5}},
    {"lstm_mem_rec", {82.2, 5.2}, {54.2, 2.3}, {51.4, 4.9}},
    {"lstm_mem", {78.7, 5.8}, {50.0, 3.1}, {45.8, 4.5}},
    {"lstm_cpc", {77.6, 4.6}, {42.7, 2.8}, {37.7, 5.3}},
    {"ff_mem_rec", {63.1, 9.6}, {45.4, 3.7}, {45.4, 14.2}},
    {"ff_mem_cpc", {62.6, 5.9}, {45.4, 7.3}, {41.3, 4.0}},
    {"lstm", {73.0, 6.9}, {40.2, 4.3}, {35.6, 5.9}},
    {"ff_mem", {42.3, 5.8}, {27.8, 6.7}, {27.0, 6.6}},
    {"ff", {33.9, 3.3}, {23.0, 3.5}, {19.7, 4.2}},
}};
// clang-format on

/// Why an agent's row of a table is not to be trusted; empty where nothing speaks against it.
inline const char* published_doubt(std::string_view task, std::string_view ablation) {
    if (ablation != "ff_mem_rec") return "";
    const auto at = suite_index(task);
    if (at == suite_index("continuous_recognition"))
        return "FF+MEM+REC on Continuous Recognition: all six numbers of its row are those of LSTM+MEM+REC, "
               "most likely a slip of copying";
    if (at == suite_index("transitive_inference"))
        return "FF+MEM+REC on Transitive Inference: its row lies below acting at random, and far from what the "
               "paper's own average needs";
    return "";
}

/// Where the scale of a task's train level rests on a choice of ours; empty elsewhere.
inline const char* published_choice(std::string_view task, std::size_t level) {
    const auto at = suite_index(task);
    const bool two = at == suite_index("visible_goal_procedural_maze") || at == suite_index("transitive_inference");
    return two && level == 0 ? "the paper gives random actions and humans for a small and a large train level, agents "
                               "for both together; the scale is the mean of the two"
                             : "";
}

/// The paper's scores of a task; null for one that it does not have.
inline const published_table* find_published(std::string_view task) {
    const auto at = suite_index(task);
    return at ? &published_tables[*at] : nullptr;
}

/// In % of the way from random to human; the error is that of the reward alone.
inline published_value published_score(const published_table& table, const published_agent& agent, std::size_t level) {
    const double scale = 100 / (table.human[level].mean - table.random[level].mean);
    const published_value reward = agent.levels()[level];
    return {scale * (reward.mean - table.random[level].mean), scale * reward.standard_error};
}

}  // namespace engram
