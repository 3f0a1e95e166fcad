#pragma once
// SPDX-License-Identifier: MIT

// A run folder as the report reads it: config.json and summary.json (architecture: "The commands"), metrics.csv,
// levels.csv where the agent was evaluated while it trained, retrieval.json where it has a memory, and
// sample/strips.png where a sequence model was sampled. A run that was
// not evaluated yet has no levels, one that is still training may lack summary.json; a folder with neither config.json
// nor summary.json is no run. Fields that are not known are left alone. Errors name the file, and the line of a CSV
// file.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <engram/core/error.hpp>
#include <engram/evaluate/goal_times.hpp>
#include <engram/evaluate/level_curve.hpp>
#include <engram/evaluate/retrieval.hpp>
#include <engram/io/csv.hpp>
#include <engram/io/file.hpp>
#include <engram/io/json.hpp>

namespace engram {

/// One level of summary.json: `mean` +- `standard_error` over the episodes of one run.
struct level_result {
    std::string level, unit;
    double episodes = 0, mean = 0, standard_error = 0;
    std::optional<double> maximum, random;
    // Of a generative model, in nats a step: KL_t for t = 0 .. T - 1, and means over the steps before the recall, over
    // those that repeat a frame, and over the same frames when they were new.
    std::vector<double> divergence = {};
    std::optional<double> before_recall = {}, at_recall = {}, first_sight = {};
    std::optional<double> recall_step = {};  // the first step that memory can help with
    goal_times goals = {};                   // of an agent that seeks one
};

/// Agents earn rewards, generative models describe sequences, supervised models answer on them.
enum class run_kind { agent, generative, supervised };

/// The numeric columns of metrics.csv that are known here; an empty cell, nan and inf are NaN.
struct metrics_columns {
    std::map<std::string, std::vector<double>, std::less<>> columns;
    int rows = 0;

    const std::vector<double>* find(std::string_view name) const {
        const auto at = columns.find(name);
        return at == columns.end() ? nullptr : &at->second;
    }
    /// Environment steps; null for a table without that column.
    const std::vector<double>* steps() const { return find("step"); }
};

struct run_record {
    std::string folder, ablation, task, preset, device, mode;
    std::optional<double> seed, steps, parameters, threads, steps_per_second, wall_seconds;
    std::optional<double> steps_asked = {};  // what the run was begun for; it may have ended sooner
    std::vector<level_result> levels;
    std::vector<level_curve> curves = {};  // of levels.csv
    metrics_columns metrics;
    json settings;
    std::optional<retrieval_episode> retrieval;
    std::string strips;  // sample/strips.png in base64

    /// At which size the tasks were: the setting task.fidelity, or the preset of the same name where the settings do
    /// not say it; empty when neither does.
    std::string fidelity() const {
        if (settings.is_object() && settings.contains("task")) {
            const json& of_task = settings["task"];
            if (of_task.is_object() && of_task.contains("fidelity") && of_task["fidelity"].is_string())
                return of_task["fidelity"].get<std::string>();
        }
        return preset == "small" || preset == "paper" ? preset : "";
    }
    /// By what the run measured; a run that measured nothing yet counts as an agent.
    run_kind kind() const {
        for (const auto& level : levels)
            if (level.unit == "nats" || !level.divergence.empty()) return run_kind::generative;
        if (metrics.find("negative_elbo")) return run_kind::generative;
        const bool answers = !levels.empty() && levels[0].unit.starts_with("wrong ");
        const bool rewarded = metrics.find("reward") || metrics.find("reward_smooth") || metrics.find("episodes");
        return answers || (metrics.find("loss") && !rewarded) ? run_kind::supervised : run_kind::agent;
    }
};

/// The columns of metrics.csv; `source` names the file in errors.
inline metrics_columns parse_metrics(std::string_view text, const std::string& source) {
    static constexpr std::string_view known[] = {"step",
                                                 "update",
                                                 "episodes",
                                                 "reward",
                                                 "reward_smooth",
                                                 "loss",
                                                 "policy_loss",
                                                 "baseline_loss",
                                                 "entropy_loss",
                                                 "auxiliary_loss",
                                                 "gradient_norm",
                                                 "learning_rate",
                                                 "steps_per_second",
                                                 "lag",
                                                 "negative_elbo",
                                                 "kl",
                                                 "kl_last",
                                                 "kl_first",
                                                 "kl_recall",
                                                 "log_likelihood"};
    const csv_table table = parse_csv(whole_lines(text), source);
    metrics_columns out;
    if (table.names.cells.empty()) return out;
    std::vector<std::vector<double>*> target;
    for (const auto& name : table.names.cells) {
        const bool wanted = std::find(std::begin(known), std::end(known), name) != std::end(known);
        require(!wanted || !out.find(name), source, ", line ", table.names.line, ": the column '", name,
                "' occurs twice");
        target.push_back(wanted ? &out.columns[name] : nullptr);
    }
    require(out.steps() != nullptr, source, ", line ", table.names.line, ": no column 'step' in the header");
    for (const auto& [line, cells] : table.rows) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (!target[i]) continue;
            const auto value = csv_number(cells[i]);
            require(value.has_value(), source, ", line ", line, ": '", cells[i], "' in column '", table.names.cells[i],
                    "' is not a number");
            target[i]->push_back(std::isfinite(*value) ? *value : std::numeric_limits<double>::quiet_NaN());
        }
        ++out.rows;
    }
    return out;
}

/// The numbers under `key`, NaN for null; none when it is absent.
inline std::vector<double> json_numbers(const json& object, const char* key, const std::string& source) {
    std::vector<double> out;
    const auto at = object.find(key);
    if (at == object.end() || at->is_null()) return out;
    require(at->is_array(), source, ": '", key, "' must be an array of numbers");
    for (const auto& x : *at) {
        require(x.is_number() || x.is_null(), source, ": '", key, "' must hold numbers only");
        out.push_back(x.is_null() ? std::numeric_limits<double>::quiet_NaN() : x.get<double>());
    }
    return out;
}

/// Bytes as text, for pictures inside a page.
inline std::string to_base64(const bytes& data) {
    static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < data.size(); i += 3) {
        const std::size_t left = std::min<std::size_t>(3, data.size() - i);
        std::uint32_t word = 0;
        for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < left ? data[i + k] : 0u);
        for (std::size_t k = 0; k < 4; ++k) out += k <= left ? digits[word >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

/// The levels of summary.json; a level whose mean is null (not a number when it was written) is left out.
inline std::vector<level_result> parse_levels(const json& levels, const std::string& source) {
    require(levels.is_object(), source, ": 'levels' must be an object from level name to result");
    std::vector<level_result> out;
    for (const auto& [name, value] : levels.items()) {
        require(value.is_object(), source, ": level '", name, "' must be an object");
        const std::string where = source + ": level '" + name + "'";
        const auto mean = json_number(value, "mean", where);
        if (!mean) continue;
        out.push_back({name,
                       json_string(value, "unit", where),
                       json_number(value, "episodes", where).value_or(0),
                       *mean,
                       json_number(value, "stderr", where).value_or(0),
                       json_number(value, "maximum", where),
                       json_number(value, "random", where),
                       json_numbers(value, "kl_per_step", where),
                       json_number(value, "kl_before_recall", where),
                       json_number(value, "kl_at_recall", where),
                       json_number(value, "kl_at_first_sight", where),
                       json_number(value, "recall_step", where),
                       {json_numbers(value, "steps_to_goal", where), {}}});
        for (const double n : json_numbers(value, "reached_goal", where))
            out.back().goals.episodes.push_back(std::isfinite(n) ? static_cast<int>(std::clamp(n, 0.0, 1e9)) : 0);
    }
    return out;
}

/// Reads a run folder; throws a sentence that names the file when something in it is wrong.
inline run_record read_run(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    require(fs::exists(folder, ignored), "no run folder '", folder, "'");
    require(fs::is_directory(folder, ignored), "'", folder, "' is not a folder");
    const auto file = [&](const char* name) { return (fs::path(folder) / name).string(); };
    const auto has = [&](const char* name) { return fs::exists(file(name), ignored); };
    require(has("config.json") || has("summary.json"), "'", folder,
            "' is not a run folder: it holds neither config.json nor summary.json");

    run_record run;
    run.folder = folder;
    for (const char* name : {"config.json", "summary.json"}) {
        if (!has(name)) continue;
        const std::string source = file(name);
        const json content = read_json(source);
        require(content.is_object(), source, ": expected an object");
        const auto text = [&](std::string& to, const char* key) {
            if (auto value = json_string(content, key, source); !value.empty()) to = std::move(value);
        };
        const auto number = [&](std::optional<double>& to, const char* key) {
            if (const auto value = json_number(content, key, source)) to = value;
        };
        text(run.ablation, "ablation"), text(run.task, "task"), text(run.preset, "preset");
        text(run.device, "device"), text(run.mode, "mode");
        number(run.seed, "seed"), number(run.steps, "steps"), number(run.parameters, "parameters");
        number(run.threads, "threads"), number(run.steps_per_second, "steps_per_second");
        number(run.wall_seconds, "wall_seconds");
        if (std::string_view(name) == "config.json") run.steps_asked = run.steps;
        if (content.contains("settings")) run.settings = content["settings"];
        if (content.contains("levels")) run.levels = parse_levels(content["levels"], source);
    }
    require(!run.ablation.empty(), folder, ": neither config.json nor summary.json names the ablation");
    require(!run.task.empty(), folder, ": neither config.json nor summary.json names the task");
    if (has("metrics.csv")) {
        const bytes content = read_file(file("metrics.csv"));
        run.metrics =
            parse_metrics({reinterpret_cast<const char*>(content.data()), content.size()}, file("metrics.csv"));
    }
    if (has("levels.csv")) {
        const bytes content = read_file(file("levels.csv"));
        run.curves =
            parse_level_curves({reinterpret_cast<const char*>(content.data()), content.size()}, file("levels.csv"));
    }
    if (has("retrieval.json"))
        run.retrieval = parse_retrieval(read_json(file("retrieval.json")), file("retrieval.json"));
    if (has("sample/strips.png")) {
        run.strips = to_base64(read_file(file("sample/strips.png")));
        require(base64_png_size(run.strips).has_value(), file("sample/strips.png"), ": not a PNG file");
    }
    return run;
}

/// Whether two folders are of one run, or of one that was made again: all that it was asked for and its seed are equal.
inline bool is_same_run(const run_record& a, const run_record& b) {
    return a.seed && a.seed == b.seed && a.ablation == b.ablation && a.task == b.task && a.preset == b.preset &&
           a.steps_asked == b.steps_asked && a.settings == b.settings;
}

}  // namespace engram
