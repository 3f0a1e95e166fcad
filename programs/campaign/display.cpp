// SPDX-License-Identifier: MIT

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include <fmt/format.h>

#include <engram/program/progress.hpp>

#include "campaign.hpp"

namespace engram {

namespace {

int count(const std::vector<run_progress>& now, run_state state) {
    return static_cast<int>(std::count_if(now.begin(), now.end(), [&](auto& r) { return r.state == state; }));
}

/// The first `columns` characters of UTF-8.
std::string cut(const std::string& line, int columns) {
    std::size_t end = 0;
    for (int n = 0; end < line.size(); ++end) {
        const bool begins = (static_cast<unsigned char>(line[end]) & 0xc0) != 0x80;
        if (begins && n++ == columns) break;
    }
    return line.substr(0, end);
}

}  // namespace

double seconds_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::optional<double> seconds_left(const campaign& all, const std::vector<run_progress>& now, int jobs) {
    // A run goes about as fast as those of its program on its task, else as those of its program, else as any.
    std::map<std::string, std::pair<double, int>> rates;
    const auto names = [](const planned_run& run) {
        return std::vector<std::string>{run.program + " " + run.task, run.program, ""};
    };
    for (std::size_t i = 0; i < now.size(); ++i)
        if (now[i].rate > 0)
            for (const auto& name : names(all.runs[i])) {
                rates[name].first += now[i].rate;
                rates[name].second += 1;
            }
    double sum = 0, longest = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i].state == run_state::finished || now[i].state == run_state::failed) continue;
        double rate = now[i].rate;
        for (const auto& name : names(all.runs[i]))
            if (rate <= 0 && rates.contains(name)) rate = rates[name].first / rates[name].second;
        if (rate <= 0) return {};
        const double left = static_cast<double>(std::max<std::int64_t>(0, all.runs[i].steps() - now[i].step)) / rate;
        sum += left;
        longest = std::max(longest, left);
    }
    return std::max(sum / std::max(1, jobs), longest);
}

std::string headline(const campaign& all, const std::vector<run_progress>& now, int jobs) {
    std::string out = fmt::format("{}: {} of {} done", all.file, count(now, run_state::finished), now.size());
    const auto add = [&](run_state state, const char* what) {
        if (const int n = count(now, state)) out += fmt::format(", {} {}", n, what);
    };
    add(run_state::running, "running");
    add(run_state::elsewhere, "running elsewhere");
    add(run_state::queued, "queued");
    add(run_state::stopped, "stopped");
    add(run_state::failed, "failed");
    const bool open = count(now, run_state::finished) + count(now, run_state::failed) < static_cast<int>(now.size());
    if (const auto left = seconds_left(all, now, jobs); left && open)
        out += fmt::format("; about {} left with {} at a time", time_text(*left), jobs);
    return out;
}

std::string run_line(const planned_run& run, const run_progress& now) {
    const double steps = static_cast<double>(run.steps()), step = static_cast<double>(now.step);
    switch (now.state) {
        case run_state::waiting:
            return "waiting   " + run.folder;
        case run_state::queued:
            return "queued    " + run.folder + (now.remark.empty() ? "" : ": " + now.remark);
        case run_state::finished:
            return fmt::format("finished  {}  {} steps in {}{}{}", run.folder, count_text(step), time_text(now.seconds),
                               now.remark.empty() ? "" : ": ", now.remark);
        case run_state::failed:
            return "failed    " + run.folder + ": " + now.remark;
        case run_state::stopped:
            return fmt::format("stopped   {}  {} of {} steps: {}", run.folder, count_text(step), count_text(steps),
                               now.remark);
        default:
            break;
    }
    std::string out =
        fmt::format("{} {}  {:3.0f} %  {} of {} steps", now.state == run_state::running ? "running  " : "elsewhere",
                    run.folder, steps > 0 ? 100 * std::min(1.0, step / steps) : 0, count_text(step), count_text(steps));
    if (now.rate > 0)
        out += fmt::format("  {} steps/s  {} left", count_text(now.rate),
                           time_text(std::max(0.0, steps - step) / now.rate));
    return out;
}

campaign_display::campaign_display() : terminal_(::isatty(1) == 1) {}

void campaign_display::erase() {
    if (drawn_ > 0) std::printf("\033[%dA\r\033[J", drawn_);
    drawn_ = 0;
}

/// A page that cannot be written ends no runs.
void campaign_display::write(const campaign& all, const std::vector<run_progress>& now, int jobs) {
    auto seen = now;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i].state != run_state::running && seen[i].state != run_state::elsewhere) continue;
        if (all.runs[i].page.empty()) continue;
        const auto found = progress_of(all.runs[i]);
        seen[i].step = found.step;
        seen[i].rate = found.rate;
    }
    try {
        write_pages(all, seen, jobs);
    } catch (const error& problem) {
        if (!told_) event(problem.what());
        told_ = true;
    }
}

void campaign_display::event(const std::string& line) {
    erase();
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
    if (terminal_) shown_ = 0;
}

void campaign_display::show(const campaign& all, std::vector<run_progress>& now, int jobs, bool at_once) {
    const double time = seconds_now();
    if (at_once || time - written_ > 60) {
        written_ = time;
        write(all, now, jobs);
    }
    if (!at_once && time - shown_ < (terminal_ ? 1 : 60)) return;
    const bool first = shown_ == 0;
    shown_ = time;
    if (!terminal_ && first && !at_once) return;
    winsize window{};
    if (::ioctl(1, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) window.ws_col = 120;
    const int most = window.ws_row > 4 ? window.ws_row - 3 : 20;
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < now.size(); ++i) {
        const auto state = now[i].state;
        if (state != run_state::running && state != run_state::elsewhere) continue;
        auto seen = progress_of(all.runs[i]);
        now[i].step = seen.step;
        now[i].rate = seen.rate;
        if (terminal_ && !at_once && static_cast<int>(lines.size()) < most)
            lines.push_back(run_line(all.runs[i], now[i]));
    }
    lines.insert(lines.begin(), headline(all, now, jobs));
    erase();
    for (const auto& line : lines) std::printf("%s\n", terminal_ ? cut(line, window.ws_col - 1).c_str() : line.c_str());
    std::fflush(stdout);
    drawn_ = terminal_ && !at_once ? static_cast<int>(lines.size()) : 0;
}

}  // namespace engram
