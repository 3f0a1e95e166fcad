#pragma once
// SPDX-License-Identifier: MIT

// A campaign: many runs from one file (docs/guide/campaign.md). file.cpp reads which runs those are, folders.cpp asks
// the programs whether they would take them and reads how far each one is, runs.cpp starts them, slurm.cpp has Slurm
// start them, display.cpp and page.cpp tell.

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <engram/io/json.hpp>

namespace engram {

/// `key = value` as it stands in the file, for the runs that `scope` names (all where it is empty).
struct campaign_line {
    std::string place;  // "suite.campaign:7", what errors begin with
    std::vector<std::string> scope;
    std::string key, value;
};

/// The lines of a section; the first one has no name and holds for all of them.
struct campaign_section {
    std::string name;
    std::vector<campaign_line> lines{};
};

/// One run: a program, a task, a seed, and what else its command says.
struct planned_run {
    std::string section, program, task;
    std::int64_t seed = 1;
    std::string program_place, task_place;              // the lines that name them
    std::vector<campaign_line> values{};                // flags and settings, one value each
    campaign_line launch{}, slurm{};                    // what stands before its command; options of sbatch
    std::string folder{}, report{}, results{}, page{};  // all but the first are empty where the file has none
    std::string report_place{};                         // the line that names the report
    std::ptrdiff_t needs = -1;                          // the run before it whose weights it begins with
    bool chosen = true;    // false: it stands here for those that need it, and is not started
    json configuration{};  // what its config.json will hold

    /// The words behind the program's name that say what is trained.
    std::vector<std::string> words() const;
    /// The whole command, from what launches it; `path` is that of its program.
    std::vector<std::string> command(const std::string& path) const;
    std::int64_t steps() const { return configuration.value("steps", std::int64_t{0}); }
};

struct campaign {
    std::string file, stem;  // as it was named; without folder and ending
    std::vector<planned_run> runs{};
    /// Flags and settings of which a line names several values, then other settings that not all runs have alike.
    std::vector<std::string> varied{};
    bool has_sections = false;
};

/// Reads the file, with `changes` (texts `key=value`) in place of its lines; throws a sentence that names the line.
campaign read_campaign(const std::string& file, const std::vector<std::string>& changes);

/// Where the programs are: beside this one, with a slash at the end.
const std::string& program_folder();
/// Leaves the runs of these folders alone, names or patterns of the shell; each has to be of a run of the file.
void keep_only(campaign& all, const std::vector<std::string>& folders);
/// Asks each program, which starts nothing, and looks into each folder: throws for what would be refused or differs.
void check_campaign(campaign& all);
/// Throws unless what the folder records, if it records anything, is what the run asks for.
void check_folder(const planned_run& run);
std::string log_of(const planned_run& run);
/// The last line of a file; of a text.
std::string last_line(const std::string& path);
std::string last_of(std::string text);
/// Starts a command, looked for on the PATH, with `output` as stdout and stderr (-1: this program's own) and an open
/// file or nothing as stdin; in a process group of its own.
::pid_t start(const std::vector<std::string>& command, int output, int input = -1);
/// Whether such a command would find something to start.
bool on_path(const std::string& name);
/// What a process that ended says of itself: its exit code, or 128 + the signal that ended it.
int wait_for(::pid_t process);
/// What a command says, on both streams, and how it ended.
struct answer {
    int code = 0;
    std::string text;
};
answer ask(const std::vector<std::string>& command, const std::string& input = "");

enum class run_state { waiting, queued, running, elsewhere, finished, failed, stopped };

/// How far a run is, from its folder.
struct run_progress {
    run_state state = run_state::waiting;
    std::int64_t step = 0;
    double rate = 0, seconds = 0;  // steps a second, as last written; wall time that it has taken
    std::string remark{};          // the scores of a finished run, the last line of one that failed
};
/// A folder and those above it.
void make_folders(const std::string& path);
/// The run's log, locked; -1 where somebody else has it.
int lock(const planned_run& run);
/// A line at the end of a log.
void note(int log, const std::string& line);
/// From its folder alone; of one that Slurm was given, see slurm_queue.
run_progress progress_of(const planned_run& run);
/// The summary of a finished run.
std::optional<json> finished_summary(const planned_run& run);

/// Of a clock that only goes on.
double seconds_now();
/// Seconds that what is not finished will take, by the rates that are known; nothing where none is.
std::optional<double> seconds_left(const campaign& all, const std::vector<run_progress>& now, int jobs);
std::string headline(const campaign& all, const std::vector<run_progress>& now, int jobs);
std::string run_line(const planned_run& run, const run_progress& now);

/// The pages that the runs name, of how far they are.
void write_pages(const campaign& all, const std::vector<run_progress>& now, int jobs);

/// A table that is drawn anew on a terminal; elsewhere a line an event.
class campaign_display {
public:
    campaign_display();
    void event(const std::string& line);
    /// The same on stderr; the table would be drawn over it otherwise.
    void trouble(const std::string& line) {
        erase();
        std::fflush(stdout);
        std::fprintf(stderr, "%s\n", line.c_str());
        if (terminal_) shown_ = 0;
    }
    void show(const campaign& all, std::vector<run_progress>& now, int jobs, bool at_once);

private:
    void erase();
    void write(const campaign& all, const std::vector<run_progress>& now, int jobs);
    bool terminal_;
    int drawn_ = 0;
    double shown_ = 0, written_ = 0;
    bool told_ = false;  // that a page cannot be written
};

/// What Slurm knows of its jobs. A run that it was given has the job's number in its folder, such as 1234_5.
class slurm_queue {
public:
    enum class job_state { gone, queued, running, ended };  // gone: Slurm knows nothing of it, or nothing any more
    struct known_job {
        job_state state = job_state::gone;
        std::string name{};  // what Slurm calls it, such as OUT_OF_MEMORY
    };
    /// Asks for the jobs of these runs. Throws a sentence where Slurm does not answer; nothing is asked where no run
    /// names a job, nor on a machine without Slurm (`is_known` is false then).
    void ask(const std::vector<const planned_run*>& runs);
    bool is_known() const { return known_; }
    /// The job that the run's folder names; nothing where it was never given to Slurm.
    static std::string job_of(const planned_run& run);
    static void name(const planned_run& run, const std::string& job);
    static void forget(const planned_run& run);
    known_job of(const std::string& job) const;

private:
    bool known_ = true;
    std::map<std::string, known_job> jobs_{};
};
/// How far every run is, from folders and from Slurm.
std::vector<run_progress> progress_of(const campaign& all);
/// The job that this process is the task of, such as 1234_5, where it is one of an array.
std::string own_job();

struct slurm_options {
    int jobs = 0;         // at a time; 0: as many as Slurm will
    bool detach = false;  // return as soon as the runs are queued
    bool dry_run = false;
    std::vector<std::string> command{};  // this program, its file and changes, as a task of the array calls it
};
/// The same by Slurm: arrays of jobs, which are followed to their end.
int run_by_slurm(campaign& all, const slurm_options& options);

/// A word as a shell takes it.
std::string as_shell_word(const std::string& word);

/// Runs what is not finished; returns an exit code. `is_task`: as a job of Slurm's, which waits for nobody.
int run_campaign(campaign& all, int jobs, bool is_task);
/// Writes the reports and the tables of results of what is finished.
int write_results(const campaign& all);

/// Puts the rows of what is finished into a table whose rows of other runs stay.
int add_results(const campaign& all, const std::string& path);

}  // namespace engram
