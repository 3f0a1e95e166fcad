#pragma once
// SPDX-License-Identifier: MIT

// A progress bar on stderr: on a terminal one line, drawn at most five times a second; elsewhere a line that says what
// will follow, and then one every twenty seconds.

#include <chrono>
#include <cstdint>
#include <string>

#include <engram/version.hpp>

namespace engram {

/// A number of steps as people read it: 950, 12.5 k, 3.00 M.
std::string count_text(double n);
/// Seconds as 4:05, from an hour on as 1:02:03.
std::string time_text(double seconds);

class progress_bar {
public:
    /// `what` is shown beside the bar, with its best value where there is one (NaN: none); `follows` is the end of the
    /// first line where there is no terminal.
    progress_bar(bool quiet, std::int64_t first_step, std::int64_t last_step, std::string what, double best,
                 const std::string& follows = "");
    ~progress_bar();
    progress_bar(const progress_bar&) = delete;
    progress_bar& operator=(const progress_bar&) = delete;
    /// Where training stands; `value` is NaN while there is none.
    void show(std::int64_t step, double value);
    /// Leaves the line as it is and goes to the next one.
    void finish();

private:
    using clock = std::chrono::steady_clock;
    std::string line(std::int64_t step, double value, double seconds) const;
    bool on_, terminal_, drawn_ = false;
    std::int64_t first_, last_;
    std::string what_;
    double best_;
    clock::time_point start_, shown_;
};

}  // namespace engram
