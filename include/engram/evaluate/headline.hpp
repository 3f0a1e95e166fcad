#pragma once
// SPDX-License-Identifier: MIT

// What a comparison says, in one sentence: the best ablation, and the best without memory beside it (or the best with
// memory, where one without it wins; or the worst, where that is not known).

#include <string>

#include <engram/evaluate/comparison.hpp>

namespace engram {

/// "58 %", "99.8 %": a decimal where the maximum is near, and never 100 for what is less.
inline std::string percent_in_words(double percent) {
    const double rounded = percent >= 90 ? std::round(10 * percent) / 10 : std::round(percent);
    const double honest = percent < 100 && rounded >= 100 ? 99.9 : rounded;
    return (honest == std::floor(honest) ? fixed(honest, 0) : fixed(honest, 1)) + "\u00a0%";
}

/// The levels that a score is a mean of: "on images it never saw" for the tasks that show images.
inline std::string scored_levels_in_words(const task_comparison& task) {
    const bool holdout =
        std::any_of(task.levels.begin(), task.levels.end(), [](auto& l) { return is_holdout_level(l); });
    if (!holdout) return "on " + plain_words(task.task);
    const bool images = task.task == "arbitrary_visuomotor_mapping" || task.task == "continuous_recognition";
    return images ? "on images it never saw" : "on levels it was not trained on";
}

inline std::string headline(const task_comparison& task) {
    const ablation_comparison *best = nullptr, *with = nullptr, *without = nullptr, *last = nullptr;
    for (const auto& a : task.ablations) {  // the best come first
        if (!a.score) continue;
        const memory_kind memory = ablation_memory(a.ablation);
        if (!best) best = &a;
        if (!with && memory == memory_kind::with) with = &a;
        if (!without && memory == memory_kind::without) without = &a;
        last = &a;
    }
    if (!best)
        return std::to_string(task.runs()) + (task.runs() == 1 ? " run" : " runs") + " on " + plain_words(task.task) +
               ", not evaluated yet";
    const auto score = [&](const ablation_comparison& a) {
        return task.percent ? percent_in_words(a.score->mean) : significant(a.score->mean);
    };
    const std::string unit = task.percent || task.unit.empty() ? "" : " (" + task.unit + ")";
    std::string out =
        ablation_title(best->ablation) + " reaches " + score(*best) + unit + " " + scored_levels_in_words(task);
    if (best == last) return out;
    // A difference that is no difference is not called one.
    const auto* other = best == with && without ? without : best == without && with ? with : last;
    const double difference = std::abs(best->score->mean - other->score->mean);
    const double error = std::hypot(best->score->standard_error, other->score->standard_error);
    const bool close = difference < 2 * error || (task.percent && difference < 1);
    if (best == with && without)
        out += close ? "; " + ablation_title(other->ablation) + " does as well without memory, at " + score(*other)
                     : "; without memory, " + ablation_title(other->ablation) + " stays at " + score(*other);
    else if (best == without && with)
        out += " without memory; with it, " + ablation_title(other->ablation) +
               (close ? " does as well, at " : " stays at ") + score(*other);
    else
        out +=
            "; " + ablation_title(other->ablation) + (close ? " does as well, at " : ", the last, at ") + score(*other);
    return out;
}

}  // namespace engram
