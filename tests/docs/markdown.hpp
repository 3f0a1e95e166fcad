#pragma once
// The Markdown pages of the checkout, as the tests of documentation read them.
//
// With ENGRAM_WRITE_DOCS=1 in the environment the tests write what they would otherwise compare: the code of the pages
// from the examples, the tables from the library.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <engram/core/error.hpp>

namespace documents {

namespace fs = std::filesystem;

inline const fs::path& root() {
    static const fs::path path = ENGRAM_SOURCE_DIR;
    return path;
}
inline bool writes() {
    return std::getenv("ENGRAM_WRITE_DOCS") != nullptr;
}

inline std::vector<std::string> read_lines(const fs::path& path) {
    std::ifstream file(path);
    engram::require(file.good(), path.string(), ": cannot be read");
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}
inline void write_lines(const fs::path& path, const std::vector<std::string>& lines) {
    std::ofstream file(path);
    for (const auto& line : lines) file << line << '\n';
    engram::require(file.good(), path.string(), ": cannot be written");
}

/// Pages, by their path in the checkout.
inline std::vector<std::string> pages() {
    std::vector<std::string> all{"README.md", "CONTRIBUTING.md"};
    for (const auto& entry : fs::recursive_directory_iterator(root() / "docs"))
        if (entry.path().extension() == ".md") all.push_back(fs::relative(entry.path(), root()).string());
    std::sort(all.begin(), all.end());
    return all;
}

/// A fenced block: its language, the line before it, and the lines [first, end) inside it, counted from 0.
struct fence {
    std::string language, before;
    std::size_t first, end;
};

inline std::vector<fence> fences(const std::vector<std::string>& lines) {
    std::vector<fence> all;
    bool inside = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (!lines[i].starts_with("```")) continue;
        if (inside)
            all.back().end = i;
        else
            all.push_back({lines[i].substr(3), i > 0 ? lines[i - 1] : "", i + 1, lines.size()});
        inside = !inside;
    }
    return all;
}

inline std::string strip(std::string_view text) {
    const auto from = text.find_first_not_of(" \t");
    return from == text.npos ? "" : std::string(text.substr(from, text.find_last_not_of(" \t") + 1 - from));
}

/// The lines between two markers `// [name]` of a source file, without their common indentation.
inline std::vector<std::string> region(const std::string& path, const std::string& name) {
    const std::string marker = "// [" + name + "]";
    std::vector<std::string> lines;
    int markers = 0;
    for (const auto& line : read_lines(root() / path)) {
        if (strip(line) == marker)
            ++markers;
        else if (markers == 1 && !strip(line).starts_with("// ["))  // a smaller region may lie inside
            lines.push_back(line);
    }
    engram::require(markers == 2, path, ": expected the marker '", marker, "' twice, found it ", markers, " times");
    std::size_t indentation = std::string::npos;
    for (const auto& line : lines)
        if (!strip(line).empty()) indentation = std::min(indentation, line.find_first_not_of(' '));
    for (auto& line : lines) line = strip(line).empty() ? "" : line.substr(indentation);
    return lines;
}

inline std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const auto& line : lines) text += line + "\n";
    return text;
}

/// Compares a generated file with the committed one, or writes it.
inline void compare_file(const std::string& path, const std::string& generated) {
    if (writes()) {
        std::ofstream(root() / path) << generated;
        return;
    }
    const auto committed = joined(read_lines(root() / path));
    INFO(path, " is not what the code says: run ENGRAM_WRITE_DOCS=1 ./dev test docs and look at the difference");
    CHECK(committed == generated);
}

}  // namespace documents
