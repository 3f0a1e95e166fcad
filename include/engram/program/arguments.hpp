#pragma once
// SPDX-License-Identifier: MIT

// The command line of an ablation's program. A setting may be written --set memory.slots=1024 or --memory.slots 1024.
// Every mistake is one sentence with the nearest valid name.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <engram/version.hpp>

namespace engram {

struct arguments {
    std::string command;
    std::optional<std::string> task, steps, seed, out, preset, threads, device, products, data, stimuli, mode, from,
        episodes, evaluate, evaluate_every, evaluate_episodes, checkpoint_every, alone_from, weights, actors, patience,
        actions, world_repeat, until_reward;
    std::vector<std::string> set, level, world, world_set;
    bool resume = false, quiet = false, tensorboard = false, dry_run = false;

    bool operator==(const arguments&) const = default;
};

/// Reads command lines of engram-<program>, one after another. What it has read leaves a few bytes a word behind.
class argument_parser {
public:
    explicit argument_parser(const std::string& program);
    ~argument_parser();
    /// As parse_arguments().
    std::optional<arguments> parse(int argc, char** argv);

private:
    struct commands;
    std::unique_ptr<commands> commands_;
};

/// Nothing when only help or the version was asked for, which has been printed then.
std::optional<arguments> parse_arguments(const std::string& program, int argc, char** argv);

/// The whole number that the text of a flag means; throws unless it is `least` or more.
std::int64_t whole_number(const char* flag, const std::string& text, std::int64_t least);

}  // namespace engram
