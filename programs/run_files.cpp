// SPDX-License-Identifier: MIT

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include <engram/evaluate/sequences.hpp>
#include <engram/program/later_settings.hpp>
#include <engram/program/run_files.hpp>

namespace engram {

void make_folder(const std::string& path) {
    std::error_code problem;
    std::filesystem::create_directories(path, problem);
    require(!problem, "cannot make the folder ", path, ": ", problem.message());
}

bool file_exists(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
}

void remove_leftovers(const run_paths& paths) {
    std::vector<std::filesystem::path> found;
    for (const std::string& file : {paths.config(), paths.metrics(), paths.levels(), paths.events(), paths.summary(),
                                    paths.retrieval(), paths.checkpoint()}) {
        const std::filesystem::path path(file);
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), ignored)) {
            const std::string name = entry.path().filename().string(),
                              start = path.filename().string() + atomic_file::suffix;
            if (name.starts_with(start) && name.size() == start.size() + 6) found.push_back(entry.path());
        }
    }
    std::error_code ignored;
    for (const auto& path : found) std::filesystem::remove(path, ignored);
}

// --- metrics.csv ---

metrics_file::metrics_file(const std::string& path, const std::vector<std::string>& columns, std::int64_t step)
    : path_(path) {
    std::string header, kept;
    for (const auto& column : columns) {
        if (!header.empty()) header += ",";
        header += column;
    }
    header += "\n";
    if (step > 0 && file_exists(path)) {
        const bytes content = read_file(path);
        std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
        require(text.starts_with(header), path, ": its columns are not those of this run, ",
                header.substr(0, header.size() - 1));
        text.remove_prefix(header.size());
        for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
            std::int64_t at = -1;
            std::from_chars(text.data(), text.data() + end, at);
            if (at < 0 || at > step) break;
            kept += text.substr(0, end + 1);
            last_kept_ = at;
        }
    }
    write_file(path, header + kept);
    file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    require(file_ >= 0, "cannot write ", path, ": ", std::strerror(errno));
}

metrics_file::~metrics_file() {
    if (file_ >= 0) ::close(file_);
}

void metrics_file::write(const std::vector<double>& row) {
    std::string line;
    for (const double& x : row) {
        if (&x != row.data()) line += ',';
        if (std::isfinite(x))
            line += fmt::format("{}", x == std::floor(x) && std::abs(x) < 1e15 ? static_cast<std::int64_t>(x) : x);
    }
    append(line + "\n");
}

void metrics_file::append(const std::string& rows) {
    ssize_t put;
    do put = ::write(file_, rows.data(), rows.size());
    while (put < 0 && errno == EINTR);
    require(put >= 0, "cannot write ", path_, ": ", std::strerror(errno));
    require(put == static_cast<ssize_t>(rows.size()), "cannot write ", path_, ": the disk is full");
}

void metrics_file::flush() {
    require(::fsync(file_) == 0 || errno == EINVAL, "cannot write ", path_, ": ", std::strerror(errno));
}

// --- checkpoints ---

namespace {

// Where the data lie may change from one resumption to the next.
json lasting_settings(const configuration& config) {
    auto all = config.settings();
    std::erase_if(all, [](const setting& s) { return s.name == "task.data"; });
    return settings_to_json(all);
}

// Of the task's episodes; 1 for sequences, and for checkpoints from before it was written.
std::string task_revision(const configuration& config) {
    const auto known = task_names();
    const bool acts = std::find(known.begin(), known.end(), config.task) != known.end();
    return std::to_string(acts ? describe_task(config.task, config.run.task).revision : 1);
}

void require_same(const std::string& source, const std::string& what, const std::string& found,
                  const std::string& expected) {
    require(found == expected, source, " was written with ", what, " ", found, ", expected ", expected,
            "; nothing was changed");
}

}  // namespace

void stamp_checkpoint(safetensors& file, const configuration& config) {
    file.metadata["format"] = "engram checkpoint 1";
    file.metadata["engram"] = library_version();
    file.metadata["ablation"] = config.model().name();
    file.metadata["task"] = config.task;
    file.metadata["task_revision"] = task_revision(config);
    file.metadata["seed"] = std::to_string(config.seed);
    file.metadata["mode"] = config.mode;
    file.metadata["products"] = config.products;
    file.metadata["settings"] = lasting_settings(config).dump();
}

void check_checkpoint(const safetensors& file, const configuration& config, bool exactly) {
    const auto& ablation = file.text_at("ablation");
    require(ablation == config.model().name(), file.source(), " was written by engram-", ablation, ", expected engram-",
            config.model().name(), "; nothing was changed");
    require_same(file.source(), "task", file.text_at("task"), config.task);
    const std::string revision = file.metadata.contains("task_revision") ? file.text_at("task_revision") : "1";
    require(revision == task_revision(config), file.source(), " was written for revision ", revision, " of ",
            config.task, ", whose episodes are others than those of revision ", task_revision(config),
            " now; train it anew; nothing was changed");
    // A run is resumed in any phase; what acts exists in the last one.
    if (config.model().learns() == learning_kind::phases && !exactly)
        require(file.text_at("training_mode") == "synchronous", file.source(), ": is a checkpoint of the ",
                file.text_at("training_mode") == "detector" ? "detector's" : "memory's",
                " phase; expected one of the policy's, train it to its end with --resume");
    const auto texts = [&](const json& settings) {
        std::vector<setting> all;
        for (auto& [name, value] : settings_from_json(settings, file.source()))
            all.push_back({name, value, setting_kind::text});
        return all;
    };
    const auto found = texts(parse_json(file.text_at("settings"), file.source()));
    const auto expected = texts(lasting_settings(config));
    for (const auto& e : expected) {
        const auto at = std::find_if(found.begin(), found.end(), [&](const setting& f) { return f.name == e.name; });
        const std::optional<std::string> value = at != found.end() ? at->value : value_before(e.name);
        require(value.has_value(), file.source(), " knows no setting ", e.name, "; nothing was changed");
        require_same(file.source(), e.name, *value, e.value);
    }
    if (!exactly) return;
    require_same(file.source(), "seed", file.text_at("seed"), std::to_string(config.seed));
    require_same(file.source(), "mode", file.text_at("mode"), config.mode);
    // Those from before there was a choice do not say.
    require_same(file.source(), "products",
                 file.metadata.contains("products") ? file.text_at("products") : std::string("float"), config.products);
}

// --- levels ---

bool evaluate_levels(const prepared_run& run, const std::vector<std::string>& levels, int episodes, std::uint64_t seed,
                     const std::function<bool()>& stop, json& summary, processes* others) {
    if (!summary.contains("levels") || !summary["levels"].is_object()) summary["levels"] = json::object();
    for (const std::string& level : levels.empty() ? run.info.judged_levels() : levels) {
        const auto score = run.score(level, episodes, seed, stop, others);
        if (score.episodes == 0) return false;
        const auto& about = run.info.level(level);
        summary["levels"][level] = {{"episodes", score.episodes},
                                    {"mean", score.mean},
                                    {"stderr", score.standard_error},
                                    {"unit", run.info.unit},
                                    {"maximum", static_cast<double>(about.maximum_reward)},
                                    {"random", static_cast<double>(about.random_reward)}};
        if (!run.info.seeks_goal) continue;
        summary["levels"][level]["steps_to_goal"] = score.goals.steps;
        summary["levels"][level]["reached_goal"] = score.goals.episodes;
    }
    return true;
}

bool evaluate_levels(prepared_sequences& run, const std::vector<std::string>& levels, int sequences, std::uint64_t seed,
                     const std::function<bool()>& stop, json& summary, processes* others) {
    if (!summary.contains("levels") || !summary["levels"].is_object()) summary["levels"] = json::object();
    const auto& info = run.source->info();
    for (const std::string& level : levels.empty() ? info.levels : levels) {
        const auto score = run.score(level, sequences, seed, stop, others);
        if (score.sequences == 0) return false;
        json& out = summary["levels"][level];
        out = {{"episodes", score.sequences},
               {"mean", score.mean},
               {"stderr", score.standard_error},
               {"unit", score.unit}};
        if (!run.generates()) continue;
        out["kl_per_step"] = score.divergence;
        out["log_likelihood_per_step"] = score.log_likelihood;
        if (std::isfinite(score.recall)) {
            out["kl_before_recall"] = score.before;
            out["kl_at_recall"] = score.recall;
            out["recall_over_before"] = score.recall_over_before();
            if (info.recall >= 0) out["recall_step"] = info.recall;
            if (std::isfinite(score.first_sight)) {
                out["kl_at_first_sight"] = score.first_sight;
                out["recall_over_first_sight"] = score.recall_over_first_sight();
            }
        }
        if (std::find(info.levels.begin(), info.levels.end(), level) == info.levels.end()) continue;
        // What was held out speaks for the model where there is such a level.
        if (level == info.levels.front() && info.levels.size() > 1 && summary.contains("elbo")) continue;
        summary["kl_per_step"] = score.divergence;
        summary["elbo"] = -score.mean;
    }
    return true;
}

namespace {

/// NaN for null, which is how JSON has a score that is not finite, and for what is not there.
double number_or_nan(const json& value) {
    return value.is_number() ? value.get<double>() : NAN;
}
double number_or_nan(const json& result, const char* key) {
    return result.contains(key) ? number_or_nan(result.at(key)) : NAN;
}

std::string finite_or_dash(double x, int digits = 3) {
    return std::isfinite(x) ? fmt::format("{:.{}f}", x, digits) : "-";
}

std::string sequence_table(const json& levels) {
    std::string table = fmt::format("{:<24}{:>12}{:>10}  {:<24}{:>10}{:>12}{:>12}\n", "level", "mean", "stderr", "unit",
                                    "last KL", "KL recall", "/ before");
    for (const auto& [level, r] : levels.items()) {
        const auto number = [&r = r](const char* key) { return finite_or_dash(number_or_nan(r, key)); };
        const double last = r.contains("kl_per_step") ? number_or_nan(r.at("kl_per_step").back()) : NAN;
        table += fmt::format("{:<24}{:>12}{:>10}  {:<24}{:>10}{:>12}{:>12}\n", level, number("mean"), number("stderr"),
                             r.at("unit").get<std::string>(), finite_or_dash(last), number("kl_at_recall"),
                             number("recall_over_before"));
    }
    return table;
}

}  // namespace

std::string level_table(const json& summary) {
    const json& levels = summary.at("levels");
    if (!levels.empty() && !levels.begin()->contains("maximum")) return sequence_table(levels);
    std::string table =
        fmt::format("{:<24}{:>10}{:>10}{:>10}{:>14}\n", "level", "mean", "stderr", "maximum", "% of maximum");
    for (const auto& [level, r] : summary.at("levels").items()) {
        const double mean = number_or_nan(r, "mean"), maximum = number_or_nan(r, "maximum");
        table +=
            fmt::format("{:<24}{:>10}{:>10}{:>10}{:>14}\n", level, finite_or_dash(mean),
                        finite_or_dash(number_or_nan(r, "stderr")), maximum > 0 ? fmt::format("{:.3g}", maximum) : "-",
                        maximum > 0 ? finite_or_dash(100 * mean / maximum, 1) : "-");
    }
    return table;
}

}  // namespace engram
