#pragma once
// SPDX-License-Identifier: MIT

// The comparison as the tables and bars of the page.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <engram/evaluate/comparison_table.hpp>
#include <engram/evaluate/names.hpp>

#include "svg_chart.hpp"

namespace engram {

/// The colour of every ablation on a page.
using ablation_colours = std::map<std::string, int>;

/// A mean with its standard error, in the unit of the task; with `sign` a plus before what is positive.
inline std::string html_number(const task_comparison& task, const statistic& s, bool sign = false) {
    const auto text = [&](double x, int digits) { return task.percent ? fixed(x, 1) : significant(x, digits); };
    return "<span class='big'>" + std::string(sign && s.mean > 0 && text(s.mean, 4) != "0.0" ? "+" : "") +
           text(s.mean, 4) + "</span> <span class='se'>\u00b1\u00a0" + text(s.standard_error, 2) + "</span>";
}

/// The first cell of an ablation's row.
inline std::string html_ablation(const ablation_comparison& a, const ablation_colours& colours) {
    return "<th scope='row'><span class='c" + std::to_string(colours.at(a.ablation) % 10) +
           "'><i class='dot'></i></span>" + escape_html(ablation_title(a.ablation)) + "<small>" + a.seeds() +
           (a.runs.size() == 1 ? " seed" : " seeds") + "</small></th>";
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
