// Programs of sequence models from the outside: what a run leaves behind, exact resumption, pictures, and every mistake
// one sentence that writes nothing.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include <engram/encoder/identity.hpp>
#include <engram/evaluate/run_folder.hpp>
#include <engram/io/npy.hpp>
#include <engram/io/png.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/learner/variational.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/program/run_files.hpp>

#include "child.hpp"

using namespace engram;

namespace {

using introspective = agent<mlp, engram::lstm, introspection, no_auxiliary, variational>;
using least_recently = introspective::with<lru_access>;
using copying = agent<identity, engram::lstm, ntm, no_auxiliary, supervised>;

std::vector<std::string> plus(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

std::vector<std::string> recall(const std::string& out, const std::vector<std::string>& more = {}) {
    return plus({"train",
                 "--task",
                 "perfect_recall",
                 "--out",
                 out,
                 "--quiet",
                 "--threads",
                 "1",
                 "--steps",
                 "2400",
                 "--evaluate",
                 "40",
                 "--set",
                 "encoder.layers=16",
                 "--set",
                 "controller.hidden=8",
                 "--set",
                 "learner.latent=4",
                 "--set",
                 "learner.hidden=8",
                 "--set",
                 "sequence.batch=8"},
                more);
}

template <class Agent = introspective>
void refuses(const std::vector<std::string>& arguments, const std::string& part) {
    const finished f = run<Agent>(arguments, "recalling");
    INFO(f.err);
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    CHECK(has(f.err, part));
}

}  // namespace

TEST_CASE("a run holds KL a step, ELBO and the recall on both levels") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const finished f = run<introspective>(recall(out), "recalling");
    INFO(f.err);
    REQUIRE(f.code == 0);
    const json summary = read_json(out + "/summary.json");
    CHECK(summary["finished"] == true);
    CHECK(summary["steps"] == 2400);
    CHECK(summary["updates"] == 20);
    CHECK(summary["kl_per_step"].size() == 15);
    for (const char* level : {"train", "holdout_interpolate"}) {
        const json& r = summary["levels"][level];
        CHECK(r["unit"] == "nats");
        CHECK(r["episodes"] == 40);
        CHECK(r["recall_step"] == 10);
        CHECK(r["kl_per_step"].size() == 15);
        double before = 0;
        for (std::size_t t = 0; t < 10; ++t) before += r["kl_per_step"][t].get<double>() / 10;
        CHECK(r["kl_before_recall"].get<double>() == doctest::Approx(before));
        CHECK(r["recall_over_before"].get<double>() ==
              doctest::Approx(r["kl_at_recall"].get<double>() / r["kl_before_recall"].get<double>()));
        CHECK(r["stderr"].get<double>() > 0);
    }
    CHECK(summary["elbo"].get<double>() ==
          doctest::Approx(-summary["levels"]["holdout_interpolate"]["mean"].get<double>()));
    const auto record = read_run(out);
    CHECK(record.metrics.rows >= 2);

    const finished again = run<introspective>({"evaluate", "--from", out, "--episodes", "40", "--quiet"}, "recalling");
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK(read_json(out + "/summary.json")["levels"] == summary["levels"]);
}

TEST_CASE("a level that is scored when it is named stays out of the summary") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    auto words = recall(out);
    std::replace(words.begin(), words.end(), std::string("perfect_recall"), std::string("parity_recall"));
    REQUIRE(run<introspective>(words, "recalling").code == 0);
    const json before = read_json(out + "/summary.json");
    CHECK(before["levels"].size() == 2);
    const finished f =
        run<introspective>({"evaluate", "--from", out, "--episodes", "40", "--level", "wrong_parity"}, "recalling");
    INFO(f.err);
    CHECK(f.code == 0);
    CHECK(has(f.out, "\nwrong_parity "));
    CHECK(read_json(out + "/summary.json") == before);
    refuses({"evaluate", "--from", out, "--level", "wrong_party"}, "did you mean 'wrong_parity'?");
}

TEST_CASE("a run in two parts is the run in one") {
    const temporary_folder folder;
    const std::string whole = folder / "whole", parts = folder / "parts";
    REQUIRE(run<introspective>(recall(whole, {"--evaluate", "0"}), "recalling").code == 0);
    const finished first = run<introspective>(recall(parts, {"--evaluate", "0", "--steps", "1200"}), "recalling");
    INFO(first.err);
    REQUIRE(first.code == 0);
    const finished second = run<introspective>(
        {"train", "--out", parts, "--resume", "--steps", "2400", "--evaluate", "0", "--quiet"}, "recalling");
    INFO(second.err);
    REQUIRE(second.code == 0);
    const auto a = safetensors::read(whole + "/checkpoint/latest.safetensors"),
               b = safetensors::read(parts + "/checkpoint/latest.safetensors");
    REQUIRE(a.tensors.size() == b.tensors.size());
    for (const auto& [key, tensor] : a.tensors) {
        const std::string name = key;  // clang before 16 captures no binding
        CAPTURE(name);
        CHECK(tensor.data == b.tensors.at(name).data);
    }
}

TEST_CASE("a sample is strips, weights and the numbers behind them") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    REQUIRE(run<introspective>(recall(out, {"--evaluate", "0"}), "recalling").code == 0);
    const finished f = run<introspective>({"sample", "--from", out, "--alone-from", "7"}, "recalling");
    INFO(f.err);
    REQUIRE(f.code == 0);
    CHECK(has(f.out, "6 sequences of 15 steps, drawn alone from step 7 on"));
    const auto seen = read_npy<float>(out + "/sample/observed.npy"),
               drawn = read_npy<float>(out + "/sample/generated.npy"),
               read = read_npy<float>(out + "/sample/read_weights.npy");
    CHECK(seen.shape == drawn.shape);
    CHECK(seen.values.size() == 15u * 6u * 14u * 14u);
    CHECK(read.values.size() == 15u * 6u * 5u * 15u);
    for (const char* name : {"strips.png", "read_weights.png"}) CHECK(file_exists(out + "/sample/" + name));
    refuses({"sample", "--from", out, "--alone-from", "16"}, "--alone-from: expected a step in 0..15, got 16");
    refuses({"sample", "--from", out, "--level", "holdout_interpolat"}, "did you mean 'holdout_interpolate'?");
    refuses({"evaluate", "--from", out, "--level", "trian"}, "did you mean 'train'?");
}

TEST_CASE("mistakes are one sentence and write nothing") {
    const temporary_folder folder;
    const auto train = recall(folder / "run");
    refuses(plus(train, {"--task", "perfect_recal"}), "did you mean 'perfect_recall'?");
    refuses(plus(train, {"--task", "t_maze"}), "t_maze is a task to act in, and engram-recalling draws sequences");
    refuses(plus(train, {"--mode", "asynchronous"}), "only agents act asynchronously");
    refuses(plus(train, {"--threads", "9"}), "threads: expected 1 to 8");
    refuses(plus(train, {"--memory.slots", "0"}), "memory.slots: expected at least one slot, got 0");
    refuses(plus(train, {"--memory.heads", "0"}), "memory.heads: expected at least one head, got 0");
    refuses(plus(train, {"--memory.slots", "12"}),
            "perfect_recall: a sequence has 15 steps, but the memory holds 12; set memory.slots=15");
    refuses(plus(train, {"--memory.order", "agge"}), "did you mean 'age'?");
    refuses(plus(train, {"--learner.likelihood", "gausian"}), "did you mean 'gaussian'?");
    refuses(plus(train, {"--learner.latent", "0"}), "learner.latent: expected at least one dimension, got 0");
    refuses(plus(train, {"--sequence.batch", "0"}), "sequence.batch: expected at least one sequence, got 0");
    refuses(plus(train, {"--task", "dynamic_dependency", "--task.items", "5", "--memory.slots", "30"}),
            "dynamic_dependency");
    refuses(plus(train, {"--data", folder / "nothing"}), "nothing");
    refuses<least_recently>(plus(train, {"--memory.heads", "8", "--memory.slots", "4"}),
                            "memory.heads: 8 heads write to 8 different slots, but memory.slots is 4");
    refuses<least_recently>(plus(train, {"--memory.word", "0"}), "memory.word: expected at least one column, got 0");
    refuses<copying>({"train", "--task", "perfect_recall", "--learner.targets", "bits", "--out", folder / "run"},
                     "perfect_recall is a task of sequences without targets, and engram-recalling learns targets");
    CHECK(folder.files() == 0);
}

TEST_CASE("damaged data: one sentence, nothing written") {
    const temporary_folder folder, data;
    const auto train = recall(folder / "run", {"--data", data.path, "--stimuli", "mnist"});
    refuses(train, "mnist");
    std::filesystem::create_directory(data / "mnist");
    for (const char* name :
         {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"})
        std::ofstream(data / (std::string("mnist/") + name)) << "\0\0\10\3\0\0\0\7";
    refuses(train, "train-");
    CHECK(folder.files() == 0);
}

TEST_CASE("copying: wrong bits for every length") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const finished f = run<copying>({"train", "--task", "bit_copy", "--out", out, "--quiet", "--threads", "1",
                                     "--steps", "6720", "--evaluate", "16", "--set", "controller.hidden=8"},
                                    "copying");
    INFO(f.err);
    REQUIRE(f.code == 0);
    const json summary = read_json(out + "/summary.json");
    CHECK(summary["levels"].size() == 21);
    CHECK(summary["levels"]["length_1"]["unit"] == "wrong bits a sequence");
    // Untrained, half of 8 bits are wrong at each step.
    CHECK(summary["levels"]["length_20"]["mean"].get<double>() == doctest::Approx(80).epsilon(0.3));
    refuses<copying>({"sample", "--from", out}, "copying");
}

TEST_CASE("describe names the parameters and the tasks") {
    const finished f = run<introspective>({"describe", "--task", "rotation"}, "recalling");
    CHECK(f.code == 0);
    for (const char* part : {"variational", "introspection", "total", "similarity_cued_recall", "memory.order"})
        CHECK(has(f.out, part));
}
