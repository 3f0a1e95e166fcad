#pragma once
// What the generated parts of docs/results have in common: the files of docs/results/data, and blocks of a page between
//
//     <!-- KIND: NAME -->
//     <!-- end -->

#include <map>
#include <set>

#include <engram/io/csv.hpp>
#include <engram/io/file.hpp>

#include "markdown.hpp"

namespace documents {

/// A row of a file, by the names of its first line.
using row = std::map<std::string, std::string>;

/// Parts between `at`, where that is not in quotes.
inline std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts{""};
    bool quoted = false;
    for (const char c : text) {
        if (c == '"')
            quoted = !quoted;
        else if (c == at && !quoted)
            parts.emplace_back();
        else
            parts.back() += c;
    }
    return parts;
}

/// Rows of a CSV file of docs/results, data/NAME.csv; lines that start with # say where it is from.
inline std::vector<row> read_rows(const std::string& file) {
    const engram::bytes content = engram::read_file((root() / "docs/results" / file).string());
    const engram::csv_table table =
        engram::parse_csv({reinterpret_cast<const char*>(content.data()), content.size()}, file);
    engram::require(!table.remarks.empty(), file, ": its first line should be `# ` and where the numbers are from");
    engram::require(!table.rows.empty(), file, ": has no rows");
    std::vector<row> rows(table.rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r)
        for (const auto& name : table.names.cells) rows[r][name] = table.cell(table.rows[r], name);
    return rows;
}

/// The blocks of a page, each by its name and how its lines are made: compares all of them, or writes them.
inline void compare_blocks(const std::string& page, const std::string& kind,
                           const std::map<std::string, std::vector<std::string> (*)()>& blocks) {
    const auto before = read_lines(root() / page);
    const std::string opens = "<!-- " + kind + ": ", closes = " -->";
    std::vector<std::string> after;
    std::set<std::string> found;
    for (std::size_t i = 0; i < before.size(); ++i) {
        after.push_back(before[i]);
        if (!before[i].starts_with(opens)) continue;
        const std::string name = before[i].substr(opens.size(), before[i].size() - opens.size() - closes.size());
        CAPTURE(name);
        REQUIRE(blocks.count(name) == 1);
        found.insert(name);
        const auto made = blocks.at(name)();
        CHECK(!made.empty());
        after.insert(after.end(), made.begin(), made.end());
        while (i + 1 < before.size() && before[i + 1] != "<!-- end -->") ++i;
        REQUIRE(i + 1 < before.size());
    }
    CHECK(found.size() == blocks.size());
    if (writes()) return write_lines(root() / page, after);
    INFO("ENGRAM_WRITE_DOCS=1 ./dev test docs writes what the file says");
    CHECK(before == after);
}

}  // namespace documents
