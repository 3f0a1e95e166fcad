// SPDX-License-Identifier: MIT

// engram-campaign as a child process: what it refuses, what it starts, and what is left of a run that it stopped.

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "campaigns.hpp"

using namespace campaigns;

TEST_CASE("a dry run of train says what config.json will hold, and writes nothing") {
    const temporary_folder folder;
    const std::vector<std::string> words{"train", "--task",        "t_maze", "--steps",   "100", "--out",
                                         "run",   "--evaluate",    "0",      "--threads", "1",   "--quiet",
                                         "--set", "task.length=20"};
    auto dry = words;
    dry.push_back("--dry-run");
    const program asked("ff", dry, folder.path);
    CHECK(asked.end() == 0);
    CHECK(folder.files() == 0);
    const program trained("ff", words, folder.path);
    REQUIRE(trained.end() == 0);
    CHECK(asked.out() == text_of(folder / "run/config.json"));
}

TEST_CASE("what is wrong is refused in one sentence before anything starts") {
    struct mistake {
        std::string lines, part;
        std::vector<std::string> words = {};
    };
    const std::string head = "programs = ff\ntasks = t_maze\nseeds = 1 2\n";
    std::string many;
    for (int i = 0; i < 60; ++i) many += std::to_string(i) + " ";
    for (const mistake& m : std::vector<mistake>{
             {"programs ff\n", "some.campaign:1: expected 'key = value' or '[section]', got 'programs ff'"},
             {head + "stepz = 3\n", "some.campaign:4: unknown key 'stepz'; did you mean 'steps'?"},
             {head + "\n# a remark\n[one\n", "some.campaign:6: expected '[section]', got '[one'"},
             {head + "[one]\n[one]\n", "some.campaign:5: the section 'one' is there twice"},
             {head + "[a b]\n", "some.campaign:4: expected a section's name, got 'a b'"},
             {head + "steps = 1\nsteps = 2\n", "some.campaign:5: 'steps' is given twice, first in some.campaign:4"},
             {head + ": steps = 1\n", "some.campaign:4: expected programs or tasks before ':'"},
             {head + "mra: steps = 1\n", "some.campaign:4: 'mra' is neither a program nor a task of this file"},
             {head + "ff: seeds = 1\n", "some.campaign:4: 'seeds' holds for a whole section"},
             {"programs = ff\nseeds = 1\n", "some.campaign: there are no tasks"},
             {"programs = ff\n[one]\ntasks = t_maze\n", "some.campaign: the section 'one' has no seeds"},
             {head + "[one]\nprograms =\n", "some.campaign:5: 'programs' is empty"},
             {"programs = ff\ntasks = t_maze\nseeds = one\n", "some.campaign:3: seeds: expected an integer, got 'one'"},
             {"programs = ff\ntasks = t_maze\nseeds = -1\n", "some.campaign:3: seeds: expected 0 or more, got -1"},
             {head + "out = runs/{sede}\n",
              "some.campaign:4: '{sede}' has no value for engram-ff on t_maze; did you mean 'seed'?"},
             {head + "out = runs/{seed\n", "some.campaign:4: '{' without '}' in 'runs/{seed'"},
             {head + "out = runs/{program}\n",
              "two runs have the folder runs/ff, engram-ff and engram-ff on t_maze; 'out' should name"},
             {head + "steps = 100 200\n", "one or more of {program} {task} {seed} {steps}"},
             {"programs = ff\ntasks = t_maze\nseeds = 1 1\n", "two runs have the folder runs/some/t_maze/ff-1"},
             {head + "a.a = " + many + "\na.b = " + many + "\na.c = " + many + "\n",
              "some.campaign:6: these are more than 100000 runs"},
             {head + "report = a.html\nresults = ./a.csv\n",
              "'results' is ./a.csv, which the report a.html writes as well"},
             {head + "report = a.html\npage = ./a.html\n",
              "'page' is ./a.html, which the report a.html writes as well"},
             {head + "results = a.html\npage = ./a.html\n", "'page' is ./a.html, which 'results' writes as well"},
             {head + "report = a.htm\npage = ./a.htm\n",
              "'page' is ./a.htm, which the report a.htm writes as well",
              {"--dry-run"}},
             {head + "controller.hidden = 8 32\nout = runs/{controller.hidden}-{seed}\n"
                     "report = rep/hidden-0.{controller.hidden}\n",
              "some.campaign:6: the report rep/hidden-0.32 writes rep/hidden-0.csv, which the report rep/hidden-0.8 "
              "writes as well",
              {"--dry-run"}},
             {head + "[one]\nreport = a.html\n[two]\nreport = ./a.htm\n",
              "some.campaign:7: the report ./a.htm writes ./a.csv, which the report a.html writes as well",
              {"--dry-run"}},
             {head + "[one]\nreport = a.html\n[two]\nreport = a.heatmap.html\n",
              "some.campaign:7: the report a.heatmap.html writes a.heatmap.csv, which the report a.html writes as well",
              {"--dry-run"}},
             {head + "[one]\nreport = a.html\n[two]\nreport = ./a.html\n",
              "some.campaign:7: the report ./a.html writes ./a.html, which the report a.html writes as well",
              {"--dry-run"}},
             {"programs = fff\ntasks = t_maze\nseeds = 1\n",
              "some.campaign:1: unknown program 'fff'; did you mean 'ff'?"},
             {"programs = report\ntasks = t_maze\nseeds = 1\n", "some.campaign:1: unknown program 'report'"},
             {"programs = ff\n\ntasks = t_mase\nseeds = 1\n",
              "some.campaign:3: engram-ff: unknown task 't_mase'; did you mean 't_maze'?"},
             {"programs = ff\ntasks = copy\nseeds = 1\n", "some.campaign:2: engram-ff: copy is a task of sequences"},
             {head + "controller.hiden = 8\n",
              "some.campaign:4: engram-ff: unknown setting 'controller.hiden'; did you mean 'controller.hidden'?"},
             {head + "memory.slots = 8\n", "some.campaign:4: engram-ff: unknown setting 'memory.slots'"},
             {head + "controller.hidden = many\n",
              "some.campaign:4: engram-ff: controller.hidden: expected an integer, got 'many'"},
             {head + "steps = 1e6\n", "some.campaign:4: engram-ff: --steps: expected an integer, got '1e6'"},
             {head + "preset = smal\n", "some.campaign:4: engram-ff: unknown preset 'smal'"},
             {head + "weights = runs/some/t_maze/ff-{seed}\n", "which should come before it"},
             {head, "'stepz=1': unknown key 'stepz'", {"stepz=1"}},
             {head, "unexpected 'other'", {"other"}},
             {head, "--jobs: expected 1 or more, got 0", {"--jobs", "0"}},
             {head, "unknown flag '--job'; did you mean '--jobs'?", {"--job", "2"}},
             {head, "--status and --report exclude each other", {"--status", "--report"}},
             {head, "--report needs a line 'report = FILE' or 'results = FILE'", {"--report"}},
             {head + "results = a.csv\n", "no run is finished", {"--report"}},
             {head, "--into needs --report", {"--into", "a.csv"}},
         }) {
        const workplace place(m.lines);
        const outcome f = place.run(m.words);
        INFO(m.lines);
        INFO(f.err);
        CHECK(f.code == 2);
        CHECK(f.out.empty());
        CHECK(lines_with(f.err, "\n") == 1);
        CHECK(has(f.err, m.part));
        CHECK(place.files() == 1);
    }
    const temporary_folder empty;
    const program p("campaign", {"none.campaign"}, empty.path);
    CHECK(p.end() == 2);
    CHECK(p.err() == "engram-campaign: cannot read none.campaign: No such file or directory\n");
}

TEST_CASE("a grid, its sections and what holds for some of it") {
    const workplace place(
        "programs = ff\ntask = t_maze two_colors  # the singular says the same\nseeds = 1 2\nsteps = 500\n"
        "two_colors: steps = 700\n[wide]\ncontroller.hidden = 32 64\nout = "
        "runs/{section}/{task}-{program}-{controller.hidden}-{seed}\n"
        "[short]\ntasks = t_maze\nseeds = 7\nsteps = 300\ndata = a b\n");
    const outcome f = place.run({"--dry-run", "evaluate=0"});
    INFO(f.err);
    REQUIRE(f.code == 0);
    std::string out = f.out;
    for (std::size_t at; (at = out.find(std::string(ENGRAM_BIN_DIR) + "/")) != out.npos;)
        out.erase(at, std::string(ENGRAM_BIN_DIR).size() + 1);
    const auto command = [](const std::string& task, int seed, int steps, int hidden) {
        return "engram-ff train --task " + task + " --seed " + std::to_string(seed) + " --threads 1 --steps " +
               std::to_string(steps) + " --controller.hidden " + std::to_string(hidden) +
               " --evaluate 0 --out runs/wide/" + task + "-ff-" + std::to_string(hidden) + "-" + std::to_string(seed) +
               " --resume --quiet\n";
    };
    std::string expected;
    for (const int seed : {1, 2})
        for (const std::string task : {"t_maze", "two_colors"})
            for (const int hidden : {32, 64}) expected += command(task, seed, task == "t_maze" ? 500 : 700, hidden);
    expected +=
        "engram-ff train --task t_maze --seed 7 --threads 1 --steps 300 --data 'a b' --evaluate 0 --out "
        "runs/some/short/t_maze/ff-7 --resume --quiet\n";
    CHECK(out == expected);
    CHECK(place.run({"--programs"}).out == "engram-ff\n");
    CHECK(place.run({"--programs", "report=a.html", "programs=ff mra"}).out ==
          "engram-ff\nengram-mra\nengram-report\n");
    CHECK(place.files() == 1);
}

TEST_CASE("two runs to their end, their report and results; what is finished is kept, unless it is something else") {
    const workplace place(small("seeds = 1 2\nsteps = 4000\nreport = runs/report.html\nresults = data/some.csv\n"));
    outcome f = place.run({"--jobs", "2"});
    INFO(f.err);
    REQUIRE(f.code == 0);
    for (const char* run : {"t_maze-1", "t_maze-2"}) {
        CHECK(lines_with(f.out, "started   runs/" + std::string(run)) == 1);
        CHECK(lines_with(f.out, "finished  runs/" + std::string(run) + ": train ") == 1);
    }
    CHECK(has(f.out, "some.campaign: 2 of 2 done\n"));
    CHECK(has(text_of(place / "runs/report.html"), "</html>"));
    const std::string csv = text_of(place / "data/some.csv");
    CHECK(
        csv.starts_with("# From the summaries of these runs, by engram-campaign some.campaign.\n"
                        "program,task,seed,level,unit,episodes,reward,standard_error,random,maximum,steps,seconds,"
                        "processor_seconds,mmer,parameters,read_same,read_alike\nff,t_maze,1,train,episode reward,2,"));
    CHECK(lines_with(csv, "\n") == 6);
    CHECK(lines_with(csv, ",,\n") == 4);
    CHECK(lines_with(csv, ",4000,") == 4);

    // The third trial, the second of its image, read the first with a quarter of its weight.
    engram::write_file(
        place / "runs/t_maze-1/retrieval.json",
        std::string(R"({"level": "train", "trials": [{"stimulus": "a"}, {"stimulus": "b"}, {"stimulus": "a",)") +
            R"("repeat": true, "read": [{"when": "0", "weight": 0.25}, {"when": "1", "weight": 0.75}]}]})");
    REQUIRE(place.run({"--report"}).code == 0);
    CHECK(lines_with(text_of(place / "data/some.csv"), ",25,50\n") == 1);
    CHECK(lines_with(text_of(place / "data/some.csv"), ",,\n") == 3);
    std::filesystem::remove(place / "runs/t_maze-1/retrieval.json");

    // Into a table that has other runs, other columns and an older score.
    const std::string others =
        "# Of two machines, \"both\".\nprogram,task,seed,level,reward,note\nff,t_maze,9,train,0.5,\"a, \"\"b\"\"\"\n"
        "ff,t_maze,2,train,0.25,\n";
    engram::write_file(place / "kept.csv", others);
    REQUIRE(place.run({"--report", "--into", "kept.csv"}).code == 0);
    const std::string kept = text_of(place / "kept.csv");
    CHECK(kept.starts_with("# Of two machines, \"both\".\nprogram,task,seed,level,unit,"));
    CHECK(has(kept, ",read_alike,note\nff,t_maze,9,train,,,0.5,,,,,,,,,,,\"a, \"\"b\"\"\"\nff,t_maze,2,"));
    CHECK(!has(kept, ",0.25,"));
    CHECK(lines_with(kept, "\n") == 2 + 1 + 4);
    REQUIRE(place.run({"--report", "--into", "kept.csv"}).code == 0);
    CHECK(text_of(place / "kept.csv") == kept);
    engram::write_file(place / "kept.csv", others + "ff,t_maze\n");
    f = place.run({"--report", "--into", "kept.csv"});
    CHECK(f.code == 2);
    CHECK(has(f.err, "kept.csv, line 5: 2 cells, but the header has 6"));
    CHECK(text_of(place / "kept.csv") == others + "ff,t_maze\n");
    engram::write_file(place / "kept.csv", std::string("a,b\n1,2\n"));
    CHECK(has(place.run({"--report", "--into", "kept.csv"}).err, "kept.csv: no column 'program'"));

    // Nothing is left to do, and nothing is done.
    const auto before = std::filesystem::last_write_time(place / "runs/t_maze-1/summary.json");
    f = place.run();
    CHECK(f.code == 0);
    CHECK(!has(f.out, "started"));
    CHECK(std::filesystem::last_write_time(place / "runs/t_maze-1/summary.json") == before);
    CHECK(has(place.run({"--status"}).out, "finished  runs/t_maze-2  4.0 k steps in "));
    CHECK(place.run({"--dry-run"}).out.empty());

    // Nothing is kept in silence that is not what the file asks for.
    for (const auto& [change, part] : std::vector<std::pair<std::string, std::string>>{
             {"steps=5000", "steps = 4000, and this campaign asks for 5000"},
             {"controller.hidden=9", "controller.hidden = 8, and this campaign asks for 9"},
             {"evaluate-every=100", "evaluate_every = 0, and this campaign asks for 100"}}) {
        f = place.run({change});
        CHECK(f.code == 2);
        CHECK(f.out.empty());
        CHECK(has(f.err, "engram-campaign: runs/t_maze-1 holds a run with " + part));
        CHECK(lines_with(f.err, "\n") == 1);
    }
    std::filesystem::remove(place / "runs/t_maze-1/config.json");
    CHECK(has(place.run().err, "runs/t_maze-1: there is a summary.json and no config.json"));
}

TEST_CASE("a campaign that is ended goes on where it stood, bit for bit") {
    const std::string lines = small("seeds = 1\nsteps = 300000\ncheckpoint-every = 20000\n");
    const workplace whole(lines);
    REQUIRE(whole.run().code == 0);
    const auto trains = [](const std::string& folder) {
        return lines_with(text_of(folder + "/metrics.csv"), "\n") > 5;
    };
    {  // By a signal: it ends its runs, which write a checkpoint.
        const workplace broken(lines);
        const std::string folder = broken / "runs/t_maze-1";
        for (const int signal : {SIGTERM, SIGINT}) {
            const program p = broken.start({"--nice"});
            REQUIRE(in_time([&] { return has(p.out(), "ed   runs/t_maze-1\n") && trains(folder); }));
            CHECK(::getpriority(PRIO_PROCESS, static_cast<::id_t>(p.process)) == 19);
            // A run's session has it too, where the scheduler shares among sessions.
            const auto told = [](const std::string& file) {
                std::string line;
                std::ifstream in("/proc/" + file);
                std::getline(in, line);
                return line;
            };
            const std::string self = std::to_string(p.process);
            if (!told("self/autogroup").empty())
                CHECK(has(told(std::to_string(std::stoi(told(self + "/task/" + self + "/children"))) + "/autogroup"),
                          " nice 19"));
            ::kill(p.process, signal);
            CHECK(p.end() == 130);
            CHECK(has(p.out(), "stopping: every run writes a checkpoint first\nstopped   runs/t_maze-1\n"));
            CHECK(!engram::read_json(folder + "/summary.json").at("finished").get<bool>());
            CHECK(has(broken.run({"--status"}).out, "stopped   runs/t_maze-1"));
        }
        const outcome f = broken.run();
        CHECK(f.code == 0);
        CHECK(has(f.out, "resumed   runs/t_maze-1\nfinished  runs/t_maze-1"));
        CHECK(lines_with(broken.log("t_maze-1"), "+ engram-ff train ") == 3);
        same_run(whole / "runs/t_maze-1", folder);
    }
    {  // By kill -9: its run goes on alone, and nobody starts it twice.
        const workplace broken(lines);
        const std::string folder = broken / "runs/t_maze-1";
        const program p = broken.start();
        REQUIRE(in_time([&] { return trains(folder); }));
        ::kill(p.process, SIGKILL);
        CHECK(p.end() == 128 + SIGKILL);
        CHECK(broken.run().code == 0);
        CHECK(lines_with(broken.log("t_maze-1"), "+ engram-ff train ") == 1);
        same_run(whole / "runs/t_maze-1", folder);
    }
}

TEST_CASE("a run that somebody else has is waited for") {
    const workplace place(small("seeds = 1\nsteps = 2000\n"));
    std::filesystem::create_directories(place / "runs/t_maze-1");
    const int log = ::open((place / "runs/t_maze-1/log.txt").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    REQUIRE(::flock(log, LOCK_EX | LOCK_NB) == 0);
    CHECK(has(place.run({"--status"}).out, "running   runs/t_maze-1"));
    const program p = place.start();
    REQUIRE(in_time([&] { return has(p.out(), "elsewhere runs/t_maze-1: somebody else runs it\n"); }));
    CHECK(place.log("t_maze-1").empty());
    ::close(log);
    CHECK(p.end() == 0);
    CHECK(has(p.out(), "started   runs/t_maze-1\nfinished  runs/t_maze-1"));
}

TEST_CASE("two campaigns on one folder share its runs") {
    const workplace place(small("seeds = 1 2 3\nsteps = 60000\n"));
    const program a = place.start({"--jobs", "1"}), b = place.start({"--jobs", "1"});
    CHECK(a.end() == 0);
    CHECK(b.end() == 0);
    for (const char* run : {"t_maze-1", "t_maze-2", "t_maze-3"}) {
        CHECK(lines_with(place.log(run), "+ engram-ff train ") == 1);
        CHECK(has(a.out() + b.out(), "finished  runs/" + std::string(run)));
    }
}

TEST_CASE("a run that fails is told of with the last line of its log, and the others go on") {
    const workplace place(
        small("seeds = 1\nsteps = 2000\nresults = some.csv\n"
              "[lost]\nweights = nowhere\n[last]\n[later]\nweights = runs/lost\n",
              "{section}"));
    outcome f = place.run({"--jobs", "1"});
    CHECK(f.code == 1);
    const std::string why = "exit code 2: engram-ff: --weights nowhere: there is no checkpoint in this folder";
    CHECK(has(f.out, "failed    runs/lost: " + why + "\n"));
    CHECK(has(f.out, "failed    runs/later: the run whose weights it begins with has failed\n"));
    CHECK(has(f.out, "finished  runs/last: train "));
    CHECK(has(f.out, "some.campaign: 1 of 3 done, 2 failed\n"));
    CHECK(!engram::exists_on_disk(place / "some.csv"));
    CHECK(has(place.run({"--status"}).out, "failed    runs/lost: " + why + "\n"));
    // What is finished can be told of.
    f = place.run({"--report"});
    CHECK(f.code == 0);
    CHECK(lines_with(text_of(place / "some.csv"), "\nff,t_maze,1,last,") == 2);
}

TEST_CASE("a page of what is done, running and failed") {
    const workplace place(
        small("seeds = 1 2\nsteps = 2000\npage = pages/state.html\n[<all>]\n[lost]\nseeds = 3\nweights = <nowhere>\n",
              "{section}-{seed}"));
    CHECK(has(place.run().err, "expected a section's name, got '<all>'"));
    place.write(
        small("seeds = 1 2\nsteps = 2000\npage = pages/state.html\n[all]\n[lost]\nseeds = 3\nweights = <nowhere>\n",
              "{section}-{seed}"));
    outcome f = place.run({"--status"});
    CHECK(f.code == 0);
    std::string page = text_of(place / "pages/state.html");
    CHECK(has(page, "<p class='lead'>some.campaign: 0 of 3 done</p>"));
    CHECK(has(page, "<tr><th>all t_maze</th><td class='state'><a class='waiting' "));
    CHECK(lines_with(page, "<a class='waiting' ") == 3);
    CHECK(place.run({"--jobs", "2"}).code == 1);
    page = text_of(place / "pages/state.html");
    CHECK(has(page, "some.campaign: 2 of 3 done, 1 failed"));
    CHECK(lines_with(page, "<a class='finished' style='--p:100%' href='../runs/all-") == 2);
    CHECK(lines_with(page, "<a class='failed' ") == 1);
    CHECK(has(page, "<h2>Failed</h2>"));
    CHECK(has(page,
              ">runs/lost-3</a></td><td class='text'>exit code 2: engram-ff: --weights &lt;nowhere&gt;: there is no"));
    CHECK(!has(page, "<nowhere>"));
    // A single run of it leaves the page alone.
    std::filesystem::remove(place / "pages/state.html");
    CHECK(place.run({"--only", "runs/all-1"}).code == 0);
    CHECK(!engram::exists_on_disk(place / "pages/state.html"));
    // A pattern of the shell chooses several; one that none has is refused.
    f = place.run({"--only", "runs/all-*", "--status"});
    CHECK(has(f.out, "runs/all-1"));
    CHECK(has(f.out, "runs/all-2"));
    CHECK(!has(f.out, "runs/lost-3"));
    f = place.run({"--only", "runs/al*l-3"});
    CHECK(f.code == 2);
    CHECK(has(f.err, "no run of some.campaign has the folder 'runs/al*l-3'"));
    // A page that cannot be written ends no runs.
    f = place.run({"page=some.campaign/state.html", "--only", "runs/all-1"});
    CHECK(f.code == 0);
    f = place.run({"page=some.campaign/state.html"});
    CHECK(f.code == 1);
    CHECK(lines_with(f.out, "cannot make the folder some.campaign") == 1);
}

TEST_CASE("a table of results names what varies, and has a row of a run that was not judged") {
    const workplace place(
        "programs = ff\ntasks = t_maze\nseeds = 1\nresults = {task}.csv\nsteps = 640 960\nrollout.environments = 8\n"
        "out = runs/{section}-{steps}\n[one]\nevaluate = 0\n[two]\nevaluate = 2\ncontroller.hidden = 8\n");
    const outcome f = place.run({"--jobs", "1"});
    INFO(f.err);
    REQUIRE(f.code == 0);
    const std::string csv = text_of(place / "t_maze.csv");
    INFO(csv);
    CHECK(has(csv, "\nprogram,task,seed,section,controller.hidden,level,unit,"));
    CHECK(has(csv, "\nff,t_maze,1,one,,,,,,,,,640,"));
    CHECK(has(csv, "\nff,t_maze,1,one,,,,,,,,,960,"));
    CHECK(lines_with(csv, "\nff,t_maze,1,two,8,") == 4);
    CHECK(lines_with(csv, "\n") == 8);
    // Results are of all that is finished, whichever of it was asked for.
    CHECK(place.run({"--only", "runs/one-640"}).code == 0);
    CHECK(text_of(place / "t_maze.csv") == csv);
    const auto needed = place.run({"weights=runs/one-640", "--only", "runs/two-960", "--dry-run"});
    CHECK(!has(needed.out, "--out runs/one-640"));
    // Into a kept table rows go by what varies, so those of a run that is gone stay.
    REQUIRE(place.run({"--report", "--into", "kept.csv"}).code == 0);
    const std::string kept = text_of(place / "kept.csv");
    std::filesystem::remove_all(place / "runs/one-960");
    REQUIRE(place.run({"--report", "--into", "kept.csv"}).code == 0);
    CHECK(text_of(place / "kept.csv") == kept);
}

TEST_CASE("rows of a kept table that this call does not have stay in it") {
    const workplace place(small("seeds = 1\nlearner.discount = 0.5 0.75\nsteps = 640\n", "{learner.discount}"));
    REQUIRE(place.run({"--jobs", "1"}).code == 0);
    REQUIRE(place.run({"--report", "--into", "kept.csv"}).code == 0);
    const std::string kept = text_of(place / "kept.csv");
    CHECK(has(kept, "\nff,t_maze,1,0.75,train,"));
    // Of one value alone: the column of the kept table says which rows are meant.
    REQUIRE(place.run({"learner.discount=0.5", "out=runs/0.5", "--report", "--into", "kept.csv"}).code == 0);
    CHECK(text_of(place / "kept.csv") == kept);
    // Two runs that this call cannot tell apart.
    std::string twice = kept;
    const auto steps = twice.find("\nff,t_maze,1,0.5,train,"), end = twice.find('\n', steps + 1);
    std::string longer = twice.substr(steps, end - steps);
    longer.replace(longer.find(",640,"), 5, ",960,");
    twice.insert(end, longer);
    engram::write_file(place / "kept.csv", twice);
    const outcome f = place.run({"learner.discount=0.5", "out=runs/0.5", "--report", "--into", "kept.csv"});
    CHECK(f.code == 2);
    CHECK(has(f.err,
              "kept.csv: has runs of 640 and of 960 steps as 'ff t_maze 1  0.5', and this campaign would put one in"));
    CHECK(text_of(place / "kept.csv") == twice);
}

TEST_CASE("campaigns that add to one table at once lose no row") {
    const workplace place(small("seeds = 1 2 3 4 5 6\nsteps = 640\n", "{seed}"));
    REQUIRE(place.run({"--jobs", "2"}).code == 0);
    for (int tries = 0; tries < 3; ++tries) {
        std::filesystem::remove(place / "kept.csv");
        std::vector<std::unique_ptr<program>> all;
        for (const std::string seed : {"1", "2", "3", "4", "5", "6"})
            all.push_back(std::make_unique<program>(
                "campaign",
                std::vector<std::string>{"some.campaign", "seeds=" + seed, "--report", "--into", "kept.csv"},
                place.path));
        for (const auto& one : all) CHECK(one->end() == 0);
        for (const std::string seed : {"1", "2", "3", "4", "5", "6"})
            CHECK(has(text_of(place / "kept.csv"), "\nff,t_maze," + seed + ",train,"));
    }
}

TEST_CASE("a run begins with the weights of one before it, once that is finished") {
    const workplace place(
        small("seeds = 1 2\nsteps = 2000\n"
              "[first]\n[second]\nweights = runs/first-{seed}\n",
              "{section}-{seed}"));
    const outcome f = place.run({"--jobs", "4"});
    INFO(f.out);
    CHECK(f.code == 0);
    for (const std::string seed : {"1", "2"}) {
        const auto ended = f.out.find("finished  runs/first-" + seed),
                   began = f.out.find("started   runs/second-" + seed);
        CHECK((ended != f.out.npos && began != f.out.npos && ended < began));
        CHECK(engram::read_json(place / ("runs/second-" + seed + "/config.json")).at("weights") ==
              "runs/first-" + seed);
    }
}

TEST_CASE("a summary of the wrong shape is refused with its name, and a score that was not finite is a dash") {
    const workplace place(small("seeds = 1\nsteps = 640\n"));
    REQUIRE(place.run().code == 0);
    const std::string path = place / "runs/t_maze-1/summary.json";
    const engram::json whole = engram::read_json(path);
    const auto with = [&](const char* key, const engram::json& value) {
        engram::json changed = whole;
        changed[key] = value;
        return changed;
    };
    for (const auto& [content, part] : std::vector<std::pair<engram::json, std::string>>{
             {engram::json::array(), "expected an object"},
             {with("finished", "yes"), "'finished' must be true or false, got \"yes\""},
             {with("levels", 3), "'levels' must be an object from level name to result"},
             {with("levels", {{"train", 3}}), "level 'train' must be an object"}}) {
        engram::write_json(path, content);
        for (const auto& words : std::vector<std::vector<std::string>>{{"--status"}, {"--dry-run"}, {}}) {
            const outcome f = place.run(words);
            CHECK(f.code == 2);
            CHECK(f.out.empty());
            CHECK(f.err == "engram-campaign: runs/t_maze-1/summary.json: " + part + "\n");
        }
    }
    engram::json unknown = whole;
    unknown["levels"]["train"]["mean"] = nullptr;
    engram::write_json(path, unknown);
    const outcome f = place.run({"--status"});
    CHECK(f.code == 0);
    CHECK(has(f.out, ": train -, holdout_extrapolate "));
}
