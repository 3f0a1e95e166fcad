#pragma once
// SPDX-License-Identifier: MIT

// The four commands; each returns an exit code and throws engram::error for bad input.

#include <string>

#include <engram/program/ablation.hpp>
#include <engram/program/arguments.hpp>
#include <engram/program/configuration.hpp>

namespace engram {

/// Something went wrong while running, not with what was asked for: exit code 1.
struct run_error : error {
    using error::error;
};

/// Trains, writes the run folder, evaluates; `others`: with other processes, of which the first one writes.
int train(ablation& model, const arguments& a, processes* others = nullptr);
/// Evaluates a run's last checkpoint.
int evaluate(ablation& model, const arguments& a);
/// Policies, parameters, settings with where their values come from, and tasks.
std::string description(ablation& model, const arguments& a);
/// Prints them.
int describe(ablation& model, const arguments& a);
/// Draws what a trained model does.
int sample(ablation& model, const arguments& a);
/// sample, for a model of sequences; the configuration is that of the run folder.
int sample_sequences(const device_runs& on, const configuration& config, const arguments& a);

/// From now on SIGINT, SIGTERM and SIGUSR1 are noted instead of ending the program; the third one ends it at once.
void catch_interrupts();
/// Whether one of them came.
bool interrupted();

}  // namespace engram
