// --device with a model that learns from unrolls and answers: trained, scored and asked on a device, here an emulated
// one, and back on the host.

#include <doctest/doctest.h>

#include <engram/controller/srnn.hpp>
#include <engram/device/operations.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/program/run_files.hpp>

#include "child.hpp"

using namespace engram;

namespace {

using answering = agent<token_embedding, srnn, no_memory, no_auxiliary, truncated_supervised>;

finished on_device(const std::vector<std::string>& arguments) {
    return child<answering, emulated<float>>(arguments, "answering").wait();
}

std::string read(const std::string& path) {
    const engram::bytes content = engram::read_file(path);
    return {content.begin(), content.end()};
}

}  // namespace

TEST_CASE("a model of unrolls is trained, scored and asked on a device, and goes on on the host") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const std::vector<std::string> quiet{"train", "--out", out, "--quiet"};
    const auto train = [&](std::vector<std::string> more) {
        more.insert(more.begin(), quiet.begin(), quiet.end());
        return on_device(more);
    };
    const finished trained =
        train({"--task",           "copy", "--task.steps",        "30", "--task.items",     "4",
               "--steps",          "2000", "--threads",           "2",  "--device",         "emulated",
               "--encoder.width",  "6",    "--controller.hidden", "8",  "--learner.unroll", "8",
               "--sequence.batch", "4",    "--evaluate",          "10"});
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const json summary = read_json(out + "/summary.json");
    CHECK(summary["device"] == "emulated");
    CHECK(summary["steps"].get<int>() >= 2000);

    REQUIRE(on_device({"evaluate", "--from", out, "--episodes", "10", "--quiet"}).code == 0);
    CHECK(read_json(out + "/summary.json")["levels"] == summary["levels"]);
    REQUIRE(on_device({"evaluate", "--from", out, "--episodes", "10", "--quiet", "--device", "cpu"}).code == 0);
    CHECK(read_json(out + "/summary.json")["levels"] == summary["levels"]);

    REQUIRE(on_device({"sample", "--from", out, "--out", folder / "there"}).code == 0);
    REQUIRE(on_device({"sample", "--from", out, "--out", folder / "here", "--device", "cpu"}).code == 0);
    CHECK(read((folder / "there") + "/answers.csv") == read((folder / "here") + "/answers.csv"));

    REQUIRE(train({"--resume", "--steps", "3000", "--evaluate", "0", "--device", "cpu"}).code == 0);
    REQUIRE(train({"--resume", "--steps", "4000", "--evaluate", "0", "--device", "emulated"}).code == 0);
    CHECK(read_json(out + "/summary.json")["steps"].get<int>() >= 4000);
}
