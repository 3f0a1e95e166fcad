#pragma once
// SPDX-License-Identifier: MIT

// The report: one HTML page with everything in it, from finished or unfinished runs. Nothing is fetched, and every text
// that comes from a file is escaped.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <engram/evaluate/comparison_table.hpp>
#include <engram/evaluate/headline.hpp>
#include <engram/evaluate/learning_curve.hpp>
#include <engram/evaluate/mixed_runs.hpp>

#include "comparison_view.hpp"
#include "heatmap_view.hpp"
#include "report_style.hpp"
#include "retrieval_view.hpp"
#include "svg_chart.hpp"

namespace engram {

class report_page {
public:
    /// An empty title means the headline that the data give. The runs must outlive the page.
    report_page(const std::vector<run_record>& runs, std::string title, curve_middle middle = curve_middle::mean)
        : runs_(runs), tasks_(compare(runs)), title_(std::move(title)), middle_(middle) {
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
        std::vector<std::pair<const task_comparison*, std::string>> acting;
        for (const auto& task : tasks_)
            if (task.kind == run_kind::agent) acting.emplace_back(&task, name_of(task));
        if (acting.size() > 1) out += html_all_tasks(runs_, acting);
        for (const auto& task : tasks_) out += task_section(task);
        out += runs_section();
        return out + "<footer>Made by engram-report from " + counted(static_cast<int>(runs_.size()), "run folder") +
               ".</footer>\n</main><script>" + report_script + "</script></body></html>\n";
    }

    const std::vector<task_comparison>& tasks() const { return tasks_; }

private:
    bool any_sequences() const {
        return std::any_of(tasks_.begin(), tasks_.end(), [](auto& t) { return t.kind != run_kind::agent; });
    }
    bool only_sequences() const {
        return std::all_of(tasks_.begin(), tasks_.end(), [](auto& t) { return t.kind != run_kind::agent; });
    }
    std::string noun() const { return any_sequences() ? "model" : "agent"; }

    int colour(const std::string& ablation) const { return colours_.at(ablation); }

    std::string name_of(const task_comparison& task) const {
        const auto same = std::count_if(tasks_.begin(), tasks_.end(), [&](auto& t) { return t.task == task.task; });
        return task.title() + (same > 1 && !task.preset.empty() ? " (" + task.preset + ")" : "");
    }

    std::string many_tasks_headline() const {
        std::set<std::string> names;
        for (const auto& run : runs_) names.insert(run.ablation);
        const std::string all =
            counted(static_cast<int>(names.size()), noun()) + " on " + counted(static_cast<int>(tasks_.size()), "task");
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
        std::string out = counted(static_cast<int>(ablations.size()), noun()) + ", " +
                          (seeds.empty() ? counted(static_cast<int>(runs_.size()), "run")
                                         : counted(static_cast<int>(seeds.size()), "seed"));
        if (tasks_.size() == 1) out += ", on " + plain_words(tasks_[0].task);
        if (most > 0)
            out += ", " +
                   (short_count(least) == short_count(most) ? short_count(most)
                                                            : short_count(least) + " to " + short_count(most)) +
                   (only_sequences()  ? " frames each"
                    : any_sequences() ? " steps or frames each"
                                      : " environment steps each");
        out += ".";
        if (tasks_.size() != 1) return out;
        if (tasks_[0].kind == run_kind::generative) return out + generative_lead(tasks_[0]);
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
        if (task.kind == run_kind::generative)
            out += generative_curves(task) + step_curves(task) + table(task) + strips(task);
        else
            out += curves(task) + table(task) + html_level_bars(task, colours_) + level_curves(task) +
                   goal_curves(task) + retrievals(task);
        return out + diagnostics(task) + "</section>\n";
    }

    std::string middles() const { return middle_ == curve_middle::mean ? "means" : "medians"; }

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
            if (auto band = band_of_runs(a.runs, column, grid, middle_); !band.x.empty())
                out.push_back({ablation_title(a.ablation), colour(a.ablation), std::move(band)});
        return out;
    }

    std::string curves(const task_comparison& task) const {
        const bool agents = task.kind == run_kind::agent;
        auto lines = series(task, agents ? "reward" : "loss");
        if (lines.empty() && agents) lines = series(task, "reward_smooth");
        if (lines.empty()) return no_curves();
        chart_frame wide{.y_title = agents ? "episode reward" : "loss", .label_ends = true};
        if (!agents) wide.x_title = wide.x_unit = "frames";
        for (const auto& a : task.ablations)
            for (std::size_t i = 0; i < a.levels.size(); ++i)
                if (a.levels[i] && is_train_level(task.levels[i]) && !wide.maximum)
                    wide.maximum = a.levels[i]->maximum, wide.random = a.levels[i]->random;
        std::size_t most = 1;
        bool tails = false;
        for (const auto& a : task.ablations) most = std::max(most, a.runs.size());
        for (const auto& l : lines) tails = tails || !l.band.tails.empty();
        std::string out =
            heading("Learning") +
            (agents ? "<p class='sub'>Mean reward of the training episodes that ended around each step, smoothed"
                    : "<p class='sub'>Loss in training over the frames of all sequences, smoothed") +
            (most > 1 ? "; lines are " + middles() + " over seeds, bands reach from the worst seed to the best" : "") +
            (tails ? "; thin lines are seeds that trained longer than the others" : "") + ".</p>";
        return out + two_sizes(lines, wide);
    }

    std::string no_curves() const {
        return heading("Learning") + "<p class='sub'>The runs have no training curve (metrics.csv) yet.</p>";
    }

    static std::string legend(const std::vector<chart_series>& lines, const char* classes) {
        std::string out = "<ul class='" + std::string(classes) + "'>";
        for (const auto& l : lines)
            out += "<li class='c" + std::to_string(l.colour % 10) + "' data-name='" + escape_html(l.name) +
                   "'><i></i>" + escape_html(l.name) + "</li>";
        return out + "</ul>";
    }

    /// The chart as wide screens show it, and as narrow ones do.
    static std::string two_sizes(const std::vector<chart_series>& lines, const chart_frame& wide) {
        chart_frame narrow = wide;
        narrow.width = 390, narrow.height = 330, narrow.label_ends = false;
        return "<div class='plot'>" + legend(lines, "legend narrow") + "<div class='wide'>" + line_chart(lines, wide) +
               "</div><div class='narrow'>" + line_chart(lines, narrow) + "</div></div>";
    }

    std::string generative_curves(const task_comparison& task) const {
        std::string charts, names;
        for (const auto& [column, title] :
             {std::pair{"kl_last", "KL of the last step, nats"}, {"negative_elbo", "\u2212ELBO, nats a sequence"}}) {
            auto lines = series(task, column);
            if (lines.empty()) continue;
            if (column == std::string("negative_elbo"))
                for (auto& l : lines) l.band = band_from(std::move(l.band), 0.05 * last_step(task));
            chart_frame frame{.width = 440, .height = 330, .y_title = title};
            frame.from_zero = column == std::string("kl_last");
            frame.x_title = frame.x_unit = "frames";
            if (names.empty()) names = legend(lines, "legend");
            charts += "<div class='plot'>" + line_chart(lines, frame) + "</div>";
        }
        if (charts.empty()) return no_curves();
        const bool several =
            std::any_of(task.ablations.begin(), task.ablations.end(), [](auto& a) { return a.runs.size() > 1; });
        return heading("Learning") +
               "<p class='sub'>Training sequences, over the frames seen: the KL of a sequence\u2019s last step and the "
               "negative ELBO (without the first twentieth, which lies far above), smoothed; lower is better" +
               (several ? "; lines are " + middles() + " over seeds, bands reach from the best seed to the worst"
                        : "") +
               ".</p>" + names + "<div class='pair'>" + charts + "</div>";
    }

    /// KL over the time steps of the judged level.
    std::string step_curves(const task_comparison& task) const {
        if (!task.evaluated()) return "";
        const std::string& level = task.levels[task.judged_level()];
        std::vector<chart_series> lines;
        chart_frame frame{.height = 360, .y_title = "KL, nats", .label_ends = true};
        frame.x_title = frame.x_unit = "time step", frame.points = true, frame.mark_name = "recall";
        for (const auto& a : task.ablations) {
            if (auto band = band_of_steps(a.runs, level); !band.x.empty())
                lines.push_back({ablation_title(a.ablation), colour(a.ablation), std::move(band)});
            for (const auto* run : a.runs)
                for (const auto& result : run->levels)
                    if (result.level == level && !frame.mark) frame.mark = result.recall_step;
        }
        if (lines.empty()) return "";
        if (frame.mark && !(*frame.mark >= 0 && *frame.mark <= lines[0].band.x.back())) frame.mark.reset();
        return heading("What each step costs after training") +
               "<p class='sub'>KL of every time step on the level \u201c" + escape_html(plain_words(level)) +
               "\u201d. A drop where frames come back is the memory\u2019s work: what it foresees need not be "
               "told.</p>" +
               two_sizes(lines, frame);
    }

    /// What a supervised model gets wrong, over the number in the names of the levels.
    std::string level_curves(const task_comparison& task) const {
        if (task.levels.size() == task.table_levels().size()) return "";
        std::vector<chart_series> lines;
        for (const auto& a : task.ablations)
            if (auto band = band_of_levels(a.runs, task.levels); !band.x.empty())
                lines.push_back({ablation_title(a.ablation), colour(a.ablation), std::move(band)});
        chart_frame frame{.height = 360, .y_title = task.unit, .label_ends = true};
        const std::string& last = task.levels.back();
        frame.x_title = frame.x_unit = plain_words(last.substr(0, last.rfind('_'))), frame.points = true;
        return heading("By " + escape_html(frame.x_title)) + two_sizes(lines, frame);
    }

    /// How many steps the goal of an episode costs the first time, and how many once it was found.
    std::string goal_curves(const task_comparison& task) const {
        if (!task.evaluated()) return "";
        const std::string& level = task.levels[task.judged_level()];
        std::vector<chart_series> lines;
        for (const auto& a : task.ablations)
            if (auto band = band_of_goals(a.runs, level); band.x.size() > 1)
                lines.push_back({ablation_title(a.ablation), colour(a.ablation), std::move(band)});
        if (lines.empty()) return "";
        chart_frame frame{.height = 360, .y_title = "steps", .label_ends = true};
        frame.x_title = frame.x_unit = "time that the goal is reached", frame.points = true;
        return heading("Steps to the goal within an episode") + "<p class='sub'>On the level \u201c" +
               escape_html(plain_words(level)) +
               "\u201d: to the first time that the goal is reached, from there to the second, and so on; means over "
               "the "
               "episodes that came so far, as long as half of them do. Who remembers where it is needs fewer after the "
               "first.</p>" +
               two_sizes(lines, frame);
    }

    std::string table(const task_comparison& task) const {
        if (!task.evaluated())
            return heading("Levels") +
                   "<p class='sub'>None of the runs has been evaluated yet: run evaluate --from on each folder.</p>";
        std::string mixed;
        for (const auto& sentence : mixed_runs(task)) mixed += "<p class='sub'>" + escape_html(sentence) + ".</p>";
        return heading("Levels") +
               (task.kind == run_kind::generative ? html_generative_table(task, colours_)
                                                  : html_level_table(task, colours_)) +
               mixed;
    }

    /// Sequences as one run of every ablation follows and continues them.
    std::string strips(const task_comparison& task) const {
        std::string out;
        for (const auto& a : task.ablations) {
            const auto with =
                std::find_if(a.runs.begin(), a.runs.end(), [](auto* run) { return !run->strips.empty(); });
            if (with == a.runs.end()) continue;
            const auto size = base64_png_size((*with)->strips).value_or(std::pair{1, 1});
            const std::string name = ablation_title(a.ablation);
            const std::string seed = (*with)->seed ? "seed " + fixed(*(*with)->seed, 0) : "";
            out += "<figure><figcaption>" + escape_html(name) + "<small>" + seed + "</small></figcaption><img width='" +
                   std::to_string(size.first) + "' height='" + std::to_string(size.second) + "' alt='Sequences of " +
                   escape_html(name) + ": observed above, generated below' src='data:image/png;base64," +
                   (*with)->strips + "'/></figure>";
        }
        if (out.empty()) return out;
        return heading("What the models draw") +
               "<p class='sub'>Sequences in pairs of lines: above what was shown, below what the model makes of it. "
               "From "
               "the orange frames on it draws alone, and sees nothing of the line above.</p><div class='strips'>" +
               out + "</div>";
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
        const bool agents = task.kind == run_kind::agent;
        for (const auto& [column, name] : {std::pair{"loss", "loss"},
                                           {"kl", "KL a sequence, nats"},
                                           {"log_likelihood", "log-likelihood a sequence, nats"},
                                           {"kl_first", "KL a step before the recall, nats"},
                                           {"kl_recall", "KL a step from the recall on, nats"},
                                           {"policy_loss", "policy loss"},
                                           {"baseline_loss", "baseline loss"},
                                           {"entropy_loss", "entropy loss"},
                                           {"auxiliary_loss", "auxiliary loss"},
                                           {"gradient_norm", "gradient norm"},
                                           {"learning_rate", "learning rate"},
                                           {"steps_per_second", agents ? "steps per second" : "frames per second"},
                                           {"lag", "lag of the policy, updates"}}) {
            const auto lines = series(task, column);
            if (lines.empty()) continue;
            chart_frame frame{.width = 390, .height = 250, .y_title = name, .from_zero = false, .label_y = false};
            if (!agents) frame.x_title = frame.x_unit = "frames";
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

    std::string runs_section() const {
        const auto cell = [](const std::optional<double>& x, auto format) {
            return "<td>" + (x ? escape_html(format(*x)) : "") + "</td>";
        };
        const auto whole = [](double x) { return fixed(x, 0); };
        std::string out = "<section><h2>Runs</h2><div class='scroll'><table class='runs'><thead><tr><th>" +
                          in_words(noun()) + "</th><th>Seed</th><th>Parameters</th>" +
                          (only_sequences() ? "<th>Frames</th><th>Frames per second</th>"
                                            : "<th>Steps</th><th>Steps per second</th>") +
                          "<th>Wall time</th><th>Threads</th><th>Device</th>"
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
                    std::string list;
                    for_each_leaf(run->settings, [&](const std::string& name, const json& value) {
                        if (!value.is_null())
                            list += "<li><span>" + escape_html(name) + "</span><b>" + escape_html(json_word(value)) +
                                    "</b></li>";
                    });
                    settings +=
                        "<details><summary>" +
                        escape_html(ablation_title(a.ablation) + (run->seed ? ", seed " + fixed(*run->seed, 0) : "")) +
                        "<small>" + escape_html(run->folder) + "</small></summary><ul class='settings'>" + list;
                    settings += list.empty() ? "</ul><p class='sub'>No settings were written.</p></details>"
                                             : "</ul></details>";
                }
        return out + "</tbody></table></div><details><summary>Settings<small>of every run</small></summary>" +
               settings + "</details></section>\n";
    }

    const std::vector<run_record>& runs_;
    std::vector<task_comparison> tasks_;
    std::string title_;
    curve_middle middle_;
    std::map<std::string, int> colours_;
};

}  // namespace engram
