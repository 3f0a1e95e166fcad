#pragma once
// SPDX-License-Identifier: MIT

// The comparison as text, one aligned line per ablation, and as CSV, one line per ablation and level.

#include <algorithm>
#include <string>
#include <vector>

#include <engram/evaluate/comparison.hpp>

namespace engram {

inline std::string comparison_text(const task_comparison& task) {
    std::vector<std::vector<std::string>> rows{{"ablation", "seeds"}};
    for (const auto& level : task.levels) rows[0].push_back(level);
    const bool gap =
        std::any_of(task.ablations.begin(), task.ablations.end(), [](auto& a) { return a.gap.has_value(); });
    if (gap) rows[0].push_back("train - holdout");
    const auto cell = [&](const statistic& s) {
        return task.percent ? fixed(s.mean, 1) + " +- " + fixed(s.standard_error, 1)
                            : significant(s.mean, 4) + " +- " + significant(s.standard_error, 2);
    };
    for (const auto& a : task.ablations) {
        auto& row = rows.emplace_back(std::vector<std::string>{a.ablation, std::to_string(a.runs.size())});
        for (const auto& level : a.levels) row.push_back(level ? cell(level->shown()) : "-");
        if (gap) row.push_back(a.gap ? cell(*a.gap) : "-");
    }
    std::vector<std::size_t> widths(rows[0].size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());

    std::string out = task.task + (task.preset.empty() ? "" : " (" + task.preset + ")") + ": ";
    out += !task.evaluated() ? "not evaluated yet"
           : task.percent    ? "% of the maximum, +- standard error over seeds (over episodes for one seed)"
                             : (task.unit.empty() ? "mean" : task.unit) +
                                std::string(", +- standard error over seeds (over episodes for one seed)");
    out += "\n";
    for (const auto& row : rows) {
        std::string line = "  ";
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string pad(widths[i] - row[i].size(), ' ');
            line += (i > 0 ? "  " : "") + (i == 0 ? row[i] + pad : pad + row[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + "\n";
    }
    return out;
}

/// A spreadsheet's cell: quoted where it must be.
inline std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

/// Header and rows; the gap is a row of its own, level "train - holdout", with its size in the percent columns.
inline std::string comparison_csv(const std::vector<task_comparison>& tasks) {
    std::string out = "task,preset,ablation,level,seeds,unit,mean,stderr,maximum,percent,percent_stderr\n";
    const auto number = [](double x) { return significant(x, 8); };
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
                       (l.percent ? number(l.percent->standard_error) : "") + "\n";
            }
            if (!a.gap) continue;
            const std::string gap = number(a.gap->mean) + "," + number(a.gap->standard_error);
            out += start + "train - holdout," + std::to_string(a.gap->count) + "," + csv_cell(task.unit) + "," +
                   (task.percent ? ",,," + gap : gap + ",,,") + "\n";
        }
    return out;
}

}  // namespace engram
