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
    write_file(folder / "a/metrics.csv", "step,reward\r\n100,nan\r\n200,1e-3\r\n\r\n300,1e");
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
    CHECK(sentence([] { parse_metrics("step,reward\n1,2,3\n", "m.csv"); }) ==
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

TEST_CASE("what a generative model measured is read: KL a step, the recall, and the strips") {
    const temporary_folder folder;
    fake_generative_run(folder / "a", "vrnn", 2, 0.25);
    run_record run = read_run(folder / "a");
    CHECK(run.kind() == run_kind::generative);
    REQUIRE(run.levels.size() == 2);
    CHECK(run.levels[1].divergence == std::vector<double>{1.5, 2.5, 0.25});
    CHECK(run.levels[1].before_recall == 2.0);
    CHECK(run.levels[1].at_recall == 0.25);
    CHECK(run.levels[1].first_sight == 1.5);
    CHECK(!run.levels[1].recall_step);
    REQUIRE(run.metrics.find("kl_last"));
    CHECK((*run.metrics.find("kl_last"))[19] == 20);
    CHECK(run.metrics.find("negative_elbo"));
    CHECK(run.strips.empty());
    run.levels.clear();
    CHECK(run.kind() == run_kind::generative);  // by its metrics

    const std::string png = "\x89PNG\r\n\x1a\n" + std::string("\0\0\0\rIHDR\0\0\0\x07\0\0\0\x03", 16);
    std::filesystem::create_directories(folder / "a/sample");
    write_file(folder / "a/sample/strips.png", png);
    CHECK(base64_png_size(read_run(folder / "a").strips) == std::pair{7, 3});
    write_file(folder / "a/sample/strips.png", "GIF89a" + png);
    CHECK(has(sentence([&] { read_run(folder / "a"); }), "sample/strips.png: not a PNG file"));
}

TEST_CASE("agents, generative and supervised models are told apart by what they measured") {
    const temporary_folder folder;
    fake_run(folder / "a", "ff", 1, {});
    CHECK(read_run(folder / "a").kind() == run_kind::agent);
    fake_supervised_run(folder / "b", "dnc", 1, 0.5);
    run_record run = read_run(folder / "b");
    CHECK(run.kind() == run_kind::supervised);
    run.levels.clear();
    CHECK(run.kind() == run_kind::supervised);  // a loss and no reward
    run.metrics = {};
    CHECK(run.kind() == run_kind::agent);  // nothing is known
}

TEST_CASE("KL a step that is no list of numbers is one sentence; null is not a number") {
    const auto levels = parse_levels(
        parse_json(R"({"train": {"mean": 2, "unit": "nats", "kl_per_step": [1, null], "recall_step": 1}})", "s"), "s");
    REQUIRE(levels.size() == 1);
    REQUIRE(levels[0].divergence.size() == 2);
    CHECK(std::isnan(levels[0].divergence[1]));
    CHECK(levels[0].recall_step == 1.0);
    const auto broken = [](const char* text) { return sentence([&] { parse_levels(parse_json(text, "s"), "s"); }); };
    CHECK(has(broken(R"({"train": {"mean": 2, "kl_per_step": 3}})"), "'kl_per_step' must be an array of numbers"));
    CHECK(has(broken(R"({"train": {"mean": 2, "kl_per_step": ["x"]}})"), "'kl_per_step' must hold numbers only"));
}

TEST_CASE("base64 of RFC 4648") {
    const auto of = [](std::string_view text) { return to_base64(bytes(text.begin(), text.end())); };
    CHECK(of("") == "");
    CHECK(of("f") == "Zg==");
    CHECK(of("fo") == "Zm8=");
    CHECK(of("foo") == "Zm9v");
    CHECK(of("foobar") == "Zm9vYmFy");
    CHECK(of("\xff\xfe") == "//4=");
}
