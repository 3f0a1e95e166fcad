// SPDX-License-Identifier: MIT

#include "engram/evaluate/comparison.hpp"

#include <doctest/doctest.h>

#include "../io/temporary.hpp"
#include "engram/evaluate/comparison_table.hpp"
#include "engram/evaluate/headline.hpp"

using namespace engram;

namespace {

run_record fake(const std::string& ablation, int seed, double train, double interpolate, double extrapolate) {
    run_record run;
    run.ablation = ablation;
    run.task = "arbitrary_visuomotor_mapping";
    run.preset = "small";
    run.seed = seed;
    run.levels = {{"holdout_interpolate", "episode reward", 100, interpolate, 0.2, 40.0, 10.0},
                  {"train", "episode reward", 100, train, 0.25, 50.0, 12.5},
                  {"holdout_extrapolate", "episode reward", 100, extrapolate, 0.3, 75.0, 18.75}};
    return run;
}

/// Levels as a generative model has them, 2 nats of KL a step before the recall.
run_record generative(const std::string& ablation, int seed, double elbo, double at_recall) {
    run_record run;
    run.ablation = ablation, run.task = "perfect_recall", run.preset = "small", run.seed = seed;
    for (const std::string level : {"train", "holdout_interpolate"})
        run.levels.push_back({level,
                              "nats",
                              100,
                              elbo + (level == "train" ? -5 : 0),
                              2.5,
                              {},
                              {},
                              {1, 3, at_recall},
                              2.0,
                              at_recall,
                              1.0});
    return run;
}

std::vector<run_record> gtmm_and_vrnn() {
    return {generative("vrnn", 1, 660, 6.5), generative("introspective_gtmm", 2, 622, 1.0),
            generative("introspective_gtmm", 1, 618, 0.5), generative("vrnn", 2, 664, 7.5)};
}

std::vector<run_record> twelve() {
    std::vector<run_record> runs;
    for (int seed = 3; seed >= 1; --seed) {
        runs.push_back(fake("ff", seed, 22 + seed, 18, 33));
        runs.push_back(fake("lstm", seed, 29, 23.2, 43.5));
        runs.push_back(fake("ff_mem", seed, 48, 38, 70.5));
        runs.push_back(fake("lstm_mem", seed, 49 + 0.25 * seed, 39.2 + 0.2 * seed, 73.5));
    }
    return runs;
}

}  // namespace

TEST_CASE("means, standard errors, gap and order by hand") {
    const auto runs = twelve();
    const auto tasks = compare(runs);
    REQUIRE(tasks.size() == 1);
    const auto& task = tasks[0];
    CHECK(task.percent);
    REQUIRE(task.levels.size() == 3);
    CHECK(task.levels[0] == "train");  // first, wherever it stands in the file
    REQUIRE(task.ablations.size() == 4);
    CHECK(task.ablations[0].ablation == "lstm_mem");
    CHECK(task.ablations[1].ablation == "ff_mem");
    CHECK(task.ablations[2].ablation == "lstm");
    CHECK(task.ablations[3].ablation == "ff");
    CHECK(task.ablations[0].runs[0]->seed == 1);

    // FF on train: 23, 24, 25 of 50: mean 24 = 48 %, s = 1, stderr 1 / sqrt(3) = 0.57735 = 1.1547 %
    const auto& ff = *task.ablations[3].levels[0];
    CHECK(ff.reward.mean == doctest::Approx(24));
    CHECK(ff.reward.standard_error == doctest::Approx(0.5773502692));
    CHECK(ff.percent->mean == doctest::Approx(48));
    CHECK(ff.percent->standard_error == doctest::Approx(1.1547005384));
    CHECK(ff.percent->count == 3);
    // gap: 46, 48, 50 minus (45 + 44) / 2 = 1.5, 3.5, 5.5
    CHECK(task.ablations[3].gap->mean == doctest::Approx(3.5));
    CHECK(task.ablations[3].gap->standard_error == doctest::Approx(2 / std::sqrt(3.0)));
    // LSTM+MEM: 98.5, 99, 99.5 and 98 on the holdouts: score 98.25, 98.5, 98.75
    CHECK(task.ablations[0].score->mean == doctest::Approx(98.5));
    CHECK(task.ablations[0].score->standard_error == doctest::Approx(0.25 / std::sqrt(3.0)));
    CHECK(task.is_best(0, task.ablations[0]));
    CHECK(!task.is_best(0, task.ablations[1]));
}

TEST_CASE("one seed has the standard error of its episodes") {
    const std::vector<run_record> runs{fake("ff", 1, 25, 18, 33)};
    const auto task = compare(runs)[0];
    CHECK(task.ablations[0].levels[0]->percent->standard_error == doctest::Approx(0.5));  // 0.25 of 50
    // holdouts: 0.5 % and 0.4 %, their mean sqrt(0.25 + 0.16) / 2; with train's 0.5 %
    CHECK(task.ablations[0].gap->standard_error == doctest::Approx(std::sqrt(0.41 / 4 + 0.25)));
    CHECK(!task.is_best(0, task.ablations[0]));  // of what?
}

TEST_CASE("runs that were not judged are no seeds of what the others have") {
    std::vector<run_record> runs{fake("ff", 1, 25, 18, 33), fake("ff", 2, 25, 18, 33), fake("ff", 3, 25, 18, 33)};
    CHECK(compare(runs)[0].ablations[0].seeds() == "3");
    runs[1].levels.clear();
    CHECK(compare(runs)[0].ablations[0].seeds() == "2 of 3");
    CHECK(comparison_text(compare(runs)[0]).find("  ff        2 of 3  ") != std::string::npos);
    for (auto& run : runs) run.levels.clear();
    CHECK(compare(runs)[0].ablations[0].seeds() == "3");
}

TEST_CASE("the text has one aligned line per ablation") {
    const auto runs = twelve();
    CHECK(comparison_text(compare(runs)[0]) ==
          "arbitrary_visuomotor_mapping (small): % of the maximum, +- standard error over seeds (over episodes for one "
          "seed)\n"
          "  ablation  seeds        train  holdout_interpolate  holdout_extrapolate  train - holdout\n"
          "  lstm_mem      3  99.0 +- 0.3          99.0 +- 0.3          98.0 +- 0.0       0.5 +- 0.1\n"
          "  ff_mem        3  96.0 +- 0.0          95.0 +- 0.0          94.0 +- 0.0       1.5 +- 0.0\n"
          "  lstm          3  58.0 +- 0.0          58.0 +- 0.0          58.0 +- 0.0       0.0 +- 0.0\n"
          "  ff            3  48.0 +- 1.2          45.0 +- 0.0          44.0 +- 0.0       3.5 +- 1.2\n");
}

TEST_CASE("CSV has one line per ablation and level, quoted where needed") {
    auto runs = twelve();
    runs.push_back(fake("mine, \"new\"", 1, 25, 20, 30));
    const std::string csv = comparison_csv(compare(runs));
    CHECK(has(csv, "arbitrary_visuomotor_mapping,small,ff,train,3,episode reward,24,0.57735027,50,48,1.1547005\n"));
    CHECK(has(csv, "arbitrary_visuomotor_mapping,small,ff,train - holdout,3,episode reward,,,,3.5,1.1547005\n"));
    CHECK(has(csv, ",\"mine, \"\"new\"\"\",train,1,"));
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 1 + 5 * 4);
    CHECK(csv.starts_with("task,preset,ablation,level,seeds,unit,mean,stderr,maximum,percent,percent_stderr\n"));
}

TEST_CASE("the headline is what the numbers say") {
    auto runs = twelve();
    CHECK(headline(compare(runs)[0]) ==
          "LSTM+MEM reaches 98.5\u00a0% on images it never saw; without memory, LSTM stays at 58\u00a0%");
    for (auto& run : runs)
        if (run.ablation == "lstm")
            for (auto& level : run.levels) level.mean = *level.maximum;
    CHECK(headline(compare(runs)[0]) ==
          "LSTM reaches 100\u00a0% on images it never saw without memory; with it, LSTM+MEM stays at 98.5\u00a0%");
    for (auto& run : runs) run.ablation = "a" + run.ablation;
    CHECK(headline(compare(runs)[0]) == "alstm reaches 100\u00a0% on images it never saw; aff, the last, at 45\u00a0%");
    for (auto& run : runs) run.levels.clear();
    CHECK(headline(compare(runs)[0]) == "12 runs on arbitrary visuomotor mapping, not evaluated yet");
    CHECK(percent_in_words(99.97) == "99.9\u00a0%");
    CHECK(percent_in_words(100) == "100\u00a0%");
    CHECK(percent_in_words(57.6) == "58\u00a0%");
}

TEST_CASE("a difference within the errors is not called one") {
    std::vector<run_record> runs{fake("ff_mem", 1, 30, 24, 45), fake("lstm", 1, 30, 23.8, 45)};
    CHECK(headline(compare(runs)[0]) ==
          "FF+MEM reaches 60\u00a0% on images it never saw; LSTM does as well without memory, at 60\u00a0%");
}

TEST_CASE("a difference that the errors leave open is neither as good nor worse") {
    const auto ended = [](const std::string& ablation, double mean, double error) {
        run_record run;
        run.ablation = ablation, run.task = "t_maze", run.preset = "small", run.seed = 1;
        run.levels = {{"test", "episode reward", 100, mean, error, 1.0, {}}};
        return run;
    };
    // 100 and 30 +- 43 of a hundred: twice 43 is more than 70.
    std::vector<run_record> runs{ended("ppo_memup", 1, 0), ended("ppo_lstm", 0.3, 0.43)};
    CHECK(headline(compare(runs)[0]) ==
          "PPO+MemUP reaches 100\u00a0% on t maze; without memory, PPO+LSTM is at 30\u00a0%, which these runs cannot "
          "tell apart");
    std::swap(runs[0].ablation, runs[1].ablation);
    CHECK(headline(compare(runs)[0]) ==
          "PPO+LSTM reaches 100\u00a0% on t maze without memory; with it, PPO+MemUP is at 30\u00a0%, which these runs "
          "cannot tell apart");
    runs[0].ablation = "mine";
    CHECK(headline(compare(runs)[0]) ==
          "mine reaches 100\u00a0% on t maze; PPO+MemUP is at 30\u00a0%, which these runs cannot tell apart");
    runs[1].levels[0].standard_error = 0.1;
    CHECK(headline(compare(runs)[0]) == "mine reaches 100\u00a0% on t maze; PPO+MemUP, the last, at 30\u00a0%");

    std::vector<run_record> models{generative("ntm_gtmm", 1, 600, 6), generative("ntm_gtmm", 2, 600, 6),
                                   generative("vrnn", 1, 610, 6), generative("vrnn", 2, 610, 9)};
    CHECK(headline(compare(models)[0]) ==
          "NTM GTMM needs 6.00 nats for a frame it has seen before; without memory, VRNN needs 7.50, which these runs "
          "cannot tell apart");
    // Of 600 nats 2 are little; between runs that agree they are a difference all the same.
    std::vector<run_record> bounds{generative("ntm_gtmm", 1, 600, 6), generative("ntm_gtmm", 2, 600.5, 6),
                                   generative("vrnn", 1, 602, 6), generative("vrnn", 2, 602.5, 6)};
    for (auto& run : bounds)
        for (auto& level : run.levels) level.before_recall = level.at_recall = level.first_sight = {};
    CHECK(headline(compare(bounds)[0]) ==
          "NTM GTMM needs 600.2 nats for a sequence of perfect recall; without memory, VRNN needs 602.2");
    bounds[2].levels[1].mean = 590;  // 596.25 on average, 6.25 either way
    CHECK(headline(compare(bounds)[0]) ==
          "VRNN needs 596.2 nats for a sequence of perfect recall without memory; with it, NTM GTMM does as well, at "
          "600.2");
}

TEST_CASE("errors are better when lower, and need no maximum") {
    std::vector<run_record> runs{fake("ff", 1, 3, 3, 3), fake("lstm", 1, 1, 1, 1)};
    for (auto& run : runs) {
        run.task = "add";
        run.levels = {{"test", "mean squared error", 10, run.levels[0].mean / 1000, 0.0001, {}, {}}};
    }
    const auto task = compare(runs)[0];
    CHECK(task.lower_is_better);
    CHECK(!task.percent);
    CHECK(task.ablations[0].ablation == "lstm");
    CHECK(task.is_best(0, task.ablations[0]));
    CHECK(!task.is_best(0, task.ablations[1]));
    CHECK(has(comparison_text(task), "  lstm          1  0.001 +- 0.0001\n"));
    CHECK(headline(task) == "LSTM reaches 0.001 (mean squared error) on add; FF, the last, at 0.003");
}

TEST_CASE("tasks and presets stay apart; a level that a run lacks is a hole") {
    auto runs = twelve();
    runs[0].task = "t_maze";
    runs[0].levels.pop_back();
    runs[1].preset = "paper";
    runs[4].levels.clear();
    runs[8].levels.clear();  // both other seeds of ff
    const auto tasks = compare(runs);
    REQUIRE(tasks.size() == 3);
    CHECK(tasks[0].task == "t_maze");
    CHECK(tasks[0].levels.size() == 2);
    CHECK(tasks[1].preset == "paper");
    const auto& ff = tasks[2].ablations.back();
    CHECK(ff.ablation == "ff");
    CHECK(!ff.levels[0]);
    CHECK(!ff.score);
    CHECK(has(comparison_text(tasks[2]), "  ff            2            -"));
}

TEST_CASE("generative models: nats, the recall and its ratio by hand") {
    const auto runs = gtmm_and_vrnn();
    const auto tasks = compare(runs);
    REQUIRE(tasks.size() == 1);
    const auto& task = tasks[0];
    CHECK(task.kind == run_kind::generative);
    CHECK(task.lower_is_better);
    CHECK(!task.percent);
    CHECK(task.levels[task.judged_level()] == "holdout_interpolate");
    REQUIRE(task.ablations[0].ablation == "introspective_gtmm");  // the least negative ELBO
    const auto& level = *task.judged(task.ablations[0]);
    CHECK(level.reward.mean == doctest::Approx(620));
    CHECK(level.reward.standard_error == doctest::Approx(2));  // 618, 622: s = sqrt(8), / sqrt(2)
    CHECK(level.at_recall->mean == doctest::Approx(0.75));
    CHECK(level.at_recall->standard_error == doctest::Approx(0.25));
    CHECK(level.ratio->mean == doctest::Approx(0.375));  // 0.25 and 0.5
    CHECK(level.ratio->standard_error == doctest::Approx(0.125));
    CHECK(level.last_step->mean == doctest::Approx(0.75));
    CHECK(task.is_best(0, task.ablations[0]));
    CHECK(task.is_least(&level_comparison::at_recall, task.ablations[0]));
    CHECK(!task.is_least(&level_comparison::at_recall, task.ablations[1]));
    CHECK(task.is_least(&level_comparison::before_recall, task.ablations[1]));  // the same number
    CHECK(headline(task) ==
          "Introspective GTMM needs 0.75 nats for a frame it has seen before; without memory, VRNN needs 7.00");
    CHECK(generative_lead(task) ==
          " Introspective GTMM on the level \u201choldout interpolate\u201d: 620.0 nats a sequence, of which the KL is "
          "2.00 a step before the recall and 0.75 at it.");
}

TEST_CASE("generative models as text and as CSV") {
    auto runs = gtmm_and_vrnn();
    CHECK(
        comparison_text(compare(runs)[0]) ==
        "perfect_recall (small): negative ELBO, nats a sequence, +- standard error over seeds (over sequences for one "
        "seed); KL in nats a step on holdout_interpolate\n"
        "  ablation            seeds         train  holdout_interpolate     KL before  KL at recall         ratio\n"
        "  introspective_gtmm      2  615.0 +- 2.0         620.0 +- 2.0  2.00 +- 0.00  0.75 +- 0.25  0.38 +- 0.12\n"
        "  vrnn                    2  657.0 +- 2.0         662.0 +- 2.0  2.00 +- 0.00  7.00 +- 0.50  3.50 +- 0.25\n");
    runs.push_back(twelve()[0]);
    const std::string csv = comparison_csv(compare(runs));
    CHECK(has(csv,
              ",percent_stderr,kl_before_recall,kl_before_recall_stderr,kl_at_recall,kl_at_recall_stderr,recall_over_"
              "before,recall_over_before_stderr,kl_at_first_sight,kl_at_first_sight_stderr,kl_last_step,kl_last_step_"
              "stderr\n"));
    CHECK(has(csv,
              "perfect_recall,small,introspective_gtmm,holdout_interpolate,2,nats,620,2,,,,2,0,0.75,0.25,0.375,0.125,"
              "1,0,0.75,0.25\n"));
    std::vector<std::ptrdiff_t> commas;
    for (std::size_t at = 0, end; (end = csv.find('\n', at)) != csv.npos; at = end + 1)
        commas.push_back(std::count(csv.begin() + static_cast<std::ptrdiff_t>(at),
                                    csv.begin() + static_cast<std::ptrdiff_t>(end), ','));
    CHECK(commas == std::vector<std::ptrdiff_t>(1 + 2 * 3 + 4, 20));  // agents and gaps have empty cells
}

TEST_CASE("one run of a generative model has no error of its KL, and is called no worse within two in a hundred") {
    std::vector<run_record> runs{generative("ntm_gtmm", 1, 600, 6.6), generative("vrnn", 1, 610, 6.7)};
    const auto task = compare(runs)[0];
    CHECK(std::isnan(task.judged(task.ablations[0])->at_recall->standard_error));
    CHECK(has(comparison_text(task),
              "  ntm_gtmm      1  595.0 +- 2.5         600.0 +- 2.5       2.00          6.60   3.30\n"));
    CHECK(has(comparison_csv(compare(runs)), ",2,,6.6,,3.3,,1,,6.6,\n"));
    CHECK(headline(task) ==
          "NTM GTMM needs 6.60 nats for a frame it has seen before; without memory, VRNN does as well, at 6.70");
    runs[1].levels[1].at_recall = 6.0;
    CHECK(headline(compare(runs)[0]) ==
          "VRNN needs 6.00 nats for a frame it has seen before, without memory; with it, NTM GTMM needs 6.60");
    runs[1].ablation = "mine";
    CHECK(headline(compare(runs)[0]) ==
          "mine needs 6.00 nats for a frame it has seen before; NTM GTMM, the last, needs 6.60");
    runs.pop_back();
    CHECK(headline(compare(runs)[0]) == "NTM GTMM needs 6.60 nats for a frame it has seen before");
}

TEST_CASE("a task without a recall is told by its negative ELBO and the last step") {
    auto runs = gtmm_and_vrnn();
    for (auto& run : runs) {
        run.task = "mnist_map";
        for (auto& level : run.levels) level.before_recall = level.at_recall = level.first_sight = {};
    }
    const auto task = compare(runs)[0];
    CHECK(headline(task) ==
          "Introspective GTMM needs 620.0 nats for a sequence of mnist map; without memory, VRNN needs 662.0");
    const auto measures = table_measures(task);
    REQUIRE(measures.size() == 1);
    CHECK(std::string(measures[0].column) == "kl_last_step");
    for (auto& run : runs) run.levels.clear(), run.metrics.columns["negative_elbo"] = {};
    CHECK(headline(compare(runs)[0]) == "4 runs on mnist map, not evaluated yet");
    CHECK(has(comparison_text(compare(runs)[0]), "not evaluated yet\n  ablation            seeds\n"));
    CHECK(generative_lead(compare(runs)[0]) == "");
}

TEST_CASE("bits that are given back wrong: less is better, and of the lengths the last stands in the table") {
    std::vector<run_record> runs;
    for (const auto& [name, wrong] : {std::pair{"bptt_lstm", 6.0}, {"dnc_gtmm", 0.5}}) {
        auto& run = runs.emplace_back();
        run.ablation = name, run.task = "bit_copy";
        run.levels = {{"length_9", "wrong bits a sequence", 10, wrong, 0.1, {}, {}},
                      {"train", "wrong bits a sequence", 10, wrong, 0.1, {}, {}},
                      {"length_10", "wrong bits a sequence", 10, wrong, 0.1, {}, {}}};
    }
    const auto task = compare(runs)[0];
    CHECK(task.kind == run_kind::supervised);
    CHECK(task.lower_is_better);
    CHECK(task.ablations[0].ablation == "dnc_gtmm");
    CHECK(headline(task) ==
          "DNC GTMM gets 0.5 bits of a sequence of bit copy wrong; without memory, LSTM, BPTT gets 6");
    CHECK(has(comparison_text(task), "  ablation   seeds       train   length_10\n"));
    CHECK(has(comparison_csv(compare(runs)), ",length_9,1,"));
}

TEST_CASE("answers that are right: more is better") {
    std::vector<run_record> runs;
    for (const auto& [name, right] : {std::pair{"bptt_lstm", 20.0}, {"dnc_gtmm", 100.0}}) {
        auto& run = runs.emplace_back();
        run.ablation = name, run.task = "copy";
        run.metrics = parse_metrics("step,loss\n10,1\n", "metrics.csv");
        run.levels = {{"test", "% right", 10, right, 0.1, {}, {}}};
    }
    const auto task = compare(runs)[0];
    CHECK(task.kind == run_kind::supervised);
    CHECK(headline(task) == "DNC GTMM reaches 100 (% right) on copy; without memory, LSTM, BPTT stays at 20");
}

TEST_CASE("measured numbers keep their decimals") {
    CHECK(measured(618.94) == "618.9");
    CHECK(measured(8.5) == "8.50");
    CHECK(measured(0.0123) == "0.012");
    CHECK(measured(0) == "0.00");
    CHECK(measured_error(6, 618.9) == "6.0");
    CHECK(measured_error(0.0055, 1) == "0.01");
    CHECK(measured_error(0.0012, 1) == "0.001");
    CHECK(level_number("length_12") == 12);
    CHECK(!level_number("holdout_interpolate"));
    CHECK(!level_number("train"));
    CHECK(!level_number("length_"));
    CHECK(!level_number("length_1x"));
}
