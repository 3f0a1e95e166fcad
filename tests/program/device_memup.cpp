// SPDX-License-Identifier: MIT
// --device with MemUP, alone and as phases: a run on a device, here an emulated one, from training to evaluation, and
// back to the host.

#include <doctest/doctest.h>

#include <engram/controller/stacked_lstm.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/numbers_or_image.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/evaluate/run_folder.hpp>
#include <engram/learner/memup.hpp>
#include <engram/learner/memup_ppo.hpp>

#include "child.hpp"

using namespace engram;

namespace {

using device = emulated<float>;
using remembering = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, memup>;
using acting = agent<numbers_or_image, lstm, no_memory, no_auxiliary, memup_ppo>;

template <class Agent>
finished on_device(const std::vector<std::string>& arguments) {
    return child<Agent, device>(arguments, "remembering").wait();
}

std::vector<std::string> training_of(const std::string& task, const std::vector<std::string>& settings,
                                     const std::string& out, const std::vector<std::string>& more) {
    std::vector<std::string> all{"train", "--task", task, "--out", out, "--quiet", "--threads", "1"};
    for (const auto& s : settings) all.insert(all.end(), {"--set", s});
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

std::string read(const std::string& path) {
    const bytes content = read_file(path);
    return {content.begin(), content.end()};
}

/// Trains on the device, evaluates there and on the host, goes on on the host and again on the device.
template <class Agent>
void goes_to_the_host_and_back(const std::string& task, const std::vector<std::string>& settings,
                               const std::vector<std::string>& steps) {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const auto train = [&](const std::string& until, const std::vector<std::string>& more) {
        auto words = training_of(task, settings, out, {"--steps", until});
        words.insert(words.end(), more.begin(), more.end());
        const finished f = on_device<Agent>(words);
        INFO(f.err);
        REQUIRE(f.code == 0);
    };
    train(steps[0], {"--evaluate", "5", "--device", "emulated"});
    CHECK(has(read(out + "/config.json"), "\"device\": \"emulated\""));
    CHECK(has(read(out + "/summary.json"), "\"device\": \"emulated\""));
    CHECK(read_run(out).levels[0].episodes == 5);

    REQUIRE(on_device<Agent>({"evaluate", "--from", out, "--episodes", "20", "--quiet"}).code == 0);
    const auto there = read_run(out);
    REQUIRE(on_device<Agent>({"evaluate", "--from", out, "--episodes", "20", "--device", "cpu", "--quiet"}).code == 0);
    const auto here = read_run(out);
    for (std::size_t i = 0; i < here.levels.size(); ++i) {
        CHECK(here.levels[i].episodes == 20);
        CHECK(here.levels[i].mean == there.levels[i].mean);
    }
    REQUIRE(on_device<Agent>({"sample", "--from", out}).code == 0);

    train(steps[1], {"--evaluate", "0", "--resume", "--device", "cpu"});
    CHECK(has(read(out + "/summary.json"), "\"device\": \"cpu\""));
    train(steps[2], {"--evaluate", "0", "--resume", "--device", "emulated"});
    CHECK(read_run(out).steps == std::stoll(steps[2]));
}

}  // namespace

TEST_CASE("MemUP on a device: trained, evaluated by its averages, on the host and back") {
    goes_to_the_host_and_back<remembering>(
        "copy", {"task.items=2", "task.steps=30", "encoder.width=8", "controller.hidden=8", "sequence.batch=4"},
        {"480", "960", "1440"});
}

TEST_CASE("an agent that is trained in phases on a device: each of them, on the host and back") {
    // 160 steps of the detector, 240 of the memory.
    goes_to_the_host_and_back<acting>(
        "t_maze",
        {"task.length=8", "encoder.numbers.layers=8", "controller.hidden=8", "learner.detector.atoms=20",
         "rollout.environments=8", "rollout.unroll=10", "rollout.minibatches=2", "phases.detector_steps=160",
         "phases.detector.environments=8", "phases.detector.batch=8", "phases.detector.start=80",
         "phases.memory.steps=240", "phases.memory.batch=8"},
        {"480", "560", "720"});
}
