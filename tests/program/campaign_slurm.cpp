// SPDX-License-Identifier: MIT

// engram-campaign --slurm against programs in tests/program/slurm that do what sbatch, squeue and scontrol do: what is
// queued, that nothing runs twice, and what is left of a run that was preempted. tests/long/slurm.sh has a real Slurm.

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "campaigns.hpp"

using namespace campaigns;

namespace {

const std::string tools = std::string(ENGRAM_SOURCE_DIR) + "/tests/program/slurm";

/// A workplace with a Slurm of its own; the PATH holds it as long as this lives.
struct cluster : workplace {
    explicit cluster(const std::string& lines) : workplace(lines), usual_(std::getenv("PATH")) {
        std::filesystem::create_directory(slurm());
        ::setenv("SLURM_FOLDER", slurm().c_str(), 1);
        ::setenv("PATH", ((*this / "bin") + ":" + tools + ":" + usual_).c_str(), 1);
    }
    ~cluster() {
        release();
        ::setenv("PATH", usual_.c_str(), 1);
        ::unsetenv("SLURM_FOLDER");
    }
    cluster(const cluster&) = delete;
    cluster& operator=(const cluster&) = delete;
    std::string slurm(const std::string& file = "") const {
        return *this / ("slurm" + (file.empty() ? "" : "/" + file));
    }
    std::string calls() const { return text_of(slurm("calls")); }
    std::string state(const std::string& job) const { return text_of(slurm(job)); }
    void hold() const { engram::write_file(slurm("hold"), ""); }
    void release() const { std::filesystem::remove(slurm("hold")); }
    /// Lines of a shell that this program of Slurm's goes through first.
    void precede(const std::string& name, const std::string& lines) const {
        std::filesystem::create_directory(*this / "bin");
        const std::string file = *this / ("bin/" + name);
        engram::write_file(file, "#!/bin/sh\n" + lines + "exec " + tools + "/" + name + " \"$@\"\n");
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    }
    /// The first call of this program of Slurm's waits (`is_asked`) until `answer` is called.
    void hold_first(const std::string& name) const {
        precede(name,
                "waits() { [ -d \"$SLURM_FOLDER\" ] && [ ! -e \"$SLURM_FOLDER/answer\" ]; }\n"
                "if mkdir \"$SLURM_FOLDER/asked\" 2> /dev/null; then while waits; do sleep 0.05; done; fi\n");
    }
    bool is_asked() const { return std::filesystem::exists(slurm("asked")); }
    void answer() const { engram::write_file(slurm("answer"), ""); }
    bool trains(const std::string& run) const {
        return lines_with(text_of(*this / ("runs/" + run + "/metrics.csv")), "\n") > 5;
    }
    void end(const std::string& job, const std::string& signal) const {
        CHECK(std::system((tools + "/end " + job + " " + signal).c_str()) == 0);
    }

private:
    std::string usual_;
};

}  // namespace

TEST_CASE("a grid becomes one array, which is followed to its end and its results") {
    const cluster place(
        small("seeds = 1 2 3\nsteps = 4000\nresults = some.csv\nslurm = --partition=short -t 60\nthreads = 2\n"));
    outcome f = place.run({"--slurm", "--jobs", "2", "--dry-run"});
    CHECK(f.code == 0);
    CHECK(place.calls().empty());
    CHECK(has(f.out,
              "sbatch --parsable --array=0-2%2 --job-name=some --requeue --signal=B:USR1@60 --open-mode=append "
              "--output=/dev/null --cpus-per-task=2 --partition=short -t 60 << 'END'\n#!/bin/sh\n"));
    CHECK(has(f.out, "\n2) run=runs/t_maze-3 ;;\nesac\n"));
    CHECK(has(f.out, "engram-campaign some.campaign --jobs 1 --only \"$run\"\nEND\n"));
    CHECK(!std::filesystem::exists(place / "runs"));

    f = place.run({"--slurm", "--jobs", "2"});
    INFO(f.out);
    INFO(f.err);
    REQUIRE(f.code == 0);
    CHECK(lines_with(place.calls(), "\n") == 1);
    CHECK(has(f.out, "queued    3 runs as job 101: runs/t_maze-1 to runs/t_maze-3\n"));
    CHECK(has(f.out, "some.campaign: 3 of 3 done\n"));
    for (const std::string run : {"t_maze-1", "t_maze-2", "t_maze-3"}) {
        CHECK(lines_with(f.out, "finished  runs/" + run + ": train ") == 1);
        CHECK(lines_with(place.log(run), "+ engram-ff train ") == 1);
    }
    CHECK(lines_with(text_of(place / "some.csv"), ",4000,") == 6);
    // Nothing is left to do.
    f = place.run({"--slurm"});
    CHECK(f.code == 0);
    CHECK(lines_with(place.calls(), "\n") == 1);
    CHECK(!has(f.out, "queued"));
    // The same runs as without Slurm.
    const workplace here(small("seeds = 1\nsteps = 4000\nthreads = 2\n"));
    REQUIRE(here.run().code == 0);
    same_run(here / "runs/t_maze-1", place / "runs/t_maze-1");
}

TEST_CASE("what waits in the queue is queued once, by whoever asks") {
    const cluster place(small("seeds = 1 2\nsteps = 4000\n"));
    place.hold();
    outcome f = place.run({"--slurm", "--detach"});
    CHECK(f.code == 0);
    CHECK(has(f.out, "queued    2 runs as job 101: runs/t_maze-1 to runs/t_maze-2\n"));
    CHECK(text_of(place / "runs/t_maze-2/slurm.txt") == "101_1\n");
    f = place.run({"--slurm", "--detach"});
    CHECK(f.code == 0);
    CHECK(lines_with(place.calls(), "\n") == 1);
    f = place.run({"--status"});
    CHECK(has(f.out, "some.campaign: 0 of 2 done, 2 queued\n  queued    runs/t_maze-1: job 101_0\n"));
    {  // Without Slurm: they are somebody else's.
        const program p = place.start({"--jobs", "1"});
        REQUIRE(in_time([&] { return has(p.out(), "elsewhere runs/t_maze-2: Slurm has it as job 101_1\n"); }));
        ::kill(p.process, SIGTERM);
        CHECK(p.end() == 130);
        CHECK(place.log("t_maze-1").empty());
    }
    {  // A further run alone is an array of its own.
        f = place.run({"--slurm", "--detach", "seeds=1 2 3"});
        CHECK(has(f.out, "queued    1 run as job 102: runs/t_maze-3\n"));
        CHECK(has(place.calls(), " --array=0-0 "));
    }
    const program p = place.start({"--slurm"});
    REQUIRE(in_time([&] { return has(p.out(), "2 queued"); }));
    place.release();
    CHECK(p.end() == 0);
    CHECK(lines_with(place.calls(), "\n") == 2);
    for (const std::string run : {"t_maze-1", "t_maze-2"}) {
        CHECK(lines_with(p.out(), "finished  runs/" + run + ": train ") == 1);
        CHECK(lines_with(place.log(run), "+ engram-ff train ") == 1);
    }
    CHECK(in_time([&] { return place.state("102_0") == "COMPLETED\n"; }));
}

TEST_CASE("what somebody else queues while sbatch or squeue takes its time is left to it") {
    const std::vector<std::string> words{"--slurm", "--detach"};
    {  // The first of two arrays.
        const cluster place(
            small("seeds = 1\nsteps = 2000\n[a]\nslurm = --mem=1G\n[b]\nslurm = --mem=2G\n", "{section}"));
        place.hold();
        place.hold_first("sbatch");
        const program slow = place.start(words);
        REQUIRE(in_time([&] { return place.is_asked(); }));
        const outcome f = place.run(words);
        CHECK(f.code == 0);
        CHECK(has(f.out, "elsewhere runs/a: somebody else runs it\nqueued    1 run as job 101: runs/b\n"));
        place.answer();
        CHECK(slow.end() == 0);
        CHECK(has(slow.out(), "queued    1 run as job 102: runs/a\nqueued    runs/b (job 101_0)\n"));
        CHECK(has(slow.out(), "some.campaign: 0 of 2 done, 2 queued"));
        CHECK(lines_with(place.calls(), "\n") == 2);
        CHECK(text_of(place / "runs/b/slurm.txt") == "101_0\n");
        place.release();
        CHECK(place.run({"--slurm"}).code == 0);
        CHECK(lines_with(place.calls(), "\n") == 2);
    }
    // A question of an older job.
    const cluster place(small("seeds = 1\nsteps = 2000\n"));
    place.hold();
    REQUIRE(place.run(words).code == 0);
    place.hold_first("squeue");
    const program slow = place.start({"--slurm", "--detach", "seeds=1 2"});
    REQUIRE(in_time([&] { return place.is_asked(); }));
    CHECK(has(place.run({"--slurm", "--detach", "seeds=1 2"}).out, "queued    1 run as job 102: runs/t_maze-2\n"));
    place.answer();
    CHECK(slow.end() == 0);
    CHECK(has(slow.out(), "queued    runs/t_maze-2 (job 102_0)\n"));
    CHECK(lines_with(place.calls(), "\n") == 2);
    place.release();
    CHECK(place.run({"--slurm", "seeds=1 2"}).code == 0);
    CHECK(lines_with(place.calls(), "\n") == 2);
}

TEST_CASE("where sbatch fails while runs are followed it is told once and asked again") {
    const cluster place(small("seeds = 1\nsteps = 2000\n[first]\n[second]\nweights = runs/first\n", "{section}"));
    place.precede("sbatch",
                  "echo >> \"$SLURM_FOLDER/tries\"\ncase $(wc -l < \"$SLURM_FOLDER/tries\") in\n"
                  "2 | 3) echo 'sbatch: error: Batch job submission failed: Socket timed out' >&2; exit 1 ;;\nesac\n");
    const outcome f = place.run({"--slurm"});
    INFO(f.out);
    CHECK(f.code == 0);
    CHECK(f.err == "engram-campaign: sbatch: Batch job submission failed: Socket timed out; trying again\n");
    CHECK(lines_with(text_of(place.slurm("tries")), "\n") == 4);
    CHECK(lines_with(place.calls(), "\n") == 2);
    CHECK(has(f.out, "queued    1 run as job 102: runs/second\n"));
    CHECK(has(f.out, "finished  runs/second"));
    CHECK(has(f.out, "some.campaign: 2 of 2 done\n"));
}

TEST_CASE("Ctrl-C leaves the jobs to Slurm, which knows them by the next call") {
    const cluster place(small("seeds = 1\nsteps = 4000\n"));
    place.hold();
    {
        const program p = place.start({"--slurm"});
        REQUIRE(in_time([&] { return has(p.out(), "1 queued"); }));
        ::kill(p.process, SIGINT);
        CHECK(p.end() == 130);
        CHECK(has(p.out(), "the jobs go on; the same command follows them again, scancel 101 ends them\n"));
    }
    place.release();
    const outcome f = place.run({"--slurm"});
    CHECK(f.code == 0);
    CHECK(lines_with(place.calls(), "\n") == 1);
    CHECK(lines_with(place.log("t_maze-1"), "+ engram-ff train ") == 1);
}

TEST_CASE("a run that is preempted or whose time is up goes on to the same bits") {
    const std::string lines = small("seeds = 1\nsteps = 300000\ncheckpoint-every = 20000\n");
    const workplace whole(lines);
    REQUIRE(whole.run().code == 0);
    const cluster place(lines);
    const std::string checkpoint = place / "runs/t_maze-1/checkpoint/latest.safetensors";
    const program p = place.start({"--slurm"});
    REQUIRE(in_time([&] { return place.trains("t_maze-1"); }));
    // Every process of the task hears of a preemption, and Slurm queues it again.
    engram::write_file(place.slurm("101_0.requeue"), "");
    place.end("101_0", "TERM");
    REQUIRE(in_time([&] { return place.state("101_0") == "PENDING\n"; }));
    CHECK(engram::exists_on_disk(checkpoint));
    CHECK(!engram::read_json(place / "runs/t_maze-1/summary.json").at("finished").get<bool>());
    CHECK(!has(place.calls(), "scontrol"));
    REQUIRE(in_time([&] { return lines_with(place.log("t_maze-1"), "+ engram-ff train ") == 2; }));
    // That the time is up the script alone hears.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    REQUIRE(place.state("101_0") == "RUNNING\n");
    ::kill(static_cast<::pid_t>(std::stol(text_of(place.slurm("101_0.pid")))), SIGUSR1);
    CHECK(p.end() == 0);
    CHECK(has(place.calls(), "scontrol requeue 101_0\n"));
    CHECK(lines_with(place.calls(), "sbatch") == 1);
    CHECK(lines_with(place.log("t_maze-1"), "+ engram-ff train ") == 3);
    CHECK(has(p.out(), "finished  runs/t_maze-1"));
    same_run(whole / "runs/t_maze-1", place / "runs/t_maze-1");
}

TEST_CASE("a job that a preemption ends for good is queued anew; a run that somebody else has is waited for") {
    const cluster place(small("seeds = 1\nsteps = 300000\n"));
    {
        const program p = place.start({"--slurm"});
        REQUIRE(in_time([&] { return place.trains("t_maze-1"); }));
        engram::write_file(place.slurm("101_0.end"), "PREEMPTED\n");
        place.end("101_0", "TERM run-first");
        CHECK(p.end() == 0);
        CHECK(has(p.out(), "queued    1 run as job 102: runs/t_maze-1\n"));
        CHECK(has(p.out(), "finished  runs/t_maze-1"));
        CHECK(lines_with(place.log("t_maze-1"), "+ engram-ff train ") == 2);
    }
    std::filesystem::create_directories(place / "runs/t_maze-2");
    const int log = ::open((place / "runs/t_maze-2/log.txt").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    REQUIRE(::flock(log, LOCK_EX | LOCK_NB) == 0);
    const program p = place.start({"--slurm", "seeds=2", "steps=2000"});
    REQUIRE(in_time([&] { return has(p.out(), "elsewhere runs/t_maze-2: somebody else runs it\n"); }));
    CHECK(lines_with(place.calls(), "sbatch") == 2);
    ::close(log);
    CHECK(p.end() == 0);
    CHECK(lines_with(place.calls(), "sbatch") == 3);
    CHECK(has(p.out(), "finished  runs/t_maze-2"));
}

TEST_CASE("a run that fails in the queue, or is cancelled there, is told of and not queued again by the same call") {
    const cluster place(
        small("seeds = 1\nsteps = 2000\n[lost]\nweights = nowhere\n[later]\nweights = runs/lost\n", "{section}"));
    outcome f = place.run({"--slurm"});
    CHECK(f.code == 1);
    INFO(f.out);
    const std::string why = "exit code 2: engram-ff: --weights nowhere: there is no checkpoint in this folder";
    CHECK(has(f.out, "failed    runs/lost: " + why + "\n"));
    CHECK(has(f.out, "failed    runs/later: the run whose weights it begins with has failed\n"));
    CHECK(lines_with(place.calls(), "\n") == 1);
    CHECK(has(place.run({"--status"}).out, "failed    runs/lost: " + why + "\n"));

    const cluster second(small("seeds = 1\nsteps = 2000\n"));
    second.hold();
    const program p = second.start({"--slurm"});
    REQUIRE(in_time([&] { return has(p.out(), "1 queued"); }));
    engram::write_file(second.slurm("101_0"), "CANCELLED\n");
    CHECK(p.end() == 1);
    CHECK(has(p.out(), "failed    runs/t_maze-1: job 101_0 ended as CANCELLED\n"));
    CHECK(lines_with(second.calls(), "\n") == 1);
    CHECK(has(second.run({"--status"}).out, "stopped   runs/t_maze-1"));
    // A task that comes after all finds that the run is another job's.
    engram::write_file(second / "runs/t_maze-1/slurm.txt", "99_0\n");
    ::setenv("SLURM_ARRAY_JOB_ID", "101", 1);
    ::setenv("SLURM_ARRAY_TASK_ID", "0", 1);
    const program task = second.start({"--only", "runs/t_maze-1"});
    REQUIRE(in_time([&] { return has(task.out(), "elsewhere runs/t_maze-1"); }));
    ::kill(task.process, SIGTERM);
    CHECK(task.end() == 130);
    ::unsetenv("SLURM_ARRAY_JOB_ID");
    ::unsetenv("SLURM_ARRAY_TASK_ID");
    CHECK(second.log("t_maze-1").empty());
}

TEST_CASE("a run is queued when the one is finished whose weights it begins with; other options are another array") {
    const cluster place(
        small("seeds = 1 2\nsteps = 2000\n[first]\n[second]\nslurm = --mem=2G\nweights = runs/first-{seed}\n",
              "{section}-{seed}"));
    const outcome f = place.run({"--slurm"});
    INFO(f.out);
    INFO(f.err);
    CHECK(f.code == 0);
    CHECK(has(place.calls(), " --array=0-1 "));
    {  // One that needs another is not queued without it.
        const cluster alone(small("seeds = 1\nsteps = 2000\n[first]\n[second]\nweights = runs/first\n", "{section}"));
        const outcome second = alone.run({"--slurm", "--only", "runs/second"});
        CHECK(second.code == 1);
        CHECK(has(second.out,
                  "failed    runs/second: the run whose weights it begins with is not finished: runs/first\n"));
        CHECK(alone.calls().empty());
    }
    CHECK(lines_with(place.calls(), " --mem=2G\n") >= 1);
    const auto ended = f.out.find("finished  runs/first-1"), queued = f.out.find(" runs/second-1");
    CHECK((ended != f.out.npos && queued != f.out.npos && ended < queued));
    CHECK(engram::read_json(place / "runs/second-2/config.json").at("weights") == "runs/first-2");
}

TEST_CASE("what Slurm refuses, lacks or does not say is one sentence") {
    const std::string lines = small("seeds = 1\nsteps = 2000\n");
    const auto refused = [](const outcome& f, const std::string& part) {
        INFO(f.err);
        CHECK(f.code == 2);
        CHECK(lines_with(f.err, "\n") == 1);
        CHECK(has(f.err, part));
    };
    const std::string path = std::getenv("PATH");
    {
        const workplace place(lines);
        ::setenv("PATH", "/nonexistent", 1);
        refused(place.run({"--slurm"}), "--slurm needs sbatch, and there is none on the PATH");
        refused(place.run({"--slurm", "--jobs", "0"}), "--jobs: expected 1 or more, got 0");
        refused(place.run({"--slurm", "--nice"}), "--slurm and --nice exclude each other");
        refused(place.run({"--detach"}), "--detach needs --slurm");
        refused(place.run({"--slurn"}), "unknown flag '--slurn'; did you mean '--slurm'?");
        refused(place.run({"--only"}), "--only needs a value");
        refused(place.run({"--only", "runs/t_maze-2"}),
                "--only: no run of some.campaign has the folder 'runs/t_maze-2'; did you mean 'runs/t_maze-1'?");
        CHECK(place.files() == 1);
        ::setenv("PATH", path.c_str(), 1);
    }
    const cluster place(lines);
    for (const std::string option : {"--array=0-9", "--wrap=true", "--chdir", "-d", "-Wait"})
        refused(place.run({"--slurm", "slurm=" + option}),
                "'slurm' may not say " + option.substr(0, option[1] == '-' ? option.find('=') : 2));
    engram::write_file(place.slurm("refuse"),
                       "sbatch: error: invalid partition specified: shrot\n"
                       "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
    refused(place.run({"--slurm", "slurm=--partition=shrot"}),
            "engram-campaign: sbatch: Batch job submission failed: Invalid partition name specified\n");
    refused(place.run({"--slurm", "--detach"}), "Invalid partition name specified\n");
    CHECK(!engram::exists_on_disk(place / "runs/t_maze-1/slurm.txt"));
    std::filesystem::remove(place.slurm("refuse"));
    // Where Slurm does not answer nobody knows whether it has a run.
    place.hold();
    REQUIRE(place.run({"--slurm", "--detach"}).code == 0);
    engram::write_file(place.slurm("down"), "");
    refused(place.run({"--slurm"}), "engram-campaign: squeue: Unable to contact slurm controller (connect failure)\n");
    refused(place.run({"--status"}), "squeue: Unable to contact");
    CHECK(has(place.run().out, "failed    runs/t_maze-1: squeue: Unable to contact"));
    CHECK(place.log("t_maze-1").empty());
    std::filesystem::remove(place.slurm("down"));
    engram::write_file(place / "runs/t_maze-1/slurm.txt", "soon\n");
    refused(place.run({"--status"}), "expected a job of Slurm's such as 1234_5, got 'soon'");
    // A job that Slurm has forgotten, and a machine without it.
    engram::write_file(place / "runs/t_maze-1/slurm.txt", "7_0\n");
    CHECK(has(place.run({"--status"}).out, "waiting   runs/t_maze-1"));
    const std::string with_slurm = std::getenv("PATH");
    ::setenv("PATH", "/nonexistent", 1);
    CHECK(has(place.run({"--status"}).out, "job 7_0 may have it: there is no squeue here to tell"));
    ::setenv("PATH", with_slurm.c_str(), 1);
    const outcome f = place.run();
    CHECK(f.code == 0);
    CHECK(!engram::exists_on_disk(place / "runs/t_maze-1/slurm.txt"));
}

TEST_CASE("one run of a file alone, and what stands before the commands of runs") {
    const workplace place(small("seeds = 1 2\nsteps = 2000\n"));
    CHECK(place.run({"--only", "./runs/t_maze-2"}).code == 0);
    CHECK(!std::filesystem::exists(place / "runs/t_maze-1"));
    outcome f = place.run({"launch=nice -n 5"});
    CHECK(f.code == 2);
    CHECK(f.err ==
          "engram-campaign: 'launch=nice -n 5': 'launch' needs a line 'rollout.shards = N', of how many parts the run "
          "is, "
          "whatever number of processes carries them\n");
    f = place.run({"launch=nicer", "rollout.shards=1"});
    CHECK(f.code == 2);
    CHECK(has(f.err, "'launch=nicer': there is no 'nicer' on the PATH"));
    f = place.run({"launch=nice -n 5", "rollout.shards=1"});
    CHECK(f.code == 0);
    CHECK(has(place.log("t_maze-1"), "+ nice -n 5 engram-ff train --task t_maze --seed 1 "));
    CHECK(!has(place.log("t_maze-2"), "nice"));
    const workplace plain(small("seeds = 1\nsteps = 2000\n"));
    CHECK(plain.run().code == 0);
    same_run(plain / "runs/t_maze-1", place / "runs/t_maze-1");
    // What a run needs is looked at, and not run.
    const workplace chain(small("seeds = 1\nsteps = 2000\n[first]\n[second]\nweights = runs/first\n", "{section}"));
    f = chain.run({"--only", "runs/second"});
    CHECK(f.code == 1);
    CHECK(has(f.out, "failed    runs/second: the run whose weights it begins with is not finished: runs/first\n"));
    CHECK(chain.run({"--only", "runs/first"}).code == 0);
    CHECK(chain.run({"--only", "runs/second"}).code == 0);
}
