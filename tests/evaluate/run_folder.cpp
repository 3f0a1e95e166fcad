// SPDX-License-Identifier: MIT

#include "engram/evaluate/run_folder.hpp"

#include <doctest/doctest.h>

#include "../io/temporary.hpp"
#include "fake_run.hpp"

using namespace engram;

TEST_CASE("a run folder is read, unknown fields and columns left alone") {
    const temporary_folder folder;
    fake_run(folder / "a", "lstm_mem", 3, {{"train", 49.5, 0.1, 50}});
    const run_record run = read_run(folder / "a");
    CHECK(run.ablation == "lstm_mem");
    CHECK(run.seed == 3);
    CHECK(run.parameters == 4321);
    CHECK(run.device == "cpu");
    REQUIRE(run.levels.size() == 1);
    CHECK(run.levels[0].mean == 49.5);
    CHECK(run.levels[0].maximum == 50.0);
    CHECK(run.levels[0].random == 12.5);
    CHECK(run.metrics.rows == 20);
    CHECK(run.metrics.find("mystery") == nullptr);
    REQUIRE(run.metrics.find("reward"));
    CHECK((*run.metrics.find("reward"))[0] == 4);
    CHECK(std::isnan((*run.metrics.find("reward"))[4]));
    CHECK((*run.metrics.steps())[19] == 1000);
    CHECK(!run.retrieval);
}

TEST_CASE("a run that is not finished is a run: config alone, half a last line, no levels") {
    const temporary_folder folder;
    fake_run(folder / "a", "ff", 1, {});
    std::filesystem::remove(folder / "a/summary.json");
    write_file(folder / "a/metrics.csv", "step,reward\r\n100,nan\r\n200,1e-3\r\n\r\n30");
    const run_record run = read_run(folder / "a");
    CHECK(run.levels.empty());
    CHECK(run.metrics.rows == 2);
    CHECK(std::isnan((*run.metrics.find("reward"))[0]));
    CHECK((*run.metrics.find("reward"))[1] == 1e-3);
    std::filesystem::remove(folder / "a/metrics.csv");
    CHECK(read_run(folder / "a").metrics.rows == 0);
}

TEST_CASE("bad metrics name the line and the column") {
    CHECK(sentence([] { parse_metrics("step,reward\n1,2\n2,two\n", "m.csv"); }) ==
          "m.csv, line 3: 'two' in column 'reward' is not a number");
    CHECK(sentence([] { parse_metrics("step,reward\n1,2 3\n", "m.csv"); }) ==
          "m.csv, line 2: '2 3' in column 'reward' is not a number");
    CHECK(sentence([] { parse_metrics("step,reward\n1,2\n\n2\n3,4\n", "m.csv"); }) ==
          "m.csv, line 4: 1 cells, but the header has 2");
    CHECK(sentence([] { parse_metrics("step,reward\n1,2,3", "m.csv"); }) ==
          "m.csv, line 2: 3 cells, but the header has 2");
    CHECK(has(sentence([] { parse_metrics("time,reward\n1,2\n", "m.csv"); }), "line 1: no column 'step'"));
    CHECK(has(sentence([] { parse_metrics("step,loss,loss\n", "m.csv"); }), "the column 'loss' occurs twice"));
}

TEST_CASE("bad folders and bad JSON are one sentence") {
    const temporary_folder folder;
    CHECK(sentence([&] { read_run(folder / "none"); }) == "no run folder '" + folder / "none" + "'");
    CHECK(has(sentence([&] { read_run(folder.path); }), "holds neither config.json nor summary.json"));
    fake_run(folder / "a", "ff", 1, {});
    CHECK(has(sentence([&] { read_run(folder / "a/config.json"); }), "is not a folder"));
    write_file(folder / "a/config.json", "{\"ablation\": ");
    CHECK(has(sentence([&] { read_run(folder / "a"); }), "a/config.json: not valid JSON"));
    write_file(folder / "a/config.json", "{\"ablation\": \"ff\", \"seed\": \"one\"}");
    CHECK(has(sentence([&] { read_run(folder / "a"); }), "'seed' must be a number, got \"one\""));
    write_file(folder / "a/config.json", "{}");
    write_file(folder / "a/summary.json", "{\"task\": \"t_maze\"}");
    CHECK(has(sentence([&] { read_run(folder / "a"); }), "names the ablation"));
    write_file(folder / "a/summary.json", "{\"task\": \"t_maze\", \"ablation\": \"ff\", \"levels\": {\"train\": 3}}");
    CHECK(has(sentence([&] { read_run(folder / "a"); }), "level 'train' must be an object"));
}

TEST_CASE("a level without a finite mean is left out") {
    const auto levels =
        parse_levels(parse_json(R"({"train": {"mean": null, "unit": "reward"}, "test": {"mean": 2}})", "s"), "s");
    REQUIRE(levels.size() == 1);
    CHECK(levels[0].level == "test");
    CHECK(!levels[0].maximum);
}
