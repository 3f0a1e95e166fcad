// Every C++ block of a page is a region of a compiled example, test or header: the line above it names file and region,
//
//   <!-- examples/own_memory.hpp [read] -->

#include "markdown.hpp"

using namespace documents;

TEST_CASE("every fenced block of C++ is a region of a compiled file") {
    int blocks = 0;
    for (const auto& page : pages()) {
        auto lines = read_lines(root() / page);
        auto all = fences(lines);
        std::reverse(all.begin(), all.end());  // from the end, so that writing moves no line that is still to come
        bool changed = false;
        for (const auto& block : all) {
            CAPTURE(page);
            CAPTURE(block.first);
            if (block.language != "cpp") continue;
            ++blocks;
            const auto open = block.before.find("<!-- "), bracket = block.before.find(" ["),
                       close = block.before.find("] -->");
            REQUIRE_MESSAGE((open == 0 && bracket != std::string::npos && close != std::string::npos),
                            "the line before a block of C++ must name its region: <!-- path [region] -->");
            const auto path = block.before.substr(5, bracket - 5);
            CHECK_MESSAGE((path.starts_with("examples/") || path.starts_with("tests/") || path.starts_with("include/")),
                          path, " is not compiled by the build");
            const auto code = region(path, block.before.substr(bracket + 2, close - bracket - 2));
            CHECK(!code.empty());
            const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(block.first),
                       end = lines.begin() + static_cast<std::ptrdiff_t>(block.end);
            if (writes() && !std::equal(begin, end, code.begin(), code.end())) {
                lines.insert(lines.erase(begin, end), code.begin(), code.end());
                changed = true;
            } else {
                CHECK(joined({begin, end}) == joined(code));
            }
        }
        if (changed) write_lines(root() / page, lines);
    }
    CHECK(blocks > 15);
}

TEST_CASE("a guide's blocks say what they are") {
    for (const auto& page : pages()) {
        if (!page.starts_with("docs/guide/")) continue;
        const auto lines = read_lines(root() / page);
        for (const auto& block : fences(lines)) {
            CAPTURE(page);
            CAPTURE(block.first);
            const bool known = block.language == "cpp" || block.language == "sh" || block.language == "text" ||
                               block.language == "cmake" || block.language == "json";
            CHECK(known);
        }
    }
}
