// SPDX-License-Identifier: MIT

// What programs say to a run before it starts, and what its folder tells of it.

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include <engram/evaluate/names.hpp>
#include <engram/io/csv.hpp>
#include <engram/program/later_settings.hpp>

#include "campaign.hpp"

extern char** environ;

namespace engram {

namespace {

void require_program(const std::string& place, const std::string& name) {
    const bool other = name == "campaign" || name == "report" || name == "tasks";
    if (!other && ::access((program_folder() + "engram-" + name).c_str(), X_OK) == 0) return;
    std::vector<std::string> known;
    for (const auto& a : ablation_names) {
        if (a.name == name) fail(place, ": engram-", name, " is not built: there is none in ", program_folder());
        known.emplace_back(a.name);
    }
    fail(place, ": unknown program '", name, "'", instead_of(name, known));
}

/// The place of the line that a program's sentence speaks of: the longest key that it names, else the task's.
std::string place_of(const planned_run& run, const std::string& sentence) {
    const campaign_line* best = nullptr;
    for (const auto& value : run.values)
        if (sentence.find(value.key) != sentence.npos && (!best || value.key.size() > best->key.size())) best = &value;
    return best ? best->place : run.task_place;
}

using flat_json = std::map<std::string, std::string>;
/// What determines a run; the data may have moved, and a version is no setting.
flat_json determined_by(const json& configuration) {
    flat_json all;
    for_each_leaf(configuration, [&](const std::string& name, const json& value) { all[name] = json_word(value); });
    all.erase("engram");
    all.erase("settings.task.data");
    return all;
}

/// How many processes there are would decide how many shards a run has, and the program is asked as one.
void require_shards(const planned_run& run) {
    if (run.launch.value.empty()) return;
    const flat_json asked = determined_by(run.configuration);
    const auto of_sequences = asked.find("settings.sequence.shards");
    const std::string key =
        of_sequences != asked.end() && of_sequences->second != "0" ? "sequence.shards" : "rollout.shards";
    for (const auto& value : run.values)
        if (value.key == key) return;
    fail(run.launch.place, ": 'launch' needs a line '", key,
         " = N', of how many parts the run is, whatever number of processes carries them");
}

double number_at(const json& object, const char* key) {
    return object.contains(key) && object[key].is_number() ? object[key].get<double>() : 0;
}

/// Step and steps a second of the last row of metrics.csv.
void read_metrics(const std::string& path, run_progress& to) {
    if (!exists_on_disk(path)) return;
    const bytes content = read_file(path);
    const auto text = whole_lines({reinterpret_cast<const char*>(content.data()), content.size()});
    const auto header = text.substr(0, text.find('\n') + 1), rows = text.substr(header.size());
    if (rows.empty()) return;
    const auto last = rows.substr(rows.rfind('\n', rows.size() - 2) + 1);
    csv_table table;
    try {
        table = parse_csv(std::string(header) + std::string(last), path);
    } catch (const error&) {
        return;  // a display goes on without; the report tells of it
    }
    if (table.rows.empty()) return;
    const auto number = [&](std::string_view name) {
        return csv_number(table.cell(table.rows[0], name)).value_or(NAN);
    };
    if (const double step = number("step"); step >= 0) to.step = static_cast<std::int64_t>(step);
    if (const double rate = number("steps_per_second"); rate >= 0) to.rate = rate;
}

/// Where the scheduler shares processors among sessions first (Linux's autogroup), a process's priority says nothing to
/// those of other sessions. Its session's does, which may be changed ten times a second.
void lower_session(::pid_t leader, int priority) {
    const std::string path = "/proc/" + std::to_string(leader) + "/autogroup", text = std::to_string(priority);
    for (int tries = 0; tries < 5; ++tries) {
        const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
        if (file < 0) return;
        const bool done = ::write(file, text.data(), text.size()) >= 0 || errno != EAGAIN;
        ::close(file);
        if (done) return;
        ::usleep(100'000);
    }
}

}  // namespace

const std::string& program_folder() {
    static const std::string folder = [] {
        std::error_code problem;
        const auto self = std::filesystem::read_symlink("/proc/self/exe", problem);
        require(!problem, "cannot tell where this program lies: ", problem.message());
        return self.parent_path().string() + "/";
    }();
    return folder;
}

::pid_t start(const std::vector<std::string>& command, int output, int input) {
    auto texts = command;
    std::vector<char*> argv;
    for (auto& text : texts) argv.push_back(text.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    if (input >= 0)
        posix_spawn_file_actions_adddup2(&files, input, 0);
    else
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (output >= 0)
        for (const int stream : {1, 2}) posix_spawn_file_actions_adddup2(&files, output, stream);
    // A Ctrl-C is for this program alone, which passes it on.
    const int priority = ::getpriority(PRIO_PROCESS, 0);
    posix_spawnattr_setflags(&how, (priority > 0 ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP) | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&how, 0);
    ::sigset_t usual;
    sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) sigaddset(&usual, signal);
    posix_spawnattr_setsigdefault(&how, &usual);
    ::pid_t child = -1;
    const int problem = ::posix_spawnp(&child, argv[0], &files, &how, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    require(problem == 0, "cannot start ", command[0], ": ", std::strerror(problem));
    if (priority > 0) lower_session(child, priority);
    return child;
}

bool on_path(const std::string& name) {
    if (name.find('/') != name.npos) return ::access(name.c_str(), X_OK) == 0;
    const char* folders = std::getenv("PATH");
    std::istringstream in(folders ? folders : "");
    for (std::string folder; std::getline(in, folder, ':');)
        if (::access(((folder.empty() ? "." : folder) + "/" + name).c_str(), X_OK) == 0) return true;
    return false;
}

int wait_for(::pid_t process) {
    int status = 0;
    while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

answer ask(const std::vector<std::string>& command, const std::string& input) {
    // What it is to read lies in a file without a name: nobody waits for anybody.
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> question(nullptr, std::fclose);
    if (!input.empty()) {
        question.reset(std::tmpfile());
        require(question && std::fwrite(input.data(), 1, input.size(), question.get()) == input.size() &&
                    std::fflush(question.get()) == 0,
                "cannot write a temporary file: ", std::strerror(errno));
        std::rewind(question.get());
    }
    std::array<int, 2> ends{};
    require(::pipe2(ends.data(), O_CLOEXEC) == 0, "cannot make a pipe: ", std::strerror(errno));
    ::pid_t child = -1;
    try {
        child = start(command, ends[1], question ? ::fileno(question.get()) : -1);
    } catch (...) {
        for (const int end : ends) ::close(end);
        throw;
    }
    ::close(ends[1]);
    answer given;
    std::array<char, 4096> part{};
    for (ssize_t got; (got = ::read(ends[0], part.data(), part.size())) != 0;) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        given.text.append(part.data(), static_cast<std::size_t>(got));
    }
    ::close(ends[0]);
    given.code = wait_for(child);
    return given;
}

void check_campaign(campaign& all) {
    std::map<std::vector<std::string>, json> asked;
    for (auto& run : all.runs) {
        // Seeds change nothing but the seed: one question serves all of them.
        auto words = run.words();
        words[3] = "1";
        words.insert(words.begin(), run.program);
        auto found = asked.find(words);
        if (found == asked.end()) {
            require_program(run.program_place, run.program);
            std::vector<std::string> question{program_folder() + "engram-" + run.program, "train", "--dry-run"};
            question.insert(question.end(), words.begin() + 1, words.end());
            const answer given = ask(question);
            if (given.code != 0) {
                std::string sentence = given.text.substr(0, given.text.find('\n'));
                if (sentence.empty())
                    sentence =
                        "engram-" + run.program + " says nothing and ends with status " + std::to_string(given.code);
                fail(place_of(run, sentence), ": ", sentence);
            }
            found = asked.emplace(words, parse_json(given.text, "engram-" + run.program + " train --dry-run")).first;
        }
        run.configuration = found->second;
        run.configuration["seed"] = run.seed;
        require_shards(run);
    }
    for (const auto& run : all.runs) {
        check_folder(run);
        (void)finished_summary(run);  // a file that cannot be read is told of now
    }
    const bool reports = std::any_of(all.runs.begin(), all.runs.end(), [](auto& run) { return !run.report.empty(); });
    require(!reports || ::access((program_folder() + "engram-report").c_str(), X_OK) == 0, all.file,
            ": 'report' needs engram-report, and there is none in ", program_folder());
}

void check_folder(const planned_run& run) {
    const std::string config = run.folder + "/config.json";
    if (!exists_on_disk(config)) {
        require(!exists_on_disk(run.folder + "/summary.json"), run.folder,
                ": there is a summary.json and no config.json, so nobody knows of what; name another 'out'");
        return;
    }
    const auto recorded = determined_by(read_json(config)), asked = determined_by(run.configuration);
    const auto refuse = [&](const std::string& name, const std::string& found, const std::string& wanted) {
        const std::string plain = name.starts_with("settings.") ? name.substr(9) : name;
        fail(run.folder, " holds a run with ", plain, " = ", found, ", and this campaign asks for ", wanted,
             "; name another 'out', or remove the folder");
    };
    for (const auto& [name, value] : asked) {
        const auto at = recorded.find(name);
        const std::string found = at != recorded.end() ? at->second : value_before(name).value_or("(nothing)");
        if (found != value) refuse(name, found, value);
    }
    for (const auto& [name, value] : recorded)
        if (!asked.contains(name)) refuse(name, value, "nothing of that name");
}

std::string log_of(const planned_run& run) {
    return run.folder + "/log.txt";
}

void make_folders(const std::string& path) {
    std::error_code problem;
    if (!path.empty()) std::filesystem::create_directories(path, problem);
    require(!problem, "cannot make the folder ", path, ": ", problem.message());
}

int lock(const planned_run& run) {
    make_folders(run.folder);
    const int log = ::open(log_of(run).c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    require(log >= 0, "cannot write ", log_of(run), ": ", std::strerror(errno));
    if (::flock(log, LOCK_EX | LOCK_NB) == 0) return log;
    const int reason = errno;
    ::close(log);
    require(reason == EWOULDBLOCK, "cannot lock ", log_of(run), ": ", std::strerror(reason));
    return -1;
}

void note(int log, const std::string& line) {
    const std::string text = line + "\n";
    if (::write(log, text.data(), text.size()) < 0) return;  // a full disk; the run has said so too
}

std::string last_of(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text.substr(text.find_last_of("\n\r") == text.npos ? 0 : text.find_last_of("\n\r") + 1);
}

std::string last_line(const std::string& path) {
    if (!exists_on_disk(path)) return "";
    const bytes content = read_file(path);
    return last_of({content.begin(), content.end()});
}

std::optional<json> finished_summary(const planned_run& run) {
    const std::string path = run.folder + "/summary.json";
    if (!exists_on_disk(path)) return {};
    json summary = read_json(path);
    require(summary.is_object(), path, ": expected an object");
    const auto finished = summary.find("finished"), levels = summary.find("levels");
    if (finished != summary.end())
        require(finished->is_boolean(), path, ": 'finished' must be true or false, got ",
                finished->dump(-1, ' ', false, json::error_handler_t::replace));
    if (levels != summary.end()) {
        require(levels->is_object(), path, ": 'levels' must be an object from level name to result");
        for (const auto& [level, result] : levels->items())
            require(result.is_object(), path, ": level '", level, "' must be an object");
    }
    // Who was stopped behind the last step has not been judged yet.
    const bool judged = run.configuration.value("evaluation_episodes", 0) == 0 || !summary["levels"].empty();
    if (!summary.value("finished", false) || !judged) return {};
    return summary;
}

run_progress progress_of(const planned_run& run) {
    run_progress now;
    if (const auto summary = finished_summary(run)) {
        now.state = run_state::finished;
        now.step = static_cast<std::int64_t>(number_at(*summary, "steps"));
        now.rate = number_at(*summary, "steps_per_second");
        now.seconds = number_at(*summary, "wall_seconds");
        for (const auto& [level, score] : (*summary)["levels"].items()) {
            // null: the score was not finite
            const auto mean = score.find("mean");
            const bool known = mean != score.end() && mean->is_number();
            now.remark += fmt::format("{}{} {}", now.remark.empty() ? "" : ", ", level,
                                      known ? fmt::format("{:.4g}", mean->get<double>()) : "-");
        }
        return now;
    }
    const int log = ::open(log_of(run).c_str(), O_RDONLY | O_CLOEXEC);
    if (log < 0) return now;
    read_metrics(run.folder + "/metrics.csv", now);
    const bool is_free = ::flock(log, LOCK_SH | LOCK_NB) == 0;
    ::close(log);
    now.state = is_free ? run_state::stopped : run_state::elsewhere;
    now.remark = is_free ? last_line(log_of(run)) : "";
    if (is_free && now.remark.empty() && now.step == 0)
        now.state = run_state::waiting;  // a log that was locked, no more
    for (const std::string sign :
         {"failed: ", "engram-campaign: "})  // the second: a task of Slurm's that started nothing
        if (now.remark.starts_with(sign)) {
            now.state = run_state::failed;
            now.remark = now.remark.substr(sign.size());
        }
    return now;
}

}  // namespace engram
