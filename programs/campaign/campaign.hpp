#pragma once
// SPDX-License-Identifier: MIT

// A campaign: many runs from one file (docs/guide/campaign.md). file.cpp reads which runs those are, folders.cpp asks
// the programs whether they would take them and reads how far each one is, runs.cpp starts them, display.cpp tells.

#include <sys/types.h>

#include <cstdint>
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
    std::string program_place, task_place;      // the lines that name them
    std::vector<campaign_line> values{};        // flags and settings, one value each
    std::string folder{}, report{}, results{};  // the last two are empty where the file has none
    std::ptrdiff_t needs = -1;                  // the run before it whose weights it begins with
    json configuration{};                       // what its config.json will hold

    /// The words behind the program's name that say what is trained.
    std::vector<std::string> words() const;
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
/// Asks each program, which starts nothing, and looks into each folder: throws for what would be refused or differs.
void check_campaign(campaign& all);
/// Throws unless what the folder records, if it records anything, is what the run asks for.
void check_folder(const planned_run& run);
std::string log_of(const planned_run& run);
std::string last_line(const std::string& path);
/// Runs a program to its end with `output` as stdout and stderr (-1: this program's own).
int wait_for(const std::string& program, const std::vector<std::string>& words, int output);
/// The same, started; in a process group of its own.
::pid_t start(const std::string& program, const std::vector<std::string>& words, int output);

enum class run_state { waiting, running, elsewhere, finished, failed, stopped };

/// How far a run is, from its folder.
struct run_progress {
    run_state state = run_state::waiting;
    std::int64_t step = 0;
    double rate = 0, seconds = 0;  // steps a second, as last written; wall time that it has taken
    std::string remark{};          // the scores of a finished run, the last line of one that failed
};
run_progress progress_of(const planned_run& run);
/// The summary of a finished run.
std::optional<json> finished_summary(const planned_run& run);

/// Seconds that what is not finished will take, by the rates that are known; nothing where none is.
std::optional<double> seconds_left(const campaign& all, const std::vector<run_progress>& now, int jobs);
std::string headline(const campaign& all, const std::vector<run_progress>& now, int jobs);
std::string run_line(const planned_run& run, const run_progress& now);

/// A table that is drawn anew on a terminal; elsewhere a line an event.
class campaign_display {
public:
    campaign_display();
    void event(const std::string& line);
    void show(const campaign& all, std::vector<run_progress>& now, int jobs, bool at_once);

private:
    void erase();
    bool terminal_;
    int drawn_ = 0;
    double shown_ = 0;
};

/// Runs what is not finished; returns an exit code.
int run_campaign(campaign& all, int jobs);
/// Writes the reports and the tables of results of what is finished.
int write_results(const campaign& all);

}  // namespace engram
