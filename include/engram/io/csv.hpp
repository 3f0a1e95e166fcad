#pragma once
// SPDX-License-Identifier: MIT

// Comma-separated values (RFC 4180): curves of training, tables of results. Lines at the top that begin with # are
// remarks, the line after them names the columns.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <engram/core/error.hpp>

namespace engram {

struct csv_row {
    int line = 0;  // of the file, from 1
    std::vector<std::string> cells = {};
};

struct csv_table {
    std::vector<std::string> remarks;
    csv_row names;
    std::vector<csv_row> rows;

    /// Empty where there is no such column.
    std::string cell(const csv_row& row, std::string_view name) const {
        const auto at = std::find(names.cells.begin(), names.cells.end(), name);
        return at == names.cells.end() ? "" : row.cells[static_cast<std::size_t>(at - names.cells.begin())];
    }
};

/// A cell as it is written: in quotes where it must be.
inline std::string csv_cell(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

/// What is whole of a file that is being written, or whose writer was killed.
inline std::string_view whole_lines(std::string_view text) {
    return text.substr(0, text.rfind('\n') + 1);  // npos + 1 is 0
}

/// Empty lines do not count. Throws engram::error, which names `source`, where a row has more or fewer cells than there
/// are names, or a quote is not closed.
inline csv_table parse_csv(std::string_view text, const std::string& source) {
    csv_table table;
    std::size_t i = 0;
    int line = 1;
    for (; i < text.size() && text[i] == '#'; ++line) {
        const std::size_t end = std::min(text.find('\n', i), text.size());
        table.remarks.emplace_back(text.substr(i, end - i));
        i = end + 1;
    }
    csv_row row{line, {""}};
    const auto end_row = [&] {
        if (row.cells.size() > 1 || !row.cells[0].empty()) {
            const std::size_t wanted = table.names.cells.size();
            require(wanted == 0 || row.cells.size() == wanted, source, ", line ", row.line, ": ", row.cells.size(),
                    " cells, but the header has ", wanted);
            if (wanted == 0)
                table.names = std::move(row);
            else
                table.rows.push_back(std::move(row));
        }
        row = {++line, {""}};
    };
    bool quoted = false;
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') {
            if (quoted && i + 1 < text.size() && text[i + 1] == '"')
                row.cells.back() += text[++i];
            else
                quoted = !quoted;
        } else if (c == '\n' && !quoted) {
            end_row();
        } else if (c == ',' && !quoted) {
            row.cells.emplace_back();
        } else if (c != '\r' || quoted) {
            line += c == '\n';
            row.cells.back() += c;
        }
    }
    require(!quoted, source, ": a quote is not closed");
    end_row();
    return table;
}

/// NaN for an empty cell and a number that a double does not hold; nothing for what is no number.
inline std::optional<double> csv_number(std::string_view cell) {
    while (!cell.empty() && cell.front() == ' ') cell.remove_prefix(1);
    while (!cell.empty() && cell.back() == ' ') cell.remove_suffix(1);
    double value = std::numeric_limits<double>::quiet_NaN();
    if (cell.empty()) return value;
    if (cell.starts_with('+')) cell.remove_prefix(1);
    const auto [stop, problem] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (problem == std::errc::invalid_argument || stop != cell.data() + cell.size()) return {};
    return value;
}

}  // namespace engram
