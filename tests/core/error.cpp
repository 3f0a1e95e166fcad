#include <doctest/doctest.h>

#include <engram/core/error.hpp>

using namespace engram;

TEST_CASE("a sentence is made of its parts") {
    CHECK(message("lstm: ", 3, " columns, expected ", 4) == "lstm: 3 columns, expected 4");
    CHECK_THROWS_WITH_AS(fail("bad ", 7), "bad 7", error);
    CHECK_THROWS_WITH_AS(require(false, "never"), "never", error);
    CHECK_NOTHROW(require(true, "never"));
}

TEST_CASE("names in a list") {
    CHECK(in_a_list(std::vector<std::string>{"a", "b", "c"}) == "a, b, c");
    CHECK(in_a_list(std::vector<const char*>{"alone"}) == "alone");
    CHECK(in_a_list(std::vector<std::string>{}) == "");
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
    CHECK(nearest_name("lstm_mme", names, 2) == "lstm_mem");
    CHECK(nearest_name("lstm_mme", names, 1) == "");
    CHECK(nearest_name("f", names, 1) == "ff");
    CHECK(nearest_name("", names) == "ff");
    CHECK(nearest_name(std::string(5000, 'f'), names) == "ff");  // and no nearer to ff_mem
    CHECK_NOTHROW(require_known("ablation", "ff", names));
    CHECK_THROWS_WITH_AS(require_known("ablation", "fff", names), "unknown ablation 'fff'; did you mean 'ff'?", error);
}

TEST_CASE("a name that is like none of the valid ones is answered with all of them") {
    const std::vector<std::string> names{"t_maze", "two_colors", "train", "asynchronous"};
    CHECK(instead_of("copy", names) == "; expected one of t_maze, two_colors, train, asynchronous");
    CHECK(instead_of("--version", names) == "; expected one of t_maze, two_colors, train, asynchronous");
    CHECK(instead_of("xy", std::vector<std::string>{"ff"}) == "; expected ff");  // two letters, both of them wrong
    CHECK(instead_of("trian", names) == "; did you mean 'train'?");
    CHECK(instead_of("async", names) == "; did you mean 'asynchronous'?");
    CHECK(instead_of("trian" + std::string(5000, 'n'), names) ==
          "; expected one of t_maze, two_colors, train, asynchronous");
    CHECK(instead_of("as", names) == "; expected one of t_maze, two_colors, train, asynchronous");
    CHECK(instead_of("", names) == "; expected one of t_maze, two_colors, train, asynchronous");
    CHECK(instead_of("x", std::vector<std::string>{}) == "; there are none");
    CHECK(instead_of("setting", std::vector<std::string>(41, "x")) == "; none of the 41 that there are is like it");
    CHECK_THROWS_WITH_AS(require_known("task", "copy", names),
                         "unknown task 'copy'; expected one of t_maze, two_colors, train, asynchronous", error);
}
