// Every mistake is one sentence with the nearest valid name or what was expected, exit code 2, and changes nothing.

#include <doctest/doctest.h>

#include <algorithm>

#include <engram/io/json.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/program/world.hpp>

#include "child.hpp"

namespace {

void refuses(const std::vector<std::string>& arguments, const std::string& part) {
    const finished f = run(arguments);
    CHECK(f.code == 2);
    CHECK(f.out.empty());
    CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
    INFO(f.err);
    CHECK(has(f.err, part));
}

std::vector<std::string> plus(std::vector<std::string> a, const std::vector<std::string>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

}  // namespace

TEST_CASE("unknown names are answered with the nearest valid one") {
    const temporary_folder folder;
    const auto train = short_training(folder / "run");
    refuses({"trian"}, "unknown command 'trian'; did you mean 'train'?");
    refuses(plus(train, {"--sead", "1"}), "unknown train flag '--sead'; did you mean '--seed'?");
    refuses(plus(train, {"-x"}), "unknown train flag '-x'");
    refuses(plus(train, {"--task", "continous_recognition"}), "did you mean 'continuous_recognition'?");
    refuses(plus(train, {"--set", "memory.slot=5"}), "unknown setting 'memory.slot'; did you mean 'memory.slots'?");
    refuses(plus(train, {"--memory.slot", "5"}), "unknown setting 'memory.slot'; did you mean 'memory.slots'?");
    refuses(
        plus(train, {"--task.length", "120"}),
        "task.length: the task arbitrary_visuomotor_mapping does not read it; it reads task.fidelity, task.scheme, ");
    refuses(plus(train, {"--optimizer.clip=5"}), "did you mean 'optimiser.clip'?");
    refuses(plus(train, {"--preset", "papr"}), "unknown preset 'papr'; did you mean 'paper'?");
    refuses(plus(train, {"--mode", "async"}), "did you mean 'asynchronous'?");
    refuses(plus(train, {"--device", "cudda"}), "did you mean 'cuda'?");
    refuses(plus(train, {"--stimuli", "mnits"}), "did you mean 'mnist'?");
    refuses(plus(train, {"--task.fidelity", "papper"}), "did you mean 'paper'?");
    refuses(plus(train, {"--optimiser.kind", "adm"}), "did you mean 'adam'?");
    refuses({"describe", "--task", "t_mase"}, "did you mean 't_maze'?");
    refuses({"--versoin"}, "unknown command '--versoin'; expected one of train, evaluate, describe, sample");
    refuses(plus(train, {"--task", "chess"}), "unknown task 'chess'; expected one of ");
    refuses(plus(train, {"--task", "copy"}),
            "copy is a task of sequences with targets, and engram-recalling acts; expected one of ");
    refuses({"describe", "--task", "perfect_recall"}, "perfect_recall is a task of sequences without targets");
    CHECK(folder.files() == 0);
}

TEST_CASE("worlds elsewhere: what is asked for is looked at before anybody is called") {
    const temporary_folder folder;
    auto train = short_training(folder / "run");
    refuses(plus(train, {"--world", "rpc://localhost:10000"}), "a world stands in place of --task");
    refuses(plus(train, {"--world-set", "seed=1"}), "--world-set: there is no world elsewhere");
    train.erase(train.begin() + 1, train.begin() + 3);
    refuses(plus(train, {"--world", "http://localhost:10000"}),
            "this is no address of a world; expected rpc://host:port");
    refuses(plus(train, {"--world", "rpc://:10000"}), "the host is missing");
    refuses(plus(train, {"--world", "rpc://localhost:10000", "--actions", "nothing.txt"}),
            engram::worlds_are_known() ? "--actions nothing.txt: there is no such file"
                                       : "this program was built without gRPC (ENGRAM_RPC)");
    refuses(plus(train, {"--world", "rpc://localhost:10000", "--world-set", "seed"}),
            engram::worlds_are_known() ? "--world-set expects name=value, got 'seed'" : "was built without gRPC");
    refuses({"describe", "--world", "rpc://localhost:0"}, "'0' is no port");
    CHECK(folder.files() == 0);
}

TEST_CASE("wrong types, ranges and missing values") {
    const temporary_folder folder;
    const auto train = short_training(folder / "run");
    refuses({"train"}, "--task is missing");
    refuses({"evaluate"}, "--from is missing");
    refuses({"sample"}, "--from is missing");
    refuses(plus(train, {"--steps", "1e6"}), "--steps: expected an integer, got '1e6'");
    refuses(plus(train, {"--steps", "0"}), "--steps: expected 1 or more, got 0");
    refuses(plus(train, {"--steps", "-5"}), "--steps: expected 1 or more, got -5");
    refuses(plus(train, {"--steps", "99999999999999999999"}), "out of range");
    refuses(plus(train, {"--steps"}), "--steps needs a value");
    refuses(plus(train, {"--steps", "--quiet"}), "--steps needs a value");
    refuses(plus(train, {"--seed", "one"}), "--seed: expected an integer, got 'one'");
    refuses(plus(train, {"--threads", "0"}), "threads: expected 1 to 12");
    refuses(plus(train, {"--threads", "13"}), "threads: expected 1 to 12");
    refuses(plus(train, {"--quiet=yes"}), "--quiet takes no value");
    refuses(plus(train, {"--set", "memory.slots"}), "--set expects name=value, got 'memory.slots'");
    refuses(plus(train, {"--memory.slots", "many"}), "memory.slots: expected an integer, got 'many'");
    refuses(plus(train, {"--memory.slots", "-3"}), "memory.slots: expected at least one slot, got -3");
    refuses(plus(train, {"--encoder.layers", "8,,8"}), "encoder.layers: expected a list of integers");
    refuses(plus(train, {"--encoder.centre", "yes"}), "encoder.centre: expected true or false, got 'yes'");
    refuses(plus(train, {"--learner.discount", "2"}), "learner.discount: expected a number in 0..1, got 2");
    refuses(plus(train, {"--learner.discount", "nan"}), "learner.discount: expected a number");
    refuses(plus(train, {"--optimiser.beta1", "1"}), "optimiser.beta1: expected a number in [0, 1), got 1");
    refuses(plus(train, {"--optimiser.momentum", "-0.5"}), "optimiser.momentum: expected a number in [0, 1), got -0.5");
    refuses(plus(train, {"--rollout.environments", "0"}), "rollout.environments: expected at least one, got 0");
    refuses(plus(train, {"--device", "cuda"}), "was built without CUDA");
    refuses(plus(train, {"--stimuli", "mnist"}), "need a data folder");
    refuses(plus(train, {"--data", folder / "nothing"}), "has neither a folder mnist nor a folder omniglot");
    refuses(plus(train, {"surplus"}), "unexpected 'surplus'");
    refuses({"train", "--resume", "--out", folder / "run"}, "there is no run to resume");
    refuses({"evaluate", "--from", folder / "run"}, "is no run folder");
    refuses({"sample", "--from", folder / "run"}, "is no run folder");
    CHECK(folder.files() == 0);
}

TEST_CASE("the version is that of the library") {
    const finished f = run({"--version"});
    CHECK(f.code == 0);
    CHECK(f.err.empty());
    CHECK(f.out == "engram-recalling " + engram::library_version() + "\n");
    CHECK(has(run({"--help"}).out, "--version"));
}

TEST_CASE("help is no mistake, however it is asked for") {
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {}, {"help"}, {"--help"}, {"-h"}, {"train", "--help"}, {"train", "-h"}, {"help", "train"}}) {
        const finished f = run(arguments);
        CHECK(f.code == 0);
        CHECK(f.err.empty());
        CHECK(has(f.out, arguments.size() > 1 ? "--checkpoint-every" : "describe"));
    }
    refuses({"help", "trian"}, "unknown command 'trian'; did you mean 'train'?");
    refuses({"help", "train", "more"}, "help: unexpected 'more'");
}

TEST_CASE("a folder that cannot be written") {
    const temporary_folder folder;
    engram::write_file(folder / "file", "text");
    refuses(short_training(folder / "file/run"), "cannot make the folder");
    refuses(short_training("/proc/run"), "cannot make the folder /proc/run");
    CHECK(folder.files() == 1);
}

TEST_CASE("a run folder is neither overwritten nor continued by another run") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    REQUIRE(run(short_training(out, {"--steps", "550"})).code == 0);  // five updates of 120
    const auto checkpoint = checkpoint_of(out), config = engram::read_file(out + "/config.json");
    const auto refused = [&](const finished& f, const std::string& part) {
        CHECK(f.code == 2);
        INFO(f.err);
        CHECK(has(f.err, part));
        CHECK(checkpoint_of(out) == checkpoint);
        CHECK(engram::read_file(out + "/config.json") == config);
    };
    refused(run(short_training(out)), "already holds a run with a checkpoint; continue it with --resume");
    refused(run(short_training(out, {"--resume", "--memory.slots", "30"})),
            "was written with memory.slots 20, expected 30");
    refused(run(short_training(out, {"--resume", "--set", "rollout.shards=2"})),
            "was written with rollout.shards 1, expected 2");
    refused(run(short_training(out, {"--resume", "--seed", "7"})), "was written with seed 1, expected 7");
    refused(run(short_training(out, {"--resume", "--mode", "asynchronous"})),
            "was written with mode synchronous, expected asynchronous");
    refused(run(short_training(out, {"--resume", "--task", "t_maze"})),
            "was written with task arbitrary_visuomotor_mapping, expected t_maze");
    refused(run<reacting>({"train", "--resume", "--out", out}, "reacting"),
            "this is a run of engram-recalling, expected one of engram-reacting");
    refused(run<reacting>({"evaluate", "--from", out}, "reacting"), "this is a run of engram-recalling");
    refused(run({"evaluate", "--from", out, "--level", "holdout_extrapolat"}), "did you mean 'holdout_extrapolate'?");
    refused(run({"sample", "--from", out, "--level", "tra"}), "did you mean 'train'?");
    refused(run({"evaluate", "--from", out, "--episodes", "0"}), "--episodes: expected 1 or more, got 0");
    refused(run({"evaluate", "--from", out, "--seed", "-1"}), "--seed: expected 0 or more, got -1");
    refused(run({"sample", "--from", out, "--seed", "-1"}), "--seed: expected 0 or more, got -1");
    refused(run({"train", "--resume", "--out", out, "--steps", "10", "--quiet"}),
            "--steps 10: the run in " + out + " is at step 600, and was begun for 550; expected as many or more");
    refused(run({"train", "--resume", "--out", out, "--steps", "549", "--quiet"}), "--steps 549: the run in");
    const std::string mine = out + "/checkpoint/latest.safetensors.backup", half = out + "/metrics.csv.partial-a1B2c3";
    engram::write_file(mine, std::string("mine"));
    engram::write_file(half, std::string("half"));
    const finished again = run({"train", "--resume", "--out", out, "--steps", "550", "--quiet"});
    CHECK(std::filesystem::exists(mine));
    CHECK(!std::filesystem::exists(half));
    INFO(again.err);
    CHECK(again.code == 0);
    CHECK(checkpoint_of(out) == checkpoint);
    const std::string version = engram::library_version();
    CHECK(engram::read_json(out + "/config.json").at("engram") == version);
    CHECK(engram::read_json(out + "/summary.json").at("engram") == version);
    CHECK(engram::safetensors::read(out + "/checkpoint/latest.safetensors").metadata.at("engram") == version);
}

TEST_CASE("a damaged run folder") {
    const temporary_folder folder;
    const std::string out = folder / "run", file = out + "/checkpoint/latest.safetensors";
    REQUIRE(run(short_training(out, {"--steps", "600"})).code == 0);
    const auto whole = checkpoint_of(out);
    const auto refused = [&](const engram::bytes& content, const std::string& part) {
        engram::write_file(file, content);
        const auto metrics = engram::read_file(out + "/metrics.csv");
        for (const auto& arguments : {short_training(out, {"--resume", "--steps", "5000"}),
                                      {"evaluate", "--from", out},
                                      {"sample", "--from", out}}) {
            const finished f = run(arguments);
            CHECK(f.code == 2);
            INFO(f.err);
            CHECK(has(f.err, part));
            CHECK(has(f.err, file));
        }
        CHECK(checkpoint_of(out) == content);
        CHECK(engram::read_file(out + "/metrics.csv") == metrics);
    };
    refused({}, "truncated");
    refused(engram::bytes(whole.begin(), whole.begin() + 1000), "truncated");
    refused(engram::bytes(whole.begin(), whole.end() - 1), "");
    auto flipped = whole;
    flipped[flipped.size() / 2] ^= 1;
    refused(flipped, "");
    engram::write_file(file, whole);
    CHECK(run(short_training(out, {"--resume", "--steps", "1200"})).code == 0);

    const engram::json config = engram::read_json(out + "/config.json");
    const auto misread = [&](const char* key, const engram::json& value, const std::string& part) {
        engram::json changed = config;
        changed[key] = value;
        engram::write_json(out + "/config.json", changed);
        for (const auto& arguments : std::vector<std::vector<std::string>>{
                 {"train", "--resume", "--out", out, "--steps", "2400"}, {"evaluate", "--from", out}}) {
            const finished f = run(arguments);
            CHECK(f.code == 2);
            INFO(f.err);
            CHECK(has(f.err, part));
        }
    };
    misread("checkpoint_every", 0, "'checkpoint_every' is 0, expected a number from 1");  // once a division by it
    misread("evaluate_every", -1, "'evaluate_every' is -1, expected a number from 0");
    misread("threads", 4294967297, "'threads' is 4294967297, expected a number from 1 to 2147483647");
    misread("seed", 18446744073709551615u, "'seed' is 18446744073709551615, expected a number from 0");
    misread("steps", "many", "'steps' must be an integer");
    engram::json long_name = engram::json::object();
    long_name[std::string(300, 'n')] = 1;
    misread("settings", long_name, "a setting's name of 300 bytes, expected at most 256");

    engram::write_file(out + "/config.json", "{\"ablation\": \"recalling\"");
    const finished f = run({"evaluate", "--from", out});
    CHECK(f.code == 2);
    CHECK(has(f.err, "config.json: not valid JSON"));
}
