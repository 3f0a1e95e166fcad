// The tables of docs/results, and what their text says of them in numbers, come from docs/results/data: one CSV file
// for the runs of a page, as their summaries had it, or, where those were not kept, as the page was published.
//
// A table with a line before it such as
//
//     <!-- data/suite.csv [task=change_detection]: {ablation} [{train:1} ± {train_se:1}] | {seeds} -->
//
// has one row for each row of the file that the brackets select, and its cells are these. With `by [task program]`
// behind the brackets it has one for all rows that agree in these columns, of which the others are then name_1, name_2
// and so on, in the order of their seeds. {name} is a number as the file has it, {name:1} one with a decimal, {name^}
// one that is left out where it repeats the row above, {name?-} one with a dash where there is none. {mean name:1},
// {error name:1}, {least name:1} and {all name} are the mean, its standard error, the least and a list of the columns
// name_1, name_2 and so on, one a seed; in place of a name, a-b stands for a_1 - b_1 and so on. What stands in brackets
// is left out where a number of it is missing. A number in the text stands between
//
//     <!-- = data/suite.csv [ablation=mra]: {train:1} -->2.9<!-- = -->
//     <!-- = data/suite.csv [ablation=mra] [ablation=lstm]: apart train:1 -->4.5<!-- = -->
//
// (a space that follows goes before the last mark: Doxygen drops one behind it), where `apart` is how many standard
// errors of both the means of two rows are apart.

#include "tables.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <regex>
#include <set>

using namespace documents;

namespace {

/// The rows for which `name=value name=value` holds.
std::vector<row> select(const std::vector<row>& rows, const std::string& condition) {
    std::vector<row> chosen;
    for (const auto& r : rows) {
        bool fits = true;
        for (const auto& word : split(condition, ' ')) {
            if (word.empty()) continue;
            const auto equals = word.find('=');
            const auto name = word.substr(0, equals);
            engram::require(equals != word.npos && r.count(name), "'", word, "': expected column=value");
            fits &= r.at(name) == word.substr(equals + 1);
        }
        if (fits) chosen.push_back(r);
    }
    engram::require(!chosen.empty(), "no row is [", condition, "]");
    return chosen;
}

/// Rows that agree in the columns `by` as one row, where name_1, name_2, ... are the name of each, in the order of
/// seeds.
std::vector<row> grouped(const std::vector<row>& rows, const std::string& by) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<row>> groups;
    for (const auto& r : rows) {
        engram::require(r.count("seed"), "no column seed");
        std::string key;
        for (const auto& name : split(by, ' ')) {
            engram::require(r.count(name), "no column ", name);
            key += r.at(name) + "\n";
        }
        if (!groups.count(key)) order.push_back(key);
        groups[key].push_back(r);
    }
    std::vector<row> out;
    for (const auto& key : order) {
        auto& group = groups[key];
        std::stable_sort(group.begin(), group.end(),
                         [](const row& a, const row& b) { return std::stoi(a.at("seed")) < std::stoi(b.at("seed")); });
        row one;
        for (const auto& [name, text] : group[0]) {
            if (std::all_of(group.begin(), group.end(),
                            [&column = name, &said = text](const row& r) { return r.at(column) == said; }))
                one[name] = text;
            for (std::size_t i = 0; i < group.size(); ++i) one[name + "_" + std::to_string(i + 1)] = group[i].at(name);
        }
        out.push_back(one);
    }
    return out;
}

bool is_number(const std::string& text, double& value) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size();
}
double number(const row& r, const std::string& name) {
    engram::require(r.count(name), "no column ", name);
    double value = 0;
    engram::require(is_number(r.at(name), value), name, ": '", r.at(name), "' is no number");
    return value;
}
std::string rounded(double value, int decimals) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", decimals, value);
    return text;
}

/// The columns name_1, name_2, ... that are not empty, or the differences of two such lists.
std::vector<std::string> of_seeds(const row& r, const std::string& name) {
    if (const auto minus = name.find('-'); minus != name.npos) {
        const auto a = of_seeds(r, name.substr(0, minus)), b = of_seeds(r, name.substr(minus + 1));
        engram::require(a.size() == b.size(), name, ": ", a.size(), " and ", b.size(), " seeds");
        std::vector<std::string> all;
        for (std::size_t i = 0; i < a.size(); ++i) all.push_back(rounded(std::stod(a[i]) - std::stod(b[i]), 9));
        return all;
    }
    engram::require(r.count(name + "_1"), "no column ", name, "_1");
    std::vector<std::string> all;
    for (int i = 1; r.count(name + "_" + std::to_string(i)); ++i) {
        const auto& text = r.at(name + "_" + std::to_string(i));
        if (!text.empty()) all.push_back(text);
    }
    return all;
}

/// What stands in braces, for a row and the one above it.
std::string field(const std::string& what, const row& r, const row* above) {
    static const std::regex form(
        R"(^(?:(mean|error|least|all) )?([A-Za-z_.0-9]+(?:-[a-z_]+)?)(?::([0-9]))?(\^)?(?:\?(.+))?$)");
    std::smatch part;
    engram::require(std::regex_match(what, part, form), "'{", what, "}' is not understood");
    const std::string how = part[1], name = part[2], otherwise = part[5];
    const int decimals = part[3].matched ? std::stoi(part[3]) : -1;
    if (how.empty()) {
        engram::require(r.count(name), "no column ", name);
        const auto& text = r.at(name);
        if (part[4].matched && above && above->at(name) == text) return "";
        double value = 0;
        if (decimals >= 0 && is_number(text, value)) return rounded(value, decimals);
        return text.empty() ? otherwise : text;
    }
    const auto texts = of_seeds(r, name);
    if (how == "all") {
        std::string list;
        for (const auto& text : texts) {
            double value = 0;
            list += (list.empty() ? "" : ", ") +
                    (decimals >= 0 && is_number(text, value) ? rounded(value, decimals) : text);
        }
        return list.empty() ? otherwise : list;
    }
    double sum = 0, squares = 0, least = INFINITY;
    for (const auto& text : texts) {
        double value = 0;
        engram::require(is_number(text, value), name, ": '", text, "' is no number");
        sum += value, least = std::min(least, value);
    }
    const auto n = static_cast<double>(texts.size());
    for (const auto& text : texts) squares += std::pow(std::stod(text) - sum / n, 2);
    if (texts.empty() || (how == "error" && texts.size() < 2)) return otherwise;
    const double value = how == "mean" ? sum / n : how == "least" ? least : std::sqrt(squares / (n - 1) / n);
    return rounded(value, std::max(0, decimals));
}

/// A pattern with its fields filled in; `missing` tells whether one was empty.
std::string filled(const std::string& pattern, const row& r, const row* above, bool* missing = nullptr) {
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char closing = pattern[i] == '{' ? '}' : pattern[i] == '[' ? ']' : '\0';
        if (!closing) {
            out += pattern[i];
            continue;
        }
        const auto end = pattern.find(closing, i);
        engram::require(end != pattern.npos, "'", pattern, "' lacks a ", closing);
        const auto inside = pattern.substr(i + 1, end - i - 1);
        i = end;
        if (closing == '}') {
            const auto text = field(inside, r, above);
            if (missing && text.empty()) *missing = true;
            out += text;
            continue;
        }
        bool incomplete = false;
        const auto text = filled(inside, r, above, &incomplete);
        if (!incomplete) out += text;
    }
    return out;
}

std::string apart(const row& a, const row& b, const std::string& what) {
    const auto colon = what.find(':');
    const auto name = what.substr(0, colon);
    const double both = std::hypot(number(a, name + "_se"), number(b, name + "_se"));
    engram::require(both > 0, name, ": the two rows have no standard errors");
    return rounded(std::abs(number(a, name) - number(b, name)) / both,
                   colon == what.npos ? 1 : std::stoi(what.substr(colon + 1)));
}

std::set<std::string> used;  // files that a page names

const std::vector<row>& rows_of(const std::string& file) {
    static std::map<std::string, std::vector<row>> read;
    if (!read.count(file)) read[file] = read_rows(file);
    used.insert(file);
    return read[file];
}

/// The rows of the table that a marker describes.
std::vector<std::string> table(const std::string& file, const std::string& condition, const std::string& by,
                               const std::string& cells) {
    auto rows = select(rows_of(file), condition);
    if (!by.empty()) rows = grouped(rows, by);
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::string line = "|";
        for (const auto& pattern : split(cells, '|')) {
            const auto text = strip(filled(strip(pattern), rows[i], i > 0 ? &rows[i - 1] : nullptr));
            line += text.empty() ? "  |" : " " + text + " |";
        }
        lines.push_back(line);
    }
    return lines;
}

/// A line of text with its numbers computed.
std::string computed(const std::string& line) {
    static const std::regex form(
        R"((<!-- = (data/[a-z_0-9]+\.csv) ((?:\[[^\]]*\] ?)+): (.*?) -->)(.*?)( ?<!-- = -->))");
    static const std::regex condition(R"(\[([^\]]*)\])");
    std::string out;
    auto last = line.cbegin();
    for (std::sregex_iterator at(line.begin(), line.end(), form), end; at != end; ++at) {
        const auto& m = *at;
        const std::string conditions = m[3], expression = m[4];
        std::vector<row> chosen;
        for (std::sregex_iterator c(conditions.begin(), conditions.end(), condition); c != end; ++c) {
            const auto fitting = select(rows_of(m[2]), (*c)[1]);
            engram::require(fitting.size() == 1, "[", std::string((*c)[1]), "] selects ", fitting.size(),
                            " rows, expected one");
            chosen.push_back(fitting[0]);
        }
        std::string text;
        if (expression.starts_with("apart ")) {
            engram::require(chosen.size() == 2, "'", expression, "' needs two rows");
            text = apart(chosen[0], chosen[1], expression.substr(6));
        } else {
            engram::require(chosen.size() == 1, "'", expression, "' is of one row");
            text = filled(expression, chosen[0], nullptr);
        }
        out.append(last, m[0].first);
        out += std::string(m[1]) + text + std::string(m[6]);
        last = m[0].second;
    }
    return out.append(last, line.cend());
}

}  // namespace

TEST_CASE("tables and numbers of the results are those of docs/results/data") {
    static const std::regex marker(R"(^<!-- (data/[a-z_0-9]+\.csv)(?: \[([^\]]*)\])?(?: by \[([^\]]*)\])?: (.*) -->$)");
    int tables = 0, numbers = 0;
    for (const auto& page : pages()) {
        if (!page.starts_with("docs/results/")) continue;
        CAPTURE(page);
        const auto lines = read_lines(root() / page);
        std::vector<std::string> expected;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            CAPTURE(i + 1);
            std::smatch m;
            if (!std::regex_match(lines[i], m, marker)) {
                expected.push_back(computed(lines[i]));
                numbers += lines[i].find("<!-- = data/") != std::string::npos;
                continue;
            }
            REQUIRE(i + 2 < lines.size());
            REQUIRE(lines[i + 2].starts_with("|---"));
            expected.insert(expected.end(), {lines[i], lines[i + 1], lines[i + 2]});
            for (const auto& line : table(m[1], m[2], m[3], m[4])) expected.push_back(line);
            i += 2;
            while (i + 1 < lines.size() && lines[i + 1].starts_with("|")) ++i;
            ++tables;
        }
        if (writes()) {
            write_lines(root() / page, expected);
            continue;
        }
        INFO("ENGRAM_WRITE_DOCS=1 ./dev test docs writes what the files say");
        CHECK(lines.size() == expected.size());
        for (std::size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) CHECK(lines[i] == expected[i]);
    }
    CHECK(tables > 10);
    CHECK(numbers > 4);
    // A page that has a generator of its own names its files there.
    std::string generators;
    for (const char* page : {"answer_page.cpp", "popgym_page.cpp", "suite_page.cpp"})
        for (const auto& line : read_lines(root() / "tests/docs" / page)) generators += line;
    for (const auto& entry : fs::directory_iterator(root() / "docs/results/data")) {
        const auto name = entry.path().filename().string();
        CHECK_MESSAGE((used.count("data/" + name) == 1 || generators.find("\"data/" + name) != std::string::npos), name,
                      " is of no page");
    }
}

TEST_CASE("no mean of runs and no number of standard errors is typed") {
    static const std::regex typed(R"([0-9] standard errors)"), mean(R"(\| [0-9.]+ ± [0-9.]+ \|)");
    for (const auto& page : pages()) {
        if (!page.starts_with("docs/results/")) continue;
        CAPTURE(page);
        bool generated = false;
        for (const auto& line : read_lines(root() / page)) {
            CAPTURE(line);
            generated = line.starts_with("<!-- data/") || line.starts_with("<!-- answer: ") ||
                        line.starts_with("<!-- suite: ") || line.starts_with("<!-- popgym: ") ||
                        (generated && line.starts_with("|"));
            CHECK((generated || !std::regex_search(line, mean)));
            CHECK_FALSE(std::regex_search(line, typed));
        }
    }
}

TEST_CASE("the marks of results do what they say") {
    const row r{{"a", "1.26"}, {"a_se", "0.3"}, {"b", ""},        {"name", "x"}, {"s_1", "1"},
                {"s_2", "2"},  {"s_3", "6"},    {"t_1", "never"}, {"t_2", ""}};
    const row other{{"a", "2.76"}, {"a_se", "0.4"}, {"name", "x"}};
    CHECK(filled("`{name}` {a:1}[ ± {a_se:2}]", r, nullptr) == "`x` 1.3 ± 0.30");
    CHECK(filled("{a}[ ± {b:1}]", r, nullptr) == "1.26");
    CHECK(filled("{b?-} {name^}", r, &other) == "- ");
    CHECK(filled("{mean s:1} {error s:3} {least s:0} {all s} {all t}", r, nullptr) == "3.0 1.528 1 1, 2, 6 never");
    CHECK(filled("{all s-u:1}, {mean s-u:2}", {{"s_1", "3"}, {"s_2", "5"}, {"u_1", "1"}, {"u_2", "0.5"}}, nullptr) ==
          "2.0, 4.5, 3.25");
    CHECK(apart(r, other, "a:1") == "3.0");
    const auto one = grouped({{{"p", "x"}, {"seed", "2"}, {"v", "4"}},
                              {{"p", "y"}, {"seed", "1"}, {"v", "9"}},
                              {{"p", "x"}, {"seed", "1"}, {"v", "3"}}},
                             "p");
    REQUIRE(one.size() == 2);
    CHECK(filled("{p} {all v} {mean v:1}", one[0], nullptr) == "x 3, 4 3.5");
    CHECK(filled("{p} {v}", one[1], nullptr) == "y 9");
    const auto said = [](auto f) {
        try {
            f();
        } catch (const engram::error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK(said([&] { filled("{c}", r, nullptr); }) == "no column c");
    CHECK(said([&] { filled("{a:x}", r, nullptr); }) == "'{a:x}' is not understood");
    CHECK(said([&] { apart(r, r, "b:1"); }) == "no column b_se");
    CHECK(said([&] { select({r}, "name=y"); }) == "no row is [name=y]");
    CHECK(split("\"a, b\",c", ',') == std::vector<std::string>{"a, b", "c"});
}
