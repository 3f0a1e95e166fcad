// Runs in one row that are no seeds of each other are told apart.

#include <doctest/doctest.h>

#include <engram/evaluate/mixed_runs.hpp>

using namespace engram;

namespace {

run_record run_of(double seed, double steps, const json& settings) {
    run_record run;
    run.ablation = "own";
    run.task = "t_maze";
    run.preset = "small";
    run.seed = seed;
    run.steps = steps;
    run.settings = settings;
    return run;
}

const json narrow{{"memory", {{"slots", 16}}}, {"task", {{"data", "here"}}}, {"encoder", {{"layers", {8, 8}}}}};

}  // namespace

TEST_CASE("seeds of one experiment are nothing to tell, wherever their data lay") {
    json elsewhere = narrow;
    elsewhere["task"]["data"] = "there";
    const std::vector<run_record> runs{run_of(1, 100, narrow), run_of(2, 100, narrow), run_of(3, 100, elsewhere)};
    CHECK(mixed_runs(compare(runs).at(0)).empty());
}

TEST_CASE("other settings, other steps and a seed twice are") {
    json wide = narrow;
    wide["memory"]["slots"] = 64;
    wide["encoder"]["layers"] = {8, 8, 8};
    const std::vector<run_record> settings{run_of(1, 100, narrow), run_of(2, 100, wide)};
    CHECK(different_settings(settings[0], settings[1]) == std::vector<std::string>{"encoder.layers", "memory.slots"});
    CHECK(mixed_runs(compare(settings).at(0)) ==
          std::vector<std::string>{"own: its 2 runs differ in encoder.layers, memory.slots, yet count as seeds of one "
                                   "experiment; compare them in reports of their own"});

    const std::vector<run_record> longer{run_of(1, 100, narrow), run_of(1, 200, narrow)};
    CHECK(mixed_runs(compare(longer).at(0)) ==
          std::vector<std::string>{"own: its 2 runs differ in steps and have a seed in common, yet count as seeds of "
                                   "one experiment; compare them in reports of their own"});

    // What ended as soon as it was good enough was begun for the same.
    auto soon = longer;
    soon[0].seed = 2;
    soon[0].steps_asked = soon[1].steps_asked = 300;
    CHECK(mixed_runs(compare(soon).at(0)).empty());

    const std::vector<run_record> same{run_of(1, 100, narrow), run_of(1, 100, narrow)};
    CHECK(mixed_runs(compare(same).at(0)).at(0).starts_with("own: its 2 runs have a seed in common, yet"));
}
