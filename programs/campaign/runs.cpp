// SPDX-License-Identifier: MIT

// The runs of a campaign as child processes. The log of a run is its lock: this program and the child hold it as one
// open file, so that it is held until both are gone, whichever ends first, and nobody starts the run a second time.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
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
#include <engram/evaluate/mmer.hpp>
#include <engram/evaluate/retrieval.hpp>

#include "campaign.hpp"
#include "results.hpp"

namespace engram {

namespace {

volatile std::sig_atomic_t asked_to_stop = 0, ended_by_slurm = 0, time_is_up = 0;

void note_signal(int) {
    asked_to_stop = asked_to_stop + 1;
}

void catch_signals(bool is_task) {
    struct sigaction action {};
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    struct sigaction before {};
    sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup
    std::signal(SIGPIPE, SIG_IGN);
    if (is_task) {
        action.sa_handler = [](int) { ended_by_slurm = 1; };
        sigaction(SIGTERM, &action, nullptr);
        action.sa_handler = [](int) {
            time_is_up = 1;
            asked_to_stop = 1;
        };
        sigaction(SIGUSR1, &action, nullptr);
    }
    // A child that ends wakes who sleeps.
    action.sa_handler = [](int) {};
    sigaction(SIGCHLD, &action, nullptr);
}

std::string scores(const run_progress& finished) {
    return finished.remark.empty() ? "" : ": " + finished.remark;
}

/// Slurm ends every process of a task by SIGTERM, so that a run has heard it too: only if it still goes on after these
/// seconds is it told again. (mpirun takes a second signal within five of them for impatience.)
constexpr double direct_signals = 6;
/// A task waits this long for a run that somebody else has; its processors are not its own.
constexpr double task_patience = 60;
/// Seconds between two questions whether Slurm still has a run.
constexpr double slurm_pause = 15;

class runner {
public:
    runner(campaign& all, int jobs, bool is_task)
        : all_(all), jobs_(jobs), is_task_(is_task), now_(all.runs.size()), children_(all.runs.size()) {
        for (std::size_t i = 0; i < all.runs.size(); ++i) {
            now_[i] = progress_of(all.runs[i]);
            // Whatever became of it before, it is tried again, once.
            if (now_[i].state != run_state::finished)
                now_[i].state = all.runs[i].chosen ? run_state::waiting : run_state::stopped;
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
        catch_signals(is_task_);
        display_.event(headline(all_, now_, jobs_));
        const double began = seconds_now();
        double told = 0;
        int signals = 0;
        while (true) {
            if (ended_by_slurm && told == 0) {
                told = seconds_now();
                stopping_ = true;
            }
            for (std::size_t i = 0; i < children_.size(); ++i) reap(i);
            if (told > 0 && signals == 0 && seconds_now() - told > direct_signals) asked_to_stop = 1;
            for (; signals < asked_to_stop; ++signals) {
                stopping_ = true;
                if (signals == 0 && running() > 0) display_.event("stopping: every run writes a checkpoint first");
                for (std::size_t i = 0; i < children_.size(); ++i) tell(i);
            }
            if (!stopping_)
                for (std::size_t i = 0; i < children_.size(); ++i) try_to_start(i);
            const bool open = count(run_state::waiting) + count(run_state::elsewhere) > 0;
            const bool patient = !is_task_ || seconds_now() - began < task_patience;
            if (running() == 0 && (stopping_ || !open || !patient)) break;
            display_.show(all_, now_, jobs_, false);
            const timespec little{0, 200'000'000};
            ::nanosleep(&little, nullptr);
        }
        display_.show(all_, now_, jobs_, true);
        for (std::size_t i = 0; time_is_up && i < now_.size(); ++i)
            if (all_.runs[i].chosen && now_[i].state != run_state::finished && now_[i].state != run_state::failed)
                return requeue();
        if (stopping_) return 130;
        return count(run_state::failed) > 0 ? 1 : 0;
    }

private:
    struct child {
        ::pid_t process = -1;
        int log = -1;
        double next_look = 0;  // at Slurm, which has it
    };

    int count(run_state state) const {
        return static_cast<int>(std::count_if(now_.begin(), now_.end(), [&](auto& r) { return r.state == state; }));
    }
    int running() const { return count(run_state::running); }

    /// To stop. A launcher hands SIGUSR1 on; what it does at SIGTERM leaves a run little time, or none.
    void tell(std::size_t i) const {
        if (children_[i].process > 0)
            ::kill(children_[i].process, all_.runs[i].launch.value.empty() ? SIGTERM : SIGUSR1);
    }

    void fails(std::size_t i, const std::string& why) {
        now_[i].state = run_state::failed;
        now_[i].remark = why;
        display_.event("failed    " + all_.runs[i].folder + ": " + why);
    }

    /// The time that Slurm gave this task has come to its end; the same task goes on later.
    int requeue() const {
        const answer given = ask({"scontrol", "requeue", own_job()});
        if (given.code == 0) return 130;
        const int log = lock(all_.runs.back());
        note(log, "failed: its time was up, and Slurm does not queue it again: " + last_of(given.text));
        ::close(log);
        return 1;
    }

    /// Whether Slurm has the run for another job than this one. A task, which has no time to ask, believes the folder.
    bool is_slurms(std::size_t i) {
        const std::string job = slurm_queue::job_of(all_.runs[i]);
        if (job.empty() || job == own_job()) return false;
        if (is_task_) return true;
        slurm_queue queue;
        queue.ask({&all_.runs[i]});
        const auto state = queue.of(job).state;
        if (state != slurm_queue::job_state::queued && state != slurm_queue::job_state::running) return false;
        children_[i].next_look = seconds_now() + slurm_pause;
        return true;
    }

    void try_to_start(std::size_t i) {
        auto& now = now_[i];
        const auto& run = all_.runs[i];
        if (running() >= jobs_ || (now.state != run_state::waiting && now.state != run_state::elsewhere)) return;
        if (run.needs >= 0) {
            const auto& needed = all_.runs[static_cast<std::size_t>(run.needs)];
            const auto other = now_[static_cast<std::size_t>(run.needs)].state;
            if (other == run_state::failed) fails(i, "the run whose weights it begins with has failed");
            if (other != run_state::finished && !needed.chosen)
                fails(i, "the run whose weights it begins with is not finished: " + needed.folder);
            if (other != run_state::finished) return;
        }
        if (children_[i].next_look > seconds_now()) return;
        child c;
        try {
            c.log = lock(run);
            if (c.log >= 0 && is_slurms(i)) {
                ::close(c.log);
                c.log = -1;
            }
            if (c.log < 0) {
                const bool slurms = children_[i].next_look > 0;
                if (now.state == run_state::waiting)
                    display_.event("elsewhere " + run.folder +
                                   (slurms ? ": Slurm has it as job " + slurm_queue::job_of(run)
                                           : std::string(": somebody else runs it")));
                now.state = run_state::elsewhere;
                return;
            }
            if (slurm_queue::job_of(run) != own_job()) slurm_queue::forget(run);  // a job that has ended
            check_folder(run);  // who had it before may have left another run
            now = progress_of(run);
            if (now.state == run_state::finished) {
                ::close(c.log);
                display_.event("finished  " + run.folder + scores(now) + " (elsewhere)");
                return;
            }
            std::string command = "+";
            for (const auto& word : run.command("engram-" + run.program)) command += " " + word;
            note(c.log, command);
            c.process = start(run.command(program_folder() + "engram-" + run.program), c.log);
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
        // A run may hear of its task's end, and have left, before this program hears of it.
        if (is_task_ && WIFEXITED(status) && WEXITSTATUS(status) == 130) stopping_ = true;
        // A launcher ends as it likes.
        const bool launched = !run.launch.value.empty() && !ended;
        const bool interrupted = stopping_ && (WIFSIGNALED(status) || WEXITSTATUS(status) == 130 || launched);
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
    bool is_task_, stopping_ = false;
    std::vector<run_progress> now_;
    std::vector<child> children_;
    campaign_display display_;
};

std::string cell(const json& object, const char* key) {
    const bool there = object.contains(key) && object[key].is_number();
    return there ? significant(object[key].get<double>(), 8) : "";
}

/// Of the rows of metrics.csv (evaluate/mmer.hpp); empty where nothing acts.
std::string mmer_of(const planned_run& run) {
    const std::string path = run.folder + "/metrics.csv";
    if (!std::filesystem::is_regular_file(path)) return "";
    const bytes file = read_file(path);
    const auto found = mmer(parse_metrics(std::string(file.begin(), file.end()), path));
    return found ? significant(*found, 8) : "";
}

/// Of retrieval.json: percent of the read weight that fell on earlier showings of the same image, and what reading all
/// earlier trials alike would put there; two cells, empty but on the level of that episode.
std::string retrieved_of(const std::optional<retrieval_episode>& episode, const std::string& level) {
    if (!episode || episode->level != level) return ",,";
    const auto found = retrieval_summary(*episode);
    if (!found.share) return ",,";
    return "," + significant(100 * *found.share, 4) + "," + significant(100 * found.uniform, 4);
}

/// What a table says of a run besides which run it is.
constexpr const char* said_of_run[] = {"level",  "unit",       "episodes",  "reward",    "standard_error",
                                       "random", "maximum",    "steps",     "seconds",   "processor_seconds",
                                       "mmer",   "parameters", "read_same", "read_alike"};

/// The value that a run's lines give a flag or setting; null where none does.
const campaign_line* value_of(const planned_run& run, const std::string& key) {
    const auto at = std::find_if(run.values.begin(), run.values.end(), [&](auto& v) { return v.key == key; });
    return at == run.values.end() ? nullptr : &*at;
}

/// The settings that tell rows apart: those that the campaign varies, then columns of an older table that lines of its
/// runs name. Steps have a column of their own.
std::vector<std::string> settings_that_tell(const campaign& all, const std::vector<const planned_run*>& runs,
                                            const std::vector<std::string>& columns) {
    auto telling = all.varied;
    std::erase(telling, "steps");
    std::vector<std::string> others{"program", "task", "seed", "section"};
    others.insert(others.end(), std::begin(said_of_run), std::end(said_of_run));
    others.insert(others.end(), telling.begin(), telling.end());
    for (const auto& column : columns)
        if (std::find(others.begin(), others.end(), column) == others.end() &&
            std::any_of(runs.begin(), runs.end(), [&](auto* run) { return value_of(*run, column) != nullptr; }))
            telling.push_back(column);
    return telling;
}

/// One row a run and level, with a column for each of the settings `telling`.
std::string rows_of(const campaign& all, const std::vector<const planned_run*>& runs,
                    const std::vector<std::string>& telling) {
    std::string out = "# From the summaries of these runs, by engram-campaign " +
                      std::filesystem::path(all.file).filename().string() + ".\nprogram,task,seed";
    if (all.has_sections) out += ",section";
    for (const auto& key : telling) out += "," + csv_cell(key);
    for (const char* column : said_of_run) out += std::string(",") + column;
    out += "\n";
    for (const auto* run : runs) {
        const auto summary = finished_summary(*run);
        std::string front = csv_cell(run->program) + "," + csv_cell(run->task) + "," + std::to_string(run->seed);
        if (all.has_sections) front += "," + csv_cell(run->section);
        for (const auto& key : telling) {
            const auto* line = value_of(*run, key);
            front += "," + (line ? csv_cell(line->value) : "");
        }
        const std::string back = "," + cell(*summary, "steps") + "," + cell(*summary, "wall_seconds") + "," +
                                 cell(*summary, "cpu_seconds") + "," + mmer_of(*run) + "," +
                                 cell(*summary, "parameters");
        std::optional<retrieval_episode> retrieval;
        if (const std::string path = run->folder + "/retrieval.json"; std::filesystem::is_regular_file(path))
            retrieval = parse_retrieval(read_json(path), path);
        if ((*summary)["levels"].empty()) out += front + ",,,,,,," + back + ",,\n";  // it was not judged
        for (const auto& [level, score] : (*summary)["levels"].items())
            out += front + "," + csv_cell(level) + "," + csv_cell(score.value("unit", "")) + "," +
                   cell(score, "episodes") + "," + cell(score, "mean") + "," + cell(score, "stderr") + "," +
                   cell(score, "random") + "," + cell(score, "maximum") + back + retrieved_of(retrieval, level) + "\n";
    }
    return out;
}

/// Held by one process at a time: whoever adds to the same table waits, so that nobody's rows are lost. Its file is
/// gone afterwards; a lock on a file that was removed meanwhile is no lock, and is taken again.
class table_lock {
public:
    explicit table_lock(std::string path) : path_(std::move(path)) {
        for (;;) {
            file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
            require(file_ >= 0, "cannot make '", path_, "': ", std::strerror(errno));
            struct stat held, there;
            const bool locked = ::flock(file_, LOCK_EX) == 0;
            const int trouble = errno;
            if (locked && ::fstat(file_, &held) == 0 && ::stat(path_.c_str(), &there) == 0 &&
                held.st_ino == there.st_ino && held.st_dev == there.st_dev)
                return;
            ::close(file_);
            require(locked || trouble == EINTR, "cannot lock '", path_, "': ", std::strerror(trouble));
        }
    }
    ~table_lock() {
        ::unlink(path_.c_str());
        ::close(file_);
    }
    table_lock(const table_lock&) = delete;
    table_lock& operator=(const table_lock&) = delete;

private:
    std::string path_;
    int file_ = -1;
};

void write_table(const std::string& path, const std::string& rows) {
    make_folders(std::filesystem::path(path).parent_path().string());
    write_file(path, rows);
    std::printf("%s\n", path.c_str());
}

}  // namespace

int run_campaign(campaign& all, int jobs, bool is_task) {
    for (const auto& run : all.runs) {
        const std::string launcher = run.launch.value.substr(0, run.launch.value.find_first_of(" \t"));
        require(launcher.empty() || !run.chosen || finished_summary(run) || on_path(launcher), run.launch.place,
                ": there is no '", launcher, "' on the PATH");
    }
    return runner(all, jobs, is_task).go();
}

int add_results(const campaign& all, const std::string& path) {
    std::vector<const planned_run*> runs;
    for (const auto& run : all.runs)
        if (finished_summary(run)) runs.push_back(&run);
    const std::string folder = std::filesystem::path(path).parent_path().string();
    make_folders(folder);
    const table_lock lock(path + ".lock");
    result_table old;
    if (exists_on_disk(path)) {
        const bytes before = read_file(path);
        old = parse_results({before.begin(), before.end()}, path);
    }
    const auto telling = settings_that_tell(all, runs, old.names.cells);
    std::string rows = rows_of(all, runs, telling);
    if (!old.names.cells.empty()) {
        auto apart = telling;
        if (std::find(all.varied.begin(), all.varied.end(), "steps") != all.varied.end()) apart.push_back("steps");
        rows = merged(old, parse_results(rows, path), apart, path).text();
    }
    write_table(path, rows);
    return 0;
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
    for (const auto& [path, runs] : tables) write_table(path, rows_of(all, runs, settings_that_tell(all, runs, {})));
    for (const auto& [path, runs] : reports) {
        make_folders(std::filesystem::path(path).parent_path().string());
        std::vector<std::string> words{program_folder() + "engram-report", "--out", path};
        for (const auto* run : runs) words.push_back(run->folder);
        std::fflush(stdout);
        const int code = wait_for(start(words, -1));
        require(code == 0, "engram-report ended with status ", code, "; there is no new ", path);
    }
    return 0;
}

}  // namespace engram
