#pragma once
// SPDX-License-Identifier: MIT

// levels.csv of a run folder: what the agent earned on every judged level while it was trained, with fixed weights and
// episodes that are none of those of training.
//
//     step,level,episodes,mean,stderr
//
// One row per evaluation and level, steps ascending. The writer and the reader of the file are both here.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/io/csv.hpp>

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
    const csv_table table = parse_csv(whole_lines(text), source);
    std::vector<level_curve> curves;
    std::string header;
    for (const auto& name : table.names.cells) header += (header.empty() ? "" : ",") + name;
    require(header.empty() || header == level_curve_header, source, ", line ", table.names.line, ": found '", header,
            "', expected '", level_curve_header, "'");
    for (const csv_row& row : table.rows) {
        const auto& cells = row.cells;
        const auto value = [&](const std::string& cell) {
            const auto x = csv_number(cell);
            require(x.has_value(), source, ", line ", row.line, ": '", cell, "' is not a number");
            return *x;
        };
        auto curve = std::find_if(curves.begin(), curves.end(), [&](auto& each) { return each.level == cells[1]; });
        if (curve == curves.end()) {
            require(!cells[1].empty(), source, ", line ", row.line, ": it names no level");
            curve = curves.insert(curve, level_curve{cells[1]});
        }
        const double step = value(cells[0]), episodes = value(cells[2]);
        require(step >= 0 && episodes > 0 && (curve->step.empty() || step > curve->step.back()), source, ", line ",
                row.line, ": step ", cells[0], " of ", cells[2],
                " episodes, expected ascending steps of each level and at least one episode");
        curve->step.push_back(step), curve->episodes.push_back(episodes);
        curve->mean.push_back(value(cells[3])), curve->standard_error.push_back(value(cells[4]));
    }
    return curves;
}

}  // namespace engram
