#pragma once
// SPDX-License-Identifier: MIT

// Command lines of programs with commands, each with its flags. Every mistake is one sentence with the nearest valid
// name.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include <engram/core/error.hpp>

namespace engram {

/// The words after the command, checked. For a command with a flag --set, --memory.slots 5 is --set memory.slots=5.
inline std::vector<std::string> checked_words(const CLI::App& command, int argc, char** argv) {
    std::vector<std::string> flags, out;
    bool settable = false;
    for (const CLI::Option* option : command.get_options())
        for (const std::string& name : option->get_lnames()) {
            flags.push_back("--" + name);
            settable |= name == "set";
        }
    for (int i = 2; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "-h") {
            out.push_back("--help");
            continue;
        }
        require(word.size() > 1 && word[0] == '-', command.get_name(), ": unexpected '", word,
                "'; a flag was expected, such as ", flags.back());
        const auto equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        const bool is_setting = settable && flag.find('.') != flag.npos && flag.starts_with("--");
        if (!is_setting) require_known(command.get_name() + " flag", flag, flags);
        const bool takes_value = is_setting || command.get_option(flag)->get_items_expected_max() > 0;
        if (!takes_value) {
            require(equals == word.npos, flag, " takes no value, got '",
                    word.substr(equals == word.npos ? 0 : equals + 1), "'");
            out.push_back(flag);
            continue;
        }
        std::string value;
        if (equals != word.npos) {
            value = word.substr(equals + 1);
        } else {
            require(i + 1 < argc && !std::string_view(argv[i + 1]).starts_with("--"), flag, " needs a value");
            value = argv[++i];
        }
        // One word each: a value that begins with '-' stays a value.
        out.push_back(is_setting ? "--set=" + flag.substr(2) + "=" + value : flag + "=" + value);
    }
    return out;
}

/// Gives the options of the command that argv[1] names their values and returns its name; nothing when only help (no
/// word at all, help, help COMMAND, --help) or the version was asked for, which has been printed then. Of an option
/// that holds one value the last one counts.
inline std::optional<std::string> parse_command(CLI::App& app, int argc, char** argv) {
    std::vector<std::string> names;
    const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
    if (!app.get_version_ptr()) {  // it has not parsed anything yet
        app.set_version_flag("--version", app.get_name() + " " + library_version(),
                             "print the version of engram and exit");
        for (CLI::App* command : commands)
            for (CLI::Option* option : command->get_options())
                if (option->get_items_expected_max() == 1)
                    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    for (const CLI::App* command : commands) names.push_back(command->get_name());
    const std::string first = argc > 1 ? argv[1] : "help";
    std::vector<std::string> words{first};
    if (first == "help" && argc > 2) {
        require_known("command", argv[2], names);
        require(argc == 3, "help: unexpected '", argv[3], "'; one command was expected");
        words = {argv[2], "--help"};
    } else if (first == "help" || first == "-h" || first == "--help") {
        words = {"--help"};
    } else if (first == "--version") {
        words = {first};
    } else {
        require_known("command", first, names);
        const auto rest = checked_words(*app.get_subcommand(first), argc, argv);
        words.insert(words.end(), rest.begin(), rest.end());
    }
    try {
        std::reverse(words.begin(), words.end());
        app.parse(words);
    } catch (const CLI::Success& printed) {  // help or the version
        app.exit(printed);
        return {};
    } catch (const CLI::ParseError& problem) {
        fail(problem.what());
    }
    return first;
}

}  // namespace engram
