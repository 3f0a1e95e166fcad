#include <doctest/doctest.h>

#include <engram/core/error.hpp>

using namespace engram;

TEST_CASE("a sentence is made of its parts") {
    CHECK(message("lstm: ", 3, " columns, expected ", 4) == "lstm: 3 columns, expected 4");
    CHECK_THROWS_WITH_AS(fail("bad ", 7), "bad 7", error);
    CHECK_THROWS_WITH_AS(require(false, "never"), "never", error);
    CHECK_NOTHROW(require(true, "never"));
}

TEST_CASE("edit distance") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("lstm", "lsmt") == 2);
}

TEST_CASE("an unknown name is answered with the nearest valid one") {
    const std::vector<std::string> names{"ff", "lstm", "ff_mem", "lstm_mem"};
    CHECK(nearest_name("lstm_mme", names) == "lstm_mem");
    CHECK(nearest_name("x", std::vector<std::string>{}) == "");
    CHECK_NOTHROW(require_known("ablation", "ff", names));
    CHECK_THROWS_WITH_AS(require_known("ablation", "fff", names), "unknown ablation 'fff'; did you mean 'ff'?", error);
}
