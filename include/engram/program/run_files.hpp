#pragma once
// SPDX-License-Identifier: MIT

// What a program writes into a run folder, besides what the report reads:
//
//   config.json   metrics.csv   levels.csv   summary.json   retrieval.json   checkpoint/latest.safetensors
//   events.out.tfevents.engram   (train --tensorboard)
//
// The two tables and the events grow by whole rows; a resumed run drops those behind its checkpoint. Everything else is
// written whole or not at all.

#include <cstdint>
#include <string>
#include <vector>

#include <engram/io/safetensors.hpp>
#include <engram/program/configuration.hpp>

namespace engram {

/// Makes a folder and those above it.
void make_folder(const std::string& path);
/// Whether there is a file or folder of this name.
bool file_exists(const std::string& path);
/// Removes what a run that was killed while writing left beside its files.
void remove_leftovers(const run_paths& paths);

/// One row of metrics.csv as a job gives it: `values` stand behind step and update, `last_values` at the end.
struct metrics_row {
    std::vector<double> values, last_values;
    double gradient_norm = 0, learning_rate = 0;
};

/// Rows under named columns, the first of which is the step; NaN is an empty cell.
class metrics_file {
public:
    /// Keeps the rows up to `step`; none of them when it is 0.
    metrics_file(const std::string& path, const std::vector<std::string>& columns, std::int64_t step);
    metrics_file(const metrics_file&) = delete;
    metrics_file& operator=(const metrics_file&) = delete;
    ~metrics_file();
    void write(const std::vector<double>& row);
    /// Whole rows as text.
    void append(const std::string& rows);
    /// To the disk: a checkpoint must not know more than the rows before it.
    void flush();
    /// The step of the last row that was kept; 0 when none was.
    std::int64_t last_kept() const { return last_kept_; }

private:
    std::string path_;
    std::int64_t last_kept_ = 0;
    int file_ = -1;
};

/// Marks a checkpoint with what wrote it.
void stamp_checkpoint(safetensors& file, const configuration& config);
/// Throws, saying what differs, unless the checkpoint was written by this ablation on this task; with `exactly`, with
/// the same settings, seed and threads too.
void check_checkpoint(const safetensors& file, const configuration& config, bool exactly);

/// Evaluates the levels (all when there are none) and puts them into `summary`; false when `stop` ended it early.
/// `others` play with this process.
bool evaluate_levels(const prepared_run& run, const std::vector<std::string>& levels, int episodes, std::uint64_t seed,
                     const std::function<bool()>& stop, json& summary, processes* others = nullptr);
/// The same for sequences; with the first held-out level's KL a step and ELBO for generative models.
bool evaluate_levels(prepared_sequences& run, const std::vector<std::string>& levels, int sequences, std::uint64_t seed,
                     const std::function<bool()>& stop, json& summary, processes* others = nullptr);
/// One episode with what the memory read, where the agent has one that tells and the task has trials.
bool record_retrieval(const prepared_run& run, const std::string& ablation, std::uint64_t seed,
                      const std::string& path);
/// The table of levels of a summary; "-" for a number that is not finite, which the file has as null.
std::string level_table(const json& summary);

}  // namespace engram
