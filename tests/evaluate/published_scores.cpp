// The tables of the paper, checked against what was computed from them by hand before (errata M4, M28, M30).

#include "engram/evaluate/published_scores.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace engram;

namespace {

/// Mean over the tasks of an agent's score on a level.
double average(const std::string& ablation, std::size_t level) {
    double sum = 0;
    for (const auto& table : published_tables) sum += published_score(table, *table.find(ablation), level).mean;
    return sum / static_cast<double>(published_tables.size());
}

/// Mean over the nine agents of the score on a task's train level.
double train_mean(const published_table& table) {
    double sum = 0;
    for (const auto& agent : table.agents) sum += published_score(table, agent, 0).mean;
    return sum / static_cast<double>(table.agents.size());
}

}  // namespace

TEST_CASE("thirteen tables of nine agents in the order of the suite, each on a scale that goes up") {
    for (std::size_t i = 0; i < suite_tasks.size(); ++i) {
        const auto& table = published_tables[i];
        CHECK(std::string(table.task) == suite_tasks[i].name);
        CHECK(table.number == static_cast<int>(i) + 4);
        CHECK(find_published(table.task) == &table);
        for (const auto& average : printed_averages) CHECK(table.find(average.ablation) != nullptr);
        CHECK(table.find("mra_no_jumpy") == nullptr);
        for (std::size_t level = 0; level < 3; ++level) CHECK(table.human[level].mean > table.random[level].mean);
        for (const auto& agent : table.agents)
            for (const auto& value : agent.levels()) CHECK(value.standard_error >= 0);
    }
    CHECK(find_published("t_maze") == nullptr);
    CHECK(suite_index("explore_goal_locations") == 11);
    CHECK(!suite_index(""));
}

TEST_CASE("averages over the tables are those of errata M28, and not the printed ones") {
    const struct {
        const char* ablation;
        double train, interpolate, extrapolate;
    } expected[] = {{"mra", 128.8, 60.3, 57.4},
                    {"lstm", 98.7, 43.2, 38.7},
                    {"ff", 40.0, 26.1, 21.6},
                    {"ff_mem_cpc", 72.6, 51.6, 47.0},  // M30
                    {"ff_mem_rec", 71.0, 39.9, 38.2}};
    for (const auto& e : expected) {
        INFO(e.ablation);
        CHECK(std::abs(average(e.ablation, 0) - e.train) < 0.0501);
        CHECK(std::abs(average(e.ablation, 1) - e.interpolate) < 0.0501);
        CHECK(std::abs(average(e.ablation, 2) - e.extrapolate) < 0.0501);
    }
    for (const auto& printed : printed_averages) CHECK(std::abs(average(printed.ablation, 0) - printed.train.mean) > 5);
}

TEST_CASE("the four lowest train means are those of errata M4, in that order") {
    std::vector<std::pair<double, std::string>> means;
    for (const auto& table : published_tables) means.emplace_back(train_mean(table), table.task);
    std::sort(means.begin(), means.end());
    const std::pair<double, const char*> lowest[] = {
        {29.2, "spot_diff_multi"}, {32.7, "spot_diff_motion"}, {35.3, "what_then_where"}, {54.6, "spot_diff"}};
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK(means[i].second == lowest[i].second);
        CHECK(std::abs(means[i].first - lowest[i].first) < 0.0501);
    }
}

TEST_CASE("two rows are doubted, and the numbers show why") {
    int doubted = 0;
    for (const auto& table : published_tables)
        for (const auto& agent : table.agents) doubted += *published_doubt(table.task, agent.ablation) != 0;
    CHECK(doubted == 2);
    const auto& recognition = *find_published("continuous_recognition");
    const auto copied = recognition.find("ff_mem_rec")->levels(), from = recognition.find("lstm_mem_rec")->levels();
    const auto& inference = *find_published("transitive_inference");
    for (std::size_t level = 0; level < 3; ++level) {
        CHECK(copied[level].mean == from[level].mean);
        CHECK(copied[level].standard_error == from[level].standard_error);
        CHECK(published_score(inference, *inference.find("ff_mem_rec"), level).mean < 0);
    }
}

TEST_CASE("train of the maze and of transitive inference is scaled by the mean of small and large (errata M42)") {
    const auto& maze = *find_published("visible_goal_procedural_maze");
    CHECK(maze.random[0].mean == doctest::Approx((7.79 + 1.97) / 2));
    CHECK(maze.human[0].mean == doctest::Approx((364.0 + 104.0) / 2));
    CHECK(maze.human[0].standard_error == doctest::Approx(std::sqrt(43.20 * 43.20 + 23.58 * 23.58) / 2));
    int chosen = 0;
    for (const auto& table : published_tables)
        for (std::size_t level = 0; level < 3; ++level) chosen += *published_choice(table.task, level) != 0;
    CHECK(chosen == 2);
}
