// SPDX-License-Identifier: MIT
// What a run gives to other programs: curves for TensorBoard that survive kills, and episodes as arrays.

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <numeric>
#include <sstream>
#include <thread>

#include <engram/io/event_file.hpp>
#include <engram/io/npy.hpp>

#include "child.hpp"

using namespace engram;

namespace {

std::string text_of(const std::string& path) {
    const bytes content = read_file(path);
    return {content.begin(), content.end()};
}

/// The steps of all events but the first one.
std::vector<std::int64_t> event_steps(const std::string& run) {
    const bytes content = read_file(run + "/events.out.tfevents.engram");
    event_reader in(content);
    REQUIRE(in.next());
    std::vector<std::int64_t> steps;
    while (in.next()) steps.push_back(in.step());
    CHECK(in.end() == content.size());
    return steps;
}

std::vector<std::int64_t> metric_steps(const std::string& run) {
    std::istringstream lines(text_of(run + "/metrics.csv"));
    std::string line;
    std::vector<std::int64_t> steps;
    for (std::getline(lines, line); std::getline(lines, line);) steps.push_back(std::stoll(line));
    return steps;
}

}  // namespace

TEST_CASE("a resumed run has every step once among its events") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    REQUIRE(run(short_training(out, {"--steps", "2400", "--tensorboard"})).code == 0);
    CHECK(event_steps(out) == std::vector<std::int64_t>{600, 1200, 1800, 2400});

    for (int kills = 0; kills < 3; ++kills) {
        child program(short_training(out, {"--steps", "1000000", "--checkpoint-every", "1800", "--resume"}));
        std::this_thread::sleep_for(std::chrono::milliseconds(60 + 45 * kills));
        program.signal(SIGKILL);
        CHECK(program.wait().code == 128 + SIGKILL);
    }
    const std::string more = std::to_string(metric_steps(out).back() + 1'000'000);
    child program(short_training(out, {"--steps", more, "--resume"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    program.signal(SIGINT);
    CHECK(program.wait().code == 130);
    CHECK(metric_steps(out).size() > 4);
    CHECK(event_steps(out) == metric_steps(out));
}

TEST_CASE("evaluations are events too, of their own steps") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    REQUIRE(run(short_training(
                    out, {"--steps", "1200", "--tensorboard", "--evaluate-every", "1200", "--evaluate-episodes", "1"}))
                .code == 0);
    CHECK(event_steps(out) == std::vector<std::int64_t>{600, 1200, 1200});
    const std::string events = text_of(out + "/events.out.tfevents.engram");
    for (const char* tag : {"train/reward_smooth", "train/learning_rate", "evaluate/train",
                            "evaluate/holdout_interpolate", "evaluate/holdout_extrapolate"})
        CHECK(has(events, tag));
    CHECK(!has(events, "train/step\x15"));
}

TEST_CASE("there are no events unless they are asked for, and another file of that name is left alone") {
    const temporary_folder folder;
    const std::string out = folder / "run", events = out + "/events.out.tfevents.engram";
    REQUIRE(run(short_training(out, {"--steps", "600"})).code == 0);
    CHECK(!std::filesystem::exists(events));
    write_file(events, "hello");
    const auto before = checkpoint_of(out);
    const finished f = run(short_training(out, {"--steps", "1200", "--resume"}));
    CHECK(f.code == 2);
    INFO(f.err);
    CHECK(has(f.err, "not an event file"));
    CHECK(text_of(events) == "hello");
    CHECK(checkpoint_of(out) == before);
}

TEST_CASE("episodes are arrays, a folder each") {
    const temporary_folder folder;
    const std::string out = folder / "run", all = out + "/sample/trajectories/";
    REQUIRE(run(short_training(out, {"--steps", "600"})).code == 0);
    const finished f = run({"sample", "--from", out, "--level", "train", "--seed", "5", "--episodes", "3"});
    INFO(f.err);
    REQUIRE(f.code == 0);
    std::istringstream table(text_of(all + "episodes.csv"));
    std::string line;
    std::getline(table, line);
    CHECK(line == "episode,seed,steps,reward");
    for (int e = 0; e < 3; ++e) {
        const std::string episode = all + "episode-000" + std::to_string(e) + "/";
        const auto observations = read_npy<float>(episode + "observations.npy");
        CHECK(observations.shape == std::vector<int>{50, 16, 16, 3});
        CHECK(read_npy<std::int32_t>(episode + "actions.npy").shape == std::vector<int>{50});
        const auto rewards = read_npy<float>(episode + "rewards.npy").values;
        REQUIRE(rewards.size() == 50);
        const auto resets = read_npy<std::uint8_t>(episode + "resets.npy").values;
        REQUIRE(resets.size() == 50);
        CHECK(resets[0] == 1);
        CHECK(std::accumulate(resets.begin(), resets.end(), 0) == 1);
        std::getline(table, line);
        const auto sum = static_cast<int>(std::accumulate(rewards.begin(), rewards.end(), 0.0f));
        CHECK(line == message(e, ",", 5 + e, ",50,", sum));
    }
    // The first one is the episode that `sample` shows; the second is another.
    for (const char* name : {"observations.npy", "actions.npy", "rewards.npy"})
        CHECK(text_of(all + "episode-0000/" + name) == text_of(out + "/sample/" + name));
    CHECK(text_of(all + "episode-0000/observations.npy") != text_of(all + "episode-0001/observations.npy"));

    REQUIRE(run({"sample", "--from", out, "--level", "train", "--seed", "6", "--episodes", "1"}).code == 0);
    CHECK(!std::filesystem::exists(all + "episode-0001"));
    const finished wrong = run({"sample", "--from", out, "--episodes", "-1"});
    CHECK(wrong.code == 2);
    CHECK(has(wrong.err, "--episodes: expected 0 or more, got -1"));
}
