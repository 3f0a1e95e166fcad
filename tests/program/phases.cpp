// SPDX-License-Identifier: MIT
// A program whose agent acts on a memory trained before: three phases in one run, killed and resumed in any of them,
// and every mistake one sentence.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include <engram/controller/lstm.hpp>
#include <engram/encoder/numbers_or_image.hpp>
#include <engram/learner/memup_ppo.hpp>
#include <engram/program/run_files.hpp>

#include "child.hpp"

using namespace engram;

namespace {

using acting = agent<numbers_or_image, lstm, no_memory, no_auxiliary, memup_ppo>;

std::vector<std::string> maze(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"train",
                                 "--task",
                                 "t_maze",
                                 "--out",
                                 out,
                                 "--quiet",
                                 "--steps",
                                 "120000",
                                 "--threads",
                                 "1",
                                 "--evaluate",
                                 "20",
                                 "--checkpoint-every",
                                 "5000"};
    for (const char* s : {"task.length=12", "encoder.numbers.layers=8", "controller.hidden=12",
                          "learner.detector.atoms=20", "rollout.environments=16", "phases.detector_steps=40000",
                          "phases.detector.environments=16", "phases.detector.batch=16", "phases.detector.start=320",
                          "phases.memory.steps=30000", "phases.memory.batch=16"})
        all.insert(all.end(), {"--set", s});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

void refuses(const std::vector<std::string>& arguments, const std::string& part) {
    const finished f = run<acting>(arguments, "acting");
    INFO(f.err);
    CHECK(f.code == 2);
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    CHECK(has(f.err, part));
}

}  // namespace

TEST_CASE("three phases by one command; a run that is killed in any of them ends like the one that was not") {
    const temporary_folder folder;
    const std::string whole = folder / "whole", parts = folder / "parts";
    const finished all = run<acting>(maze(whole), "acting");
    INFO(all.err);
    REQUIRE(all.code == 0);
    const json summary = read_json(whole + "/summary.json");
    CHECK(summary["finished"] == true);
    CHECK(summary["levels"]["train"]["episodes"] == 20);
    const auto table = read_file(whole + "/metrics.csv");
    const std::string text(table.begin(), table.end());
    CHECK(has(text, "detector_loss,memory_uncertain_loss,memory_current_loss,policy_loss,value_loss,entropy_loss"));

    std::mt19937 random(3);
    auto again = maze(parts);
    again.push_back("--resume");
    int killed = 0;
    for (int i = 0; i < 6; ++i) {
        child<acting> program(again, "acting");
        std::this_thread::sleep_for(std::chrono::milliseconds(30 + random() % 200));
        program.signal(SIGKILL);
        killed += program.wait().code == 128 + SIGKILL;
    }
    CHECK(killed > 0);
    const finished rest = run<acting>(again, "acting");
    INFO(rest.err);
    REQUIRE(rest.code == 0);
    CHECK(checkpoint_of(parts) == checkpoint_of(whole));
    CHECK(read_json(parts + "/summary.json")["levels"] == summary["levels"]);
    CHECK(run<acting>({"evaluate", "--from", whole, "--episodes", "20", "--quiet"}, "acting").code == 0);
}

TEST_CASE("mistakes are one sentence") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    refuses(maze(out, {"--steps", "60000"}), "take 70000 steps, and the run has 60000");
    refuses(maze(out, {"--set", "learner.memory.selected=0"}), "learner.memory.selected: expected at least one target");
    refuses(maze(out, {"--set", "learner.memory.every=3"}), "predictions every 3 steps, but a rollout has 1");
    refuses(maze(out, {"--set", "learner.memory.rollout=30"}),
            "a rollout of 30 steps is longer than a sequence of t_maze");
    refuses(maze(out, {"--mode", "asynchronous"}), "trains in phases, and each of them is synchronous");
    CHECK(!std::filesystem::exists(out));

    // Interrupted in the first phase: there is nothing yet that acts.
    child<acting> program(maze(out, {"--set", "phases.detector_steps=900000000", "--steps", "1000000000"}), "acting");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    program.signal(SIGINT);
    REQUIRE(program.wait().code == 130);
    refuses({"evaluate", "--from", out}, "is a checkpoint of the detector's phase");

    const std::string parts = folder / "parts";
    refuses(maze(parts, {"--set", "rollout.minibatches=5"}), "do not divide into 5 equal minibatches");
    CHECK(!std::filesystem::exists(parts));
}
