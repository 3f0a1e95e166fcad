#pragma once
// SPDX-License-Identifier: MIT

// Ablation x level for one task: means over runs (seeds) of the level means, as reward and as % of the level's maximum.
// Of generative models the level mean is the negative ELBO in nats, and the KL before and at the recall stands beside
// it, with ratio = KL at the recall / KL before it, run by run.
//
//   stderr of n >= 2 runs: s / sqrt(n), s^2 = sum (x - mean)^2 / (n - 1); of one run: that of its episodes.
//   percent = 100 mean / maximum, run by run; accuracies have the maximum 1.
//   gap     = mean over train levels - mean over holdout levels in percent (units of the level without a maximum), run
//   by run. score   = mean over holdout levels (all levels without one); its order is the order of the rows.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <engram/evaluate/names.hpp>
#include <engram/evaluate/run_folder.hpp>

namespace engram {

struct statistic {
    double mean = 0, standard_error = 0;
    int count = 0;
};

struct level_comparison {
    statistic reward;
    std::optional<statistic> percent;
    std::optional<double> maximum, random;  // means over the runs
    // Nats a step. The standard error of one run is not known, and NaN.
    std::optional<statistic> before_recall = {}, at_recall = {}, first_sight = {}, ratio = {}, last_step = {};

    /// What is shown first: the percentage where there is one.
    const statistic& shown() const { return percent ? *percent : reward; }
};

struct ablation_comparison {
    std::string ablation;
    std::vector<const run_record*> runs;
    std::vector<std::optional<level_comparison>> levels = {};  // as task_comparison::levels
    std::optional<statistic> gap = {}, score = {};

    /// How many seeds the scores are of: "3", or "1 of 3" while others have not been judged.
    std::string seeds() const {
        std::size_t judged = 0;
        for (const auto& level : levels)
            if (level) judged = std::max(judged, static_cast<std::size_t>(level->reward.count));
        const std::string all = std::to_string(runs.size());
        return judged == 0 || judged >= runs.size() ? all : std::to_string(judged) + " of " + all;
    }
};

struct task_comparison {
    std::string task, preset;
    std::vector<std::string> levels = {};
    std::string unit = {};
    run_kind kind = run_kind::agent;
    bool percent = false;          // every level of every run has a maximum
    bool lower_is_better = false;  // errors and nats
    std::vector<ablation_comparison> ablations = {};

    std::string title() const { return in_words(task); }
    int runs() const {
        int count = 0;
        for (const auto& a : ablations) count += static_cast<int>(a.runs.size());
        return count;
    }
    bool evaluated() const { return !levels.empty(); }
    /// The level that speaks for a generative model: the first held-out one, the last one where there is none.
    std::size_t judged_level() const {
        for (std::size_t i = 0; i < levels.size(); ++i)
            if (is_holdout_level(levels[i])) return i;
        return levels.empty() ? 0 : levels.size() - 1;
    }
    const level_comparison* judged(const ablation_comparison& a) const {
        const std::size_t i = judged_level();
        return i < a.levels.size() && a.levels[i] ? &*a.levels[i] : nullptr;
    }
    bool measures(std::optional<statistic> level_comparison::*what) const {
        return std::any_of(ablations.begin(), ablations.end(),
                           [&](const auto& a) { return judged(a) && (judged(a)->*what).has_value(); });
    }
    /// Has the least of a measure on the judged level, or shows the same number.
    bool is_least(std::optional<statistic> level_comparison::*what, const ablation_comparison& candidate) const {
        if (!judged(candidate) || !(judged(candidate)->*what) || ablations.size() < 2) return false;
        const double mine = (judged(candidate)->*what)->mean;
        return std::none_of(ablations.begin(), ablations.end(), [&](const auto& a) {
            return judged(a) && judged(a)->*what && (judged(a)->*what)->mean < mine &&
                   measured((judged(a)->*what)->mean) != measured(mine);
        });
    }
    /// Levels that are columns of a table; of those of sequence models that differ by a number, the last one.
    std::vector<std::size_t> table_levels() const {
        std::vector<std::size_t> out;
        for (std::size_t i = 0; i < levels.size(); ++i)
            if (kind == run_kind::agent || !level_number(levels[i]) || i + 1 == levels.size()) out.push_back(i);
        return out;
    }
    /// The best entry of a level, and every other that shows the same number.
    bool is_best(std::size_t level, const ablation_comparison& candidate) const {
        if (!candidate.levels[level] || ablations.size() < 2) return false;
        double best = candidate.levels[level]->shown().mean;
        for (const auto& a : ablations)
            if (a.levels[level])
                best = lower_is_better ? std::min(best, a.levels[level]->shown().mean)
                                       : std::max(best, a.levels[level]->shown().mean);
        const auto text = [&](double x) {
            return percent ? fixed(x, 1) : kind == run_kind::generative ? measured(x) : significant(x);
        };
        return text(best) == text(candidate.levels[level]->shown().mean);
    }
};

/// Mean and standard error of one value per run; `within` is the standard error of each value by itself.
inline statistic over_runs(const std::vector<double>& values, const std::vector<double>& within) {
    statistic out{.count = static_cast<int>(values.size())};
    if (values.empty()) return out;
    for (const double x : values) out.mean += x / out.count;
    if (out.count == 1) {
        out.standard_error = within[0];
        return out;
    }
    double squares = 0;
    for (const double x : values) squares += (x - out.mean) * (x - out.mean);
    out.standard_error = std::sqrt(squares / (out.count - 1) / out.count);
    return out;
}

/// What there is to earn on a level, where it is known; accuracies have 1.
inline std::optional<double> level_maximum(const level_result& result) {
    if (result.maximum && *result.maximum > 0) return result.maximum;
    if (result.unit == "accuracy") return 1.0;
    return {};
}

/// The runs of one ablation on one task, level by level.
inline ablation_comparison compare_ablation(const task_comparison& task, std::string name,
                                            std::vector<const run_record*> runs) {
    ablation_comparison out{.ablation = std::move(name), .runs = std::move(runs)};
    const auto find = [](const run_record& run, const std::string& level) -> const level_result* {
        for (const auto& result : run.levels)
            if (result.level == level) return &result;
        return nullptr;
    };
    for (const auto& level : task.levels) {
        std::vector<double> reward, reward_error, percent, percent_error, maximum, random;
        std::vector<double> before, at, first, ratio, last;
        for (const auto* run : out.runs) {
            const level_result* result = find(*run, level);
            if (!result) continue;
            reward.push_back(result->mean);
            reward_error.push_back(result->standard_error);
            if (result->random) random.push_back(*result->random);
            if (result->before_recall) before.push_back(*result->before_recall);
            if (result->at_recall) at.push_back(*result->at_recall);
            if (result->first_sight) first.push_back(*result->first_sight);
            if (result->at_recall && result->before_recall.value_or(0) > 0)
                ratio.push_back(*result->at_recall / *result->before_recall);
            if (!result->divergence.empty() && std::isfinite(result->divergence.back()))
                last.push_back(result->divergence.back());
            if (!task.percent) continue;
            maximum.push_back(*level_maximum(*result));
            percent.push_back(100 * result->mean / maximum.back());
            percent_error.push_back(100 * result->standard_error / maximum.back());
        }
        auto& entry = out.levels.emplace_back();
        if (reward.empty()) continue;
        entry.emplace().reward = over_runs(reward, reward_error);
        if (task.percent) entry->percent = over_runs(percent, percent_error);
        if (!maximum.empty()) entry->maximum = over_runs(maximum, maximum).mean;
        if (!random.empty()) entry->random = over_runs(random, random).mean;
        const auto measure = [](std::optional<statistic>& to, const std::vector<double>& values) {
            if (!values.empty()) to = over_runs(values, {std::numeric_limits<double>::quiet_NaN()});
        };
        measure(entry->before_recall, before), measure(entry->at_recall, at), measure(entry->first_sight, first);
        measure(entry->ratio, ratio), measure(entry->last_step, last);
    }

    // Gap and score run by run, so that their spread is that of the runs.
    struct part {
        double sum = 0, variance = 0;
        int count = 0;
        void add(double x, double error) { sum += x, variance += error * error, ++count; }
        double mean() const { return sum / count; }
        double error() const { return std::sqrt(variance) / count; }
    };
    std::vector<double> gap, gap_error, score, score_error;
    for (const auto* run : out.runs) {
        part train, holdout, all;
        for (const auto& result : run->levels) {
            const double scale = task.percent ? 100 / *level_maximum(result) : 1;
            const double x = scale * result.mean, error = scale * result.standard_error;
            all.add(x, error);
            if (is_train_level(result.level)) train.add(x, error);
            if (is_holdout_level(result.level)) holdout.add(x, error);
        }
        if (all.count == 0) continue;
        const part& scored = holdout.count > 0 ? holdout : all;
        score.push_back(scored.mean());
        score_error.push_back(scored.error());
        if (train.count == 0 || holdout.count == 0) continue;
        gap.push_back(train.mean() - holdout.mean());
        gap_error.push_back(std::hypot(train.error(), holdout.error()));
    }
    if (!score.empty()) out.score = over_runs(score, score_error);
    if (!gap.empty()) out.gap = over_runs(gap, gap_error);
    return out;
}

/// One comparison per task and preset, in the order in which the runs name them. The runs must outlive it.
inline std::vector<task_comparison> compare(const std::vector<run_record>& runs) {
    std::vector<task_comparison> tasks;
    for (const auto& first : runs) {
        const bool known = std::any_of(tasks.begin(), tasks.end(),
                                       [&](const auto& t) { return t.task == first.task && t.preset == first.preset; });
        if (known) continue;
        task_comparison task{.task = first.task, .preset = first.preset};
        std::vector<std::string> names;
        task.percent = true;
        for (const auto& run : runs) {
            if (run.task != task.task || run.preset != task.preset) continue;
            if (task.kind != run_kind::generative && run.kind() != run_kind::agent) task.kind = run.kind();
            if (std::find(names.begin(), names.end(), run.ablation) == names.end()) names.push_back(run.ablation);
            for (const auto& result : run.levels) {
                if (std::find(task.levels.begin(), task.levels.end(), result.level) == task.levels.end())
                    task.levels.push_back(result.level);
                if (task.unit.empty()) task.unit = result.unit;
                task.percent = task.percent && level_maximum(result);
            }
        }
        task.percent = task.percent && !task.levels.empty();
        task.lower_is_better = !task.percent && (task.unit.find("error") != std::string::npos ||
                                                 task.unit.find("nats") != std::string::npos ||
                                                 task.unit.find("wrong") != std::string::npos);
        std::stable_sort(task.levels.begin(), task.levels.end(), [](const auto& a, const auto& b) {
            const auto rank = [](const auto& l) { return is_train_level(l) ? 0 : is_holdout_level(l) ? 2 : 1; };
            return rank(a) < rank(b);
        });
        for (const auto& name : names) {
            std::vector<const run_record*> mine;
            for (const auto& run : runs)
                if (run.task == task.task && run.preset == task.preset && run.ablation == name) mine.push_back(&run);
            std::stable_sort(mine.begin(), mine.end(),
                             [](auto* a, auto* b) { return a->seed.value_or(0) < b->seed.value_or(0); });
            task.ablations.push_back(compare_ablation(task, name, std::move(mine)));
        }
        std::stable_sort(task.ablations.begin(), task.ablations.end(), [&](const auto& a, const auto& b) {
            if (a.score.has_value() != b.score.has_value()) return a.score.has_value();
            if (a.score && a.score->mean != b.score->mean)
                return task.lower_is_better ? a.score->mean < b.score->mean : a.score->mean > b.score->mean;
            return ablation_rank(a.ablation) < ablation_rank(b.ablation);
        });
        tasks.push_back(std::move(task));
    }
    return tasks;
}

}  // namespace engram
