// The commands that pages show name programs, flags, settings and tasks that exist. Checked are the fenced `sh` blocks
// of all pages, and indented lines that begin like a command of this checkout.

#include "every_ablation.hpp"
#include "markdown.hpp"

#include <map>
#include <regex>
#include <sstream>

#include <engram/program/compiled_tasks.hpp>
#include <engram/program/presets.hpp>

#include "../program/child.hpp"

using namespace documents;

namespace {

struct command {
    std::string page;
    std::size_t line;
    std::vector<std::string> words;
};

/// The words of a line up to its remark; quotes hold together what they enclose.
std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    std::string word;
    char quote = 0;
    for (const char c : line + " ") {
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else
                word += c;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else if (c == ' ') {
            if (word == "#") break;
            if (!word.empty()) words.push_back(word);
            word.clear();
        } else {
            word += c;
        }
    }
    return words;
}

/// Commands of a line, which may hold several (`a && b; c`); settings of the environment in front are left out.
void split(const std::string& page, std::size_t line, const std::string& text, std::vector<command>& all) {
    command now{page, line, {}};
    const auto finish = [&] {
        if (!now.words.empty()) all.push_back(now);
        now.words.clear();
    };
    for (auto word : words_of(text)) {
        const bool last = word.size() > 1 && word.back() == ';';
        if (last) word.pop_back();
        static const std::regex assignment("[A-Z_]+=.*");
        if (word == "&&" || word == "|" || word == "||")
            finish();
        else if (!now.words.empty() || !std::regex_match(word, assignment))
            now.words.push_back(word);
        if (last) finish();
    }
    finish();
}

std::vector<command> commands() {
    static const std::regex ours(R"(^    (([A-Z_]+=[^ ]* )*)(\./dev|build/bin/|docs/results/|benchmarks/).*)");
    std::vector<command> all;
    for (const auto& page : pages()) {
        const auto lines = read_lines(root() / page);
        std::vector<bool> fenced(lines.size(), false);
        for (const auto& block : fences(lines)) {
            std::string text;
            for (std::size_t i = block.first; i < block.end; ++i) {
                fenced[i] = true;
                if (block.language != "sh") continue;
                text += lines[i];
                if (!text.empty() && text.back() == '\\') {
                    text.back() = ' ';
                    continue;
                }
                split(page, i + 1, text, all);
                text.clear();
            }
        }
        for (std::size_t i = 0; i < lines.size(); ++i)
            if (!fenced[i] && std::regex_match(lines[i], ours)) split(page, i + 1, strip(lines[i]), all);
    }
    return all;
}

std::vector<std::string> words_of_lines(const std::string& text) {
    std::vector<std::string> words;
    std::istringstream in(text);
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

std::string output_of(const std::string& line) {
    std::string text;
    std::FILE* pipe = ::popen((line + " 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    ::pclose(pipe);
    return text;
}

bool has_word(const std::string& text, const std::string& word) {
    return std::regex_search(text, std::regex("(^|[^a-z_-])" + word + "([^a-z_-]|$)"));
}

bool has(const std::vector<std::string>& list, const std::string& word) {
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// What the command lines are checked against.
class checker {
public:
    checker() {
        for (auto all : {catalogue(), examples()})
            for (const auto& a : all) settings_["engram-" + a.name] = a.setting_names();
        settings_["example-own_environment"] = settings_.at("engram-lstm_mem");
        settings_["example-own_sequences"] = settings_.at("engram-bptt_lstm");
        // Other programs of examples/: their flags are checked, their settings are not known here.
        static const std::regex form_of_name("NAMES? ([a-z_ ]+)");
        for (const auto& line : read_lines(root() / "examples/CMakeLists.txt")) {
            std::smatch found;
            if (!std::regex_search(line, found, form_of_name)) continue;
            for (const auto& name : words_of(found[1])) settings_.emplace("engram-" + name, std::vector<std::string>{});
        }
        for (const char* name : {"train", "evaluate", "describe", "sample"}) help_[name] = run({name, "--help"}).out;
        tasks_ = engram::sequence_names();
        const auto list = output_of(std::string(ENGRAM_BIN_DIR) + "/engram-tasks list");
        static const std::regex form("(^|\n)([a-z_]+): ");
        for (std::sregex_iterator at(list.begin(), list.end(), form), end; at != end; ++at) tasks_.push_back((*at)[2]);
        REQUIRE(tasks_.size() > 20);
        tasks_.insert(tasks_.end(), {"match_to_sample", "csv_series"});  // of examples/own_*.hpp
        dev_ = output_of((root() / "dev").string() + " help");
    }

    void check(command c) {
        // What a launcher starts is a command of its own.
        if (c.words[0] == "mpirun" && c.words.size() > 3 && c.words[1] == "-n")
            c.words.erase(c.words.begin(), c.words.begin() + 3);
        const auto& name = c.words[0];
        const auto last = name.substr(name.rfind('/') + 1);
        if (name == "./dev") return check_dev(c);
        if (name.starts_with("build/bin/")) {
            if (settings_.count(last)) return check_program(c, last);
            if (last.starts_with("engram-")) return check_other(c, last);
            const auto dash = last.find('-');
            const auto folder = last.substr(0, dash) + "s";
            CHECK_MESSAGE((folder == "benchmarks" || folder == "examples"), name, " is no program of this checkout");
            CHECK_MESSAGE(fs::exists(root() / folder / (last.substr(dash + 1) + ".cpp")), name, " has no source");
            return;
        }
        if (name.starts_with("docs/") || name.starts_with("benchmarks/")) {
            CHECK_MESSAGE(fs::exists(root() / name), name, " does not exist");
            return;
        }
        // Commands of the system, whose words are theirs; a script or program of ours cannot hide among them.
        static const std::vector<std::string> known{"cmake", "ctest", "git", "cd",      "g++",
                                                    "cat",   "bash",  "awk", "xdg-open"};
        CHECK_MESSAGE(has(known, name), name, ": nobody checks this command");
    }

    /// A campaign's file, the lines of which engram-campaign takes: programs, tasks, presets and settings exist.
    void check_campaign(const std::string& file) {
        const auto programs = words_of_lines(
            output_of(std::string(ENGRAM_BIN_DIR) + "/engram-campaign " + (root() / file).string() + " --programs"));
        for (const auto& name : programs)
            CHECK_MESSAGE((settings_.count(name) || name == "engram-report"), file, ": ", name, " is no program");
        std::size_t number = 0;
        for (auto line : read_lines(root() / file)) {
            ++number;
            INFO(file, ":", number, ": ", line);
            const auto equals = line.find('=');
            if (line.starts_with("#") || equals == line.npos) continue;
            auto key = strip(line.substr(0, equals));
            if (const auto colon = key.find(": "); colon != key.npos) key = key.substr(colon + 2);
            const bool known = std::any_of(programs.begin(), programs.end(), [&](const auto& program) {
                return settings_.count(program) && has_setting(program, key);
            });
            if (key.find('.') != key.npos) CHECK_MESSAGE(known, "none of its programs has a setting ", key);
            for (const auto& value : words_of(line.substr(equals + 1))) {
                if (key == "tasks") check_task(value);
                if (key == "preset") check_preset(value);
            }
        }
    }

    /// Those of the library; every one is told of on the page of tasks.
    void check_tasks(const std::vector<std::string>& page) const {
        const auto text = joined(page);
        for (const auto& task : tasks_)
            if (task != "match_to_sample" && task != "csv_series")
                CHECK_MESSAGE(text.find("| `" + task + "` |") != text.npos, "docs/guide/task.md says nothing of ",
                              task);
    }

private:
    void check_dev(const command& c) {
        REQUIRE(c.words.size() > 1);
        CHECK_MESSAGE(std::regex_search(dev_, std::regex("\n  " + c.words[1] + "[ \n]")), "./dev has no subcommand ",
                      c.words[1]);
        for (std::size_t i = 2; i < c.words.size(); ++i) {
            const auto& word = c.words[i];
            if (word.starts_with("--")) CHECK_MESSAGE(has_word(dev_, word), "./dev ", c.words[1], " has no ", word);
            if (c.words[1] == "build") check_target(word);
            if (word.ends_with(".campaign")) CHECK_MESSAGE(fs::exists(root() / word), word, " does not exist");
        }
    }
    void check_target(const std::string& target) {
        if (target.starts_with("benchmark-"))
            CHECK_MESSAGE(fs::exists(root() / "benchmarks" / (target.substr(10) + ".cpp")), target);
        else if (target.starts_with("engram-"))
            CHECK_MESSAGE((settings_.count(target) == 1 || fs::exists(root() / "programs" / target.substr(7))), target);
        else
            CHECK_MESSAGE(
                fs::exists(root() / "examples" / (target.substr(std::min<std::size_t>(8, target.size())) + ".cpp")),
                target, " is no target that is known here");
    }

    void check_program(const command& c, const std::string& program) {
        REQUIRE_MESSAGE(c.words.size() > 1, program, " needs a command");
        const auto& subcommand = c.words[1];
        REQUIRE_MESSAGE(help_.count(subcommand), program, " has no command ", subcommand);
        for (std::size_t i = 2; i < c.words.size(); ++i) {
            const auto word = c.words[i].substr(0, c.words[i].find('='));
            const auto next = i + 1 < c.words.size() ? c.words[i + 1] : "";
            if (!word.starts_with("--")) continue;
            if (word.find('.') != word.npos) {
                CHECK_MESSAGE(has_setting(program, word.substr(2)), program, " has no setting ", word.substr(2));
                continue;
            }
            CHECK_MESSAGE(has_word(help_.at(subcommand), word), program, " ", subcommand, " has no flag ", word);
            if (word == "--set")
                CHECK_MESSAGE(has_setting(program, next.substr(0, next.find('='))), program, " has no setting ", next);
            if (word == "--task") check_task(next);
            if (word == "--preset") check_preset(next);
        }
    }

    bool has_setting(const std::string& program, const std::string& name) const {
        const auto& names = settings_.at(program);
        return names.empty() || has(names, name);
    }

    /// engram-tasks, engram-report and engram-campaign, asked themselves.
    void check_other(const command& c, const std::string& program) {
        const std::string path = std::string(ENGRAM_BIN_DIR) + "/" + program;
        REQUIRE_MESSAGE(fs::exists(path), program, " is no program");
        std::string about = path;
        if (program == "engram-tasks") {
            REQUIRE(c.words.size() > 1);
            CHECK_MESSAGE(has_word(output_of(path + " --help"), c.words[1]), program, " has no command ", c.words[1]);
            about += " " + c.words[1];
        }
        const auto help = output_of(about + " --help");
        for (std::size_t i = 1; i < c.words.size(); ++i) {
            const auto word = c.words[i].substr(0, c.words[i].find('='));
            if (word.starts_with("--")) CHECK_MESSAGE(has_word(help, word), about, " has no flag ", word);
            if (word == "--task") check_task(c.words[i + 1]);
            if (word.ends_with(".campaign")) CHECK_MESSAGE(fs::exists(root() / word), word, " does not exist");
        }
    }

    void check_task(const std::string& task) {
        if (task == "T" || task == "TASK") return;  // stands for any
        CHECK_MESSAGE(has(tasks_, task), "there is no task ", task);
    }

    void check_preset(const std::string& name) {
        const auto& all = engram::presets();
        const bool known = std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.name == name; });
        CHECK_MESSAGE((known || name == "P"), "there is no preset ", name);
    }

    std::map<std::string, std::vector<std::string>> settings_;
    std::map<std::string, std::string> help_;
    std::vector<std::string> tasks_;
    std::string dev_;
};

}  // namespace

TEST_CASE("commands of the pages exist, with their flags") {
    checker all;
    int checked = 0;
    for (const auto& c : commands()) {
        std::string text;
        for (const auto& word : c.words) text += word + " ";
        INFO(c.page, ":", c.line, ": ", text);
        all.check(c);
        ++checked;
    }
    CHECK(checked > 60);
}

TEST_CASE("the campaigns of the results name programs, tasks and settings that exist") {
    checker all;
    int checked = 0;
    for (const auto& entry : fs::directory_iterator(root() / "docs/results")) {
        if (entry.path().extension() != ".campaign") continue;
        all.check_campaign("docs/results/" + entry.path().filename().string());
        ++checked;
    }
    CHECK(checked > 10);
}

TEST_CASE("the page of tasks has every task") {
    checker().check_tasks(read_lines(root() / "docs/guide/task.md"));
}

TEST_CASE("programs that stand alone help whoever asks, or asks for nothing") {
    for (const char* program : {"engram-tasks", "engram-report", "engram-campaign"})
        for (const char* asked : {"", " help", " --help", " -h"}) {
            std::string text =
                output_of("cd / && " + std::string(ENGRAM_BIN_DIR) + "/" + program + asked + "; echo =$?");
            CAPTURE(program);
            CAPTURE(asked);
            CHECK(text.ends_with("=0\n"));
            CHECK(has_word(text, program == std::string("engram-tasks")    ? "list"
                                 : program == std::string("engram-report") ? "--measure-references"
                                                                           : "--dry-run"));
        }
}
