// SPDX-License-Identifier: MIT

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include <engram/program/progress.hpp>

namespace engram {

namespace {

constexpr double between_lines = 20;  // seconds, where there is no terminal

}  // namespace

std::string count_text(double n) {
    return n >= 1e6   ? fmt::format("{:.2f} M", n / 1e6)
           : n >= 1e3 ? fmt::format("{:.1f} k", n / 1e3)
                      : fmt::format("{:.0f}", n);
}

std::string time_text(double seconds) {
    const auto s = static_cast<std::int64_t>(std::min(seconds, 1e9));
    return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                     : fmt::format("{}:{:02}", s / 60, s % 60);
}

progress_bar::progress_bar(bool quiet, std::int64_t first_step, std::int64_t last_step, std::string what, double best,
                           const std::string& follows)
    : on_(!quiet),
      terminal_(::isatty(2) == 1),
      first_(first_step),
      last_(last_step),
      what_(std::move(what)),
      best_(best),
      start_(clock::now()),
      shown_(start_) {
    if (!on_ || terminal_ || last_ <= first_) return;
    std::fprintf(stderr, "%s of %s steps to go, a line every %.0f s%s\n",
                 count_text(static_cast<double>(last_ - first_)).c_str(),
                 count_text(static_cast<double>(last_)).c_str(), between_lines, follows.c_str());
    std::fflush(stderr);
}

progress_bar::~progress_bar() {
    finish();
}

void progress_bar::show(std::int64_t step, double value) {
    if (!on_) return;
    const auto now = clock::now();
    const double since = std::chrono::duration<double>(now - shown_).count();
    if (since < (terminal_ ? 0.2 : between_lines) && !(terminal_ && step >= last_)) return;
    shown_ = now;
    const std::string text = line(step, value, std::chrono::duration<double>(now - start_).count());
    std::fprintf(stderr, terminal_ ? "\r%s\033[K" : "%s\n", text.c_str());
    std::fflush(stderr);
    drawn_ = terminal_;
}

void progress_bar::finish() {
    if (drawn_) std::fputc('\n', stderr);
    drawn_ = false;
}

std::string progress_bar::line(std::int64_t step, double value, double seconds) const {
    const double share = last_ > 0 ? std::min(1.0, static_cast<double>(step) / static_cast<double>(last_)) : 1;
    const double rate = seconds > 0 ? static_cast<double>(step - first_) / seconds : 0;
    std::string out;
    if (terminal_) {
        const int filled = static_cast<int>(share * 24);
        out += "[" + std::string(static_cast<std::size_t>(filled), '#') +
               std::string(static_cast<std::size_t>(24 - filled), '.') + "] ";
    }
    out += fmt::format("{:3.0f} %  {} of {} steps  {} steps/s", 100 * share, count_text(static_cast<double>(step)),
                       count_text(static_cast<double>(last_)), count_text(rate));
    if (std::isfinite(value)) out += fmt::format("  {} {:.2f}", what_, value);
    if (std::isfinite(value) && std::isfinite(best_)) out += fmt::format(" of {:g}", best_);
    if (rate > 0)
        out += fmt::format("  {} left", time_text(static_cast<double>(std::max<std::int64_t>(0, last_ - step)) / rate));
    return out;
}

}  // namespace engram
