// Comma-separated values: what is written is what is read, and what is no table is told of with its line.

#include "engram/io/csv.hpp"

#include <doctest/doctest.h>

#include "temporary.hpp"

using namespace engram;

TEST_CASE("remarks, names and rows, with the lines that they stand on") {
    const csv_table t = parse_csv("# from here\n#and there\na,b\n1,\n\n\r\n,2\r\n", "x.csv");
    CHECK(t.remarks == std::vector<std::string>{"# from here", "#and there"});
    CHECK(t.names.cells == std::vector<std::string>{"a", "b"});
    CHECK(t.names.line == 3);
    REQUIRE(t.rows.size() == 2);
    CHECK(t.rows[0].line == 4);
    CHECK(t.rows[0].cells == std::vector<std::string>{"1", ""});
    CHECK(t.rows[1].line == 7);
    CHECK(t.cell(t.rows[1], "b") == "2");
    CHECK(t.cell(t.rows[1], "a") == "");
    CHECK(t.cell(t.rows[1], "c") == "");
    CHECK(parse_csv("", "x").names.cells.empty());
    CHECK(parse_csv("# alone", "x").remarks.size() == 1);
    CHECK(parse_csv("a\n1\n# no remark\n", "x").rows.size() == 2);
}

TEST_CASE("cells come back as they were written") {
    const std::string hard[] = {"", "plain", "a,b", "said \"so\"", "\"", "two\nlines", "end\r\n", " spaces "};
    std::string text = "first,second\n";
    for (const auto& cell : hard) text += csv_cell(cell) + "," + csv_cell(cell + ";") + "\n";
    const csv_table t = parse_csv(text + "last,\n", "x.csv");
    REQUIRE(t.rows.size() == std::size(hard) + 1);
    for (std::size_t i = 0; i < std::size(hard); ++i)
        CHECK(t.rows[i].cells == std::vector<std::string>{hard[i], hard[i] + ";"});
    CHECK(csv_cell("plain") == "plain");
    CHECK(csv_cell("a,\"b\"") == "\"a,\"\"b\"\"\"");
    CHECK(t.rows[5].line == 7);
    CHECK(t.rows[6].line == 10);  // the row before has a line's end in both cells
}

TEST_CASE("rows of another width and open quotes are refused") {
    CHECK(sentence([] { parse_csv("# r\na,b\n1,2\n\n3\n", "x.csv"); }) ==
          "x.csv, line 5: 1 cells, but the header has 2");
    CHECK(sentence([] { parse_csv("a\n1,2", "x.csv"); }) == "x.csv, line 2: 2 cells, but the header has 1");
    CHECK(sentence([] { parse_csv("a,b\n1,\"2\n", "x.csv"); }) == "x.csv: a quote is not closed");
}

TEST_CASE("numbers, and what is none") {
    CHECK(csv_number("-1.5e3") == -1500.0);
    CHECK(csv_number(" +7 ") == 7.0);
    CHECK(std::isnan(*csv_number("")));
    CHECK(std::isnan(*csv_number("nan")));
    CHECK(std::isnan(*csv_number("1e999")));
    CHECK(std::isinf(*csv_number("inf")));
    for (const char* cell : {"two", "1 2", "1.5x", "+", "-", "0x10"}) CHECK(!csv_number(cell));
}

TEST_CASE("half a last line is left out") {
    CHECK(whole_lines("a\nb\nc") == "a\nb\n");
    CHECK(whole_lines("a\n") == "a\n");
    CHECK(whole_lines("a") == "");
    CHECK(whole_lines("") == "");
}
