#pragma once
// SPDX-License-Identifier: MIT

// The report: one HTML page with everything in it, from finished or unfinished runs. Nothing is fetched, and every text
// that comes from a file is escaped.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <engram/evaluate/comparison.hpp>
#include <engram/evaluate/headline.hpp>
#include <engram/evaluate/learning_curve.hpp>
#include <engram/evaluate/report_style.hpp>
#include <engram/evaluate/retrieval_view.hpp>
#include <engram/evaluate/svg_chart.hpp>

namespace engram {

class report_page {
public:
    /// An empty title means the headline that the data give. The runs must outlive the page.
    report_page(const std::vector<run_record>& runs, std::string title)
        : runs_(runs), tasks_(compare(runs)), title_(std::move(title)) {
        // One colour per ablation on the whole page; the best of the first task gets the first one.
        for (const auto& task : tasks_)
            for (const auto& a : task.ablations) colours_.emplace(a.ablation, static_cast<int>(colours_.size()));
    }

    std::string html() const {
        const std::string head = !title_.empty()      ? title_
                                 : tasks_.size() == 1 ? headline(tasks_[0])
                                                      : many_tasks_headline();
        std::string out =
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width,initial-scale=1'>"
            "<meta name='generator' content='engram-report'><title>" +
            escape_html(head) + "</title>\n<style>" + report_css +
            "</style></head>\n<body><main>\n<p class='brand'><b>engram</b> report</p>\n<h1>" + escape_html(head) +
            "</h1>\n<p class='lead'>" + escape_html(lead()) + "</p>\n";
        if (tasks_.size() > 1) out += heat_map();
        for (const auto& task : tasks_) out += task_section(task);
        out += runs_section();
        return out + "<footer>Made by engram-report from " + counted(static_cast<int>(runs_.size()), "run folder") +
               ".</footer>\n</main><script>" + report_script + "</script></body></html>\n";
    }

    const std::vector<task_comparison>& tasks() const { return tasks_; }

private:
    static std::string counted(int n, const std::string& what) {
        return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
    }

    int colour(const std::string& ablation) const { return colours_.at(ablation); }

    std::string name_of(const task_comparison& task) const {
        const auto same = std::count_if(tasks_.begin(), tasks_.end(), [&](auto& t) { return t.task == task.task; });
        return task.title() + (same > 1 && !task.preset.empty() ? " (" + task.preset + ")" : "");
    }

    std::string many_tasks_headline() const {
        std::set<std::string> names;
        for (const auto& run : runs_) names.insert(run.ablation);
        const std::string all = counted(static_cast<int>(names.size()), "agent") + " on " +
                                counted(static_cast<int>(tasks_.size()), "task");
        std::map<std::string, int> first;
        int evaluated = 0, most = 0;
        for (const auto& task : tasks_) {
            if (task.ablations.size() < 2 || !task.ablations[0].score) continue;
            ++evaluated;
            most = std::max(most, ++first[task.ablations[0].ablation]);
        }
        for (const auto& [name, count] : first)
            if (count == most && 2 * count > evaluated)
                return ablation_title(name) + " is the best on " +
                       (count == evaluated ? "every task"
                                           : std::to_string(count) + " of " + std::to_string(evaluated) + " tasks");
        return all;
    }

    std::string lead() const {
        std::set<std::string> ablations;
        std::set<double> seeds;
        double least = 1e300, most = 0;
        for (const auto& run : runs_) {
            ablations.insert(run.ablation);
            if (run.seed) seeds.insert(*run.seed);
            if (!run.steps) continue;
            least = std::min(least, *run.steps), most = std::max(most, *run.steps);
        }
        std::string out = counted(static_cast<int>(ablations.size()), "agent") + ", " +
                          (seeds.empty() ? counted(static_cast<int>(runs_.size()), "run")
                                         : counted(static_cast<int>(seeds.size()), "seed"));
        if (tasks_.size() == 1) out += ", on " + plain_words(tasks_[0].task);
        if (most > 0)
            out += ", " +
                   (short_count(least) == short_count(most) ? short_count(most)
                                                            : short_count(least) + " to " + short_count(most)) +
                   " environment steps each";
        out += ".";
        if (tasks_.size() != 1) return out;
        for (const auto& a : tasks_[0].ablations) {  // the best comes first
            const auto& levels = tasks_[0].levels;
            if (!tasks_[0].percent || !a.score || levels.size() < 2) break;
            out += " " + ablation_title(a.ablation) + " by level, in % of the maximum:";
            for (std::size_t i = 0; i < levels.size(); ++i)
                if (a.levels[i])
                    out += (i ? ", " : " ") + plain_words(levels[i]) + " " + fixed(a.levels[i]->percent->mean, 1);
            out += ".";
            break;
        }
        return out;
    }

    std::string task_section(const task_comparison& task) const {
        std::string out = "<section>";
        if (tasks_.size() > 1)
            out += "<h2>" + escape_html(name_of(task)) + "</h2><p class='sub'>" + escape_html(headline(task)) + ".</p>";
        return out + curves(task) + table(task) + bars(task) + retrievals(task) + diagnostics(task) + "</section>\n";
    }

    std::string heading(const std::string& text) const {
        return tasks_.size() > 1 ? "<h3>" + text + "</h3>" : "<h2>" + text + "</h2>";
    }

    static double last_step(const task_comparison& task) {
        double last = 0;
        for (const auto& a : task.ablations)
            for (const auto* run : a.runs)
                if (const auto* steps = run->metrics.steps())
                    for (const double x : *steps)
                        if (std::isfinite(x)) last = std::max(last, x);
        return last;
    }

    std::vector<chart_series> series(const task_comparison& task, const char* column) const {
        const auto grid = curve_grid(last_step(task));
        std::vector<chart_series> out;
        for (const auto& a : task.ablations)
            if (auto band = band_of_runs(a.runs, column, grid); !band.x.empty())
                out.push_back({ablation_title(a.ablation), colour(a.ablation), std::move(band)});
        return out;
    }

    std::string curves(const task_comparison& task) const {
        auto lines = series(task, "reward");
        if (lines.empty()) lines = series(task, "reward_smooth");
        if (lines.empty())
            return heading("Learning") + "<p class='sub'>The runs have no training curve (metrics.csv) yet.</p>";
        chart_frame wide{.y_title = "episode reward", .label_ends = true};
        for (const auto& a : task.ablations)
            for (std::size_t i = 0; i < a.levels.size(); ++i)
                if (a.levels[i] && is_train_level(task.levels[i]) && !wide.maximum)
                    wide.maximum = a.levels[i]->maximum, wide.random = a.levels[i]->random;
        chart_frame narrow = wide;
        narrow.width = 390, narrow.height = 330, narrow.label_ends = false;
        std::size_t most = 1;
        bool tails = false;
        for (const auto& a : task.ablations) most = std::max(most, a.runs.size());
        for (const auto& l : lines) tails = tails || !l.band.tails.empty();
        std::string out =
            heading("Learning") +
            "<p class='sub'>Mean reward of the training episodes that ended around each step, smoothed" +
            (most > 1 ? std::string("; lines are means over seeds, bands reach from the worst seed to the best") : "") +
            (tails ? "; thin lines are seeds that trained longer than the others" : "") + ".</p>";
        out += "<div class='plot'><ul class='legend narrow'>";
        for (const auto& l : lines)
            out += "<li class='c" + std::to_string(l.colour % 10) + "' data-name='" + escape_html(l.name) +
                   "'><i></i>" + escape_html(l.name) + "</li>";
        return out + "</ul><div class='wide'>" + line_chart(lines, wide) + "</div><div class='narrow'>" +
               line_chart(lines, narrow) + "</div></div>";
    }

    static std::string number(const task_comparison& task, const statistic& s, bool sign = false) {
        const auto text = [&](double x, int digits) { return task.percent ? fixed(x, 1) : significant(x, digits); };
        return "<span class='big'>" + std::string(sign && s.mean > 0 && text(s.mean, 4) != "0.0" ? "+" : "") +
               text(s.mean, 4) + "</span> <span class='se'>\u00b1\u00a0" + text(s.standard_error, 2) + "</span>";
    }

    std::string table(const task_comparison& task) const {
        if (!task.evaluated())
            return heading("Levels") +
                   "<p class='sub'>None of the runs has been evaluated yet: run evaluate --from on each folder.</p>";
        const bool gap =
            std::any_of(task.ablations.begin(), task.ablations.end(), [](auto& a) { return a.gap.has_value(); });
        const bool several =
            std::any_of(task.ablations.begin(), task.ablations.end(), [](auto& a) { return a.runs.size() > 1; });
        std::string out =
            heading("Levels") + "<p class='sub'>" +
            (task.percent ? "Evaluation in % of the maximum" : "Evaluation, " + escape_html(task.unit)) + ", " +
            (several ? "means over seeds with their standard error" : "mean over episodes with its standard error") +
            (task.percent ? "; below, the mean itself" : "") + (task.lower_is_better ? "; lower is better" : "") +
            ". The best of each level is marked." +
            (gap ? std::string(" The gap is train minus the mean of the holdout levels") +
                       (task.percent ? ", in points" : "") + "."
                 : "") +
            "</p><div class='scroll'><table><thead><tr><th>Agent</th>";
        for (const auto& level : task.levels) out += "<th>" + escape_html(level_title(level)) + "</th>";
        out += (gap ? "<th>Gap</th>" : "") + std::string("</tr></thead><tbody>");
        for (const auto& a : task.ablations) {
            out += "<tr><th scope='row'><span class='c" + std::to_string(colour(a.ablation) % 10) +
                   "'><i class='dot'></i></span>" + escape_html(ablation_title(a.ablation)) + "<small>" +
                   counted(static_cast<int>(a.runs.size()), "seed") + "</small></th>";
            for (std::size_t i = 0; i < task.levels.size(); ++i) {
                if (!a.levels[i]) {
                    out += "<td><small>not evaluated</small></td>";
                    continue;
                }
                const auto& l = *a.levels[i];
                out += std::string("<td") + (task.is_best(i, a) ? " class='best'" : "") + ">" + number(task, l.shown());
                if (task.percent)
                    out += "<small>" + significant(l.reward.mean, 4) + " of " + significant(*l.maximum, 4) + "</small>";
                out += "</td>";
            }
            if (gap) out += "<td>" + (a.gap ? number(task, *a.gap, true) : "") + "</td>";
            out += "</tr>";
        }
        return out + "</tbody></table></div>";
    }

    std::string bars(const task_comparison& task) const {
        if (!task.evaluated() || task.ablations.size() < 2) return "";
        std::string out = "<div class='levels'>";
        for (std::size_t i = 0; i < task.levels.size(); ++i) {
            std::vector<chart_bar> list;
            double limit = task.percent ? 100 : 0;
            std::optional<double> random;
            for (const auto& a : task.ablations) {
                if (!a.levels[i]) continue;
                const auto& s = a.levels[i]->shown();
                list.push_back({ablation_title(a.ablation),
                                task.percent ? fixed(s.mean, 1) + " %" : significant(s.mean, 4), colour(a.ablation),
                                s.mean, s.standard_error});
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

    std::string retrievals(const task_comparison& task) const {
        std::string out;
        for (const auto& a : task.ablations) {  // one episode per ablation: that of its first seed which has one
            const auto with = std::find_if(a.runs.begin(), a.runs.end(),
                                           [](auto* run) { return run->retrieval && !run->retrieval->trials.empty(); });
            if (with == a.runs.end()) continue;
            const run_record& run = **with;
            const std::string prefix = "p" + std::to_string(&run - runs_.data());
            std::string name = ablation_title(a.ablation) + (run.seed ? ", seed " + significant(*run.seed, 15) : "");
            out += "<details" + std::string(out.empty() ? " open" : "") + "><summary>" + escape_html(name) + "<small>" +
                   escape_html("one episode" + (run.retrieval->level.empty()
                                                    ? ""
                                                    : " of the level " + plain_words(run.retrieval->level))) +
                   "</small></summary>" + retrieval_view(*run.retrieval, prefix) + "</details>";
        }
        if (out.empty()) return out;
        return heading("What the memory gave back, and when") +
               "<p class='sub'>One evaluation episode, trial by trial.</p>" + out;
    }

    std::string diagnostics(const task_comparison& task) const {
        std::string charts;
        for (const auto& [column, name] : {std::pair{"loss", "loss"},
                                           {"policy_loss", "policy loss"},
                                           {"baseline_loss", "baseline loss"},
                                           {"entropy_loss", "entropy loss"},
                                           {"auxiliary_loss", "auxiliary loss"},
                                           {"gradient_norm", "gradient norm"},
                                           {"learning_rate", "learning rate"},
                                           {"steps_per_second", "steps per second"},
                                           {"lag", "lag of the policy, updates"}}) {
            const auto lines = series(task, column);
            if (lines.empty()) continue;
            chart_frame frame{.width = 390, .height = 250, .y_title = name, .from_zero = false, .label_y = false};
            charts += "<div class='plot'><h4>" + in_words(name) + "</h4>" + line_chart(lines, frame) + "</div>";
        }
        if (charts.empty()) return "";
        std::string legend;
        for (const auto& a : task.ablations)
            legend += "<li class='c" + std::to_string(colour(a.ablation) % 10) + "'><i></i>" +
                      escape_html(ablation_title(a.ablation)) + "</li>";
        return heading("Training in detail") +
               "<details><summary>Losses, gradients and speed</summary><ul class='legend'>" + legend +
               "</ul><div class='small-charts'>" + charts + "</div></details>";
    }

    std::string heat_map() const {
        std::vector<std::string> names;
        for (const auto& task : tasks_)
            for (const auto& a : task.ablations)
                if (std::find(names.begin(), names.end(), a.ablation) == names.end()) names.push_back(a.ablation);
        std::string out =
            "<h2>All tasks</h2><p class='sub'>Mean over the holdout levels (over all levels, where a task has no "
            "others), in % "
            "of the maximum where there is one.</p><div class='scroll'><table class='heat'><thead><tr><th></th>";
        for (const auto& task : tasks_) out += "<th>" + escape_html(name_of(task)) + "</th>";
        out += "</tr></thead><tbody>";
        for (const auto& name : names) {
            out += "<tr><th scope='row'>" + escape_html(ablation_title(name)) + "</th>";
            for (const auto& task : tasks_) {
                const auto a = std::find_if(task.ablations.begin(), task.ablations.end(),
                                            [&](auto& x) { return x.ablation == name; });
                if (a == task.ablations.end() || !a->score) {
                    out += "<td class='none'>\u2013</td>";
                    continue;
                }
                const double share = task.percent ? std::clamp(a->score->mean / 100, 0.0, 1.0) : 0;
                out += "<td class='" + std::string(share > 0.72 ? "strong" : "") + "' style='--v:" + fixed(share, 3) +
                       "'>" + (task.percent ? fixed(a->score->mean, 1) : significant(a->score->mean)) + "</td>";
            }
            out += "</tr>";
        }
        return out + "</tbody></table></div>";
    }

    /// Dotted names and values of nested settings.
    static void flatten(const json& value, const std::string& name,
                        std::vector<std::pair<std::string, std::string>>& out) {
        if (value.is_object()) {
            for (const auto& [key, inner] : value.items()) flatten(inner, name.empty() ? key : name + "." + key, out);
        } else if (!value.is_null()) {
            out.emplace_back(name, value.is_string() ? value.get<std::string>()
                                                     : value.dump(-1, ' ', false, json::error_handler_t::replace));
        }
    }

    std::string runs_section() const {
        const auto cell = [](const std::optional<double>& x, auto format) {
            return "<td>" + (x ? escape_html(format(*x)) : "") + "</td>";
        };
        const auto whole = [](double x) { return fixed(x, 0); };
        std::string out =
            "<section><h2>Runs</h2><div class='scroll'><table class='runs'><thead><tr><th>Agent</th><th>Seed</th>"
            "<th>Parameters</th><th>Steps</th><th>Steps per second</th><th>Wall "
            "time</th><th>Threads</th><th>Device</th>"
            "<th>Mode</th></tr></thead><tbody>";
        std::string settings;
        for (const auto& task : tasks_)
            for (const auto& a : task.ablations)
                for (const auto* run : a.runs) {
                    const std::string where =
                        tasks_.size() > 1 ? "<small>" + escape_html(name_of(task)) + "</small>" : "";
                    out += "<tr><th scope='row'>" + escape_html(ablation_title(a.ablation)) + where + "</th>" +
                           cell(run->seed, whole) + cell(run->parameters, short_count) + cell(run->steps, short_count) +
                           cell(run->steps_per_second, short_count) + cell(run->wall_seconds, duration) +
                           cell(run->threads, whole) + "<td>" + escape_html(run->device) + "</td><td>" +
                           escape_html(run->mode) + "</td></tr>";
                    std::vector<std::pair<std::string, std::string>> list;
                    flatten(run->settings, "", list);
                    flatten(run->settings_trainer, "trainer", list);
                    settings +=
                        "<details><summary>" +
                        escape_html(ablation_title(a.ablation) + (run->seed ? ", seed " + fixed(*run->seed, 0) : "")) +
                        "<small>" + escape_html(run->folder) + "</small></summary><ul class='settings'>";
                    for (const auto& [name, value] : list)
                        settings += "<li><span>" + escape_html(name) + "</span><b>" + escape_html(value) + "</b></li>";
                    settings += list.empty() ? "</ul><p class='sub'>No settings were written.</p></details>"
                                             : "</ul></details>";
                }
        return out + "</tbody></table></div><details><summary>Settings<small>of every run</small></summary>" +
               settings + "</details></section>\n";
    }

    const std::vector<run_record>& runs_;
    std::vector<task_comparison> tasks_;
    std::string title_;
    std::map<std::string, int> colours_;
};

}  // namespace engram
