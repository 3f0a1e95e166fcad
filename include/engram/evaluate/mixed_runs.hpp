#pragma once
// SPDX-License-Identifier: MIT

// A row of a comparison is the mean over the seeds of one ablation. Runs that differ in more than their seed are no
// seeds of each other, though their folders do not tell: what sets them apart becomes a sentence under the table.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <engram/evaluate/comparison.hpp>

namespace engram {

/// Names of the settings in which a run differs from another, in alphabetical order; one that only one of them has
/// counts, and a list is one setting. Where the data of a task lie (`task.data`) is no difference.
inline std::vector<std::string> different_settings(const run_record& a, const run_record& b) {
    if (!a.settings.is_object() || !b.settings.is_object()) return {};
    const auto values = [](const run_record& run) {
        std::map<std::string, json> of;
        for_each_leaf(run.settings, [&](const std::string& name, const json& value) { of[name] = value; });
        return of;
    };
    const auto of_a = values(a), of_b = values(b);
    std::set<std::string> names;
    for (const auto& [x, y] : {std::tie(of_a, of_b), std::tie(of_b, of_a)})
        for (const auto& [name, value] : x)
            if (const auto other = y.find(name); other == y.end() || other->second != value) names.insert(name);
    names.erase("task.data");
    return {names.begin(), names.end()};
}

/// One sentence for each ablation whose runs are not seeds of one experiment: other settings, another number of steps,
/// or one seed twice.
inline std::vector<std::string> mixed_runs(const task_comparison& task) {
    const auto asked = [](const run_record& run) { return run.steps_asked ? run.steps_asked : run.steps; };
    std::vector<std::string> sentences;
    for (const auto& a : task.ablations) {
        std::set<std::string> different;
        std::set<double> seeds;
        bool twice = false;
        for (const auto* run : a.runs) {
            for (auto& name : different_settings(*a.runs[0], *run)) different.insert(std::move(name));
            if (asked(*run) != asked(*a.runs[0])) different.insert("steps");
            twice |= run->seed && !seeds.insert(*run->seed).second;
        }
        if (different.empty() && !twice) continue;
        std::string what;
        for (const auto& name : different) what += (what.empty() ? " differ in " : ", ") + name;
        if (twice) what += std::string(what.empty() ? "" : " and") + " have a seed in common";
        sentences.push_back(a.ablation + ": its " + std::to_string(a.runs.size()) + " runs" + what +
                            ", yet count as seeds of one experiment; compare them in reports of their own");
    }
    return sentences;
}

}  // namespace engram
