#pragma once
// SPDX-License-Identifier: MIT

// Which of two agents is better, judged by a bootstrap over seeds and episodes, beside what the paper's tables say of
// the same pair.
//
//   one draw     of each agent n seeds with replacement, and to the mean of each a normal error of its episodes
//   chance       share of the draws in which the first agent's mean is greater; equal means count half
//   verdict      first: chance >= 0.975;  second: chance <= 0.025;  open otherwise, and with fewer than two seeds
//
// The paper gives a mean and its standard error over three seeds: there the difference of both, in their errors, is
// held against the same chance of a normal distribution. Pairs differ in one thing, in the four questions that the
// paper asks: controller, memory, auxiliary loss, jumpy backpropagation (facts 1.10, 2.7).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/evaluate/comparison.hpp>
#include <engram/evaluate/comparison_table.hpp>
#include <engram/evaluate/published_scores.hpp>
#include <engram/evaluate/run_folder.hpp>

namespace engram {

struct agent_pair {
    const char *question, *first, *second;
};

// clang-format off
inline constexpr std::array<agent_pair, 15> agent_pairs{{
    {"controller", "lstm", "ff"},          {"controller", "lstm_mem", "ff_mem"},
    {"controller", "mra", "ff_mem_cpc"},   {"controller", "lstm_mem_rec", "ff_mem_rec"},
    {"memory", "ff_mem", "ff"},            {"memory", "lstm_mem", "lstm"},
    {"memory", "mra", "lstm_cpc"},
    {"auxiliary", "lstm_cpc", "lstm"},     {"auxiliary", "mra", "lstm_mem"},
    {"auxiliary", "lstm_mem_rec", "lstm_mem"}, {"auxiliary", "ff_mem_cpc", "ff_mem"},
    {"auxiliary", "ff_mem_rec", "ff_mem"}, {"auxiliary", "mra", "lstm_mem_rec"},
    {"auxiliary", "ff_mem_cpc", "ff_mem_rec"},
    {"jumpy", "mra", "mra_no_jumpy"},
}};
// clang-format on

enum class order { first, second, open };

/// As tables show it.
constexpr std::string_view order_name(order o) {
    return o == order::first ? "first" : o == order::second ? "second" : "open";
}

/// What the seeds of one agent earned on one level of a task, and the standard errors of their episodes.
struct seed_scores {
    std::vector<double> mean, standard_error;

    double over_seeds() const { return over_runs(mean, standard_error).mean; }
};

/// The least that a verdict takes.
constexpr std::size_t fewest_seeds = 2;

constexpr double least_chance = 0.025;
constexpr int bootstrap_draws = 10000;

/// One draw of a bootstrap: take(score) for as many seeds as there are, each with the error of its episodes.
template <class Take>
void draw_seeds(const seed_scores& of, philox& random, Take&& take) {
    const int n = static_cast<int>(of.mean.size());
    for (int i = 0; i < n; ++i) {
        const auto seed = static_cast<std::size_t>(random.below(n));
        take(of.mean[seed] + of.standard_error[seed] * static_cast<double>(random.normal()));
    }
}

/// How often `a` is better than `b`, of `bootstrap_draws` draws; the same numbers give the same chance.
inline double chance_of_better(const seed_scores& a, const seed_scores& b) {
    philox random(1, stream_id("orderings", 0));
    const auto draw = [&](const seed_scores& of) {
        double sum = 0;
        draw_seeds(of, random, [&](double score) { sum += score; });
        return sum / static_cast<double>(of.mean.size());
    };
    double better = 0;
    for (int i = 0; i < bootstrap_draws; ++i) {
        const double first = draw(a), second = draw(b);
        better += first > second ? 1.0 : first == second ? 0.5 : 0.0;
    }
    return better / bootstrap_draws;
}

/// The verdict that a chance allows.
constexpr order order_of_chance(double chance) {
    return chance >= 1 - least_chance ? order::first : chance <= least_chance ? order::second : order::open;
}

/// The same of two means with their standard errors.
inline order order_of(const published_value& a, const published_value& b) {
    const double error = std::hypot(a.standard_error, b.standard_error), apart = a.mean - b.mean;
    if (error == 0) return apart > 0 ? order::first : apart < 0 ? order::second : order::open;
    return order_of_chance(0.5 * std::erfc(-apart / error / std::sqrt(2.0)));
}

struct judged_pair {
    agent_pair pair;
    std::string fidelity, task, level;
    int first_seeds = 0, second_seeds = 0;
    double first = 0, second = 0, chance = 0;  // means over seeds
    order verdict = order::open;
    std::optional<order> published = {};  // none where the paper has no such agent, or its row is not to be trusted
};

/// What the runs of `ablation` earned on a level of a task, each seed once.
inline seed_scores scores_of(const std::vector<run_record>& runs, std::string_view fidelity, std::string_view task,
                             std::string_view ablation, std::string_view level) {
    seed_scores found;
    std::vector<const run_record*> counted;
    for (const auto& run : runs) {
        if (run.fidelity() != fidelity || run.ablation != ablation || suite_index(run.task) != suite_index(task))
            continue;
        for (const auto& l : run.levels)
            if (l.level == level &&
                std::none_of(counted.begin(), counted.end(), [&](auto* c) { return is_same_run(*c, run); })) {
                counted.push_back(&run);
                found.mean.push_back(l.mean);
                found.standard_error.push_back(std::isfinite(l.standard_error) ? l.standard_error : 0);
            }
    }
    return found;
}

/// The fidelities of the runs, each once.
inline std::vector<std::string> fidelities_of(const std::vector<run_record>& runs) {
    std::vector<std::string> all;
    for (const auto& run : runs)
        if (std::find(all.begin(), all.end(), run.fidelity()) == all.end()) all.push_back(run.fidelity());
    return all;
}

/// Every pair of which both were run at one fidelity, task by task and level by level in the suite's order.
inline std::vector<judged_pair> judge_orderings(const std::vector<run_record>& runs) {
    std::vector<judged_pair> judged;
    for (const auto& fidelity : fidelities_of(runs))
        for (std::size_t t = 0; t < suite_tasks.size(); ++t)
            for (std::size_t l = 0; l < suite_scores.size(); ++l)
                for (const auto& pair : agent_pairs) {
                    const auto a = scores_of(runs, fidelity, suite_tasks[t].name, pair.first, suite_scores[l]),
                               b = scores_of(runs, fidelity, suite_tasks[t].name, pair.second, suite_scores[l]);
                    if (a.mean.empty() || b.mean.empty()) continue;
                    judged_pair j{
                        .pair = pair, .fidelity = fidelity, .task = suite_tasks[t].name, .level = suite_scores[l]};
                    j.first_seeds = static_cast<int>(a.mean.size()), j.second_seeds = static_cast<int>(b.mean.size());
                    j.first = a.over_seeds(), j.second = b.over_seeds();
                    j.chance = chance_of_better(a, b);
                    if (std::min(a.mean.size(), b.mean.size()) >= fewest_seeds) j.verdict = order_of_chance(j.chance);
                    const auto *first = published_tables[t].find(pair.first),
                               *second = published_tables[t].find(pair.second);
                    const bool doubtful = *published_doubt(j.task, pair.first) || *published_doubt(j.task, pair.second);
                    if (first && second && !doubtful) j.published = order_of(first->levels()[l], second->levels()[l]);
                    judged.push_back(j);
                }
    return judged;
}

/// CSV, a row a judged pair.
inline std::string orderings_csv(const std::vector<judged_pair>& judged) {
    std::string out =
        "question,fidelity,task,level,first,second,first_seeds,second_seeds,first_mean,second_mean,chance,verdict,"
        "paper\n";
    for (const auto& j : judged)
        out += std::string(j.pair.question) + "," + j.fidelity + "," + j.task + "," + j.level + "," + j.pair.first +
               "," + j.pair.second + "," + std::to_string(j.first_seeds) + "," + std::to_string(j.second_seeds) + "," +
               significant(j.first, 6) + "," + significant(j.second, 6) + "," + significant(j.chance, 4) + "," +
               std::string(order_name(j.verdict)) + "," +
               (j.published ? std::string(order_name(*j.published)) : std::string()) + "\n";
    return out;
}

/// A table of text: of every pair how often each verdict fell, and how often the paper's fell alike where both told the
/// two apart.
inline std::string orderings_text(const std::vector<judged_pair>& judged) {
    std::string out;
    for (const auto& pair : agent_pairs) {
        int first = 0, second = 0, open = 0, alike = 0, against = 0;
        for (const auto& j : judged) {
            if (std::string_view(j.pair.first) != pair.first || std::string_view(j.pair.second) != pair.second)
                continue;
            (j.verdict == order::first ? first : j.verdict == order::second ? second : open)++;
            if (!j.published || *j.published == order::open || j.verdict == order::open) continue;
            (*j.published == j.verdict ? alike : against)++;
        }
        if (first + second + open == 0) continue;
        out += std::string(pair.question) + ": " + pair.first + " before " + pair.second + " on " +
               std::to_string(first) + ", behind on " + std::to_string(second) + ", open on " + std::to_string(open) +
               " levels; with the paper " + std::to_string(alike) + ", against it " + std::to_string(against) + "\n";
    }
    return out;
}

/// The agents of a level that are not shown to be worse than the best one.
struct level_leaders {
    std::string fidelity, task, level;
    std::vector<std::string> leaders;  // the best one first
};

/// Of every task and level with at least two agents of enough seeds.
inline std::vector<level_leaders> leaders_of(const std::vector<run_record>& runs) {
    std::vector<std::string> names;
    for (const auto& run : runs)
        if (std::find(names.begin(), names.end(), run.ablation) == names.end()) names.push_back(run.ablation);
    std::stable_sort(names.begin(), names.end(),
                     [](const auto& a, const auto& b) { return ablation_rank(a) < ablation_rank(b); });
    std::vector<level_leaders> all;
    for (const auto& fidelity : fidelities_of(runs))
        for (const auto& task : suite_tasks)
            for (const char* level : suite_scores) {
                std::vector<std::pair<std::string, seed_scores>> agents;
                for (const auto& name : names)
                    if (auto found = scores_of(runs, fidelity, task.name, name, level);
                        found.mean.size() >= fewest_seeds)
                        agents.emplace_back(name, std::move(found));
                if (agents.size() < 2) continue;
                std::stable_sort(agents.begin(), agents.end(), [](const auto& a, const auto& b) {
                    return a.second.over_seeds() > b.second.over_seeds();
                });
                level_leaders found{fidelity, task.name, level, {}};
                for (const auto& agent : agents)
                    if (&agent == &agents[0] ||
                        order_of_chance(chance_of_better(agents[0].second, agent.second)) == order::open)
                        found.leaders.push_back(agent.first);
                all.push_back(std::move(found));
            }
    return all;
}

/// A line a task and level.
inline std::string leaders_text(const std::vector<level_leaders>& all) {
    std::string out;
    for (const auto& l : all) {
        out += l.task + (l.fidelity.empty() ? "" : " (" + l.fidelity + ")") + ", " + l.level + ": ";
        for (std::size_t i = 0; i < l.leaders.size(); ++i) out += (i > 0 ? ", " : "") + l.leaders[i];
        out += "\n";
    }
    return out;
}

}  // namespace engram
