#pragma once
// SPDX-License-Identifier: MIT

// Ablation x task as the paper's Figure 5 shows it: normalised scores of one level, of any set of runs, and of the
// paper itself on the same tasks. A fourth map holds the generalisation gap in normalised points,
//
//   gap = train - (holdout_interpolate + holdout_extrapolate) / 2,  seed by seed.
//
// Rows stand in the catalogue's order, columns in the suite's. A cell is the mean over seeds; what was not measured is
// empty, never zero. The average of a row or a column is over the cells that it has, and says how many they are; its
// error is sqrt(sum of squared errors) / n. Runs of different fidelities never share a map.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <engram/evaluate/comparison_table.hpp>
#include <engram/evaluate/names.hpp>
#include <engram/evaluate/reference_scores.hpp>
#include <engram/evaluate/text_table.hpp>

namespace engram {

/// Levels of the maps: those of `suite_scores`, then the gap.
inline constexpr std::array<const char*, 4> heat_levels{"train", "holdout_interpolate", "holdout_extrapolate",
                                                        "train - holdout"};
inline constexpr std::size_t gap_level = 3;

struct heat_cell {
    statistic score;              // count: seeds, or cells of an average; the error is NaN where it is not known
    std::string doubt = {};       // why it is not to be trusted
    bool after_training = false;  // a holdout level without a curve: its evaluation after training
};

struct heat_row {
    std::string ablation;
    std::vector<std::optional<heat_cell>> cells = {};  // as heat_map::tasks
    std::optional<heat_cell> average = {};
};

struct heat_map {
    bool of_paper = false;
    std::string fidelity;
    std::size_t level = 0;           // of heat_levels
    std::vector<std::size_t> tasks;  // of suite_tasks, ascending
    std::vector<heat_row> rows = {};
    std::vector<std::optional<heat_cell>> averages = {};  // over the rows, then over all cells

    /// The sentences that belong to it: doubts, choices, and what was judged after training alone.
    std::vector<std::string> notes() const {
        std::vector<std::string> out;
        const auto add = [&](const std::string& note) {
            if (!note.empty() && std::find(out.begin(), out.end(), note) == out.end()) out.push_back(note);
        };
        bool after = false;
        for (const auto& row : rows)
            for (const auto& cell : row.cells)
                if (cell) add(cell->doubt), after = after || cell->after_training;
        if (after) add("holdout levels without a curve over training are judged by the evaluation after training");
        if (of_paper || fidelity == "paper")
            for (const auto t : tasks)
                for (const std::size_t l : level == gap_level ? std::vector<std::size_t>{0} : std::vector{level})
                    if (const std::string choice = published_choice(suite_tasks[t].name, l); !choice.empty())
                        add(std::string(suite_tasks[t].title) + ": " + choice);
        return out;
    }
};

/// The average of cells that are there; none of none.
inline std::optional<heat_cell> average_cell(const std::vector<const std::optional<heat_cell>*>& cells) {
    heat_cell out{.score = {}};
    double squares = 0;
    for (const auto* cell : cells) {
        if (!*cell) continue;
        const auto& s = (*cell)->score;
        out.score.mean += s.mean, squares += s.standard_error * s.standard_error, ++out.score.count;
        if (!(*cell)->doubt.empty()) out.doubt = "an average of cells of which not all are to be trusted";
        out.after_training = out.after_training || (*cell)->after_training;
    }
    if (out.score.count == 0) return {};
    out.score.mean /= out.score.count;
    out.score.standard_error = std::sqrt(squares) / out.score.count;
    return out;
}

/// Fills in the averages of a map whose cells are there.
inline heat_map with_averages(heat_map map) {
    std::vector<const std::optional<heat_cell>*> all;
    for (auto& row : map.rows) {
        std::vector<const std::optional<heat_cell>*> cells;
        for (const auto& cell : row.cells) cells.push_back(&cell), all.push_back(&cell);
        row.average = average_cell(cells);
    }
    for (std::size_t t = 0; t < map.tasks.size(); ++t) {
        std::vector<const std::optional<heat_cell>*> cells;
        for (const auto& row : map.rows) cells.push_back(&row.cells[t]);
        map.averages.push_back(average_cell(cells));
    }
    map.averages.push_back(average_cell(all));
    return map;
}

/// A run's score on each of heat_levels.
struct run_scores {
    std::array<std::optional<double>, 4> score{};
    std::array<double, 4> error{};
    std::array<bool, 4> after_training{};
};

/// The normalised scores of one run, level by level.
inline run_scores score_run(const run_record& run) {
    run_scores out;
    const auto task = suite_index(run.task);
    if (!task) return out;
    const seed_rewards judged = judge_run(run, suite_tasks[*task].alpha);
    for (std::size_t level = 0; level < suite_scores.size(); ++level) {
        const auto scale = scale_of(run.task, level, run.fidelity());
        if (!scale || !judged.levels[level]) continue;
        out.score[level] = scale->score(judged.levels[level]->reward);
        out.error[level] = scale->points(judged.levels[level]->standard_error);
        out.after_training[level] = level > 0 && !judged.levels[level]->from_curve;
    }
    if (!out.score[0] || !out.score[1] || !out.score[2]) return out;
    out.score[gap_level] = *out.score[0] - (*out.score[1] + *out.score[2]) / 2;
    out.error[gap_level] = std::hypot(out.error[0], out.error[1] / 2, out.error[2] / 2);
    out.after_training[gap_level] = out.after_training[1] || out.after_training[2];
    return out;
}

/// One map per fidelity and level, the paper's fidelity first; fidelities without a score have none.
inline std::vector<heat_map> measured_heat_maps(const std::vector<run_record>& runs) {
    std::vector<run_scores> scores;
    for (const auto& run : runs) scores.push_back(score_run(run));
    std::vector<heat_map> maps;
    for (const char* fidelity : {"paper", "small"}) {
        std::vector<std::string> names;
        std::vector<std::size_t> tasks;
        for (std::size_t r = 0; r < runs.size(); ++r) {
            const auto& of = scores[r].score;
            const bool scored = std::any_of(of.begin(), of.end(), [](const auto& s) { return s.has_value(); });
            if (runs[r].fidelity() != fidelity || !scored) continue;
            const std::size_t task = *suite_index(runs[r].task);
            if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) tasks.push_back(task);
            if (std::find(names.begin(), names.end(), runs[r].ablation) == names.end())
                names.push_back(runs[r].ablation);
        }
        if (tasks.empty()) continue;
        std::sort(tasks.begin(), tasks.end());
        std::stable_sort(names.begin(), names.end(),
                         [](const auto& a, const auto& b) { return ablation_rank(a) < ablation_rank(b); });
        for (std::size_t level = 0; level < heat_levels.size(); ++level) {
            heat_map map{.fidelity = fidelity, .level = level, .tasks = tasks};
            for (const auto& name : names) {
                auto& row = map.rows.emplace_back(heat_row{.ablation = name});
                for (const auto task : tasks) {
                    std::vector<double> values, errors;
                    std::vector<const run_record*> counted;
                    bool after = false;
                    for (std::size_t r = 0; r < runs.size(); ++r) {
                        if (runs[r].ablation != name || suite_index(runs[r].task) != task ||
                            runs[r].fidelity() != fidelity || !scores[r].score[level] ||
                            std::any_of(counted.begin(), counted.end(),
                                        [&](auto* c) { return is_same_run(*c, runs[r]); }))
                            continue;
                        counted.push_back(&runs[r]);
                        values.push_back(*scores[r].score[level]), errors.push_back(scores[r].error[level]);
                        after = after || scores[r].after_training[level];
                    }
                    auto& cell = row.cells.emplace_back();
                    if (!values.empty()) cell = heat_cell{.score = over_runs(values, errors), .after_training = after};
                }
            }
            maps.push_back(with_averages(std::move(map)));
        }
    }
    return maps;
}

/// The paper's own map of a level, restricted to the same tasks, from its Tables 4 to 16 (three seeds each).
inline heat_map published_heat_map(std::size_t level, const std::vector<std::size_t>& tasks) {
    heat_map map{.of_paper = true, .fidelity = "paper", .level = level, .tasks = tasks};
    std::vector<std::string> names;
    for (const auto& agent : printed_averages) names.push_back(agent.ablation);
    std::sort(names.begin(), names.end(),
              [](const auto& a, const auto& b) { return ablation_rank(a) < ablation_rank(b); });
    for (const auto& name : names) {
        auto& row = map.rows.emplace_back(heat_row{.ablation = name});
        for (const auto task : tasks) {
            const auto& table = published_tables[task];
            const auto* agent = table.find(name);
            std::array<published_value, 3> of{};
            for (std::size_t l = 0; l < of.size(); ++l) of[l] = published_score(table, *agent, l);
            const published_value value =
                level < gap_level ? of[level]
                                  : published_value{of[0].mean - (of[1].mean + of[2].mean) / 2,
                                                    std::hypot(of[0].standard_error, of[1].standard_error / 2,
                                                               of[2].standard_error / 2)};
            row.cells.push_back(
                heat_cell{.score = {value.mean, value.standard_error, 3}, .doubt = published_doubt(table.task, name)});
        }
    }
    return with_averages(std::move(map));
}

/// What a map is called on the page.
inline std::string heat_title(const heat_map& map) {
    return map.level == gap_level ? "Generalisation gap" : level_title(heat_levels[map.level]);
}

/// One aligned line per ablation; "!" marks what is not to be trusted.
inline std::string heat_map_text(const heat_map& map) {
    std::vector<std::vector<std::string>> rows{{map.of_paper ? "the paper" : "ablation"}};
    for (const auto t : map.tasks) rows[0].push_back(suite_tasks[t].code);
    rows[0].push_back("mean");
    rows[0].push_back("of");
    const auto text = [](const std::optional<heat_cell>& cell) {
        return cell ? fixed(cell->score.mean, 1) + (cell->doubt.empty() ? "" : "!") : std::string();
    };
    const auto add = [&](const std::string& name, const auto& cells, const std::optional<heat_cell>& average) {
        auto& row = rows.emplace_back(std::vector<std::string>{name});
        for (std::size_t t = 0; t < map.tasks.size(); ++t) row.push_back(text(cells[t]));
        row.push_back(text(average));
        row.push_back(average ? std::to_string(average->score.count) : "");
    };
    for (const auto& row : map.rows) add(row.ablation, row.cells, row.average);
    add("mean", map.averages, map.averages.back());
    std::string out = std::string(heat_levels[map.level]) + (map.level == gap_level ? ", points" : ", %") + " (" +
                      (map.of_paper ? "the paper's Tables 4 to 16" : map.fidelity + " fidelity") + "; " +
                      scale_in_words(map.fidelity) + ")\n" + text_table(rows);
    for (const auto& note : map.notes()) out += "  note: " + note + "\n";
    return out;
}

/// Header and one line per cell; averages stand under the task or the ablation "mean", and count cells.
inline std::string heat_map_csv(const std::vector<heat_map>& maps) {
    std::string out = "source,fidelity,level,ablation,task,score,stderr,count,note\n";
    const auto number = [](double x) { return std::isfinite(x) ? significant(x, 8) : ""; };
    for (const auto& map : maps) {
        const auto line = [&](const std::string& ablation, const std::string& task,
                              const std::optional<heat_cell>& cell) {
            if (!cell) return;
            out += std::string(map.of_paper ? "paper" : "measured") + "," + map.fidelity + "," +
                   heat_levels[map.level] + "," + csv_cell(ablation) + "," + task + "," + number(cell->score.mean) +
                   "," + number(cell->score.standard_error) + "," + std::to_string(cell->score.count) + "," +
                   csv_cell(!cell->doubt.empty()   ? cell->doubt
                            : cell->after_training ? "evaluated after training"
                                                   : "") +
                   "\n";
        };
        for (const auto& row : map.rows) {
            for (std::size_t t = 0; t < map.tasks.size(); ++t)
                line(row.ablation, suite_tasks[map.tasks[t]].name, row.cells[t]);
            line(row.ablation, "mean", row.average);
        }
        for (std::size_t t = 0; t < map.tasks.size(); ++t)
            line("mean", suite_tasks[map.tasks[t]].name, map.averages[t]);
        line("mean", "mean", map.averages.back());
    }
    return out;
}

}  // namespace engram
