// The maps of ablation x task: numbers by hand, empty cells, doubts, text and CSV.

#include "engram/evaluate/heatmap.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace engram;

namespace {

run_record fake(const std::string& task, const std::string& ablation, int seed, double train, double interpolate,
                double extrapolate, const std::string& fidelity = "paper") {
    run_record run;
    run.ablation = ablation, run.task = task, run.preset = "mine", run.seed = seed;
    run.settings["task"]["fidelity"] = fidelity;
    run.levels = {{"train", "episode reward", 100, train, 0.1, {}, {}},
                  {"holdout_interpolate", "episode reward", 100, interpolate, 0.1, {}, {}},
                  {"holdout_extrapolate", "episode reward", 100, extrapolate, 0.1, {}, {}}};
    return run;
}

/// On change detection the paper's Random is 0, and Human 47.6, 48.8 and 46.8.
std::vector<run_record> four() {
    return {fake("what_then_where", "mra", 1, 25.01, 25.015, 24.805),  // half of the way: 50 on all levels
            fake("change_detection", "mra", 1, 47.6, 24.4, 0), fake("change_detection", "mra", 2, 23.8, 24.4, 23.4),
            fake("change_detection", "ff", 1, 0, 0, 0)};
}

bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("cells, averages and gaps by hand") {
    const auto maps = measured_heat_maps(four());
    REQUIRE(maps.size() == 4);
    const auto& train = maps[0];
    CHECK(train.fidelity == "paper");
    REQUIRE(train.tasks == std::vector<std::size_t>{2, 3});  // the suite's order, not that of the runs
    REQUIRE(train.rows.size() == 2);
    CHECK(train.rows[0].ablation == "ff");  // the catalogue's
    const auto& mra = train.rows[1];
    // 100 and 50: mean 75, s = 35.36, stderr 25
    CHECK(mra.cells[0]->score.mean == doctest::Approx(75));
    CHECK(mra.cells[0]->score.standard_error == doctest::Approx(25));
    CHECK(mra.cells[0]->score.count == 2);
    CHECK(mra.cells[1]->score.mean == doctest::Approx(50));
    // one seed: the error of its episodes, 0.1 of 49.98
    CHECK(mra.cells[1]->score.standard_error == doctest::Approx(100 * 0.1 / 49.98));
    CHECK(mra.average->score.mean == doctest::Approx(62.5));
    CHECK(mra.average->score.count == 2);
    CHECK(mra.average->score.standard_error == doctest::Approx(std::hypot(25, 100 * 0.1 / 49.98) / 2));
    // What was not measured is empty, and averages are over what is there.
    CHECK(!train.rows[0].cells[1]);
    CHECK(train.rows[0].average->score.count == 1);
    CHECK(train.averages[0]->score.mean == doctest::Approx(37.5));
    CHECK(train.averages[1]->score.count == 1);
    CHECK(train.averages[2]->score.mean == doctest::Approx(125.0 / 3));
    // Gaps: 100 - (50 + 0) / 2 and 50 - 50.
    CHECK(maps[3].level == gap_level);
    CHECK(maps[3].rows[1].cells[0]->score.mean == doctest::Approx(37.5));
    CHECK(maps[3].rows[1].cells[0]->score.standard_error == doctest::Approx(37.5));
    CHECK(maps[3].rows[1].cells[1]->score.mean == doctest::Approx(0).epsilon(1e-9));
    // No curves: judged after training, and it is said.
    CHECK(maps[1].rows[1].cells[0]->after_training);
    CHECK(!maps[0].rows[1].cells[0]->after_training);
    REQUIRE(maps[1].notes().size() == 1);
    CHECK(contains(maps[1].notes()[0], "after training"));
    CHECK(maps[0].notes().empty());
}

TEST_CASE("what has no scale or no levels has no cell") {
    auto runs = four();
    runs.push_back(fake("t_maze", "mra", 1, 1, 1, 1));
    runs.push_back(fake("spot_diff", "mra", 1, 1, 1, 1, ""));
    runs.push_back(fake("spot_diff", "mra", 1, 1, 1, 1));
    runs.back().levels.clear();
    CHECK(measured_heat_maps(runs)[0].tasks.size() == 2);
    runs = {fake("change_detection", "mra", 1, 1, 1, 1)};
    runs[0].levels.pop_back();
    const auto maps = measured_heat_maps(runs);
    CHECK(maps[1].rows[0].cells[0]);
    CHECK(!maps[2].rows[0].cells[0]);
    CHECK(!maps[2].rows[0].average);
    CHECK(!maps[2].averages.back());
    CHECK(!maps[3].rows[0].cells[0]);  // a gap needs all three
    CHECK(measured_heat_maps({}).empty());
}

TEST_CASE("fidelities do not share a map") {
    auto runs = four();
    runs.push_back(fake("arbitrary_visuomotor_mapping", "mra", 1, 50, 40, 75, "small"));
    const auto maps = measured_heat_maps(runs);
    REQUIRE(maps.size() == 8);
    CHECK(maps[4].fidelity == "small");
    CHECK(maps[4].tasks == std::vector<std::size_t>{0});
    CHECK(maps[4].rows[0].cells[0]->score.mean == doctest::Approx(100));
}

TEST_CASE("the paper's map comes from its raw tables, with its doubts") {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < suite_tasks.size(); ++i) all.push_back(i);
    const auto map = published_heat_map(0, all);
    REQUIRE(map.rows.size() == 9);
    CHECK(map.rows.back().ablation == "mra");
    CHECK(std::abs(map.rows.back().average->score.mean - 128.8) < 0.0501);  // errata M28
    CHECK(map.rows.back().average->doubt.empty());
    int doubted = 0;
    for (const auto& row : map.rows)
        for (const auto& cell : row.cells) doubted += !cell->doubt.empty();
    CHECK(doubted == 2);
    for (const auto& row : map.rows) CHECK(row.average->doubt.empty() == (row.ablation != "ff_mem_rec"));
    CHECK(!map.averages[1]->doubt.empty());
    CHECK(map.averages[0]->doubt.empty());
    CHECK(map.notes().size() == 4);  // two doubts, two choices
    // Visuomotor mapping: of MRA 100 % on train, of LSTM 66.7 %; the gap of MRA is that of its three scores.
    const auto gap = published_heat_map(gap_level, {0});
    const auto& agent = *published_tables[0].find("mra");
    double expected = published_score(published_tables[0], agent, 0).mean;
    for (const std::size_t level : {1, 2}) expected -= published_score(published_tables[0], agent, level).mean / 2;
    CHECK(gap.rows.back().cells[0]->score.mean == doctest::Approx(expected));
}

TEST_CASE("the text is aligned, marks doubts and leaves gaps") {
    const auto maps = measured_heat_maps(four());
    CHECK(heat_map_text(maps[0]) ==
          "train, % (paper fidelity; 0 is acting at random and 100 a human, as the paper measured them)\n"
          "  ablation    CD   WTW  mean  of\n"
          "  ff         0.0         0.0   1\n"
          "  mra       75.0  50.0  62.5   2\n"
          "  mean      37.5  50.0  41.7   3\n");
    const std::string paper = heat_map_text(published_heat_map(0, {1, 12}));
    CHECK(contains(paper, "the paper"));
    CHECK(contains(paper, "100.8!"));
    CHECK(contains(paper, "note: FF+MEM+REC on Continuous Recognition"));
}

TEST_CASE("CSV has one line per cell that is there") {
    const auto maps = measured_heat_maps(four());
    const std::string csv = heat_map_csv({maps[0], published_heat_map(0, {2, 3})});
    CHECK(
        csv.starts_with("source,fidelity,level,ablation,task,score,stderr,count,note\n"
                        "measured,paper,train,ff,change_detection,0,"));
    CHECK(contains(csv, "\nmeasured,paper,train,mra,change_detection,75,25,2,\n"));
    CHECK(contains(csv, "\nmeasured,paper,train,mean,mean,41.66"));
    CHECK(!contains(csv, "measured,paper,train,ff,what_then_where"));
    CHECK(contains(csv, "\npaper,paper,train,lstm_mem_rec,change_detection,82.184874,"));  // 39.12 of 47.6
    CHECK(contains(csv, ",\"FF+MEM") == false);
    CHECK(contains(heat_map_csv({published_heat_map(1, {1})}), "ff_mem_rec,continuous_recognition,"));
}
