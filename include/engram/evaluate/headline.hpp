#pragma once
// SPDX-License-Identifier: MIT

// What a comparison says, in one sentence: the best ablation, and the best without memory beside it (or the best with
// memory, where one without it wins; or the worst, where that is not known). Of generative models it is what they pay
// for a frame that comes back, or for a sequence where none does; of models that answer in bits, how many are wrong.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

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

/// Whether the errors of two values, at twice their size, leave their difference open.
inline bool within_errors(double difference, const statistic& a, const statistic& b) {
    return difference < 2 * std::hypot(a.standard_error, b.standard_error);
}
inline constexpr const char* undecided = ", which these runs cannot tell apart";

/// The sentence of a sequence task, from values of which less is better.
inline std::string sequence_headline(const task_comparison& task) {
    const bool recalls = task.kind == run_kind::generative && task.measures(&level_comparison::at_recall);
    struct entry {
        std::string name;
        memory_kind memory;
        statistic value;
    };
    std::vector<entry> entries;
    for (const auto& a : task.ablations) {
        const auto* level = task.judged(a);
        const auto value = recalls ? (level ? level->at_recall : std::nullopt) : a.score;
        if (value) entries.push_back({ablation_title(a.ablation), ablation_memory(a.ablation), *value});
    }
    if (entries.empty()) return "";
    std::stable_sort(entries.begin(), entries.end(),
                     [](const auto& a, const auto& b) { return a.value.mean < b.value.mean; });
    const bool generative = task.kind == run_kind::generative;
    const std::string verb = generative ? "needs " : "gets ";
    const auto value = [&](const entry& e) { return generative ? measured(e.value.mean) : significant(e.value.mean); };
    const entry& best = entries.front();
    std::string out = best.name + " " + verb + value(best) +
                      (recalls      ? " nats for a frame it has seen before"
                       : generative ? " nats for a sequence of " + plain_words(task.task)
                                    : " bits of a sequence of " + plain_words(task.task) + " wrong");
    const auto first = [&](memory_kind memory) {
        return std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.memory == memory; });
    };
    const auto with = first(memory_kind::with), without = first(memory_kind::without);
    if (entries.size() == 1) return out;
    const bool known = with != entries.end() && without != entries.end() && best.memory != memory_kind::unknown;
    const entry& other = !known ? entries.back() : best.memory == memory_kind::with ? *without : *with;
    const double difference = other.value.mean - best.value.mean;
    // The error of one run is not known; two in a hundred of the value stand for it. What the errors leave open is as
    // good where it is no more than that.
    const bool small = difference < 0.02 * std::abs(other.value.mean);
    const bool known_errors = std::isfinite(best.value.standard_error + other.value.standard_error);
    const bool open = known_errors ? within_errors(difference, best.value, other.value) : small;
    const bool close = value(best) == value(other) || (open && small), unclear = open && !close;
    const std::string does = (close ? " does as well, at " : " " + verb) + value(other) + (unclear ? undecided : "");
    if (!known) return out + "; " + other.name + (close || unclear ? does : ", the last," + does);
    if (best.memory == memory_kind::with) return out + "; without memory, " + other.name + does;
    return out + (recalls ? ", without memory" : " without memory") + "; with it, " + other.name + does;
}

/// The best model of a task in figures, for the paragraph under the headline.
inline std::string generative_lead(const task_comparison& task) {
    for (const auto& a : task.ablations) {  // the best comes first
        const auto* level = task.judged(a);
        if (!level) continue;
        std::string out = " " + ablation_title(a.ablation) + " on the level \u201c" +
                          plain_words(task.levels[task.judged_level()]) + "\u201d: " + measured(level->reward.mean) +
                          " nats a sequence";
        if (level->before_recall && level->at_recall)
            out += ", of which the KL is " + measured(level->before_recall->mean) + " a step before the recall and " +
                   measured(level->at_recall->mean) + " at it";
        return out + ".";
    }
    return "";
}

/// The sentence; empty when nothing was evaluated.
inline std::string headline(const task_comparison& task) {
    if (task.kind == run_kind::generative || task.unit.starts_with("wrong "))
        if (auto sentence = sequence_headline(task); !sentence.empty()) return sentence;
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
    // Less than a point is as good; what the errors leave open is neither as good nor worse.
    const auto* other = best == with && without ? without : best == without && with ? with : last;
    const double difference = std::abs(best->score->mean - other->score->mean);
    const bool close = score(*best) == score(*other) || (task.percent && difference < 1);
    const bool unclear = !close && within_errors(difference, *best->score, *other->score);
    const std::string name = ablation_title(other->ablation), other_score = score(*other);
    const std::string is = unclear ? " is at " + other_score + undecided : " stays at " + other_score;
    if (best == with && without)
        out +=
            close ? "; " + name + " does as well without memory, at " + other_score : "; without memory, " + name + is;
    else if (best == without && with)
        out += " without memory; with it, " + name + (close ? " does as well, at " + other_score : is);
    else
        out += "; " + name +
               (close     ? " does as well, at " + other_score
                : unclear ? is
                          : ", the last, at " + other_score);
    return out;
}

}  // namespace engram
