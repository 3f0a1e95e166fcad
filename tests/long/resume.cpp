// Twenty SIGKILLs at random moments of a training run with a memory: the final checkpoint is that of the run without
// any.

#include <doctest/doctest.h>

#include <chrono>
#include <random>
#include <thread>

#include "../program/child.hpp"

TEST_CASE("twenty random kills change nothing") {
    for (const std::string threads : {"1", "2"}) {
        const temporary_folder folder;
        const auto arguments = [&](const std::string& name, bool resume) {
            std::vector<std::string> all{
                "train",   "--task", "arbitrary_visuomotor_mapping", "--out", folder / name, "--threads", threads,
                "--steps", "400000", "--checkpoint-every",           "5000",  "--evaluate",  "0",         "--quiet"};
            if (resume) all.push_back("--resume");
            return all;
        };
        REQUIRE(run(arguments("whole", false)).code == 0);
        std::mt19937 random(static_cast<unsigned>(threads[0]));
        int kills = 0;
        while (kills < 20) {
            child program(arguments("killed", true));
            std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 900));
            program.signal(SIGKILL);
            REQUIRE(program.wait().code == 128 + SIGKILL);  // else the run is too short to be killed twenty times
            ++kills;
        }
        REQUIRE(run(arguments("killed", true)).code == 0);
        CHECK(checkpoint_of(folder / "whole") == checkpoint_of(folder / "killed"));
    }
}
