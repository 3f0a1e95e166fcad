// --device with a generative model: trained, scored and drawn on a device, here an emulated one, and back on the host.

#include <doctest/doctest.h>

#include <engram/device/operations.hpp>
#include <engram/io/npy.hpp>
#include <engram/learner/variational.hpp>
#include <engram/program/run_files.hpp>

#include "child.hpp"

using namespace engram;

namespace {

using drawing = agent<mlp, engram::lstm, no_memory, no_auxiliary, variational>;

finished on_device(const std::vector<std::string>& arguments) {
    return child<drawing, emulated<float>>(arguments, "drawing").wait();
}

finished train(const std::string& folder, std::vector<std::string> more) {
    std::vector<std::string> words{"train", "--out", folder, "--quiet", "--evaluate", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return on_device(words);
}

json levels_of(const std::string& folder) {
    return read_json(folder + "/summary.json")["levels"];
}

}  // namespace

TEST_CASE("a generative model is trained, scored and drawn on a device, and goes on on the host") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const finished trained = train(out, {"--task",
                                         "perfect_recall",
                                         "--steps",
                                         "960",
                                         "--threads",
                                         "2",
                                         "--device",
                                         "emulated",
                                         "--encoder.layers",
                                         "8",
                                         "--controller.hidden",
                                         "6",
                                         "--learner.latent",
                                         "3",
                                         "--learner.hidden",
                                         "6",
                                         "--wiring.features",
                                         "6",
                                         "--sequence.batch",
                                         "8",
                                         "--evaluate",
                                         "20"});
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const json config = read_json(out + "/config.json"), summary = read_json(out + "/summary.json");
    CHECK(config["device"] == "emulated");
    CHECK(summary["device"] == "emulated");
    CHECK(summary["updates"] == 8);
    CHECK(summary["kl_per_step"].size() == 15);

    // Without --device it is scored where it was trained; what the run found at its end is found again.
    REQUIRE(on_device({"evaluate", "--from", out, "--episodes", "20", "--quiet"}).code == 0);
    const json there = levels_of(out);
    CHECK(there == summary["levels"]);
    REQUIRE(on_device({"evaluate", "--from", out, "--episodes", "20", "--quiet", "--device", "cpu"}).code == 0);
    const json here = levels_of(out);
    CHECK(here != there);
    for (const auto& [level, score] : here.items()) {
        CHECK(score["mean"].get<double>() == doctest::Approx(there[level]["mean"].get<double>()).epsilon(1e-4));
        for (std::size_t t = 0; t < 15; ++t)
            CHECK(score["kl_per_step"][t].get<double>() ==
                  doctest::Approx(there[level]["kl_per_step"][t].get<double>()).epsilon(1e-3));
    }

    REQUIRE(on_device({"sample", "--from", out, "--out", folder / "there"}).code == 0);
    REQUIRE(on_device({"sample", "--from", out, "--out", folder / "here", "--device", "cpu"}).code == 0);
    for (const std::string name : {"observed", "generated", "kl"}) {
        const auto x = read_npy<float>((folder / "there") + "/" + name + ".npy"),
                   y = read_npy<float>((folder / "here") + "/" + name + ".npy");
        REQUIRE(x.values.size() == y.values.size());
        REQUIRE(x.values.size() > 0);
        for (std::size_t i = 0; i < x.values.size(); ++i)
            CHECK(x.values[i] == doctest::Approx(y.values[i]).epsilon(1e-3));
    }

    for (const auto& [steps, device] : {std::pair<std::string, std::string>{"1440", "cpu"}, {"1920", "emulated"}}) {
        const finished resumed = train(out, {"--resume", "--steps", steps, "--device", device});
        INFO(resumed.err);
        REQUIRE(resumed.code == 0);
        CHECK(read_json(out + "/summary.json")["device"] == device);
        CHECK(read_json(out + "/summary.json")["steps"] == std::stoi(steps));
    }
}

TEST_CASE("two parts of a run on a device are the run in one") {
    const temporary_folder folder;
    const std::vector<std::string> about{"--task",
                                         "perfect_recall",
                                         "--threads",
                                         "1",
                                         "--device",
                                         "emulated",
                                         "--encoder.layers",
                                         "8",
                                         "--learner.latent",
                                         "3",
                                         "--controller.hidden",
                                         "6",
                                         "--sequence.batch",
                                         "4"};
    const auto with = [&](const std::vector<std::string>& more) {
        auto words = about;
        words.insert(words.end(), more.begin(), more.end());
        return words;
    };
    REQUIRE(train(folder / "whole", with({"--steps", "480"})).code == 0);
    REQUIRE(train(folder / "parts", with({"--steps", "240"})).code == 0);
    REQUIRE(train(folder / "parts", {"--resume", "--steps", "480"}).code == 0);
    CHECK(checkpoint_of(folder / "whole") == checkpoint_of(folder / "parts"));
}

TEST_CASE("describe names the devices of a sequence model, and a missing one is said how to get") {
    CHECK(has(on_device({"describe"}).out, "emulated    the kernels of a device as loops on the host"));
    const finished missing = on_device({"describe", "--device", "cuda"});
    CHECK(missing.code == 2);
    CHECK(has(missing.err, "--device cuda: engram-drawing was built without CUDA; configure with"));
}
