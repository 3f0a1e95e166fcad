#pragma once
// SPDX-License-Identifier: MIT

// Run folders as train and evaluate write them, with made-up numbers.

#include <filesystem>
#include <string>
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
    config["settings_trainer"]["rate"] = 0.001;
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
