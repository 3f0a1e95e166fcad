#pragma once
// SPDX-License-Identifier: MIT

// levels.csv of a run folder: what the agent earned on every judged level while it was trained, with fixed weights and
// episodes that are none of those of training.
//
//     step,level,episodes,mean,stderr
//
// One row per evaluation and level, steps ascending. The writer and the reader of the file are both here.

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <engram/core/error.hpp>

namespace engram {

/// One level over training: entries of equal index belong together.
struct level_curve {
    std::string level;
    std::vector<double> step{}, episodes{}, mean{}, standard_error{};
};

inline constexpr const char* level_curve_header = "step,level,episodes,mean,stderr";

/// One row, with its end of line; numbers in the fewest digits that give them back.
inline std::string level_curve_row(long long step, std::string_view level, int episodes, double mean,
                                   double standard_error) {
    std::string row = std::to_string(step) + "," + std::string(level) + "," + std::to_string(episodes);
    for (const double x : {mean, standard_error}) {
        char digits[32];
        const auto end = std::to_chars(digits, digits + sizeof digits, x).ptr;
        row += "," + (std::isfinite(x) ? std::string(digits, end) : std::string());
    }
    return row + "\n";
}

/// The curves of a levels.csv in the order in which it names the levels; half a last row does not count.
inline std::vector<level_curve> parse_level_curves(std::string_view text, const std::string& source) {
    std::vector<level_curve> curves;
    for (int number = 1; !text.empty(); ++number) {
        const auto end = text.find('\n');
        if (end == text.npos) break;
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        if (number == 1) {
            require(line == level_curve_header, source, ", line 1: found '", line, "', expected '", level_curve_header,
                    "'");
            continue;
        }
        if (line.empty()) continue;
        std::vector<std::string_view> cells;
        for (std::string_view rest = line;;) {
            const auto comma = rest.find(',');
            cells.push_back(rest.substr(0, comma));
            if (comma == rest.npos) break;
            rest.remove_prefix(comma + 1);
        }
        require(cells.size() == 5 && !cells[1].empty(), source, ", line ", number, ": found '", line,
                "', expected five cells ", level_curve_header);
        const auto value = [&](std::string_view cell) {
            double x = std::numeric_limits<double>::quiet_NaN();
            const auto [stop, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), x);
            require(cell.empty() || (problem == std::errc() && stop == cell.data() + cell.size()), source, ", line ",
                    number, ": '", cell, "' is not a number");
            return x;
        };
        level_curve* curve = nullptr;
        for (auto& each : curves)
            if (each.level == cells[1]) curve = &each;
        if (!curve) {
            curves.emplace_back().level = cells[1];
            curve = &curves.back();
        }
        const double step = value(cells[0]), episodes = value(cells[2]);
        require(step >= 0 && episodes > 0 && (curve->step.empty() || step > curve->step.back()), source, ", line ",
                number, ": found '", line, "', expected ascending steps of each level and at least one episode");
        curve->step.push_back(step), curve->episodes.push_back(episodes);
        curve->mean.push_back(value(cells[3])), curve->standard_error.push_back(value(cells[4]));
    }
    return curves;
}

}  // namespace engram
