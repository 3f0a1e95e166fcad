// Tables for a terminal: columns as wide as their widest cell, and no spaces at a line's end.

#include "engram/evaluate/text_table.hpp"

#include <doctest/doctest.h>

using namespace engram;

TEST_CASE("the first column is flush left, the others right") {
    CHECK(text_table({{"task", "train", "gap"}, {"t_maze", "9", ""}, {"", "100.25", "-3"}}) ==
          "  task     train  gap\n"
          "  t_maze       9\n"
          "          100.25   -3\n");
    CHECK(text_table({{"alone"}}) == "  alone\n");
    CHECK(text_table({}) == "");
}
