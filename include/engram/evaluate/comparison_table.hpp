#pragma once
// SPDX-License-Identifier: MIT

// The comparison as text, one aligned line per ablation; as CSV, one line per ablation and level; and as the tables and
// bars of the report page. Generative models have columns of their own: KL before and at the recall, and their ratio.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <engram/evaluate/comparison.hpp>
#include <engram/evaluate/svg_chart.hpp>

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
        auto& row = rows.emplace_back(std::vector<std::string>{a.ablation, std::to_string(a.runs.size())});
        for (const auto i : levels) row.push_back(a.levels[i] ? cell(a.levels[i]->shown()) : "-");
        if (gap) row.push_back(a.gap ? cell(*a.gap) : "-");
        for (const auto& m : measures) {
            const auto* level = task.judged(a);
            row.push_back(level && level->*m.value ? cell(*(level->*m.value)) : "-");
        }
    }
    std::vector<std::size_t> widths(rows[0].size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());

    std::string out = task.task + (task.preset.empty() ? "" : " (" + task.preset + ")") + ": ";
    const std::string error = std::string(", +- standard error over seeds (over ") +
                              (task.kind == run_kind::agent ? "episodes" : "sequences") + " for one seed)";
    out += !task.evaluated() ? "not evaluated yet"
           : task.percent    ? "% of the maximum" + error
           : generative      ? "negative ELBO, nats a sequence" + error
                             : (task.unit.empty() ? "mean" : task.unit) + error;
    if (!measures.empty()) out += "; KL in nats a step on " + task.levels[task.judged_level()];
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

/// The colour of every ablation on a page.
using ablation_colours = std::map<std::string, int>;

/// "1 seed", "3 seeds".
template <class Count>
std::string counted(Count n, const std::string& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

/// A mean with its standard error, in the unit of the task; with `sign` a plus before what is positive.
inline std::string html_number(const task_comparison& task, const statistic& s, bool sign = false) {
    const auto text = [&](double x, int digits) { return task.percent ? fixed(x, 1) : significant(x, digits); };
    return "<span class='big'>" + std::string(sign && s.mean > 0 && text(s.mean, 4) != "0.0" ? "+" : "") +
           text(s.mean, 4) + "</span> <span class='se'>\u00b1\u00a0" + text(s.standard_error, 2) + "</span>";
}

/// The first cell of an ablation's row.
inline std::string html_ablation(const ablation_comparison& a, const ablation_colours& colours) {
    return "<th scope='row'><span class='c" + std::to_string(colours.at(a.ablation) % 10) +
           "'><i class='dot'></i></span>" + escape_html(ablation_title(a.ablation)) + "<small>" +
           counted(a.runs.size(), "seed") + "</small></th>";
}

/// Ablation x level of agents and of models that answer.
inline std::string html_level_table(const task_comparison& task, const ablation_colours& colours) {
    const bool gap =
        std::any_of(task.ablations.begin(), task.ablations.end(), [](auto& a) { return a.gap.has_value(); });
    const bool several =
        std::any_of(task.ablations.begin(), task.ablations.end(), [](auto& a) { return a.runs.size() > 1; });
    std::string out =
        "<p class='sub'>" +
        (task.percent ? "Evaluation in % of the maximum" : "Evaluation, " + escape_html(task.unit)) + ", " +
        (several                        ? "means over seeds with their standard error"
         : task.kind == run_kind::agent ? "mean over episodes with its standard error"
                                        : "mean over sequences with its standard error") +
        (task.percent ? "; below, the mean itself" : "") + (task.lower_is_better ? "; lower is better" : "") +
        ". The best of each level is marked." +
        (gap ? std::string(" The gap is train minus the mean of the holdout levels") +
                   (task.percent ? ", in points" : "") + "."
             : "") +
        "</p><div class='scroll'><table><thead><tr><th>" + (task.kind == run_kind::agent ? "Agent" : "Model") + "</th>";
    const auto levels = task.table_levels();
    for (const auto i : levels) out += "<th>" + escape_html(level_title(task.levels[i])) + "</th>";
    out += (gap ? "<th>Gap</th>" : "") + std::string("</tr></thead><tbody>");
    for (const auto& a : task.ablations) {
        out += "<tr>" + html_ablation(a, colours);
        for (const auto i : levels) {
            if (!a.levels[i]) {
                out += "<td><small>not evaluated</small></td>";
                continue;
            }
            const auto& l = *a.levels[i];
            out +=
                std::string("<td") + (task.is_best(i, a) ? " class='best'" : "") + ">" + html_number(task, l.shown());
            if (task.percent)
                out += "<small>" + significant(l.reward.mean, 4) + " of " + significant(*l.maximum, 4) + "</small>";
            out += "</td>";
        }
        if (gap) out += "<td>" + (a.gap ? html_number(task, *a.gap, true) : "") + "</td>";
        out += "</tr>";
    }
    return out + "</tbody></table></div>";
}

/// Bars of every ablation, one chart a level.
inline std::string html_level_bars(const task_comparison& task, const ablation_colours& colours) {
    if (!task.evaluated() || task.ablations.size() < 2) return "";
    std::string out = "<div class='levels'>";
    for (const auto i : task.table_levels()) {
        std::vector<chart_bar> list;
        double limit = task.percent ? 100 : 0;
        std::optional<double> random;
        for (const auto& a : task.ablations) {
            if (!a.levels[i]) continue;
            const auto& s = a.levels[i]->shown();
            list.push_back({ablation_title(a.ablation), task.percent ? fixed(s.mean, 1) + " %" : significant(s.mean, 4),
                            colours.at(a.ablation), s.mean, s.standard_error});
            limit = std::max(limit, s.mean + s.standard_error);
            if (!random && a.levels[i]->random)
                random = task.percent ? 100 * *a.levels[i]->random / *a.levels[i]->maximum : *a.levels[i]->random;
        }
        if (list.empty()) continue;
        if (!(limit > 0)) limit = 1;
        out += "<div><h4>" + escape_html(level_title(task.levels[i])) + "</h4>" +
               bar_chart(list, limit, random, level_title(task.levels[i])) + "</div>";
    }
    return out + "</div>";
}

/// Negative ELBO a level, and what the recall costs on the held-out one.
inline std::string html_generative_table(const task_comparison& task, const ablation_colours& colours) {
    const auto measures = table_measures(task);
    const bool several =
        std::any_of(task.ablations.begin(), task.ablations.end(), [](auto& a) { return a.runs.size() > 1; });
    const bool recalls = task.measures(&level_comparison::at_recall);
    std::string out = "<p class='sub'>Negative ELBO in nats a sequence, ";
    out += several ? "means over seeds with their standard error" : "mean over sequences with its standard error";
    if (!measures.empty()) {
        out += "; KL in nats a step on the level \u201c" + escape_html(plain_words(task.levels[task.judged_level()])) +
               "\u201d";
        if (recalls) out += ": over the steps before the recall, over those that show a frame again, and their ratio";
    }
    out += ". Lower is better; the best is marked.</p><div class='scroll'><table><thead><tr><th>Model</th>";
    for (const auto i : task.table_levels())
        out += "<th>\u2212ELBO, " + escape_html(plain_words(task.levels[i])) + "</th>";
    for (const auto& m : measures) out += "<th>" + std::string(m.title) + "</th>";
    out += "</tr></thead><tbody>";
    const auto cell = [](const statistic& s, bool best) {
        return std::string("<td") + (best ? " class='best'" : "") + "><span class='big'>" + measured(s.mean) +
               "</span>" +
               (std::isfinite(s.standard_error)
                    ? " <span class='se'>\u00b1\u00a0" + measured_error(s.standard_error, s.mean) + "</span>"
                    : "") +
               "</td>";
    };
    for (const auto& a : task.ablations) {
        out += "<tr>" + html_ablation(a, colours);
        for (const auto i : task.table_levels())
            out +=
                a.levels[i] ? cell(a.levels[i]->reward, task.is_best(i, a)) : "<td><small>not evaluated</small></td>";
        for (const auto& m : measures) {
            const auto* level = task.judged(a);
            out += level && level->*m.value ? cell(*(level->*m.value), m.merit && task.is_least(m.value, a))
                                            : "<td class='none'>\u2013</td>";
        }
        out += "</tr>";
    }
    return out + "</tbody></table></div>";
}

/// Ablation x task of agents; tasks come with the name that the page gives them.
inline std::string html_heat_map(const std::vector<std::pair<const task_comparison*, std::string>>& tasks) {
    std::vector<std::string> names;
    for (const auto& [task, title] : tasks)
        for (const auto& a : task->ablations)
            if (std::find(names.begin(), names.end(), a.ablation) == names.end()) names.push_back(a.ablation);
    std::string out =
        "<h2>All tasks</h2><p class='sub'>Mean over the holdout levels (over all levels, where a task has no "
        "others), in % "
        "of the maximum where there is one.</p><div class='scroll'><table class='heat'><thead><tr><th></th>";
    for (const auto& [task, title] : tasks) out += "<th>" + escape_html(title) + "</th>";
    out += "</tr></thead><tbody>";
    for (const auto& name : names) {
        out += "<tr><th scope='row'>" + escape_html(ablation_title(name)) + "</th>";
        for (const auto& [task, title] : tasks) {
            const auto a = std::find_if(task->ablations.begin(), task->ablations.end(),
                                        [&](auto& x) { return x.ablation == name; });
            if (a == task->ablations.end() || !a->score) {
                out += "<td class='none'>\u2013</td>";
                continue;
            }
            const double share = task->percent ? std::clamp(a->score->mean / 100, 0.0, 1.0) : 0;
            out += "<td class='" + std::string(share > 0.72 ? "strong" : "") + "' style='--v:" + fixed(share, 3) +
                   "'>" + (task->percent ? fixed(a->score->mean, 1) : significant(a->score->mean)) + "</td>";
        }
        out += "</tr>";
    }
    return out + "</tbody></table></div>";
}

}  // namespace engram
