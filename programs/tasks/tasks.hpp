#pragma once
// SPDX-License-Identifier: MIT

// engram-tasks: the environments themselves, without any model. What its commands were asked for, and they themselves.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <engram/evaluate/scripted.hpp>
#include <engram/io/png.hpp>
#include <engram/program/compiled_tasks.hpp>

namespace engram {

/// The words of the command line; a command reads those that it has.
struct task_request {
    std::vector<std::string> task, level, set;
    std::optional<std::string> fidelity, difficulty, rules, policy, episodes, environments, threads, seed, steps, data,
        stimuli, csv, out, host, port, clients, worlds, message_bytes;

    task_options options() const;
    /// The tasks named, or all of them.
    std::vector<task_info> tasks() const;
    /// The one task and level of commands that show an episode; without a level the one trained on.
    task_info only_task(const std::string& command) const;
    std::string only_level(const task_info& info) const;
    std::uint64_t seed_or_default() const;
    /// Who plays: the oracle unless another one is named.
    scripted_policy player() const;
    /// A number of at least one, or what stands for it.
    static int positive(const char* flag, const std::optional<std::string>& text, int otherwise);
    static std::vector<int> positives(const char* flag, const std::optional<std::string>& text,
                                      std::vector<int> otherwise);
};

/// Exit codes; engram::error for bad input.
int list_tasks(const task_request& asked);
int score_tasks(const task_request& asked);
int time_tasks(const task_request& asked);
int play_task(const task_request& asked);
int draw_sheet(const task_request& asked);
int film_task(const task_request& asked);
int serve_tasks(const task_request& asked);

/// One line of text in capitals, digits and low lines, three by five dots a letter, each `scale` pixels wide.
void draw_text(picture& to, const std::string& text, int top, int left, int scale);

}  // namespace engram
