#pragma once
// SPDX-License-Identifier: MIT

// The comparison as text, one aligned line per ablation, and as CSV, one line per ablation and level. Generative models
// have columns of their own: KL before and at the recall, and their ratio.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <engram/evaluate/comparison.hpp>
#include <engram/evaluate/text_table.hpp>
#include <engram/io/csv.hpp>

namespace engram {

struct kl_measure {
    std::optional<statistic> level_comparison::*value;
    const char *text, *title, *column;
    bool merit, shown;  // less is better; stands in tables for readers
};

/// What is told of a generative model beside its ELBO, all in nats a step but the ratio.
inline const std::array<kl_measure, 5> kl_measures{{
    {&level_comparison::before_recall, "KL before", "KL before the recall", "kl_before_recall", false, true},
    {&level_comparison::at_recall, "KL at recall", "KL at the recall", "kl_at_recall", true, true},
    {&level_comparison::ratio, "ratio", "Ratio", "recall_over_before", true, true},
    {&level_comparison::first_sight, "KL when new", "KL when new", "kl_at_first_sight", false, false},
    {&level_comparison::last_step, "KL, last step", "KL, last step", "kl_last_step", true, false},
}};

/// The measures that a table of this task shows: those of the recall where it has one, else the KL of the last step.
inline std::vector<kl_measure> table_measures(const task_comparison& task) {
    std::vector<kl_measure> out;
    for (const auto& m : kl_measures)
        if (task.kind == run_kind::generative && m.shown && task.measures(m.value)) out.push_back(m);
    if (task.kind == run_kind::generative && out.empty() && task.measures(kl_measures.back().value))
        out.push_back(kl_measures.back());
    return out;
}

/// The table as aligned text, one line per ablation.
inline std::string comparison_text(const task_comparison& task) {
    std::vector<std::vector<std::string>> rows{{"ablation", "seeds"}};
    const bool generative = task.kind == run_kind::generative;
    const auto levels = task.table_levels();
    const auto measures = table_measures(task);
    for (const auto i : levels) rows[0].push_back(task.levels[i]);
    const bool gap = !generative && std::any_of(task.ablations.begin(), task.ablations.end(),
                                                [](auto& a) { return a.gap.has_value(); });
    if (gap) rows[0].push_back("train - holdout");
    for (const auto& m : measures) rows[0].push_back(m.text);
    const auto cell = [&](const statistic& s) {
        if (generative)
            return measured(s.mean) +
                   (std::isfinite(s.standard_error) ? " +- " + measured_error(s.standard_error, s.mean) : "");
        return task.percent ? fixed(s.mean, 1) + " +- " + fixed(s.standard_error, 1)
                            : significant(s.mean, 4) + " +- " + significant(s.standard_error, 2);
    };
    for (const auto& a : task.ablations) {
        auto& row = rows.emplace_back(std::vector<std::string>{a.ablation, a.seeds()});
        for (const auto i : levels) row.push_back(a.levels[i] ? cell(a.levels[i]->shown()) : "-");
        if (gap) row.push_back(a.gap ? cell(*a.gap) : "-");
        for (const auto& m : measures) {
            const auto* level = task.judged(a);
            row.push_back(level && level->*m.value ? cell(*(level->*m.value)) : "-");
        }
    }
    std::string out = task.task + (task.preset.empty() ? "" : " (" + task.preset + ")") + ": ";
    const std::string error = std::string(", +- standard error over seeds (over ") +
                              (task.kind == run_kind::agent ? "episodes" : "sequences") + " for one seed)";
    out += !task.evaluated() ? "not evaluated yet"
           : task.percent    ? "% of the maximum" + error
           : generative      ? "negative ELBO, nats a sequence" + error
                             : (task.unit.empty() ? "mean" : task.unit) + error;
    if (!measures.empty()) out += "; KL in nats a step on " + task.levels[task.judged_level()];
    out += "\n";
    return out + text_table(rows);
}

/// Header and rows; the gap is a row of its own, level "train - holdout", with its size in the percent columns. Where
/// there are generative models, the columns of their KL follow.
inline std::string comparison_csv(const std::vector<task_comparison>& tasks) {
    const bool generative =
        std::any_of(tasks.begin(), tasks.end(), [](auto& t) { return t.kind == run_kind::generative; });
    std::string out = "task,preset,ablation,level,seeds,unit,mean,stderr,maximum,percent,percent_stderr", none;
    for (const auto& m : kl_measures) {
        if (!generative) break;
        out += "," + std::string(m.column) + "," + m.column + "_stderr";
        none += ",,";
    }
    out += "\n";
    const auto number = [](double x) { return std::isfinite(x) ? significant(x, 8) : ""; };
    for (const auto& task : tasks)
        for (const auto& a : task.ablations) {
            const std::string start =
                csv_cell(task.task) + "," + csv_cell(task.preset) + "," + csv_cell(a.ablation) + ",";
            for (std::size_t i = 0; i < task.levels.size(); ++i) {
                if (!a.levels[i]) continue;
                const auto& l = *a.levels[i];
                out += start + csv_cell(task.levels[i]) + "," + std::to_string(l.reward.count) + "," +
                       csv_cell(task.unit) + "," + number(l.reward.mean) + "," + number(l.reward.standard_error) + "," +
                       (l.maximum ? number(*l.maximum) : "") + "," + (l.percent ? number(l.percent->mean) : "") + "," +
                       (l.percent ? number(l.percent->standard_error) : "");
                for (const auto& m : kl_measures) {
                    if (!generative) break;
                    const auto& s = l.*m.value;
                    out += s ? "," + number(s->mean) + "," + number(s->standard_error) : ",,";
                }
                out += "\n";
            }
            if (!a.gap) continue;
            const std::string gap = number(a.gap->mean) + "," + number(a.gap->standard_error);
            out += start + "train - holdout," + std::to_string(a.gap->count) + "," + csv_cell(task.unit) + "," +
                   (task.percent ? ",,," + gap : gap + ",,,") + none + "\n";
        }
    return out;
}

}  // namespace engram
