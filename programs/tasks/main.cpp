// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cstdio>
#include <new>

#include <engram/core/settings.hpp>
#include <engram/program/arguments.hpp>
#include <engram/program/command_line.hpp>

#include "tasks.hpp"

namespace engram {

task_options task_request::options() const {
    task_options all;
    all.fidelity = fidelity.value_or("small");
    all.difficulty = difficulty.value_or(all.difficulty);
    all.rules = rules.value_or(all.rules);
    all.data = data.value_or("");
    all.stimuli = stimuli.value_or("auto");
    pace::paper_fidelity(all);
    return all;
}

std::vector<task_info> task_request::tasks() const {
    const auto everything = options();
    std::vector<task_info> infos;
    for (const auto& name : task.empty() ? task_names() : task) infos.push_back(describe_task(name, everything));
    return infos;
}

task_info task_request::only_task(const std::string& command) const {
    require(!task.empty(), command, ": --task is missing (engram-tasks list shows them)");
    return describe_task(task.back(), options());
}

std::string task_request::only_level(const task_info& info) const {
    return info.level(level.empty() ? info.levels.front() : level.back()).name;
}

std::uint64_t task_request::seed_or_default() const {
    return seed ? static_cast<std::uint64_t>(whole_number("--seed", *seed, 0)) : 1;
}

scripted_policy task_request::player() const {
    const std::string wanted = policy.value_or("oracle");
    std::vector<std::string> known;
    for (const auto& each : scripted_policies) known.emplace_back(each.first);
    require_known("policy", wanted, known);
    return std::ranges::find(scripted_policies, std::string_view(wanted), [](const auto& p) { return p.first; })
        ->second;
}

int task_request::positive(const char* flag, const std::optional<std::string>& text, int otherwise) {
    const int number = text ? parse<int>(flag, *text) : otherwise;
    require(number >= 1, flag, ": expected 1 or more, got ", number);
    return number;
}

std::vector<int> task_request::positives(const char* flag, const std::optional<std::string>& text,
                                         std::vector<int> otherwise) {
    const auto numbers = text ? parse<std::vector<int>>(flag, *text) : otherwise;
    require(!numbers.empty(), flag, " needs a value that is not empty");
    for (const int number : numbers) require(number >= 1, flag, ": expected 1 or more, got ", number);
    return numbers;
}

namespace {

int run(int argc, char** argv) {
    task_request asked;
    CLI::App app("engram-tasks: look at the environments, play them, measure them", "engram-tasks");
    app.require_subcommand(1);
    struct entry {
        const char *name, *what;
        int (*run)(const task_request&);
    };
    static constexpr entry entries[]{
        {"list", "every task: actions, observation, levels, time limit, maximum reward", list_tasks},
        {"score", "mean episode reward of the oracle, of an explorer who is told nothing, or of random actions",
         score_tasks},
        {"speed", "steps per second, without and with drawing", time_tasks},
        {"play", "play a task in the terminal", play_task},
        {"sheet", "a picture of all tasks at both fidelities", draw_sheet},
        {"film", "an episode as an animated GIF", film_task},
        {"serve", "the tasks for clients of dm_env_rpc, in any language", serve_tasks}};
    for (const auto& e : entries) {
        CLI::App* s = app.add_subcommand(e.name, e.what);
        const std::string name = e.name;
        const bool one = name == "play" || name == "film", many = name == "score" || name == "speed";
        if (name == "serve") {
            s->add_option("--task", asked.task, "the task of worlds that name none");
            s->add_option("--level", asked.level, "their level (the one trained on)");
            s->add_option("--port", asked.port, "where to listen; 0: a port that is free, which is printed");
            s->add_option("--host", asked.host, "and at which address (127.0.0.1), or unix:PATH without a port");
            s->add_option("--clients", asked.clients, "streams at once (64)");
            s->add_option("--worlds", asked.worlds, "worlds at once (256)");
            s->add_option("--message-bytes", asked.message_bytes, "bytes of a request at most (1048576)");
            s->add_option("--set", asked.set, "an option of the task, such as length=50, repeatable");
        }
        if (one || many) s->add_option("--task", asked.task, one ? "the task" : "a task, repeatable (all)");
        if (one) s->add_option("--level", asked.level, "level (the one trained on)");
        if (name == "score")
            s->add_option("--level", asked.level, "a level, repeatable (those that a run is judged by)");
        if (name != "sheet") s->add_option("--fidelity", asked.fidelity, "small (default) or paper");
        if (name == "sheet") s->add_option("--fidelity", asked.fidelity, "small or paper (both, side by side)");
        if (name != "sheet") {
            s->add_option("--difficulty", asked.difficulty, "of popgym tasks: easy (default), medium or hard");
            s->add_option("--rules", asked.rules, "of popgym tasks: package (default) or paper");
        }
        if (name == "score" || name == "film")
            s->add_option("--policy", asked.policy, "oracle (default), explorer, forgetful or random");
        if (name == "score") {
            s->add_option("--episodes", asked.episodes, "episodes per level (100)");
            s->add_option("--threads", asked.threads, "threads (one per core)");
            s->add_option("--csv", asked.csv, "also write the table to this file");
        }
        if (name == "speed") {
            s->add_option("--environments", asked.environments, "numbers of environments, such as 1,64,1024 (64)");
            s->add_option("--threads", asked.threads, "numbers of threads, such as 1,2 (1)");
        }
        if (name == "film") s->add_option("--steps", asked.steps, "steps at most (500)");
        if (name == "film") s->add_option("--out", asked.out, "the file to write, .gif");
        if (name == "sheet") s->add_option("--out", asked.out, "the file to write (tasks.png)");
        if (name == "list") continue;
        s->add_option("--seed", asked.seed, "seed of the episodes (1)");
        s->add_option("--data", asked.data, "folder with mnist/ and omniglot/ (default: built-in stimuli)");
        s->add_option("--stimuli", asked.stimuli, "auto (default), builtin, mnist or omniglot");
    }
    const auto command = parse_command(app, argc, argv);
    if (!command) return 0;
    return std::find_if(std::begin(entries), std::end(entries), [&](const entry& e) { return e.name == *command; })
        ->run(asked);
}

}  // namespace

}  // namespace engram

int main(int argc, char** argv) {
    try {
        return engram::run(argc, argv);
    } catch (const engram::error& problem) {
        std::fprintf(stderr, "engram-tasks: %s\n", problem.what());
        return 2;
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "engram-tasks: out of memory\n");
        return 1;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "engram-tasks: %s\n", problem.what());
        return 1;
    }
}
