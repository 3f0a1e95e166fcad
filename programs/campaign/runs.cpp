// SPDX-License-Identifier: MIT

// The runs of a campaign as child processes. The log of a run is its lock: this program and the child hold it as one
// open file, so that it is held until both are gone, whichever ends first, and nobody starts the run a second time.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include <engram/evaluate/comparison_table.hpp>

#include "campaign.hpp"

namespace engram {

namespace {

volatile std::sig_atomic_t asked_to_stop = 0;

void note_signal(int) {
    asked_to_stop = asked_to_stop + 1;
}

void catch_signals() {
    struct sigaction action {};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    struct sigaction before {};
    sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup
    std::signal(SIGPIPE, SIG_IGN);
    // A child that ends wakes who sleeps.
    action.sa_handler = [](int) {};
    sigaction(SIGCHLD, &action, nullptr);
}

void make_folder(const std::string& path) {
    std::error_code problem;
    if (!path.empty()) std::filesystem::create_directories(path, problem);
    require(!problem, "cannot make the folder ", path, ": ", problem.message());
}

/// The run's log, locked; -1 where somebody else has it.
int lock(const planned_run& run) {
    make_folder(run.folder);
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

std::string scores(const run_progress& finished) {
    return finished.remark.empty() ? "" : ": " + finished.remark;
}

class runner {
public:
    runner(campaign& all, int jobs) : all_(all), jobs_(jobs), now_(all.runs.size()), children_(all.runs.size()) {
        for (std::size_t i = 0; i < all.runs.size(); ++i) {
            now_[i] = progress_of(all.runs[i]);
            // Whatever became of it before, it is tried again, once.
            if (now_[i].state != run_state::finished) now_[i].state = run_state::waiting;
        }
    }

    runner(const runner&) = delete;
    runner& operator=(const runner&) = delete;
    /// Nobody is left behind by an error.
    ~runner() {
        for (const auto& c : children_)
            if (c.process > 0) ::kill(c.process, SIGTERM);
        for (const auto& c : children_)
            while (c.process > 0 && ::waitpid(c.process, nullptr, 0) < 0 && errno == EINTR) {
            }
    }

    int go() {
        catch_signals();
        display_.event(headline(all_, now_, jobs_));
        int signals = 0;
        while (true) {
            for (std::size_t i = 0; i < children_.size(); ++i) reap(i);
            for (; signals < asked_to_stop; ++signals) {
                if (signals == 0 && running() > 0) display_.event("stopping: every run writes a checkpoint first");
                for (const auto& c : children_)
                    if (c.process > 0) ::kill(c.process, SIGTERM);
            }
            if (signals == 0)
                for (std::size_t i = 0; i < children_.size(); ++i) try_to_start(i);
            if (running() == 0 && (signals > 0 || count(run_state::waiting) + count(run_state::elsewhere) == 0)) break;
            display_.show(all_, now_, jobs_, false);
            const timespec little{0, 200'000'000};
            ::nanosleep(&little, nullptr);
        }
        display_.show(all_, now_, jobs_, true);
        if (signals > 0) return 130;
        return count(run_state::failed) > 0 ? 1 : 0;
    }

private:
    struct child {
        ::pid_t process = -1;
        int log = -1;
    };

    int count(run_state state) const {
        return static_cast<int>(std::count_if(now_.begin(), now_.end(), [&](auto& r) { return r.state == state; }));
    }
    int running() const { return count(run_state::running); }

    void fails(std::size_t i, const std::string& why) {
        now_[i].state = run_state::failed;
        now_[i].remark = why;
        display_.event("failed    " + all_.runs[i].folder + ": " + why);
    }

    void try_to_start(std::size_t i) {
        auto& now = now_[i];
        const auto& run = all_.runs[i];
        if (running() >= jobs_ || (now.state != run_state::waiting && now.state != run_state::elsewhere)) return;
        if (run.needs >= 0) {
            const auto other = now_[static_cast<std::size_t>(run.needs)].state;
            if (other == run_state::failed) fails(i, "the run whose weights it begins with has failed");
            if (other != run_state::finished) return;
        }
        child c;
        try {
            c.log = lock(run);
            if (c.log < 0) {
                if (now.state == run_state::waiting)
                    display_.event("elsewhere " + run.folder + ": somebody else runs it");
                now.state = run_state::elsewhere;
                return;
            }
            check_folder(run);  // who had it before may have left another run
            now = progress_of(run);
            if (now.state == run_state::finished) {
                ::close(c.log);
                display_.event("finished  " + run.folder + scores(now) + " (elsewhere)");
                return;
            }
            auto words = run.words();
            words.insert(words.begin(), "train");
            words.insert(words.end(), {"--out", run.folder, "--resume", "--quiet"});
            std::string command = "+ engram-" + run.program;
            for (const auto& word : words) command += " " + word;
            note(c.log, command);
            c.process = start(run.program, words, c.log);
            now.state = run_state::running;
            now.remark.clear();
            display_.event(
                (exists_on_disk(run.folder + "/checkpoint/latest.safetensors") ? "resumed   " : "started   ") +
                run.folder);
            children_[i] = c;
        } catch (const error& problem) {
            if (c.log >= 0) ::close(c.log);
            fails(i, problem.what());
        }
    }

    void reap(std::size_t i) {
        auto& c = children_[i];
        int status = 0;
        if (c.process <= 0 || ::waitpid(c.process, &status, WNOHANG) != c.process) return;
        c.process = -1;
        const auto& run = all_.runs[i];
        std::string why = WIFSIGNALED(status) ? "killed by signal " + std::to_string(WTERMSIG(status))
                                              : "exit code " + std::to_string(WEXITSTATUS(status));
        const bool ended = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        const bool interrupted = asked_to_stop > 0 && (WIFSIGNALED(status) || WEXITSTATUS(status) == 130);
        now_[i] = progress_of(run);
        if (now_[i].state == run_state::finished && ended) {
            display_.event("finished  " + run.folder + scores(now_[i]));
        } else if (interrupted) {
            now_[i].state = run_state::stopped;
            display_.event("stopped   " + run.folder);
        } else {
            const std::string line = last_line(log_of(run));
            if (!line.starts_with("+ ")) why += ": " + line;
            if (ended) why += "; it ended without a summary of a finished run";
            note(c.log, "failed: " + why);
            fails(i, why);
        }
        ::close(c.log);
    }

    campaign& all_;
    int jobs_;
    std::vector<run_progress> now_;
    std::vector<child> children_;
    campaign_display display_;
};

std::string cell(const json& object, const char* key) {
    const bool there = object.contains(key) && object[key].is_number();
    return there ? significant(object[key].get<double>(), 8) : "";
}

/// One row a run and level.
std::string rows_of(const campaign& all, const std::vector<const planned_run*>& runs) {
    std::string out = "# From the summaries of these runs, by engram-campaign " +
                      std::filesystem::path(all.file).filename().string() + ".\nprogram,task,seed";
    if (all.has_sections) out += ",section";
    auto varied = all.varied;
    std::erase(varied, "steps");  // has a column of its own
    for (const auto& key : varied) out += "," + csv_cell(key);
    out += ",level,unit,episodes,reward,standard_error,random,maximum,steps,seconds,processor_seconds\n";
    for (const auto* run : runs) {
        const auto summary = finished_summary(*run);
        std::string front = csv_cell(run->program) + "," + csv_cell(run->task) + "," + std::to_string(run->seed);
        if (all.has_sections) front += "," + csv_cell(run->section);
        for (const auto& key : varied) {
            const auto at = std::find_if(run->values.begin(), run->values.end(), [&](auto& v) { return v.key == key; });
            front += "," + (at == run->values.end() ? "" : csv_cell(at->value));
        }
        const std::string back = "," + cell(*summary, "steps") + "," + cell(*summary, "wall_seconds") + "," +
                                 cell(*summary, "cpu_seconds") + "\n";
        if ((*summary)["levels"].empty()) out += front + ",,,,,,," + back;  // it was not judged
        for (const auto& [level, score] : (*summary)["levels"].items())
            out += front + "," + csv_cell(level) + "," + csv_cell(score.value("unit", "")) + "," +
                   cell(score, "episodes") + "," + cell(score, "mean") + "," + cell(score, "stderr") + "," +
                   cell(score, "random") + "," + cell(score, "maximum") + back;
    }
    return out;
}

}  // namespace

int run_campaign(campaign& all, int jobs) {
    return runner(all, jobs).go();
}

int write_results(const campaign& all) {
    // In the order of the file, a page for each name that the pattern gives.
    std::vector<std::pair<std::string, std::vector<const planned_run*>>> reports, tables;
    const auto add = [](auto& groups, const std::string& path, const planned_run& run) {
        if (path.empty()) return;
        auto at = std::find_if(groups.begin(), groups.end(), [&](auto& group) { return group.first == path; });
        if (at == groups.end()) at = groups.insert(groups.end(), {path, {}});
        at->second.push_back(&run);
    };
    for (const auto& run : all.runs) {
        if (!finished_summary(run)) continue;
        add(reports, run.report, run);
        add(tables, run.results, run);
    }
    for (const auto& [path, runs] : tables) {
        make_folder(std::filesystem::path(path).parent_path().string());
        write_file(path, rows_of(all, runs));
        std::printf("%s\n", path.c_str());
    }
    for (const auto& [path, runs] : reports) {
        make_folder(std::filesystem::path(path).parent_path().string());
        std::vector<std::string> words{"--out", path};
        for (const auto* run : runs) words.push_back(run->folder);
        std::fflush(stdout);
        const int code = wait_for("report", words, -1);
        require(code == 0, "engram-report ended with status ", code, "; there is no new ", path);
    }
    return 0;
}

}  // namespace engram
