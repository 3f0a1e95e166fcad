// The score of the paper on series that were worked out by hand.

#include "engram/evaluate/human_score.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace engram;

namespace {

reward_series series(std::vector<double> rewards, double episodes = 1) {
    reward_series out;
    for (std::size_t i = 0; i < rewards.size(); ++i)
        out.step.push_back(100.0 * static_cast<double>(i + 1)), out.episodes.push_back(episodes);
    out.reward = std::move(rewards);
    return out;
}

/// Twenty rows of two episodes each: 0 until step 1000, then 8.
run_record learner() {
    run_record run;
    auto& columns = run.metrics.columns;
    for (int i = 1; i <= 20; ++i) {
        columns["step"].push_back(100 * i);
        columns["episodes"].push_back(2 * i);
        columns["reward"].push_back(i <= 10 ? 0 : 8);
    }
    run.metrics.rows = 20;
    run.levels = {{"train", "episode reward", 100, 7.5, 0.25, {}, {}},
                  {"holdout_interpolate", "episode reward", 100, 6, 0.5, {}, {}},
                  {"holdout_extrapolate", "episode reward", 100, 4, 0.125, {}, {}}};
    return run;
}

}  // namespace

TEST_CASE("the exponential average is corrected for its start") {
    // alpha 1/2, rewards 4, 0, 2: m = 2, 1, 1.5 over 1/2, 3/4, 7/8.
    const auto a = exponential_average(series({4, 0, 2}), 0.5);
    CHECK(a[0] == doctest::Approx(4));
    CHECK(a[1] == doctest::Approx(4.0 / 3));
    CHECK(a[2] == doctest::Approx(12.0 / 7));
    for (const double x : exponential_average(series({3, 3, 3, 3}), 0.001)) CHECK(x == doctest::Approx(3));
}

TEST_CASE("a point of n episodes counts as n episodes of its mean") {
    const auto rows = exponential_average(series({4, 1}, 3), 0.05);
    const auto single = exponential_average(series({4, 4, 4, 1, 1, 1}), 0.05);
    CHECK(rows[0] == doctest::Approx(single[2]));
    CHECK(rows[1] == doctest::Approx(single[5]));
}

TEST_CASE("the rolling mean begins with the first full window") {
    const auto r = rolling_mean({1, 2, 3, 6}, 3);
    CHECK(std::isnan(r[0]));
    CHECK(std::isnan(r[1]));
    CHECK(r[2] == doctest::Approx(2));
    CHECK(r[3] == doctest::Approx(11.0 / 3));
    CHECK(rolling_mean({1, 2}, 10)[1] == doctest::Approx(1.5));
    CHECK(rolling_mean({}, 10).empty());
}

TEST_CASE("the best moment is that of the greatest full window, and the first of equals") {
    // alpha 1 leaves the rewards as they are; windows of two: 5, 1, 3, 3
    const auto best = find_best(series({10, 0, 2, 4, 2}), 1, 2);
    REQUIRE(best);
    CHECK(best->value == doctest::Approx(5));
    CHECK(best->step == 200);
    CHECK(best->span == 200);
    const auto later = find_best(series({0, 0, 2, 4, 2}), 1, 2);
    CHECK(later->value == doctest::Approx(3));
    CHECK(later->step == 400);
    CHECK(later->span == 200);
    CHECK(!find_best({}, 0.05));
}

TEST_CASE("a level is read at the best moment, over the same steps") {
    const reward_series level = series({1, 2, 4, 8});
    CHECK(read_at(level, 1, {0, 300, 200}) == doctest::Approx(3));  // of steps 200 and 300
    CHECK(read_at(level, 1, {0, 300, 50}) == doctest::Approx(4));
    CHECK(read_at(level, 1, {0, 350, 20}) == doctest::Approx(4));  // the nearest before it
    CHECK(read_at(level, 1, {0, 50, 50}) == doctest::Approx(1));   // nothing before it
}

TEST_CASE("evaluations count the training episodes between them") {
    // Two training episodes every 100 steps: 150 steps are three episodes, the next 300 six.
    const auto training = series({0, 0, 0, 0, 0}, 2);
    const auto level = evaluation_series({"train", {150, 450}, {20, 20}, {1, 5}, {0, 0}}, training);
    CHECK(level.episodes == std::vector<double>{3, 6});
    CHECK(exponential_average(level, 0.5)[1] == doctest::Approx((1 * 7.0 / 512 + 5 * 63.0 / 64) / (511.0 / 512)));
}

TEST_CASE("a run with curves of all levels, step by step") {
    run_record run = learner();
    run.curves = {{"holdout_interpolate", {500, 1000, 1500, 2000}, {20, 20, 20, 20}, {1, 2, 3, 5}, {0, 0, 0, 0}}};
    // alpha 1: rows 11 to 20 are 8 each, so the best window ends at step 2000 and covers (1000, 2000].
    const auto judged = judge_run(run, 1);
    CHECK(judged.step == 2000);
    REQUIRE(judged.levels[0]);
    CHECK(judged.levels[0]->reward == doctest::Approx(8));
    CHECK(judged.levels[0]->from_curve);
    CHECK(judged.levels[1]->reward == doctest::Approx(4));  // of 3 and 5
    CHECK(judged.levels[1]->from_curve);
    // No curve: the evaluation after training, and it says so.
    CHECK(judged.levels[2]->reward == 4);
    CHECK(judged.levels[2]->standard_error == 0.125);
    CHECK(!judged.levels[2]->from_curve);
}

TEST_CASE("a run without rows of training is judged by its evaluation, one without that not at all") {
    run_record run = learner();
    run.metrics = {};
    run.curves = {{"holdout_interpolate", {500}, {20}, {1}, {0}}};
    const auto judged = judge_run(run, 0.05);
    CHECK(!judged.step);
    CHECK(judged.levels[0]->reward == 7.5);
    CHECK(judged.levels[1]->reward == 6);
    run.levels.clear();
    for (const auto& level : judge_run(run, 0.05).levels) CHECK(!level);
}

TEST_CASE("rows in which no episode ended hold nothing") {
    run_record run = learner();
    run.metrics.columns["reward"][4] = std::nan("");
    const auto training = training_series(run.metrics);
    CHECK(training.step.size() == 19);
    CHECK(training.episodes[4] == 4);  // those of both rows
}

TEST_CASE("the score is linear between its ends") {
    const score_scale scale{10, 50};
    CHECK(scale.score(10) == doctest::Approx(0));
    CHECK(scale.score(50) == doctest::Approx(100));
    CHECK(scale.score(5) == doctest::Approx(-12.5));
    CHECK(scale.points(4) == doctest::Approx(10));
}
