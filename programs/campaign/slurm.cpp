// SPDX-License-Identifier: MIT

// The runs of a campaign as job arrays of Slurm: a task of an array is a run, by this program with --only FOLDER. What
// is queued is Slurm's to know; a run's folder names its job (slurm.txt). The arrays are submitted while the runs' logs
// are locked, and a task leaves a run alone whose folder names another job: nobody starts a run twice.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include <engram/io/file.hpp>

#include "campaign.hpp"

namespace engram {

namespace {

std::string file_of_job(const planned_run& run) {
    return run.folder + "/slurm.txt";
}

/// The number of the array that a job, such as 1234_5, belongs to.
std::string array_of(const std::string& job) {
    return job.substr(0, job.find('_'));
}

bool is_number(const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// What a program of Slurm's says, without who says it.
std::string sentence_of(const std::string& text) {
    std::string line = last_of(text);
    for (const std::string sign : {"error: ", "fatal: "})
        if (const auto at = line.find(sign); at != line.npos) line = line.substr(at + sign.size());
    return line.empty() ? "it says nothing" : line;
}

/// The number of a job in what sbatch says, among what a site has it say besides: 1234, or 1234;cluster.
std::string array_in(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (const std::string number = line.substr(0, line.find(';')); is_number(number)) return number;
    return "";
}

slurm_queue::job_state state_of(const std::string& name) {
    for (const char* ended : {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
                              "PREEMPTED", "REVOKED", "TIMEOUT"})
        if (name == ended) return slurm_queue::job_state::ended;
    for (const char* runs : {"RUNNING", "COMPLETING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED"})
        if (name == runs) return slurm_queue::job_state::running;
    return slurm_queue::job_state::queued;  // PENDING, CONFIGURING, REQUEUED, REQUEUE_HOLD and others that begin so
}

/// How far a run is, with what Slurm says of its job.
run_progress joined(const planned_run& run, const slurm_queue& queue) {
    run_progress now = progress_of(run);
    const std::string job = slurm_queue::job_of(run);
    if (now.state == run_state::finished || job.empty()) return now;
    const auto known = queue.of(job);
    const bool is_free = now.state != run_state::elsewhere;
    const bool stopped = now.state == run_state::stopped || now.state == run_state::waiting;
    if (!queue.is_known()) {
        if (stopped) now.state = run_state::stopped;
        if (stopped) now.remark = "job " + job + " may have it: there is no squeue here to tell";
    } else if (known.state == slurm_queue::job_state::running) {
        now.state = run_state::elsewhere;
        now.remark = "job " + job;
    } else if (known.state == slurm_queue::job_state::queued && is_free) {
        now.state = run_state::queued;
        now.remark = "job " + job;
    } else if (stopped && known.state == slurm_queue::job_state::ended && known.name != "COMPLETED") {
        const bool ended_by_others = known.name == "CANCELLED" || known.name == "PREEMPTED";
        now.state = ended_by_others ? run_state::stopped : run_state::failed;
        const std::string said = last_line(log_of(run));
        now.remark = "job " + job + " ended as " + known.name + (said.empty() || said[0] == '+' ? "" : ": " + said);
    }
    return now;
}

volatile std::sig_atomic_t asked_to_leave = 0;

/// What one call of sbatch queues: runs with the same options.
struct job_array {
    std::vector<std::string> options{};
    std::vector<std::size_t> runs{};
};

class follower {
public:
    follower(campaign& all, const slurm_options& options)
        : all_(all),
          options_(options),
          now_(all.runs.size()),
          tried_(all.runs.size()),
          left_(all.runs.size()),
          jobs_(all.runs.size()) {}

    int go() {
        ask_queue();
        look();
        if (options_.dry_run) {
            for (const auto& array : arrays()) print(array);
            return 0;
        }
        for (const auto& array : arrays()) submit(array.options, array.runs);
        display_.event(headline(all_, now_, at_a_time()));
        if (options_.detach) return count(run_state::failed) > 0 ? 1 : 0;
        struct sigaction action {};
        action.sa_handler = [](int) { asked_to_leave = 1; };
        sigemptyset(&action.sa_mask);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
        std::signal(SIGPIPE, SIG_IGN);
        is_patient_ = true;
        double pause = 1, next = seconds_now() + pause;
        while (!asked_to_leave && !settled()) {
            const timespec little{0, 200'000'000};
            ::nanosleep(&little, nullptr);
            if (seconds_now() >= next) {
                if (ask()) {
                    look();
                    for (const auto& array : arrays())
                        if (submit(array.options, array.runs)) pause = 1;
                }
                next = seconds_now() + pause;
                pause = std::min(30.0, 1.4 * pause);
            }
            display_.show(all_, now_, at_a_time(), false);
        }
        display_.show(all_, now_, at_a_time(), true);
        if (!asked_to_leave) return count(run_state::failed) > 0 ? 1 : 0;
        std::string jobs;
        for (std::size_t i = 0; i < now_.size(); ++i) {
            if (now_[i].state != run_state::queued && now_[i].state != run_state::elsewhere) continue;
            const std::string array = array_of(slurm_queue::job_of(all_.runs[i]));
            if (!array.empty() && (jobs + " ").find(" " + array + " ") == jobs.npos) jobs += " " + array;
        }
        display_.event("the jobs go on; the same command follows them again" +
                       (jobs.empty() ? "" : ", scancel" + jobs + " ends them"));
        return 130;
    }

private:
    std::vector<const planned_run*> pointers() const {
        std::vector<const planned_run*> all;
        for (const auto& run : all_.runs) all.push_back(&run);
        return all;
    }
    int count(run_state state) const {
        return static_cast<int>(std::count_if(now_.begin(), now_.end(), [&](auto& r) { return r.state == state; }));
    }
    int at_a_time() const { return options_.jobs > 0 ? options_.jobs : std::max(1, count(run_state::elsewhere)); }
    bool settled() const {
        for (std::size_t i = 0; i < now_.size(); ++i)
            if (all_.runs[i].chosen && now_[i].state != run_state::finished && now_[i].state != run_state::failed)
                return false;
        return true;
    }

    /// The jobs are read before, so that `submit` sees who gave a run to Slurm while that answered, or later.
    void ask_queue() {
        for (std::size_t i = 0; i < jobs_.size(); ++i) jobs_[i] = slurm_queue::job_of(all_.runs[i]);
        queue_.ask(pointers());
    }

    /// False where Slurm does not answer: it is asked again, and nothing is believed to have ended meanwhile.
    bool ask() {
        try {
            ask_queue();
            trouble_.clear();
        } catch (const error& problem) {
            if (trouble_ != problem.what()) display_.event(std::string(problem.what()) + "; asking again");
            trouble_ = problem.what();
        }
        return trouble_.empty();
    }

    void look() {
        for (std::size_t i = 0; i < now_.size(); ++i) {
            const auto& run = all_.runs[i];
            const auto before = now_[i].state;
            if (before == run_state::finished || (before == run_state::failed && tried_[i])) continue;
            auto seen = joined(run, queue_);
            if (seen.state == run_state::queued || seen.state == run_state::elsewhere) {
                if (!seen.remark.empty()) tried_[i] = true;  // by Slurm
                left_[i] = 0;
            } else if (seen.state != run_state::finished && !run.chosen) {
                seen.state = run_state::stopped;
            } else if (seen.state != run_state::finished && !tried_[i]) {
                seen = {};  // whatever became of it before, it is tried again, once
            } else if (seen.state == run_state::stopped || seen.state == run_state::waiting) {
                judge(i, seen);
            }
            now_[i] = seen;
            if (seen.state == before) continue;
            const std::string job = seen.remark.empty() ? "" : " (" + seen.remark + ")";
            if (seen.state == run_state::finished && is_followed_)
                display_.event("finished  " + run.folder + (seen.remark.empty() ? "" : ": " + seen.remark));
            if (seen.state == run_state::failed) display_.event("failed    " + run.folder + ": " + seen.remark);
            if (seen.state == run_state::elsewhere && seen.remark.empty())
                display_.event("elsewhere " + run.folder + ": somebody else runs it");
            else if (seen.state == run_state::elsewhere)
                display_.event(
                    (exists_on_disk(run.folder + "/checkpoint/latest.safetensors") ? "resumed   " : "started   ") +
                    run.folder + job);
            if (seen.state == run_state::queued)
                display_.event((before == run_state::elsewhere ? "requeued  " : "queued    ") + run.folder + job);
        }
        is_followed_ = true;
    }

    /// Of a run that nobody has and that is not finished: it was preempted, or ended. A disk that is shared may tell of
    /// that later than Slurm does.
    void judge(std::size_t i, run_progress& seen) {
        const std::string job = slurm_queue::job_of(all_.runs[i]);
        const auto known = queue_.of(job);
        if (left_[i] == 0) left_[i] = seconds_now();
        // Whoever opens a folder asks the server of a shared disk anew.
        std::error_code ignored;
        std::filesystem::directory_iterator(all_.runs[i].folder, ignored);
        if (known.name == "PREEMPTED") {
            tried_[i] = false;
            seen = {};
        } else if (seconds_now() - left_[i] < 5) {
            seen = now_[i];
        } else {
            if (known.name.empty()) seen.remark = "job " + job + " is gone: " + seen.remark;
            seen.state = run_state::failed;
        }
    }

    /// What can be queued now.
    std::vector<job_array> arrays() {
        std::vector<job_array> all;
        for (std::size_t i = 0; i < now_.size(); ++i) {
            const auto& run = all_.runs[i];
            if (!run.chosen || now_[i].state != run_state::waiting) continue;
            if (run.needs >= 0) {
                const auto other = now_[static_cast<std::size_t>(run.needs)].state;
                const auto& needed = all_.runs[static_cast<std::size_t>(run.needs)];
                if (other == run_state::failed || (!needed.chosen && other != run_state::finished)) {
                    tried_[i] = true;
                    fails(i, needed.chosen ? "the run whose weights it begins with has failed"
                                           : "the run whose weights it begins with is not finished: " + needed.folder);
                }
                if (other != run_state::finished) continue;
            }
            const auto options = options_of(run);
            auto at = std::find_if(all.begin(), all.end(), [&](auto& array) {
                return array.options == options && array.runs.size() < most_tasks();
            });
            if (at == all.end()) at = all.insert(all.end(), {options, {}});
            at->runs.push_back(i);
        }
        return all;
    }

    void fails(std::size_t i, const std::string& why) {
        now_[i].state = run_state::failed;
        now_[i].remark = why;
        display_.event("failed    " + all_.runs[i].folder + ": " + why);
    }

    /// Each run's log is held open while its array is submitted; and Slurm has a limit of a thousand, where nobody set
    /// another one.
    static std::size_t most_tasks() {
        rlimit files{};
        const bool is_known = ::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY;
        return std::clamp<std::size_t>(is_known ? static_cast<std::size_t>(files.rlim_cur) - 64 : 900, 1, 900);
    }

    std::vector<std::string> options_of(const planned_run& run) const {
        std::vector<std::string> all{"--job-name=" + all_.stem, "--requeue", "--signal=B:USR1@60", "--open-mode=append",
                                     "--output=/dev/null"};
        for (const auto& value : run.values)
            if (value.key == "threads") all.push_back("--cpus-per-task=" + value.value);
        std::istringstream own(run.slurm.value);
        for (std::string word; own >> word;) all.push_back(word);
        return all;
    }

    std::vector<std::string> command_of(const std::vector<std::string>& options, std::size_t tasks) const {
        std::vector<std::string> all{"sbatch", "--parsable", "--array=0-" + std::to_string(tasks - 1)};
        if (options_.jobs > 0) all.back() += "%" + std::to_string(options_.jobs);
        all.insert(all.end(), options.begin(), options.end());
        return all;
    }

    std::string script_of(const std::vector<std::size_t>& runs) const {
        std::string text =
            "#!/bin/sh\n# " + all_.file +
            ": a task of this array is a run. By engram-campaign --slurm.\ncase $SLURM_ARRAY_TASK_ID in\n";
        for (std::size_t k = 0; k < runs.size(); ++k)
            text += std::to_string(k) + ") run=" + as_shell_word(all_.runs[runs[k]].folder) + " ;;\n";
        text += "esac\nexec > /dev/null 2>> \"$run/log.txt\"\nexec";
        for (const auto& word : options_.command) text += " " + as_shell_word(word);
        return text + " --jobs 1 --only \"$run\"\n";
    }

    void print(const job_array& array) const {
        std::string line;
        for (const auto& word : command_of(array.options, array.runs.size())) line += as_shell_word(word) + " ";
        std::printf("%s<< 'END'\n%sEND\n", line.c_str(), script_of(array.runs).c_str());
    }

    /// Slurm has it while this call looks.
    void becomes_queued(std::size_t i) {
        now_[i].state = run_state::queued;
        tried_[i] = true;
        left_[i] = 0;
    }

    /// False where sbatch fails while the runs are followed: these wait, and are given to it after the next look.
    bool submit(const std::vector<std::string>& options, const std::vector<std::size_t>& runs) {
        struct held_logs {
            std::vector<int> all{};
            ~held_logs() {
                for (const int log : all) ::close(log);
            }
        } logs;
        std::vector<std::size_t> mine;
        for (const std::size_t i : runs) {
            const auto& run = all_.runs[i];
            const int log = lock(run);
            if (log < 0) {
                now_[i].state = run_state::elsewhere;
                display_.event("elsewhere " + run.folder + ": somebody else runs it");
                continue;
            }
            logs.all.push_back(log);
            // Whoever had it since Slurm was asked may have finished it, given it to Slurm or left another run.
            if (finished_summary(run)) continue;
            if (const std::string job = slurm_queue::job_of(run); job != jobs_[i]) {
                if (job.empty()) continue;
                becomes_queued(i);
                display_.event("queued    " + run.folder + " (job " + job + ")");
                continue;
            }
            check_folder(run);
            mine.push_back(i);
        }
        if (mine.empty()) return true;
        answer given;
        try {
            given = ask_slurm(options, mine);
            require(given.code == 0, "sbatch: ", sentence_of(given.text));
            refusal_.clear();
            refusals_ = 0;
        } catch (const error& problem) {
            // Slurm may be out of reach for minutes; what it refuses for good ends this call.
            if (!is_patient_ || ++refusals_ == most_refusals) throw;
            if (refusal_ != problem.what())
                display_.trouble("engram-campaign: " + std::string(problem.what()) + "; trying again");
            refusal_ = problem.what();
            return false;
        }
        // Tried again, what is queued under an unknown number would be queued twice.
        const std::string array = array_in(given.text);
        require(!array.empty(), "sbatch: expected the number of a job, got '", last_of(given.text), "'");
        for (std::size_t k = 0; k < mine.size(); ++k) {
            const auto& run = all_.runs[mine[k]];
            slurm_queue::name(run, array + "_" + std::to_string(k));
            becomes_queued(mine[k]);
        }
        display_.event(fmt::format("queued    {} run{} as job {}: {}{}", mine.size(), mine.size() == 1 ? "" : "s",
                                   array, all_.runs[mine[0]].folder,
                                   mine.size() == 1 ? "" : " to " + all_.runs[mine.back()].folder));
        return true;
    }

    answer ask_slurm(const std::vector<std::string>& options, const std::vector<std::size_t>& runs) const {
        return engram::ask(command_of(options, runs.size()), script_of(runs));
    }

    campaign& all_;
    const slurm_options& options_;
    std::vector<run_progress> now_;
    std::vector<bool> tried_;        // by this call, or by Slurm while this call looked
    std::vector<double> left_;       // since when nobody has it
    std::vector<std::string> jobs_;  // that the folders named when Slurm was last asked
    slurm_queue queue_;
    campaign_display display_;
    std::string trouble_, refusal_;  // what squeue and sbatch said last, where they failed
    bool is_followed_ = false;
    bool is_patient_ = false;                 // with sbatch, once all that can be queued at first is
    static constexpr int most_refusals = 20;  // one after the other: ten minutes
    int refusals_ = 0;
};

/// Options of sbatch that a file may not give, since the array is made of them.
void require_options(const planned_run& run) {
    std::istringstream own(run.slurm.value);
    for (std::string word; own >> word;) {
        const std::string name = word.substr(0, word.find('='));
        for (const char* taken :
             {"--array", "--wrap", "--wait", "--chdir", "--test-only", "--parsable", "--dependency"})
            require(name != taken, run.slurm.place, ": 'slurm' may not say ", taken, ", which the campaign decides");
        for (const char* taken : {"-a", "-W", "-D", "-d"})
            require(!word.starts_with(taken), run.slurm.place, ": 'slurm' may not say ", taken,
                    ", which the campaign decides");
    }
}

}  // namespace

std::string own_job() {
    const char *array = std::getenv("SLURM_ARRAY_JOB_ID"), *task = std::getenv("SLURM_ARRAY_TASK_ID");
    return array && task ? std::string(array) + "_" + task : "";
}

std::string slurm_queue::job_of(const planned_run& run) {
    return last_line(file_of_job(run));
}

void slurm_queue::name(const planned_run& run, const std::string& job) {
    write_file(file_of_job(run), job + "\n");
}

void slurm_queue::forget(const planned_run& run) {
    ::unlink(file_of_job(run).c_str());
}

void slurm_queue::ask(const std::vector<const planned_run*>& runs) {
    std::vector<std::string> arrays;
    for (const auto* run : runs) {
        const std::string job = job_of(*run);
        if (job.empty()) continue;
        require(is_number(array_of(job)), file_of_job(*run), ": expected a job of Slurm's such as 1234_5, got '", job,
                "'");
        if (!finished_summary(*run)) arrays.push_back(array_of(job));
    }
    jobs_.clear();
    known_ = true;
    if (arrays.empty()) return;
    known_ = on_path("squeue");
    if (!known_) return;
    std::sort(arrays.begin(), arrays.end());
    arrays.erase(std::unique(arrays.begin(), arrays.end()), arrays.end());
    std::string list;
    for (const auto& array : arrays) list += (list.empty() ? "" : ",") + array;
    const answer given =
        engram::ask({"squeue", "--noheader", "--array", "--states=all", "--format=%F_%K %T", "--jobs=" + list});
    // What it says of a job that it has forgotten, if it is asked for nothing else.
    if (given.code != 0 && given.text.find("Invalid job id") != given.text.npos) return;
    require(given.code == 0, "squeue: ", sentence_of(given.text));
    std::istringstream lines(given.text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string job, state, more;
        if (words >> job >> state && !(words >> more) && is_number(array_of(job)))
            jobs_[job] = {state_of(state), state};
    }
}

slurm_queue::known_job slurm_queue::of(const std::string& job) const {
    const auto at = jobs_.find(job);
    return at == jobs_.end() ? known_job{} : at->second;
}

std::vector<run_progress> progress_of(const campaign& all) {
    slurm_queue queue;
    std::vector<const planned_run*> runs;
    for (const auto& run : all.runs) runs.push_back(&run);
    queue.ask(runs);
    std::vector<run_progress> now;
    for (const auto& run : all.runs) now.push_back(joined(run, queue));
    return now;
}

int run_by_slurm(campaign& all, const slurm_options& options) {
    for (const auto& run : all.runs) require_options(run);
    for (const char* program : {"sbatch", "squeue"})
        require(options.dry_run || on_path(program), "--slurm needs ", program, ", and there is none on the PATH");
    return follower(all, options).go();
}

}  // namespace engram
