// levels.csv: what is written is what is read.

#include "engram/evaluate/level_curve.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace engram;

TEST_CASE("rows come back as curves, half a last row left out") {
    const std::string text = std::string(level_curve_header) + "\n" + level_curve_row(100, "train", 20, 0.1, 1.0 / 3) +
                             level_curve_row(100, "holdout_interpolate", 20, -5, std::nan("")) +
                             level_curve_row(250, "train", 20, 12345.625, 0) + "250,holdout_inter";
    CHECK(level_curve_row(100, "train", 20, 0.1, 0.25) == "100,train,20,0.1,0.25\n");
    const auto curves = parse_level_curves(text, "levels.csv");
    REQUIRE(curves.size() == 2);
    CHECK(curves[0].level == "train");
    CHECK(curves[0].step == std::vector<double>{100, 250});
    CHECK(curves[0].mean == std::vector<double>{0.1, 12345.625});
    CHECK(curves[0].standard_error == std::vector<double>{1.0 / 3, 0});
    CHECK(curves[1].mean == std::vector<double>{-5});
    CHECK(curves[1].episodes == std::vector<double>{20});
    CHECK(std::isnan(curves[1].standard_error[0]));
    CHECK(parse_level_curves("", "x").empty());
}

TEST_CASE("what is no such table is refused, with its line") {
    const std::string header = std::string(level_curve_header) + "\n";
    const auto sentence = [&](const std::string& text) {
        try {
            parse_level_curves(text, "levels.csv");
        } catch (const error& problem) {
            return std::string(problem.what());
        }
        return std::string();
    };
    CHECK(sentence("step,mean\n").find("levels.csv, line 1") != std::string::npos);
    CHECK(sentence(header + "1,train,20,0.5\n").find("line 2") != std::string::npos);
    CHECK(sentence(header + "1,train,20,a,0\n").find("'a' is not a number") != std::string::npos);
    CHECK(sentence(header + "5,train,20,1,0\n5,train,20,1,0\n").find("line 3") != std::string::npos);
    CHECK(sentence(header + "5,train,0,1,0\n") != "");
    CHECK(sentence(header + "5,train,1,1,0\n5,other,1,1,0\n") == "");
}
