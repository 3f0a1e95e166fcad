#pragma once
// SPDX-License-Identifier: MIT

// A table for a terminal.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <engram/version.hpp>

namespace engram {

/// A line a row, indented by two; the first column is flush left, the others right. Rows are equally long.
inline std::string text_table(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(rows.empty() ? 0 : rows[0].size());
    for (const auto& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string out;
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

}  // namespace engram
