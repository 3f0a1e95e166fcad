#pragma once
// SPDX-License-Identifier: MIT

// A row of a comparison is the mean over the seeds of one ablation. Runs that differ in more than their seed are no
// seeds of each other, though their folders do not tell: what sets them apart becomes a sentence under the table.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <engram/evaluate/comparison.hpp>

namespace engram {

/// Names of the settings in which a run differs from another, in alphabetical order; one that only one of them has
/// counts, and a list is one setting. Where the data of a task lie (`task.data`) is no difference.
inline std::vector<std::string> different_settings(const run_record& a, const run_record& b) {
    std::set<std::string> names;
    const auto compare = [&](const json& x, const json& y) {
        if (!x.is_object() || !y.is_object()) return;
        for (const json& step : json::diff(x.flatten(), y.flatten())) {
            // A path of the flattened object is one key, in which JSON writes ~1 for / and ~0 for ~.
            std::string path = step["path"].get<std::string>().substr(1);
            for (std::size_t at; (at = path.find("~1")) != path.npos;) path.replace(at, 2, ".");
            path.erase(0, path.find_first_not_of('.'));
            if (const std::size_t end = path.find_last_not_of("0123456789"); path[end] == '.') path.resize(end);
            if (path != "task.data") names.insert(path);
        }
    };
    compare(a.settings, b.settings);
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
