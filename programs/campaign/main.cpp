// SPDX-License-Identifier: MIT

// engram-campaign FILE : runs what a file lists, or a grid of it, as many at a time as it is told.

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <engram/core/settings.hpp>

#include "campaign.hpp"

namespace {

using namespace engram;

constexpr const char* usage =
    "usage: engram-campaign FILE [KEY=VALUE]... [--jobs N] [--nice] [--status | --dry-run | --report [--into FILE]]\n"
    "       engram-campaign FILE [KEY=VALUE]... --slurm [--jobs N] [--detach] [--dry-run]\n"
    "       engram-campaign FILE [KEY=VALUE]... --programs\n"
    "       engram-campaign --version\n\n"
    "Trains the programs, tasks, seeds and settings that FILE lists. Runs that are finished are kept, those that were\n"
    "stopped or killed go on from their checkpoints; several campaigns may share a folder. Ctrl-C lets every run write "
    "a\n"
    "checkpoint. What the programs refuse, and folders that hold other runs, are told before anything starts.\n\n"
    "  KEY=VALUE    replaces this line of the file: seeds=1 steps=100000 'mra lstm: memory.slots=64'\n"
    "  --jobs N     runs at a time (one per core); each has one thread, where the file does not say more\n"
    "  --nice       at the lowest priority\n"
    "  --slurm      have Slurm run them, as arrays of jobs with the sbatch options of the lines 'slurm = ...', and "
    "follow "
    "those;\n"
    "               Ctrl-C stops following; --jobs N is the most at a time of an array\n"
    "  --detach     with --slurm: return as soon as they are queued\n"
    "  --only DIR   the run of this folder alone, or those of a pattern ('runs/*/lstm-1'); may be given again\n"
    "  --status     tell how far every run is, start nothing\n"
    "  --dry-run    print the command of every run that is not finished, start nothing\n"
    "  --report     write the file's report and results from the runs that are finished, start nothing\n"
    "  --into FILE  with --report: put their rows into FILE instead, whose rows of other runs stay\n"
    "  --programs   print the names of the programs that the file needs, checking nothing else\n";

struct options {
    std::string file;
    std::vector<std::string> changes;
    int jobs = 0;  // 0: it was not said
    std::vector<std::string> only;
    bool nice = false, slurm = false, detach = false, programs = false, help = false, version = false;
    std::string instead;  // of running: a flag
    std::string into;     // a table of results
};

options parse_words(int argc, char** argv) {
    const std::vector<std::string> flags{"--jobs",   "--nice",     "--status", "--dry-run", "--report", "--slurm",
                                         "--detach", "--programs", "--only",   "--into",    "--help",   "--version"};
    options o;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (!word.starts_with("-")) {
            if (o.file.empty())
                o.file = word;
            else if (word.find('=') != word.npos)
                o.changes.push_back(word);
            else
                fail("unexpected '", word, "'; one file, then KEY=VALUE, were expected");
            continue;
        }
        const auto equals = word.find('=');
        const std::string flag = word == "-h" ? "--help" : word.substr(0, equals);
        require_known("flag", flag, flags);
        const bool takes = flag == "--jobs" || flag == "--only" || flag == "--into";
        require(equals == word.npos || takes, flag, " takes no value");
        require(!takes || equals != word.npos || i + 1 < argc, flag, " needs a value");
        const std::string value = !takes ? "" : equals != word.npos ? word.substr(equals + 1) : std::string(argv[++i]);
        if (flag == "--jobs") {
            o.jobs = parse<int>("--jobs", value);
            require(o.jobs >= 1, "--jobs: expected 1 or more, got ", o.jobs);
        } else if (flag == "--only") {
            o.only.push_back(value);
        } else if (flag == "--into") {
            o.into = value;
        } else if (flag == "--slurm") {
            o.slurm = true;
        } else if (flag == "--detach") {
            o.detach = true;
        } else if (flag == "--nice") {
            o.nice = true;
        } else if (flag == "--programs") {
            o.programs = true;
        } else if (flag == "--help") {
            o.help = true;
        } else if (flag == "--version") {
            o.version = true;
        } else {
            require(o.instead.empty() || o.instead == flag, o.instead, " and ", flag, " exclude each other");
            o.instead = flag;
        }
    }
    require(o.into.empty() || o.instead == "--report", "--into needs --report");
    require(o.slurm || !o.detach, "--detach needs --slurm");
    require(!o.slurm || !o.nice, "--slurm and --nice exclude each other; a line 'slurm = --nice=100' is Slurm's own");
    return o;
}

int print_programs(const campaign& all) {
    std::vector<std::string> names;
    bool reports = false;
    for (const auto& run : all.runs) {
        if (std::find(names.begin(), names.end(), run.program) == names.end()) names.push_back(run.program);
        reports |= !run.report.empty();
    }
    if (reports) names.push_back("report");
    for (const auto& name : names) std::printf("engram-%s\n", name.c_str());
    return 0;
}

int print_commands(const campaign& all) {
    for (const auto& run : all.runs) {
        if (!run.chosen || finished_summary(run)) continue;
        std::string line;
        for (const auto& word : run.command(program_folder() + "engram-" + run.program))
            line += (line.empty() ? "" : " ") + as_shell_word(word);
        std::printf("%s\n", line.c_str());
    }
    return 0;
}

int print_status(const campaign& all, int jobs) {
    std::vector<run_progress> now = progress_of(all);
    for (auto& run : now)
        if (run.state == run_state::elsewhere) run.state = run_state::running;
    write_pages(all, now, jobs);
    std::printf("%s\n", headline(all, now, jobs).c_str());
    for (std::size_t i = 0; i < now.size(); ++i) std::printf("  %s\n", run_line(all.runs[i], now[i]).c_str());
    return 0;
}

int go(const options& o) {
    require(!o.file.empty(), "no file: which runs? (engram-campaign --help)");
    campaign all = read_campaign(o.file, o.changes);
    if (o.programs) return print_programs(all);
    keep_only(all, o.only);
    check_campaign(all);
    const int jobs = o.jobs > 0 ? o.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    if (o.instead == "--dry-run" && !o.slurm) return print_commands(all);
    if (o.instead == "--status") return print_status(all, jobs);
    const bool tells = std::any_of(all.runs.begin(), all.runs.end(),
                                   [](auto& run) { return !run.report.empty() || !run.results.empty(); });
    const auto write_results_of_all = [&] {  // whichever run was asked for
        if (o.only.empty()) return write_results(all);
        campaign whole = read_campaign(o.file, o.changes);
        check_campaign(whole);
        return write_results(whole);
    };
    if (o.instead == "--report") {
        require(tells || !o.into.empty(), o.file, ": --report needs a line 'report = FILE' or 'results = FILE'");
        require(
            std::any_of(all.runs.begin(), all.runs.end(), [](auto& run) { return finished_summary(run).has_value(); }),
            o.file, ": no run is finished, so there is nothing to report");
        return o.into.empty() ? write_results_of_all() : add_results(all, o.into);
    }
    if (o.nice) ::setpriority(PRIO_PROCESS, 0, 19);  // children have their parent's
    if (o.slurm) {
        slurm_options how{o.jobs, o.detach, o.instead == "--dry-run", {program_folder() + "engram-campaign", o.file}};
        how.command.insert(how.command.end(), o.changes.begin(), o.changes.end());
        const int code = run_by_slurm(all, how);
        return code != 0 || !tells || o.detach || how.dry_run ? code : write_results_of_all();
    }
    const bool is_task = !o.only.empty() && !own_job().empty();
    const int code = run_campaign(all, jobs, is_task);
    if (is_task) return code;  // the results are for whoever follows
    return code != 0 || !tells ? code : write_results_of_all();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const options o = parse_words(argc, argv);
        if (o.help || argc == 1 || (argc == 2 && o.file == "help" && !exists_on_disk("help"))) {
            std::fputs(usage, stdout);
            return 0;
        }
        if (o.version) {
            std::printf("engram-campaign %s\n", library_version().c_str());
            return 0;
        }
        return go(o);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "engram-campaign: %s\n", problem.what());
        return 2;
    }
}
