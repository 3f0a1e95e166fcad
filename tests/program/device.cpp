// --device: a run on a device from training to sampling, here on an emulated one, and back to the host.

#include <doctest/doctest.h>

#include <algorithm>

#include <engram/device/operations.hpp>
#include <engram/evaluate/run_folder.hpp>
#include <engram/program/configuration.hpp>
#include <engram/program/run_files.hpp>

#include "child.hpp"

namespace {

using device = engram::emulated<float>;

std::vector<std::string> plus(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// As short_training() of a model without memory and controller.
std::vector<std::string> words(const std::string& folder, const std::vector<std::string>& more) {
    return plus({"train", "--task", "arbitrary_visuomotor_mapping", "--out", folder, "--threads", "1", "--quiet",
                 "--task.stimulus_count", "100", "--encoder.layers", "8", "--rollout.environments", "12",
                 "--rollout.unroll", "10"},
                more);
}

finished on_device(const std::vector<std::string>& arguments) {
    return child<reacting, device>(arguments, "reacting").wait();
}

std::string read(const std::string& path) {
    const engram::bytes content = engram::read_file(path);
    return {content.begin(), content.end()};
}

}  // namespace

TEST_CASE("a run on a device is trained, evaluated, sampled, and goes on on the host") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const finished trained = on_device(words(out, {"--steps", "480", "--evaluate", "5", "--device", "emulated"}));
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    CHECK(has(read(out + "/config.json"), "\"device\": \"emulated\""));
    CHECK(has(read(out + "/summary.json"), "\"device\": \"emulated\""));
    CHECK(has(read(out + "/summary.json"), "\"environments\": \"emulated\""));
    const auto record = engram::read_run(out);
    CHECK(record.steps == 480);
    REQUIRE(record.levels.size() == 3);
    CHECK(record.levels[0].episodes == 5);

    // Without --device it is evaluated where it was trained; the host gives the same scores for the same weights.
    REQUIRE(on_device({"evaluate", "--from", out, "--episodes", "20"}).code == 0);
    const auto there = engram::read_run(out);
    REQUIRE(on_device({"evaluate", "--from", out, "--episodes", "20", "--device", "cpu"}).code == 0);
    const auto here = engram::read_run(out);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(here.levels[i].episodes == 20);
        CHECK(here.levels[i].mean == there.levels[i].mean);
    }
    REQUIRE(on_device({"sample", "--from", out, "--episodes", "1"}).code == 0);
    const std::string rewards = read(out + "/sample/rewards.npy");
    REQUIRE(on_device({"sample", "--from", out, "--device", "cpu"}).code == 0);
    CHECK(read(out + "/sample/rewards.npy") == rewards);

    const finished resumed =
        on_device(words(out, {"--steps", "960", "--evaluate", "0", "--resume", "--device", "cpu"}));
    INFO(resumed.err);
    REQUIRE(resumed.code == 0);
    CHECK(has(read(out + "/summary.json"), "\"device\": \"cpu\""));
    CHECK(has(read(out + "/summary.json"), "\"environments\": \"cpu\""));
    const finished again =
        on_device(words(out, {"--steps", "1440", "--evaluate", "0", "--resume", "--device", "emulated"}));
    INFO(again.err);
    REQUIRE(again.code == 0);
    CHECK(engram::read_run(out).steps == 1440);
}

TEST_CASE("describe names the devices of a program, and says of one that it lacks how to get it") {
    const std::string all = on_device({"describe"}).out;
    CHECK(has(all, "\ndevices\n  cpu "));
    CHECK(has(all, "emulated    the kernels of a device as loops on the host"));
    CHECK(has(on_device({"describe", "--device", "cpu"}).out, "hardware threads"));
    const finished missing = on_device({"describe", "--device", "cuda"});
    CHECK(missing.code == 2);
    CHECK(has(missing.err,
              "--device cuda: engram-reacting was built without CUDA; configure with "
              "-DENGRAM_CUDA_PROGRAMS=ON"));
    CHECK(has(on_device({"describe", "--device", "emulatd"}).err, "did you mean 'emulated'?"));
    // An ordinary program has no emulated device.
    CHECK(has(run<reacting>({"describe", "--device", "emulated"}, "reacting").err, "unknown device 'emulated'"));
    CHECK_FALSE(has(run<reacting>({"describe"}, "reacting").out, "emulated"));
}

TEST_CASE("products in bfloat16 are the host's") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const char* const sentence =
        "--products bfloat16: products in bfloat16 are the host's, --device emulated has float ones; expected "
        "--products "
        "float or --device cpu";
    const finished refused = on_device(words(out, {"--device", "emulated", "--products", "bfloat16"}));
    CHECK(refused.code == 2);
    CHECK(has(refused.err, sentence));
    CHECK_FALSE(engram::file_exists(out));
    REQUIRE(on_device(words(out, {"--steps", "480", "--evaluate", "0", "--products", "bfloat16"})).code == 0);
    CHECK(has(on_device({"evaluate", "--from", out, "--device", "emulated"}).err, sentence));
    CHECK(on_device({"evaluate", "--from", out, "--device", "emulated", "--products", "float"}).code == 0);
}

TEST_CASE("a device trains asynchronously, and the run goes on on the host") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const auto train = [&](const char* steps, const char* on) {
        const finished f = on_device(words(out, {"--steps", steps, "--evaluate", "0", "--mode", "asynchronous",
                                                 "--threads", "3", "--resume", "--device", on}));
        INFO(f.err);
        REQUIRE(f.code == 0);
        CHECK(has(read(out + "/summary.json"), std::string("\"device\": \"") + on + "\""));
    };
    train("480", "emulated");
    train("960", "cpu");
    train("1440", "emulated");
    CHECK(engram::read_run(out).steps >= 1440);
}

TEST_CASE("a device with too little memory says so in one sentence and leaves nothing behind") {
    const temporary_folder folder;
    const finished f =
        child<reacting, device>(words(folder / "run", {"--steps", "480", "--device", "emulated"}), "reacting", [] {
            engram::emulated_memory::limit = 100'000;
        }).wait();
    CHECK(f.code == 2);
    CHECK(
        has(f.err, "engram-reacting: device 'emulated': 1 MiB were asked for, of 0 MiB 0 MiB are free; use a smaller"));
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    CHECK_FALSE(engram::file_exists(folder / "run"));
}
