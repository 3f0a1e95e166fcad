#pragma once
// SPDX-License-Identifier: MIT

// Run folders as train and evaluate write them, with made-up numbers.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engram/io/file.hpp"
#include "engram/io/json.hpp"

struct fake_level {
    std::string name;
    double mean, standard_error, maximum;
};

inline void fake_run(const std::string& folder, const std::string& ablation, int seed,
                     const std::vector<fake_level>& levels, const std::string& task = "arbitrary_visuomotor_mapping") {
    std::filesystem::create_directories(folder);
    engram::json config{{"ablation", ablation}, {"task", task}, {"preset", "small"},    {"seed", seed},
                        {"steps", 1000},        {"threads", 1}, {"mode", "synchronous"}};
    config["settings"]["memory"]["slots"] = 128;
    config["settings"]["note"] = "a<b & \"c\"";
    engram::write_json(folder + "/config.json", config);
    engram::json summary{{"ablation", ablation}, {"task", task},  {"preset", "small"},
                         {"seed", seed},         {"steps", 1000}, {"parameters", 4321},
                         {"device", "cpu"},      {"threads", 1},  {"steps_per_second", 38000.0},
                         {"wall_seconds", 75.0}};
    summary["levels"] = engram::json::object();
    for (const auto& l : levels)
        summary["levels"][l.name] = {{"episodes", 100},          {"mean", l.mean},       {"stderr", l.standard_error},
                                     {"unit", "episode reward"}, {"maximum", l.maximum}, {"random", l.maximum / 4}};
    engram::write_json(folder + "/summary.json", summary);
    std::string csv = "step,update,episodes,reward,reward_smooth,loss,mystery\n";
    for (int i = 1; i <= 20; ++i)
        csv += std::to_string(50 * i) + "," + std::to_string(i) + "," + std::to_string(2 * i) + "," +
               (i % 5 == 0 ? "" : std::to_string(i + seed)) + "," + std::to_string(i) + "," + std::to_string(1.0 / i) +
               ",text\n";
    engram::write_file(folder + "/metrics.csv", csv);
}

/// 1 x 1 PNG.
inline const std::string fake_png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A run of a generative model on two frames and one that comes back: KL of 1 nat a step (2 on what was held out), and
/// `recall` nats at the last one.
inline void fake_generative_run(const std::string& folder, const std::string& ablation, int seed, double recall,
                                const std::string& task = "perfect_recall") {
    std::filesystem::create_directories(folder);
    const engram::json about{
        {"ablation", ablation}, {"task", task}, {"preset", "small"}, {"seed", seed}, {"steps", 3000}};
    engram::write_json(folder + "/config.json", about);
    engram::json summary = about;
    for (const auto& [name, before] : {std::pair{"train", 1.0}, {"holdout_interpolate", 2.0}})
        summary["levels"][name] = {{"episodes", 100},
                                   {"mean", 600 + 10 * before + recall},
                                   {"stderr", 2.5},
                                   {"unit", "nats"},
                                   {"kl_per_step", {before - 0.5, before + 0.5, recall}},
                                   {"log_likelihood_per_step", {-200, -200, -200}},
                                   {"kl_before_recall", before},
                                   {"kl_at_recall", recall},
                                   {"kl_at_first_sight", before - 0.5},
                                   {"recall_over_before", recall / before},
                                   {"recall_over_first_sight", recall / (before - 0.5)}};
    engram::write_json(folder + "/summary.json", summary);
    std::string csv =
        "step,update,loss,free_energy_a_step,negative_elbo,kl,log_likelihood,kl_last,kl_first,kl_recall,gradient_norm,"
        "learning_rate,steps_per_second\n";
    for (int i = 1; i <= 20; ++i) {
        const std::string n = std::to_string(i), elbo = std::to_string(600 + 400 / i);
        csv += std::to_string(150 * i) + "," + n + ",200,200," + elbo + ",5,-600," + n + ",1,1,3,0.001,40000\n";
    }
    engram::write_file(folder + "/metrics.csv", csv);
}

/// A run of a model that gives bits back: wrong bits at each length up to `longest`, `per_row` for every row.
inline void fake_supervised_run(const std::string& folder, const std::string& ablation, int seed, double per_row,
                                int longest = 20) {
    std::filesystem::create_directories(folder);
    engram::json summary{
        {"ablation", ablation}, {"task", "bit_copy"}, {"preset", "small"}, {"seed", seed}, {"steps", 2000}};
    const auto level = [&](const std::string& name, double rows) {
        summary["levels"][name] = {
            {"episodes", 100}, {"mean", per_row * rows}, {"stderr", 0.1}, {"unit", "wrong bits a sequence"}};
    };
    level("train", 0.5 * (1 + longest));
    for (int n = 1; n <= longest; ++n) level("length_" + std::to_string(n), n);
    engram::write_json(folder + "/summary.json", summary);
    engram::write_file(folder + "/metrics.csv",
                       "step,update,loss,cross_entropy_a_step,gradient_norm,learning_rate,steps_per_second\n"
                       "1000,1,3,3,1,0.001,9000\n2000,2,1,1,1,0.001,9000\n");
}

/// Five trials of two images: A, B, A again, B again (missed), A again.
inline engram::json fake_retrieval() {
    const auto trial = [](int i, const char* stimulus, bool repeat, bool correct, engram::json read) {
        return engram::json{{"trial", i},        {"stimulus", stimulus},      {"repeat", repeat},
                            {"answer", 1},       {"action", correct ? 1 : 2}, {"correct", correct},
                            {"image", fake_png}, {"read", std::move(read)}};
    };
    const auto read = [](std::vector<std::pair<int, double>> list) {
        auto out = engram::json::array();
        for (const auto& [when, weight] : list) out.push_back({{"when", when}, {"weight", weight}});
        return out;
    };
    return {{"level", "holdout_interpolate"},
            {"ablation", "lstm_mem"},
            {"trials",
             {trial(0, "A", false, true, read({})), trial(1, "B", false, false, read({{0, 1.0}})),
              trial(2, "A", true, true, read({{1, 0.5}, {0, 1.0}, {0, 0.5}})),
              trial(3, "B", true, false, read({{0, 0.75}, {1, 0.25}})),
              trial(4, "A", true, true, read({{2, 0.5}, {0, 0.25}, {-1, 0.25}}))}}};
}
