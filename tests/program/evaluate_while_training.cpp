// --evaluate-every: what the judged levels give while a run trains, in levels.csv; it changes nothing of the training,
// and interruptions change nothing of it.

#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <thread>

#include <engram/evaluate/run_folder.hpp>

#include "child.hpp"

namespace {

std::string text_of(const std::string& path) {
    const engram::bytes content = engram::read_file(path);
    return {content.begin(), content.end()};
}

/// 120 steps an update.
std::vector<std::string> evaluated(const std::string& folder, std::vector<std::string> more = {}) {
    std::vector<std::string> all =
        short_training(folder, {"--steps", "3600", "--evaluate-every", "500", "--evaluate-episodes", "3"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

}  // namespace

TEST_CASE("every judged level has a row each time that a multiple of the interval is reached") {
    const temporary_folder folder;
    const finished f = run(evaluated(folder / "run"));
    INFO(f.err);
    REQUIRE(f.code == 0);
    const auto record = engram::read_run(folder / "run");
    REQUIRE(record.curves.size() == 3);
    CHECK(record.curves[0].level == "train");
    CHECK(record.curves[1].level == "holdout_interpolate");
    CHECK(record.curves[2].level == "holdout_extrapolate");
    for (const auto& curve : record.curves) {
        // The first updates at or behind 500, 1000, ... 3500.
        CHECK(curve.step == std::vector<double>{600, 1080, 1560, 2040, 2520, 3000, 3600});
        for (const double episodes : curve.episodes) CHECK(episodes == 3);
        for (const double mean : curve.mean) CHECK((mean >= 0 && mean <= 75));
    }
    CHECK(record.fidelity() == "small");
    CHECK(record.levels.empty());  // --evaluate 0: nothing after training
}

TEST_CASE("training is the same bits with and without it") {
    const temporary_folder folder;
    REQUIRE(run(short_training(folder / "without", {"--steps", "3600"})).code == 0);
    REQUIRE(run(evaluated(folder / "with")).code == 0);
    CHECK(checkpoint_of(folder / "without") == checkpoint_of(folder / "with"));
    CHECK(!std::filesystem::exists(folder / "without/levels.csv"));
}

TEST_CASE("a run that is killed again and again has neither missing nor repeated rows") {
    const temporary_folder folder;
    const std::vector<std::string> longer{"--steps", "24000", "--evaluate-every", "700"};
    REQUIRE(run(evaluated(folder / "whole", longer)).code == 0);
    auto arguments = evaluated(folder / "killed", longer);
    arguments.push_back("--resume");
    std::mt19937 random(1);
    int killed = 0;
    for (int i = 0; i < 6; ++i) {
        child program(arguments);
        std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 130));
        program.signal(SIGKILL);
        killed += program.wait().code == 128 + SIGKILL;
    }
    CHECK(killed > 0);
    REQUIRE(run(arguments).code == 0);
    CHECK(checkpoint_of(folder / "whole") == checkpoint_of(folder / "killed"));
    CHECK(text_of(folder / "whole/levels.csv") == text_of(folder / "killed/levels.csv"));
}

TEST_CASE("Ctrl-C while it evaluates leaves that to the next part") {
    const temporary_folder folder;
    const std::vector<std::string> slow{"--evaluate-episodes", "2000"};
    REQUIRE(run(evaluated(folder / "whole", slow)).code == 0);
    auto arguments = evaluated(folder / "part", slow);
    arguments.push_back("--resume");
    int stopped = 0;
    for (int i = 0; i < 4; ++i) {  // nearly all of the time is evaluation
        child program(arguments);
        std::this_thread::sleep_for(std::chrono::milliseconds(60 + 40 * i));
        program.signal(SIGINT);
        stopped += program.wait().code == 130;
    }
    CHECK(stopped > 0);
    REQUIRE(run(arguments).code == 0);
    CHECK(text_of(folder / "whole/levels.csv") == text_of(folder / "part/levels.csv"));
}

TEST_CASE("a run goes on with the interval that it began with, and a fresh one forgets an old table") {
    const temporary_folder folder;
    REQUIRE(run(evaluated(folder / "run")).code == 0);
    REQUIRE(run({"train", "--out", folder / "run", "--resume", "--steps", "4800", "--quiet"}).code == 0);
    CHECK(engram::read_run(folder / "run").curves[0].step.back() == 4560);
    std::filesystem::remove(folder / "run/checkpoint/latest.safetensors");
    REQUIRE(run(short_training(folder / "run", {"--steps", "600"})).code == 0);
    CHECK(!std::filesystem::exists(folder / "run/levels.csv"));
}

TEST_CASE("an asynchronous run is evaluated too") {
    const temporary_folder folder;
    REQUIRE(run(evaluated(folder / "run", {"--mode", "asynchronous", "--threads", "2"})).code == 0);
    const auto record = engram::read_run(folder / "run");
    REQUIRE(record.curves.size() == 3);
    CHECK(record.curves[2].step.size() == 7);
}

TEST_CASE("mistakes are answered") {
    const temporary_folder folder;
    CHECK(run(evaluated(folder / "a", {"--evaluate-every", "-1"})).code == 2);
    CHECK(run(evaluated(folder / "b", {"--evaluate-episodes", "0"})).code == 2);
    CHECK(run(evaluated(folder / "c", {"--evaluate-every", "often"})).code == 2);
    REQUIRE(run(evaluated(folder / "d")).code == 0);
    engram::write_file(folder / "d/levels.csv", std::string("step,mean\n1,2\n"));
    const auto f = run({"train", "--out", folder / "d", "--resume", "--steps", "4800", "--quiet"});
    CHECK(f.code == 2);
    CHECK(f.err.find("levels.csv") != std::string::npos);
}
