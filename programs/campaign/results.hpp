#pragma once
// SPDX-License-Identifier: MIT

// Tables of results: a row a run and level, in a file that outlives the runs' folders.

#include <algorithm>
#include <string>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/evaluate/comparison_table.hpp>

namespace engram {

struct result_table {
    std::vector<std::string> remarks;  // lines at the top that begin with #
    std::vector<std::string> names;    // of the columns
    std::vector<std::vector<std::string>> rows;

    /// Empty where there is no such column.
    std::string cell(const std::vector<std::string>& row, const std::string& name) const {
        const auto at = std::find(names.begin(), names.end(), name);
        return at == names.end() ? "" : row[static_cast<std::size_t>(at - names.begin())];
    }
    /// What tells a run from all others of a campaign, which varies these settings.
    std::string run_of(const std::vector<std::string>& row, const std::vector<std::string>& varied) const {
        std::string run;
        for (const char* name : {"program", "task", "seed", "section"}) run += cell(row, name) + "\n";
        for (const auto& name : varied) run += cell(row, name) + "\n";
        return run;
    }
    std::string text() const {
        std::string out;
        for (const auto& remark : remarks) out += remark + "\n";
        const auto line = [&](const auto& cells) {
            for (std::size_t i = 0; i < cells.size(); ++i) out += (i == 0 ? "" : ",") + csv_cell(cells[i]);
            out += "\n";
        };
        line(names);
        for (const auto& row : rows) line(row);
        return out;
    }
};

/// Throws engram::error, which names `path`, where columns are missing or a row has more or less of them than the
/// names.
inline result_table parse_results(const std::string& text, const std::string& path) {
    result_table table;
    std::vector<std::string> cells{""};
    bool quoted = false;
    std::size_t i = 0;
    while (i < text.size() && text[i] == '#') {
        const std::size_t end = std::min(text.find('\n', i), text.size());
        table.remarks.push_back(text.substr(i, end - i));
        i = end + 1;
    }
    const auto end_row = [&] {
        if (cells.size() == 1 && cells[0].empty()) return;
        if (table.names.empty()) {
            table.names = cells;
        } else {
            require(cells.size() == table.names.size(), path, ": a row of ", cells.size(), " cells under ",
                    table.names.size(), " names");
            table.rows.push_back(cells);
        }
    };
    for (; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') {
            if (quoted && i + 1 < text.size() && text[i + 1] == '"')
                cells.back() += text[++i];
            else
                quoted = !quoted;
        } else if (c == '\n' && !quoted) {
            end_row();
            cells.assign(1, "");
        } else if (c == ',' && !quoted) {
            cells.emplace_back();
        } else if (c != '\r' || quoted) {
            cells.back() += c;
        }
    }
    require(!quoted, path, ": a quote is not closed");
    end_row();
    for (const char* name : {"program", "task", "seed"})
        require(std::find(table.names.begin(), table.names.end(), name) != table.names.end(), path, ": no column '",
                name, "', so it is no table of results");
    return table;
}

/// `fresh` in place of what `old` has of its runs; other rows stay where they are, new runs follow. Columns are those
/// of `fresh`, then what `old` alone has. `varied`: settings that tell runs apart.
inline result_table merged(const result_table& old, const result_table& fresh, const std::vector<std::string>& varied) {
    result_table out;
    out.remarks = old.remarks;
    out.names = fresh.names;
    for (const auto& name : old.names)
        if (std::find(out.names.begin(), out.names.end(), name) == out.names.end()) out.names.push_back(name);
    const auto take = [&](const result_table& from, const std::vector<std::string>& row) {
        std::vector<std::string> cells;
        for (const auto& name : out.names) cells.push_back(from.cell(row, name));
        out.rows.push_back(std::move(cells));
    };
    std::vector<std::string> written;
    const auto is_written = [&](const std::string& run) {
        return std::find(written.begin(), written.end(), run) != written.end();
    };
    const auto write_run = [&](const std::string& run) {
        bool any = false;
        for (const auto& row : fresh.rows)
            if (fresh.run_of(row, varied) == run) take(fresh, row), any = true;
        if (any) written.push_back(run);
        return any;
    };
    for (const auto& row : old.rows) {
        const std::string run = old.run_of(row, varied);
        if (!is_written(run) && !write_run(run)) take(old, row);
    }
    for (const auto& row : fresh.rows)
        if (const std::string run = fresh.run_of(row, varied); !is_written(run)) write_run(run);
    return out;
}

}  // namespace engram
