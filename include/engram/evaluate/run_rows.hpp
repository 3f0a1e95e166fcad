#pragma once
// SPDX-License-Identifier: MIT

// What runs were worth, to be kept beside a page about them: CSV, one row a run and level, from their summaries.

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <engram/evaluate/mmer.hpp>
#include <engram/evaluate/names.hpp>
#include <engram/evaluate/run_folder.hpp>
#include <engram/io/csv.hpp>

namespace engram {

/// Columns that a run does not have are empty; kl_* are nats a step of a generative model. mmer is of the whole run.
inline std::string run_rows(const std::vector<run_record>& runs) {
    std::string out =
        "# From the summaries of these runs, by engram-report --runs.\n"
        "task,preset,ablation,seed,steps,level,unit,episodes,mean,stderr,maximum,kl_last,kl_before,kl_recall,mmer\n";
    const auto number = [](std::optional<double> x) { return x && std::isfinite(*x) ? significant(*x, 8) : ""; };
    for (const auto& run : runs)
        for (const auto& level : run.levels) {
            const auto last = level.divergence.empty() ? std::optional<double>{} : level.divergence.back();
            out += csv_cell(run.task) + "," + csv_cell(run.preset) + "," + csv_cell(run.ablation) + "," +
                   number(run.seed) + "," + number(run.steps) + "," + csv_cell(level.level) + "," +
                   csv_cell(level.unit) + "," + number(level.episodes) + "," + number(level.mean) + "," +
                   number(level.standard_error) + "," + number(level.maximum) + "," + number(last) + "," +
                   number(level.before_recall) + "," + number(level.at_recall) + "," + number(mmer(run.metrics)) + "\n";
        }
    return out;
}

}  // namespace engram
