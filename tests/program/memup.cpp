// SPDX-License-Identifier: MIT
// Programs of MemUP and of truncated BPTT from the outside: a run's folder, exact resumption, evaluation by the moving
// averages, answers to look at, and every mistake one sentence that writes nothing.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/memup.hpp>
#include <engram/program/run_files.hpp>

#include "child.hpp"

using namespace engram;

namespace {

using remembering = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, memup>;
using cut = remembering::with<truncated_supervised>;

// At a constant rate, which a run of half the length has too.
std::vector<std::string> copying(const std::string& out, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"train",   "--task",    "copy", "--out",      out,
                                 "--quiet", "--threads", "1",    "--evaluate", "40"};
    for (const char* s : {"task.items=2", "task.steps=30", "encoder.width=8", "controller.hidden=8", "sequence.batch=4",
                          "optimiser.final_fraction=1"})
        all.insert(all.end(), {"--set", s});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

template <class Agent>
void refuses(const std::string& out, const std::vector<std::string>& arguments, const std::string& part) {
    const finished f = run<Agent>(arguments, "remembering");
    INFO(f.err);
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    CHECK(has(f.err, part));
    CHECK(!std::filesystem::exists(out));
}

template <class Agent>
void runs_in_parts() {
    const temporary_folder folder;
    const std::string whole = folder / "whole", parts = folder / "parts";
    const finished all = run<Agent>(copying(whole, {"--steps", "4800"}), "remembering");
    INFO(all.err);
    REQUIRE(all.code == 0);
    REQUIRE(run<Agent>(copying(parts, {"--steps", "2400"}), "remembering").code == 0);
    REQUIRE(run<Agent>({"train", "--out", parts, "--resume", "--steps", "4800", "--evaluate", "40", "--quiet"},
                       "remembering")
                .code == 0);
    const json summary = read_json(whole + "/summary.json");
    CHECK(summary["levels"] == read_json(parts + "/summary.json")["levels"]);
    CHECK(summary["levels"]["train"]["unit"] == "% right");
    CHECK(summary["levels"]["holdout_interpolate"]["episodes"] == 40);
    CHECK(summary["steps"] == 4800);
    CHECK(summary["finished"] == true);
    CHECK(summary["cpu_seconds"].get<double>() > 0.0);
    // At least what its programs hold; less than the test's own process could.
    CHECK(summary["peak_memory_bytes"].get<double>() > summary.value("program_bytes", 1e6));
    CHECK(summary["peak_memory_bytes"].get<double>() < 4e9);

    REQUIRE(run<Agent>({"evaluate", "--from", whole, "--episodes", "40", "--quiet"}, "remembering").code == 0);
    CHECK(read_json(whole + "/summary.json")["levels"] == summary["levels"]);
    const finished looked = run<Agent>({"sample", "--from", whole}, "remembering");
    INFO(looked.err);
    CHECK(looked.code == 0);
    CHECK(has(looked.out, "wanted"));
    const auto answers = read_file(whole + "/sample/answers.csv");
    CHECK(std::count(answers.begin(), answers.end(), '\n') == 1 + 6 * 2);
    const finished described = run<Agent>({"describe", "--task", "copy"}, "remembering");
    INFO(described.err);
    CHECK(described.code == 0);
    CHECK(has(described.out, "permuted_mnist"));
    CHECK(!has(described.out, "perfect_recall"));
}

}  // namespace

TEST_CASE("memup: a run in two parts is the run in one, and is judged, described and looked at") {
    runs_in_parts<remembering>();
}

TEST_CASE("truncated BPTT: the same") {
    runs_in_parts<cut>();
}

TEST_CASE("memup: a run that is killed five times ends like the one that was not") {
    const temporary_folder folder;
    const std::string whole = folder / "whole", parts = folder / "parts";
    const std::vector<std::string> longer{"--steps", "120000", "--checkpoint-every", "1200"};
    REQUIRE(run<remembering>(copying(whole, longer), "remembering").code == 0);
    auto again = copying(parts, longer);
    again.push_back("--resume");
    std::mt19937 random(5);
    int killed = 0;
    for (int i = 0; i < 5; ++i) {
        child<remembering> program(again, "remembering");
        std::this_thread::sleep_for(std::chrono::milliseconds(30 + random() % 120));
        program.signal(SIGKILL);
        killed += program.wait().code == 128 + SIGKILL;
    }
    CHECK(killed > 0);
    REQUIRE(run<remembering>(again, "remembering").code == 0);
    CHECK(checkpoint_of(parts) == checkpoint_of(whole));
    CHECK(read_json(parts + "/summary.json")["levels"] == read_json(whole + "/summary.json")["levels"]);
}

TEST_CASE("a run begins with the weights of another one, on sequences of another length") {
    const temporary_folder folder;
    const std::string first = folder / "first", next = folder / "next", none = folder / "none";
    REQUIRE(run<remembering>(copying(first, {"--steps", "1200"}), "remembering").code == 0);
    // A rate of nothing: one update leaves the weights as they came.
    const std::vector<std::string> still{"--steps",       "80",        "--set", "optimiser.learning_rate=0", "--set",
                                         "task.steps=40", "--weights", first};
    const finished begun = run<remembering>(copying(next, still), "remembering");
    INFO(begun.err);
    REQUIRE(begun.code == 0);
    CHECK(read_json(next + "/config.json")["weights"] == first);
    const auto from = safetensors::read(first + "/checkpoint/latest.safetensors");
    const auto to = safetensors::read(next + "/checkpoint/latest.safetensors");
    int compared = 0;
    for (const auto& [name, t] : to.tensors) {
        if (!to.contains("optimiser.first." + name)) continue;
        CHECK(t.data == from.at(name).data);
        CHECK(to.at("slow." + name).shape == t.shape);
        ++compared;
    }
    CHECK(compared > 5);

    refuses<remembering>(none, copying(none, {"--weights", folder / "nowhere"}),
                         "there is no checkpoint in this folder");
    refuses<cut>(none, copying(none, {"--weights", first, "--set", "controller.hidden=9"}), "is [");
    const finished late =
        run<remembering>({"train", "--out", next, "--resume", "--weights", folder / "nowhere"}, "remembering");
    CHECK(late.code == 2);
    CHECK(has(late.err, "began with those of"));
}

TEST_CASE("mistakes are one sentence") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    refuses<remembering>(out, copying(out, {"--set", "learner.selected=0"}), "learner.selected: expected at least one");
    refuses<remembering>(out, copying(out, {"--set", "learner.every=21"}), "predictions every 21 steps");
    refuses<remembering>(out, copying(out, {"--set", "learner.rollout=31"}),
                         "longer than a sequence of copy, which has 30");
    refuses<remembering>(out, copying(out, {"--set", "task.markers=many"}), "task.markers");
    refuses<remembering>(out, {"train", "--task", "perfect_recall", "--out", out},
                         "perfect_recall is a task of sequences without targets");
    refuses<cut>(out, copying(out, {"--set", "learner.unroll=31"}), "longer than a sequence of copy, which has 30");
    refuses<recalling>(out, {"train", "--task", "t_maze", "--out", out, "--preset", "published"},
                       "preset published: there is none for engram-remembering");
}
