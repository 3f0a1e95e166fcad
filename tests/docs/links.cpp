// Links and pictures of the pages lead to files and headings that are there, and every page can be reached.

#include "markdown.hpp"

#include <cctype>
#include <map>
#include <regex>
#include <set>

using namespace documents;

namespace {

struct link {
    std::string target;
    std::size_t line;
};

std::vector<link> links(const std::vector<std::string>& lines) {
    static const std::regex form(R"(\]\(([^)\s]+)\))");
    std::vector<link> all;
    bool inside = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].starts_with("```")) inside = !inside;
        if (inside) continue;
        for (std::sregex_iterator at(lines[i].begin(), lines[i].end(), form), end; at != end; ++at)
            all.push_back({(*at)[1], i + 1});
    }
    return all;
}

/// What a heading is called in a link: lower case, no punctuation, hyphens for spaces.
std::set<std::string> anchors(const fs::path& path) {
    std::set<std::string> all;
    bool inside = false;
    for (const auto& line : read_lines(path)) {
        if (line.starts_with("```")) inside = !inside;
        if (inside || !line.starts_with("#")) continue;
        std::string name;
        for (const char c : strip(line.substr(line.find_first_not_of('#')))) {
            const auto u = static_cast<unsigned char>(c);
            if (std::isalnum(u) || c == '_' || c == '-') name += static_cast<char>(std::tolower(u));
            if (c == ' ') name += '-';
        }
        all.insert(name);
    }
    return all;
}

}  // namespace

TEST_CASE("links lead somewhere") {
    int followed = 0;
    for (const auto& page : pages()) {
        for (const auto& link : links(read_lines(root() / page))) {
            const auto& target = link.target;
            const auto line = link.line;
            CAPTURE(page);
            CAPTURE(line);
            CAPTURE(target);
            if (target.starts_with("https://")) continue;
            ++followed;
            const auto mark = target.find('#');
            const auto file = mark == 0 ? root() / page : (root() / page).parent_path() / target.substr(0, mark);
            REQUIRE(fs::exists(file));
            CHECK_MESSAGE(fs::relative(file, root()).string().find("..") == std::string::npos, "outside the checkout");
            if (mark != std::string::npos) CHECK(anchors(file).count(target.substr(mark + 1)) == 1);
        }
    }
    CHECK(followed > 50);
}

TEST_CASE("every page can be reached from the first one") {
    std::set<std::string> seen;
    std::vector<std::string> open{"docs/README.md"};
    while (!open.empty()) {
        const auto page = open.back();
        open.pop_back();
        if (!seen.insert(page).second || !page.ends_with(".md")) continue;
        for (const auto& link : links(read_lines(root() / page))) {
            const auto& target = link.target;
            if (target.starts_with("https://") || target.starts_with("#")) continue;
            const auto file = fs::weakly_canonical((root() / page).parent_path() / target.substr(0, target.find('#')));
            open.push_back(fs::relative(file, fs::weakly_canonical(root())).string());
        }
    }
    for (const auto& page : pages()) {
        CAPTURE(page);
        CHECK(seen.count(page) == 1);
    }
}
