// The scale of scores at small fidelity: every registered task of the suite has measured ends, and they are what its
// environment gives.

#include "engram/evaluate/reference_scores.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "engram/evaluate/measure_references.hpp"

using namespace engram;

namespace {

const reference_row* find_row(const std::string& task, const std::string& level) {
    for (const auto& row : reference_table)
        if (row.task == task && row.level == level) return &row;
    return nullptr;
}

}  // namespace

TEST_CASE("every registered task but those of MemUP and POPGym is one of the suite and has its rows") {
    for (const auto& info : all_tasks()) {
        if (info.name == "t_maze" || info.name == "two_colors" || info.name.starts_with("popgym_")) continue;
        INFO("write the table anew: engram-report --measure-references 2000 > reference_table.hpp; ", info.name);
        CHECK(suite_index(info.name).has_value());
        for (const auto& level : info.judged_levels()) CHECK(find_row(info.name, level) != nullptr);
    }
}

TEST_CASE("the table is what a few episodes measure, within five standard errors") {
    constexpr int episodes = 40;
    for (const auto& info : all_tasks()) {
        for (const auto& level : info.judged_levels()) {
            const auto* row = find_row(info.name, level);
            if (!row) continue;
            INFO(info.name, " ", level);
            const auto m = measure_reference(info, level, episodes, 7);
            const auto near = [&](const level_score& found, double mean, double error) {
                // A few episodes may all be equal by chance: the table tells how far they usually spread.
                const double few = error * std::sqrt(static_cast<double>(row->episodes) / episodes);
                CHECK(std::abs(found.mean - mean) <= 5 * std::hypot(std::max(found.standard_error, few), error) + 1e-4);
            };
            near(m.random, row->random, row->random_error);
            near(m.oracle, row->oracle, row->oracle_error);
            CHECK(row->oracle > row->random);
        }
    }
}

TEST_CASE("where a task knows its limits, the table keeps to them") {
    for (const auto& info : all_tasks())
        for (const auto& level : info.judged_levels())
            if (const auto* row = find_row(info.name, level)) {
                INFO(info.name, " ", level);
                const auto& about = info.level(level);
                if (about.maximum_reward > 0) CHECK(row->oracle <= static_cast<double>(about.maximum_reward) + 1e-4);
                if (std::isfinite(about.random_reward))
                    CHECK(std::abs(row->random - static_cast<double>(about.random_reward)) <=
                          5 * row->random_error + 1e-4);
            }
}

TEST_CASE("each fidelity has its own scale, and what is not known has none") {
    const auto paper = scale_of("arbitrary_visuomotor_mapping", 2, "paper");
    REQUIRE(paper);
    CHECK(paper->zero == 0.06);
    CHECK(paper->hundred == 75);
    CHECK(paper->score(0.06) == doctest::Approx(0));
    CHECK(paper->score(75) == doctest::Approx(100));
    const auto small = scale_of("arbitrary_visuomotor_mapping", 0, "small");
    REQUIRE(small);
    CHECK(small->zero == doctest::Approx(12.5).epsilon(0.05));  // a quarter of fifty trials
    CHECK(small->hundred == 50);
    CHECK(!scale_of("t_maze", 0, "small"));
    CHECK(!scale_of("arbitrary_visuomotor_mapping", 0, ""));
    CHECK(!scale_of("arbitrary_visuomotor_mapping", 3, "paper"));
}
