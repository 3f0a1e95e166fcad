// SPDX-License-Identifier: MIT

// The page of a campaign: a table of all its runs, who runs and how long that takes, what failed and why. It is read
// without any script, and a browser that holds it open loads it again every minute.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <engram/io/file.hpp>
#include <engram/program/progress.hpp>

#include "../report/report_style.hpp"
#include "../report/svg_chart.hpp"
#include "campaign.hpp"

namespace engram {

namespace {

constexpr const char* page_css = R"css(
td.state{white-space:normal;text-align:left}td.state a{display:inline-block;min-width:2.4em;margin:0 4px 4px 0;padding:1px 7px;
border-radius:6px;text-align:center;text-decoration:none;font-size:13px;color:var(--ink);border:1.5px solid var(--rule);
background:linear-gradient(90deg,color-mix(in srgb,var(--s) 35%,transparent) var(--p),transparent 0)}
td.state a.finished{--s:var(--right);border-color:var(--right)}td.state a.failed{--s:var(--wrong);border-color:var(--wrong)}
td.state a.running{--s:var(--accent);border-color:var(--accent)}td.state a.stopped{--s:var(--faint);border-color:var(--faint)}
td.state a.queued,td.state a.waiting{--s:var(--faint);border-style:dashed}td.text{white-space:normal;text-align:left}
)css";

const char* name_of(run_state state) {
    switch (state) {
        case run_state::waiting:
            return "waiting";
        case run_state::queued:
            return "queued";
        case run_state::finished:
            return "finished";
        case run_state::failed:
            return "failed";
        case run_state::stopped:
            return "stopped";
        default:
            return "running";
    }
}

/// What a cell's runs differ in: the seed, and the values that vary.
std::string label_of(const campaign& all, const planned_run& run) {
    std::string out;
    for (const auto& key : all.varied)
        for (const auto& value : run.values)
            if (value.key == key) out += value.value + " ";
    return out + std::to_string(run.seed);
}

class campaign_page {
public:
    campaign_page(const campaign& all, const std::vector<run_progress>& now, std::string path,
                  std::vector<std::size_t> shown)
        : all_(all), now_(now), folder_(std::filesystem::absolute(path).parent_path()), shown_(std::move(shown)) {}

    std::string html(const std::string& head) const {
        std::string out =
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta http-equiv='refresh' content='60'>"
            "<meta name='viewport' content='width=device-width,initial-scale=1'><title>" +
            escape_html(all_.stem) + "</title>\n<style>" + report_css + page_css +
            "</style></head>\n<body><main>\n<p class='brand'><b>engram</b> campaign</p>\n<h1>" +
            escape_html(all_.stem) + "</h1>\n<p class='lead'>" + escape_html(head) + "</p>\n" + table();
        out += list("Failed", {run_state::failed}) + list("Running", {run_state::running, run_state::elsewhere}) +
               list("Stopped", {run_state::stopped});
        return out + "<footer>Made by engram-campaign.</footer>\n</main></body></html>\n";
    }

private:
    std::string row_of(const planned_run& run) const {
        return run.section.empty() ? run.task : run.section + " " + run.task;
    }
    /// To the run's log, as seen from the page.
    std::string link(const planned_run& run) const {
        const auto to = std::filesystem::absolute(log_of(run)).lexically_relative(folder_);
        return "href='" + escape_html(to.string()) + "'";
    }

    std::string table() const {
        std::vector<std::string> rows, programs;
        const auto add = [](auto& names, const std::string& name) {
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        };
        for (const auto i : shown_) {
            add(rows, row_of(all_.runs[i]));
            add(programs, all_.runs[i].program);
        }
        std::string out = "<div class='scroll'><table><thead><tr><th></th>";
        for (const auto& program : programs) out += "<th>" + escape_html(program) + "</th>";
        out += "</tr></thead><tbody>\n";
        for (const auto& row : rows) {
            out += "<tr><th>" + escape_html(row) + "</th>";
            for (const auto& program : programs) {
                out += "<td class='state'>";
                for (const auto i : shown_)
                    if (row_of(all_.runs[i]) == row && all_.runs[i].program == program) out += cell(i);
                out += "</td>";
            }
            out += "</tr>\n";
        }
        return out + "</tbody></table></div>\n";
    }

    std::string cell(std::size_t i) const {
        const auto& run = all_.runs[i];
        const auto& now = now_[i];
        const double steps = static_cast<double>(run.steps());
        const double done = now.state == run_state::finished || steps <= 0
                                ? 1
                                : std::clamp(static_cast<double>(now.step) / steps, 0.0, 1.0);
        return fmt::format("<a class='{}' style='--p:{:.0f}%' {} title='{}'>{}</a>", name_of(now.state), 100 * done,
                           link(run), escape_html(run_line(run, now)), escape_html(label_of(all_, run)));
    }

    std::string list(const std::string& title, const std::vector<run_state>& states) const {
        std::string rows;
        for (const auto i : shown_) {
            if (std::find(states.begin(), states.end(), now_[i].state) == states.end()) continue;
            const auto& run = all_.runs[i];
            const auto& now = now_[i];
            std::string text = now.remark;
            if (title == "Running" && now.rate > 0)
                text = fmt::format("{} of {} steps, {} a second, {} left", count_text(static_cast<double>(now.step)),
                                   count_text(static_cast<double>(run.steps())), count_text(now.rate),
                                   time_text(std::max(0.0, static_cast<double>(run.steps() - now.step)) / now.rate));
            rows += "<tr><td><a " + link(run) + ">" + escape_html(run.folder) + "</a></td><td class='text'>" +
                    escape_html(text) + "</td></tr>\n";
        }
        if (rows.empty()) return "";
        return "<h2>" + title + "</h2>\n<div class='scroll'><table class='runs'><tbody>\n" + rows +
               "</tbody></table></div>\n";
    }

    const campaign& all_;
    const std::vector<run_progress>& now_;
    std::filesystem::path folder_;
    std::vector<std::size_t> shown_;
};

}  // namespace

void write_pages(const campaign& all, const std::vector<run_progress>& now, int jobs) {
    std::vector<std::string> done;
    for (const auto& run : all.runs) {
        if (run.page.empty() || std::find(done.begin(), done.end(), run.page) != done.end()) continue;
        done.push_back(run.page);
        std::vector<std::size_t> shown;
        for (std::size_t i = 0; i < all.runs.size(); ++i)
            if (all.runs[i].page == run.page) shown.push_back(i);
        make_folders(std::filesystem::path(run.page).parent_path().string());
        write_file(run.page, campaign_page(all, now, run.page, shown).html(headline(all, now, jobs)));
    }
}

}  // namespace engram
