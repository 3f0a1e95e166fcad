// SPDX-License-Identifier: MIT

#include <engram/core/settings.hpp>
#include <engram/program/arguments.hpp>
#include <engram/program/command_line.hpp>

namespace engram {

namespace {

void add_world(CLI::App* s, arguments& a, const char* what) {
    s->add_option("--world", a.world, what);
    s->add_option("--world-set", a.world_set, "a setting that it is created with, name=value, or join.name=value");
    s->add_option("--actions", a.actions, "what can be done in it: a file with a line an action, or dm_memorytasks");
    s->add_option("--world-repeat", a.world_repeat, "steps of the world an action (1; dm_memorytasks: 4)");
}

void add_train(CLI::App& app, arguments& a) {
    auto* s = app.add_subcommand("train", "train the agent on a task and evaluate it on all levels");
    s->add_option("--task", a.task, "task to learn (see describe)");
    add_world(s, a, "an environment elsewhere instead, rpc://host:port; several: rows go round them");
    s->add_option("--steps", a.steps, "environment steps or frames, all rows together");
    s->add_option(
        "--until-reward", a.until_reward,
        "end before, once the training episodes between two rows of metrics.csv, a hundred at least, earn this");
    s->add_option("--seed", a.seed, "seed of everything random (1)");
    s->add_option("--out", a.out, "run folder (runs/<task>/<ablation>-<seed>)");
    s->add_option("--weights", a.weights, "run folder whose weights this run begins with");
    s->add_flag("--resume", a.resume, "continue from the folder's checkpoint, if there is one");
    s->add_option("--preset", a.preset, "small (default), paper, published or tuned");
    s->add_option("--threads", a.threads, "threads (one per core)");
    s->add_option("--device", a.device, "cpu (default) or cuda, where the program was built with it");
    s->add_option("--products", a.products, "float (default) or bfloat16, which is faster and rounds (cpu)");
    s->add_option("--data", a.data, "folder with mnist/ and omniglot/ (default: built-in stimuli)");
    s->add_option("--stimuli", a.stimuli, "auto (default), builtin, mnist or omniglot");
    s->add_option("--mode", a.mode, "synchronous (default) or asynchronous");
    s->add_option("--actors", a.actors, "asynchronous, behind mpirun: processes that act for the one that learns (0)");
    s->add_option("--set", a.set, "a setting: --set memory.slots=2048, or --memory.slots 2048");
    s->add_option("--checkpoint-every", a.checkpoint_every, "steps between checkpoints (100000)");
    s->add_option("--evaluate", a.evaluate, "episodes per level after training, 0 for none (100)");
    s->add_option("--evaluate-every", a.evaluate_every, "steps between evaluations while it trains, 0 for none (0)");
    s->add_option("--evaluate-episodes", a.evaluate_episodes, "episodes per level of each of them (20)");
    s->add_flag("--tensorboard", a.tensorboard, "curves for TensorBoard too, in the run folder");
    s->add_option("--patience", a.patience,
                  "seconds without a sign of life: of another process (300), of a world elsewhere (60)");
    s->add_flag("--quiet", a.quiet, "no progress, no table");
    s->add_flag("--dry-run", a.dry_run, "check the settings, print them as config.json would hold them, write nothing");
}

void add_evaluate(CLI::App& app, arguments& a) {
    auto* s = app.add_subcommand("evaluate", "evaluate a run's last checkpoint and note it in its summary.json");
    s->add_option("--from", a.from, "run folder");
    s->add_option("--device", a.device, "cpu or cuda (that of the run)");
    s->add_option("--products", a.products, "float or bfloat16 (those of the run)");
    s->add_option("--level", a.level, "a level, repeatable (all)");
    s->add_option("--episodes", a.episodes, "episodes per level (100)");
    s->add_option("--seed", a.seed, "seed of the episodes (that of the run)");
    s->add_option("--data", a.data, "folder with mnist/ and omniglot/, if it has moved");
    s->add_option("--set", a.set, "an option of the task, other than it was trained with: --set task.length=400");
    add_world(s, a, "the world of the run, if it has moved: rpc://host:port");
    s->add_option("--patience", a.patience, "seconds without an answer from a world (60)");
    s->add_flag("--quiet", a.quiet, "no table");
}

void add_describe(CLI::App& app, arguments& a) {
    auto* s = app.add_subcommand("describe", "the five policies, the parameters, the settings, the tasks");
    s->add_option("--preset", a.preset, "small (default), paper, published or tuned");
    s->add_option("--task", a.task, "task whose sizes are shown (the first of the list)");
    add_world(s, a, "an environment elsewhere instead, rpc://host:port, and what it shows and takes");
    s->add_option("--patience", a.patience, "seconds without an answer from a world (10)");
    s->add_option("--device", a.device, "only this device: what it is, or why it cannot be used");
    s->add_option("--set", a.set, "a setting: --set memory.slots=2048, or --memory.slots 2048");
}

void add_sample(CLI::App& app, arguments& a) {
    auto* s =
        app.add_subcommand("sample",
                           "what it does, to look at: one episode with what its memory read, or sequences and what "
                           "it draws (PNG, NPY)");
    s->add_option("--from", a.from, "run folder");
    s->add_option("--device", a.device, "cpu or cuda (that of the run)");
    s->add_option("--products", a.products, "float or bfloat16 (those of the run)");
    s->add_option("--level", a.level, "level (holdout_interpolate)");
    s->add_option("--out", a.out, "where to write (<run folder>/sample)");
    s->add_option("--seed", a.seed, "seed of the episode (that of the run)");
    s->add_option("--episodes", a.episodes, "also this many episodes as arrays, a folder each (0)");
    s->add_option("--alone-from", a.alone_from, "sequence models: step from which it draws alone (the recall)");
    s->add_option("--data", a.data, "folder with mnist/ and omniglot/, if it has moved");
    add_world(s, a, "the world of the run, if it has moved: rpc://host:port");
    s->add_option("--patience", a.patience, "seconds without an answer from a world (60)");
}

}  // namespace

std::int64_t whole_number(const char* flag, const std::string& text, std::int64_t least) {
    const auto number = parse<std::int64_t>(flag, text);
    require(number >= least, flag, ": expected ", least, " or more, got ", number);
    return number;
}

struct argument_parser::commands {
    explicit commands(const std::string& program)
        : app("engram-" + program + ": train, evaluate, describe and sample one agent", "engram-" + program) {
        app.require_subcommand(1);
        add_train(app, read);
        add_evaluate(app, read);
        add_describe(app, read);
        add_sample(app, read);
    }

    arguments read;
    CLI::App app;
};

argument_parser::argument_parser(const std::string& program) : commands_(std::make_unique<commands>(program)) {}

argument_parser::~argument_parser() = default;

std::optional<arguments> argument_parser::parse(int argc, char** argv) {
    commands_->read = {};
    const auto command = parse_command(commands_->app, argc, argv);
    if (!command) return {};
    commands_->read.command = *command;
    return commands_->read;
}

std::optional<arguments> parse_arguments(const std::string& program, int argc, char** argv) {
    return argument_parser(program).parse(argc, argv);
}

}  // namespace engram
