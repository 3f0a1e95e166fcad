// SPDX-License-Identifier: MIT

#include "engram/evaluate/learning_curve.hpp"

#include <doctest/doctest.h>

using namespace engram;

namespace {

run_record with_metrics(const std::string& text) {
    run_record run;
    run.metrics = parse_metrics(text, "m");
    return run;
}

}  // namespace

TEST_CASE("windows count by their episodes and their distance") {
    // h = 3 % of 1000 = 30. At 500: windows at 490 (w 2/3, 1 episode) and 510 (w 2/3, 3 episodes), 540 is out of reach.
    const auto run = with_metrics("step,episodes,reward\n490,1,10\n510,4,20\n540,9,90\n1000,10,7\n");
    const auto curve = smooth_curve(run.metrics, "reward", curve_grid(1000, 100));
    CHECK(curve.x.front() == 490);
    CHECK(curve.x.back() == 1000);
    REQUIRE(curve.x[1] == 500);
    CHECK(curve.y[1] == doctest::Approx(17.5).epsilon(1e-12));
    // Between 540 and 1000 there is a line: (90 - 7) / 460 a step.
    const auto at = static_cast<std::size_t>(std::find(curve.x.begin(), curve.x.end(), 770.0) - curve.x.begin());
    REQUIRE(at < curve.x.size());
    CHECK(curve.y[at] == doctest::Approx(48.5).epsilon(1e-12));
}

TEST_CASE("empty cells do not count, and a constant stays one") {
    const auto run = with_metrics("step,episodes,reward\n100,0,\n200,3,4\n300,3,nan\n400,5,4\n");
    const auto curve = smooth_curve(run.metrics, "reward", curve_grid(400, 40));
    REQUIRE(!curve.x.empty());
    CHECK(curve.x.front() == 200);
    for (const double y : curve.y) CHECK(y == doctest::Approx(4).epsilon(1e-12));
    CHECK(smooth_curve(run.metrics, "loss", curve_grid(400)).x.empty());
}

TEST_CASE("the band spans the seeds where all of them are; longer ones get a tail") {
    const auto a = with_metrics("step,reward\n0,1\n1000,1\n"), b = with_metrics("step,reward\n0,4\n500,4\n");
    const auto c = with_metrics("step,reward\n");
    const auto band = band_of_runs({&a, &b, &c}, "reward", curve_grid(1000, 100));
    REQUIRE(!band.x.empty());
    CHECK(band.x.back() == 500);
    for (std::size_t i = 0; i < band.x.size(); ++i) {
        CHECK(band.middle[i] == doctest::Approx(2.5));
        CHECK(band.low[i] == doctest::Approx(1));
        CHECK(band.high[i] == doctest::Approx(4));
    }
    REQUIRE(band.tails.size() == 1);
    CHECK(band.tails[0].x.front() == 500);
    CHECK(band.tails[0].x.back() == 1000);
    CHECK(band_of_runs({&c}, "reward", curve_grid(1000)).x.empty());
}

TEST_CASE("a seed that has not come to where the others begin leaves the band to them") {
    const auto grown = with_metrics("step,reward\n3000,1\n10000,3\n"),
               young = with_metrics("step,reward\n100,0\n200,0\n");
    const auto grid = curve_grid(10000, 100);
    const auto band = band_of_runs({&grown, &young}, "reward", grid), alone = band_of_runs({&grown}, "reward", grid);
    CHECK(band.x.size() > 10);
    CHECK(band.x == alone.x);
    CHECK(band.middle == alone.middle);
    CHECK(band.tails.size() == alone.tails.size());
}

TEST_CASE("the middle of a band is the mean, or the median if that is asked for") {
    const auto a = with_metrics("step,reward\n0,1\n500,1\n"), b = with_metrics("step,reward\n0,10\n500,10\n");
    const auto c = with_metrics("step,reward\n0,4\n500,4\n"), d = with_metrics("step,reward\n0,5\n500,5\n");
    const auto grid = curve_grid(500, 10);
    const auto middle = [&](const std::vector<const run_record*>& runs, curve_middle which) {
        return band_of_runs(runs, "reward", grid, which).middle.at(5);
    };
    CHECK(middle({&a, &b, &c}, curve_middle::mean) == doctest::Approx(5));
    CHECK(middle({&a, &b, &c}, curve_middle::median) == doctest::Approx(4));
    CHECK(middle({&a, &b, &c, &d}, curve_middle::median) == doctest::Approx(4.5));
    CHECK(band_of_runs({&a, &b, &c}, "reward", grid, curve_middle::median).high.at(5) == doctest::Approx(10));
}

TEST_CASE("steps to the goal, as far as half of the episodes came") {
    run_record a, b;
    a.levels = {{"train", "", 10, 7, 0, {}, {}}};
    b.levels = a.levels;
    a.levels[0].goals = {{30, 10, 8}, {10, 6, 2}};
    b.levels[0].goals = {{50, 20}, {9, 4}};
    const auto band = band_of_goals({&a, &b}, "train");
    CHECK(band.x == std::vector<double>{1, 2});
    CHECK(band.middle == std::vector<double>{40, 10});
    CHECK(band.high == std::vector<double>{50, 10});
    CHECK(band_of_goals({&a, &b}, "holdout").x.empty());
}

TEST_CASE("round ticks") {
    CHECK(round_ticks(0, 50, 5) == std::vector<double>{0, 10, 20, 30, 40, 50});
    CHECK(round_ticks(-0.3, 1.1, 3) == std::vector<double>{0, 0.5, 1});
    CHECK(round_ticks(3, 3, 5) == std::vector<double>{3});
    CHECK(round_ticks(200 - 3e-14, 200 + 3e-14, 3).size() == 1);
}

TEST_CASE("lists of values become a band; holes do not count") {
    const double none = std::numeric_limits<double>::quiet_NaN();
    const auto band = band_of_lists({{1, none, 3, 4}, {3, none, none}}, {0, 1, 2, 3});
    CHECK(band.x == std::vector<double>{0, 2, 3});
    CHECK(band.middle == std::vector<double>{2, 3, 4});
    CHECK(band.low == std::vector<double>{1, 3, 4});
    CHECK(band.high == std::vector<double>{3, 3, 4});
    CHECK(band_of_lists({}, {}).x.empty());

    const auto late = band_from(band, 1);
    CHECK(late.x == std::vector<double>{2, 3});
    CHECK(late.middle == std::vector<double>{3, 4});
    CHECK(late.high.size() == 2);
    CHECK(band_from(band, 3).x.size() == 3);  // one point is no curve
}

TEST_CASE("KL over the steps of one level, and levels over the number in their names") {
    run_record a, b, c;
    a.levels = {{"train", "nats", 1, 0, 0, {}, {}, {9, 9}}, {"holdout", "nats", 1, 0, 0, {}, {}, {1, 2, 3}}};
    b.levels = {{"holdout", "nats", 1, 0, 0, {}, {}, {3, 4, 5}}};
    const auto steps = band_of_steps({&a, &b, &c}, "holdout");
    CHECK(steps.x == std::vector<double>{0, 1, 2});
    CHECK(steps.middle == std::vector<double>{2, 3, 4});
    CHECK(steps.low == std::vector<double>{1, 2, 3});
    CHECK(band_of_steps({&c}, "holdout").x.empty());

    a.levels = {{"train", "", 1, 7, 0, {}, {}}, {"length_2", "", 1, 4, 0, {}, {}}, {"length_8", "", 1, 5, 0, {}, {}}};
    b.levels = {{"length_2", "", 1, 6, 0, {}, {}}};
    const auto lengths = band_of_levels({&a, &b}, {"train", "length_2", "length_8"});
    CHECK(lengths.x == std::vector<double>{2, 8});
    CHECK(lengths.middle == std::vector<double>{5, 5});
    CHECK(lengths.high == std::vector<double>{6, 5});
}
