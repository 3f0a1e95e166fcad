#pragma once
// SPDX-License-Identifier: MIT

// Tables of results: a row a run and level, in a file that outlives the runs' folders.

#include <algorithm>
#include <string>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/io/csv.hpp>

namespace engram {

struct result_table : csv_table {
    /// What tells a run from all others of a campaign, which varies these settings.
    std::string run_of(const csv_row& row, const std::vector<std::string>& varied) const {
        std::string run;
        for (const char* name : {"program", "task", "seed", "section"}) run += cell(row, name) + "\n";
        for (const auto& name : varied) run += cell(row, name) + "\n";
        return run;
    }
    /// Throws where rows of one such run have different numbers of steps: it was several, and one would take the place
    /// of all.
    void require_single(const std::string& run, const std::vector<std::string>& varied, const std::string& path) const {
        std::vector<std::string> steps;
        for (const auto& row : rows)
            if (run_of(row, varied) == run && std::find(steps.begin(), steps.end(), cell(row, "steps")) == steps.end())
                steps.push_back(cell(row, "steps"));
        if (steps.size() < 2) return;
        std::string name = run.substr(0, run.find_last_not_of('\n') + 1);
        std::replace(name.begin(), name.end(), '\n', ' ');
        fail(path, ": has runs of ", steps[0], " and of ", steps[1], " steps as '", name,
             "', and this campaign would put one in the place of both; give it all of these steps, or another table");
    }
    std::string text() const {
        std::string out;
        for (const auto& remark : remarks) out += remark + "\n";
        const auto line = [&](const csv_row& row) {
            for (std::size_t i = 0; i < row.cells.size(); ++i) out += (i == 0 ? "" : ",") + csv_cell(row.cells[i]);
            out += "\n";
        };
        line(names);
        for (const auto& row : rows) line(row);
        return out;
    }
};

/// Throws engram::error, which names `path`, where it is no CSV or lacks a column that tells of the run.
inline result_table parse_results(const std::string& text, const std::string& path) {
    result_table table{parse_csv(text, path)};
    const auto& names = table.names.cells;
    for (const char* name : {"program", "task", "seed"})
        require(std::find(names.begin(), names.end(), name) != names.end(), path, ": no column '", name,
                "', so it is no table of results");
    return table;
}

/// `fresh` in place of what `old` has of its runs; other rows stay where they are, new runs follow. Columns are those
/// of `fresh`, then what `old` alone has. `varied`: settings that tell runs apart. Throws engram::error, which names
/// `path`, where several old runs would be replaced by one.
inline result_table merged(const result_table& old, const result_table& fresh, const std::vector<std::string>& varied,
                           const std::string& path) {
    result_table out;
    out.remarks = old.remarks;
    out.names = fresh.names;
    auto& names = out.names.cells;
    for (const auto& name : old.names.cells)
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    const auto take = [&](const result_table& from, const csv_row& row) {
        auto& cells = out.rows.emplace_back().cells;
        for (const auto& name : names) cells.push_back(from.cell(row, name));
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
        if (is_written(run)) continue;
        if (write_run(run))
            old.require_single(run, varied, path);
        else
            take(old, row);
    }
    for (const auto& row : fresh.rows)
        if (const std::string run = fresh.run_of(row, varied); !is_written(run)) write_run(run);
    return out;
}

}  // namespace engram
