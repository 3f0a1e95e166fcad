// SPDX-License-Identifier: MIT

#include <iostream>

#include <CLI/CLI.hpp>

#include <engram/core/error.hpp>
#include <engram/program/arguments.hpp>

namespace engram {

namespace {

CLI::App* add_train(CLI::App& app, arguments& a) {
    auto* s = app.add_subcommand("train", "train the agent on a task and evaluate it on all levels");
    s->add_option("--task", a.task, "task to learn (see describe)");
    s->add_option("--steps", a.steps, "environment steps or frames, all rows together");
    s->add_option("--seed", a.seed, "seed of everything random (1)");
    s->add_option("--out", a.out, "run folder (runs/<task>/<ablation>-<seed>)");
    s->add_flag("--resume", a.resume, "continue from the folder's checkpoint, if there is one");
    s->add_option("--preset", a.preset, "small (default) or paper");
    s->add_option("--threads", a.threads, "threads (one per core)");
    s->add_option("--device", a.device, "cpu (default) or cuda");
    s->add_option("--data", a.data, "folder with mnist/ and omniglot/ (default: built-in stimuli)");
    s->add_option("--stimuli", a.stimuli, "auto (default), builtin, mnist or omniglot");
    s->add_option("--mode", a.mode, "synchronous (default) or asynchronous");
    s->add_option("--set", a.set, "a setting: --set memory.slots=2048, or --memory.slots 2048");
    s->add_option("--checkpoint-every", a.checkpoint_every, "steps between checkpoints (100000)");
    s->add_option("--evaluate", a.evaluate, "episodes per level after training, 0 for none (100)");
    s->add_option("--evaluate-every", a.evaluate_every, "steps between evaluations while it trains, 0 for none (0)");
    s->add_option("--evaluate-episodes", a.evaluate_episodes, "episodes per level of each of them (20)");
    s->add_flag("--quiet", a.quiet, "no progress, no table");
    return s;
}

CLI::App* add_evaluate(CLI::App& app, arguments& a) {
    auto* s = app.add_subcommand("evaluate", "evaluate a run's last checkpoint and note it in its summary.json");
    s->add_option("--from", a.from, "run folder");
    s->add_option("--level", a.level, "a level, repeatable (all)");
    s->add_option("--episodes", a.episodes, "episodes per level (100)");
    s->add_option("--seed", a.seed, "seed of the episodes (that of the run)");
    s->add_option("--data", a.data, "folder with mnist/ and omniglot/, if it has moved");
    s->add_flag("--quiet", a.quiet, "no table");
    return s;
}

CLI::App* add_describe(CLI::App& app, arguments& a) {
    auto* s = app.add_subcommand("describe", "the five policies, the parameters, the settings, the tasks");
    s->add_option("--preset", a.preset, "small (default) or paper");
    s->add_option("--task", a.task, "task whose sizes are shown (the first of the list)");
    s->add_option("--set", a.set, "a setting: --set memory.slots=2048, or --memory.slots 2048");
    return s;
}

CLI::App* add_sample(CLI::App& app, arguments& a) {
    auto* s =
        app.add_subcommand("sample",
                           "what it does, to look at: one episode with what its memory read, or sequences and what "
                           "it draws (PNG, NPY)");
    s->add_option("--from", a.from, "run folder");
    s->add_option("--level", a.level, "level (holdout_interpolate)");
    s->add_option("--out", a.out, "where to write (<run folder>/sample)");
    s->add_option("--seed", a.seed, "seed of the episode (that of the run)");
    s->add_option("--alone-from", a.alone_from, "sequence models: step from which it draws alone (the recall)");
    s->add_option("--data", a.data, "folder with mnist/ and omniglot/, if it has moved");
    return s;
}

// The tokens after the command, checked, with settings of either form as --set.
std::vector<std::string> checked_tokens(const CLI::App& command, int argc, char** argv) {
    std::vector<std::string> flags, out;
    bool settable = false;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) {
            flags.push_back("--" + name);
            settable |= name == "set";
        }
    for (int i = 2; i < argc; ++i) {
        const std::string token = argv[i];
        if (token == "-h") {
            out.push_back("--help");
            continue;
        }
        require(token.size() > 1 && token[0] == '-', command.get_name(), ": unexpected '", token,
                "'; a flag was expected, such as ", flags.back());
        const auto equals = token.find('=');
        const std::string flag = token.substr(0, equals);
        const bool is_setting = settable && flag.find('.') != flag.npos && flag.starts_with("--");
        if (!is_setting) require_known(command.get_name() + " flag", flag, flags);
        const bool takes_value = is_setting || command.get_option(flag)->get_items_expected_max() > 0;
        if (!takes_value) {
            require(equals == token.npos, flag, " takes no value, got '",
                    token.substr(equals == token.npos ? 0 : equals + 1), "'");
            out.push_back(flag);
            continue;
        }
        std::string value;
        if (equals != token.npos) {
            value = token.substr(equals + 1);
        } else {
            require(i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--"), flag, " needs a value");
            value = argv[++i];
        }
        // One token each: a value that begins with '-' stays a value.
        out.push_back(is_setting ? "--set=" + flag.substr(2) + "=" + value : flag + "=" + value);
    }
    return out;
}

}  // namespace

std::optional<arguments> parse_arguments(const std::string& program, int argc, char** argv) {
    arguments a;
    CLI::App app("engram-" + program + ": train, evaluate, describe and sample one agent", "engram-" + program);
    app.require_subcommand(1);
    const std::vector<CLI::App*> commands{add_train(app, a), add_evaluate(app, a), add_describe(app, a),
                                          add_sample(app, a)};
    for (CLI::App* command : commands)
        for (CLI::Option* option : command->get_options())
            if (option->get_items_expected_max() > 0 && option->get_name() != "--set" &&
                option->get_name() != "--level")
                option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    std::vector<std::string> names;
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    require(argc > 1, "a command was expected: train, evaluate, describe or sample (--help tells more)");
    const std::string first = argv[1];
    std::vector<std::string> tokens{first};
    if (first == "-h" || first == "--help") {
        tokens = {"--help"};
    } else {
        require_known("command", first, names);
        const auto rest = checked_tokens(*app.get_subcommand(first), argc, argv);
        tokens.insert(tokens.end(), rest.begin(), rest.end());
    }
    try {
        std::reverse(tokens.begin(), tokens.end());
        app.parse(tokens);
    } catch (const CLI::CallForHelp& help) {
        app.exit(help);
        return {};
    } catch (const CLI::ParseError& problem) {
        fail(problem.what());
    }
    a.command = first;
    return a;
}

}  // namespace engram
