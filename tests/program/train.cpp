// What training leaves behind, how it is interrupted and resumed, and how it fails.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include <engram/evaluate/run_folder.hpp>
#include <engram/io/npy.hpp>
#include <engram/io/png.hpp>
#include <engram/io/safetensors.hpp>

#include "child.hpp"

namespace {

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

std::string without_time(const std::string& path) {
    const engram::bytes content = engram::read_file(path);
    std::string out;
    int column = 0;
    for (const char c : std::string(content.begin(), content.end())) {
        column = c == '\n' ? 0 : column + (c == ',');
        if (column != 11) out += c;  // steps_per_second
    }
    return out;
}

// Kills the program `kills` times after random times, each time resuming, then lets it finish.
void train_with_kills(const std::vector<std::string>& arguments, int kills, unsigned seed) {
    std::mt19937 random(seed);
    int resumed = 0;
    for (int i = 0; i < kills; ++i) {
        child program(arguments);
        std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 130));
        program.signal(SIGKILL);
        resumed += program.wait().code == 128 + SIGKILL;
    }
    CHECK(resumed > 0);
    const finished f = run(arguments);
    INFO(f.err);
    REQUIRE(f.code == 0);
}

}  // namespace

TEST_CASE("a run folder holds what the report reads") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const finished f = run(short_training(out, {"--steps", "3000", "--evaluate", "7"}));
    INFO(f.err);
    REQUIRE(f.code == 0);
    const auto record = engram::read_run(out);
    CHECK(record.ablation == "recalling");
    CHECK(record.task == "arbitrary_visuomotor_mapping");
    CHECK(record.preset == "small");
    CHECK(record.seed == 1);
    CHECK(record.steps == 3000);
    CHECK(record.threads == 1);
    CHECK(record.parameters > 0);
    REQUIRE(record.levels.size() == 3);
    for (const auto& level : record.levels) {
        CHECK(level.episodes == 7);
        CHECK(level.mean >= 0);
        CHECK(level.mean <= level.maximum);
    }
    CHECK(record.metrics.rows == 5);  // every 600 steps
    REQUIRE(record.metrics.find("reward_smooth"));
    CHECK(record.metrics.find("policy_loss"));
    CHECK(record.metrics.find("episodes")->back() == 60);  // 3000 / 50
    REQUIRE(record.retrieval);
    CHECK(record.retrieval->level == "holdout_interpolate");
    REQUIRE(record.retrieval->trials.size() == 40);
    CHECK(record.retrieval->trials[0].read.empty());
    double read = 0;
    for (const auto& r : record.retrieval->trials[39].read) read += r.weight;
    CHECK(read == doctest::Approx(1).epsilon(1e-5));

    const auto before = checkpoint_of(out);
    REQUIRE(run({"evaluate", "--from", out, "--episodes", "11", "--level", "train"}).code == 0);
    const auto after = engram::read_run(out);
    REQUIRE(after.levels.size() == 3);
    for (const auto& level : after.levels) CHECK(level.episodes == (level.level == "train" ? 11 : 7));
    CHECK(after.steps == 3000);
    CHECK(checkpoint_of(out) == before);
    // A finished run that is asked for more episodes than its levels have plays them.
    REQUIRE(run({"train", "--resume", "--out", out, "--evaluate", "9", "--quiet"}).code == 0);
    for (const auto& level : engram::read_run(out).levels) CHECK(level.episodes == 9);
    CHECK(checkpoint_of(out) == before);

    const finished s = run({"sample", "--from", out, "--level", "train"});
    INFO(s.err);
    REQUIRE(s.code == 0);
    const auto weights = engram::read_npy<float>(out + "/sample/read_weights.npy");
    REQUIRE(weights.shape == std::vector<int>{50, 50});
    for (int t = 0; t < 50; ++t) {
        double sum = 0, future = 0;
        for (int i = 0; i < 50; ++i)
            (i < t ? sum : future) += static_cast<double>(weights.values[static_cast<std::size_t>(50 * t + i)]);
        CHECK(sum == doctest::Approx(t > 0).epsilon(1e-5));
        CHECK(future == 0);
    }
    CHECK(engram::read_npy<std::int32_t>(out + "/sample/actions.npy").values.size() == 50);
    CHECK(engram::read_png(out + "/sample/observations.png").channels == 3);
    CHECK(engram::read_png(out + "/sample/read_weights.png").width == 400);
}

TEST_CASE("describe names the policies and counts the parameters") {
    const finished f = run({"describe", "--encoder.layers", "16,8", "--controller.hidden", "16", "--memory.key", "8"});
    REQUIRE(f.code == 0);
    for (const char* word :
         {"mlp", "lstm", "fifo_knn", "no_auxiliary", "vtrace", "memory.slots", "t_maze", "holdout_extrapolate"})
        CHECK(has(f.out, word));
    // 768 x 16 + 16, 16 x 8 + 8, 2 (24 x 8 + 8), (8 + 16 + 5 + 16) x 64 + 64, 16 x 4 + 4, 16 + 1
    CHECK(has(f.out, "[768, 16]"));
    CHECK(has(f.out, std::to_string((12304 + 136 + 400 + 2944 + 68 + 17) / 1000) + " " +
                         std::to_string((12304 + 136 + 400 + 2944 + 68 + 17) % 1000)));
    // Each value and where it comes from.
    const auto value = [&](const std::string& name) {
        const auto at = f.out.find("\n  " + name + " ");
        REQUIRE(at != f.out.npos);
        std::string line = f.out.substr(at + 1, f.out.find('\n', at + 1) - at - 1);
        line.erase(std::unique(line.begin(), line.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
                   line.end());
        return line;
    };
    CHECK(value("memory.key") == " memory.key 8 --set");
    CHECK(value("memory.slots") == " memory.slots 128 preset");
    CHECK(value("learner.discount") == " learner.discount 0 task");
    CHECK(value("learner.rho_bar") == " learner.rho_bar 1 default");
    CHECK(run({"describe", "--preset", "paper"}).code == 0);
}

TEST_CASE("a killed run that is resumed ends as one that was never killed, bit for bit") {
    for (const std::string threads : {"1", "2"}) {
        const temporary_folder folder;
        const std::vector<std::string> more{"--steps", "96000", "--threads", threads};
        REQUIRE(run(short_training(folder / "whole", more)).code == 0);
        auto resumed = more;
        resumed.push_back("--resume");
        train_with_kills(short_training(folder / "killed", resumed), 4, static_cast<unsigned>(threads[0]));
        CHECK(checkpoint_of(folder / "whole") == checkpoint_of(folder / "killed"));
        CHECK(without_time(folder / "whole/metrics.csv") == without_time(folder / "killed/metrics.csv"));
    }
}

TEST_CASE("a new run has a shard a thread, and a single one where rows of a batch meet") {
    const temporary_folder folder;
    const auto shards = [&](std::vector<std::string> more) {
        more.insert(more.end(), {"--threads", "2", "--dry-run"});
        const finished f = run(short_training(folder / "asked", more));
        REQUIRE(f.code == 0);
        return engram::parse_json(f.out, "the configuration")["settings"]["rollout"]["shards"].get<int>();
    };
    std::vector<std::string> meeting{"--learner.standardise", "true"};
    CHECK(shards({}) == 2);
    CHECK(shards(meeting) == 1);
    meeting.insert(meeting.end(), {"--threads", "2", "--steps", "1200"});
    CHECK(run(short_training(folder / "one", meeting)).code == 0);
    meeting.insert(meeting.end(), {"--rollout.shards", "2"});
    const finished refused = run(short_training(folder / "two", meeting));
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "rows of the batch meet in it, so the batch cannot be split; expected a single shard"));
}

TEST_CASE("several passes over an unroll are refused in asynchronous training, by a dry run too") {
    const temporary_folder folder;
    for (const char* more : {"--dry-run", "--quiet"}) {
        const finished f =
            run(short_training(folder / "run", {"--mode", "asynchronous", "--rollout.epochs", "2", more}));
        CHECK(f.code == 2);
        CHECK(has(f.err,
                  "rollout: 2 epochs of 1 minibatches, but asynchronous training learns once from every unroll; "
                  "expected rollout.epochs=1 and rollout.minibatches=1"));
        CHECK(!exists(folder / "run"));
    }
}

TEST_CASE("a finished run goes on when more steps are asked for") {
    const temporary_folder folder;
    REQUIRE(run(short_training(folder / "whole", {"--steps", "4800"})).code == 0);
    REQUIRE(run(short_training(folder / "parts", {"--steps", "1200"})).code == 0);
    REQUIRE(run({"train", "--resume", "--out", folder / "parts", "--steps", "4800"}).code == 0);
    CHECK(checkpoint_of(folder / "whole") == checkpoint_of(folder / "parts"));
}

TEST_CASE("a run is over once its episodes have earned what was asked for, and goes on when more is") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    const std::vector<std::string> rows{"--rollout.environments", "256", "--steps", "40000"};
    auto until = rows;
    until.insert(until.end(), {"--until-reward", "-1000", "--evaluate", "3"});
    REQUIRE(run(short_training(out, until)).code == 0);
    const auto summary = engram::read_json(out + "/summary.json");
    const std::int64_t ended = summary["steps"];
    CHECK(summary["finished"] == true);
    CHECK(summary["levels"].size() > 0);
    CHECK(ended < 40000);
    const auto metrics = engram::read_run(out).metrics;
    CHECK(metrics.steps()->back() == static_cast<double>(ended));
    CHECK(metrics.find("episodes")->back() >= 100);

    const engram::bytes checkpoint = checkpoint_of(out);
    REQUIRE(run({"train", "--resume", "--out", out}).code == 0);
    CHECK(checkpoint_of(out) == checkpoint);
    REQUIRE(run({"train", "--resume", "--out", out, "--until-reward", "1000"}).code == 0);
    CHECK(engram::read_json(out + "/summary.json")["steps"] >= 40000);
    REQUIRE(run(short_training(folder / "whole", rows)).code == 0);
    CHECK(checkpoint_of(folder / "whole") == checkpoint_of(out));

    // Less than it has earned is enough, whatever it was begun for.
    const std::string less = folder / "less";
    REQUIRE(run(short_training(less, {"--rollout.environments", "256", "--steps", "13000"})).code == 0);
    auto begun = engram::read_json(less + "/summary.json");
    begun["finished"] = false;  // as one that was interrupted leaves it
    engram::write_json(less + "/summary.json", begun);
    REQUIRE(run({"train", "--resume", "--out", less, "--steps", "40000", "--until-reward", "-1000"}).code == 0);
    const auto enough = engram::read_json(less + "/summary.json");
    CHECK(enough["finished"] == true);
    CHECK(enough["steps"] < 40000);

    const finished refused = run(short_training(folder / "refused", {"--until-reward", "nan"}));
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "--until-reward: expected a number, got 'nan'"));
}

TEST_CASE(
    "a run that was killed between its last checkpoint and the summary is summarised and scored when it is resumed") {
    const temporary_folder folder;
    const std::string out = folder / "run", summary = out + "/summary.json";
    REQUIRE(run(short_training(out, {"--steps", "1200", "--evaluate", "3"})).code == 0);
    const engram::bytes older = engram::read_file(summary);
    REQUIRE(run({"train", "--resume", "--out", out, "--steps", "2400"}).code == 0);
    const auto whole = engram::read_json(summary);
    const engram::bytes checkpoint = checkpoint_of(out);
    CHECK(whole["steps"] == 2400);
    REQUIRE(whole["levels"].size() > 0);

    engram::write_file(summary, older);
    REQUIRE(run({"train", "--resume", "--out", out, "--steps", "2400"}).code == 0);
    const auto again = engram::read_json(summary);
    CHECK(again["steps"] == 2400);
    CHECK(again["finished"] == true);
    CHECK(again["levels"] == whole["levels"]);
    CHECK(checkpoint_of(out) == checkpoint);
}

TEST_CASE("Ctrl-C ends the iteration, writes a checkpoint and exits with 130") {
    for (const int number : {SIGINT, SIGTERM}) {
        const temporary_folder folder;
        REQUIRE(run(short_training(folder / "whole", {"--steps", "60000", "--checkpoint-every", "30000"})).code == 0);
        // As for a program that a shell starts in the background: SIGINT is ignored at first.
        const auto arguments =
            short_training(folder / "stopped", {"--steps", "60000", "--checkpoint-every", "1000000", "--resume"});
        child program(arguments, "recalling", [] { std::signal(SIGINT, SIG_IGN); });
        while (!exists(folder / "stopped/metrics.csv")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        program.signal(number);
        const finished f = program.wait();
        CHECK(f.code == 130);
        CHECK(has(f.err, "train --resume"));
        REQUIRE(exists(folder / "stopped/checkpoint/latest.safetensors"));
        REQUIRE(run(arguments).code == 0);
        CHECK(checkpoint_of(folder / "whole") == checkpoint_of(folder / "stopped"));
    }
}

TEST_CASE("a full disk leaves the old checkpoint and no half of a new one") {
    const temporary_folder folder;
    const std::string out = folder / "run";
    REQUIRE(run(short_training(out, {"--steps", "600"})).code == 0);
    const auto before = checkpoint_of(out);
    REQUIRE(before.size() > 20000);
    const finished f = run(short_training(out, {"--steps", "5000", "--resume"}), "recalling", [] {
        const rlimit small{10000, 10000};
        ::setrlimit(RLIMIT_FSIZE, &small);
    });
    CHECK(f.code == 1);
    INFO(f.err);
    CHECK(has(f.err, "cannot write"));
    CHECK(has(f.err, "what was there before is unchanged"));
    CHECK(has(f.err, "the checkpoint of step 600 is kept"));
    CHECK(checkpoint_of(out) == before);
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(out + "/checkpoint")) ++files;
    CHECK(files == 1);
    CHECK(run(short_training(out, {"--steps", "5000", "--resume"})).code == 0);
}

TEST_CASE("a loss that is not finite ends the run with the name of the first such value, and keeps the checkpoint") {
    const temporary_folder folder;
    const std::string out = folder / "run", file = out + "/checkpoint/latest.safetensors";
    REQUIRE(run(short_training(out, {"--steps", "600"})).code == 0);
    auto weights = engram::safetensors::read(file);
    auto& gates = weights.tensors.at("controller.gates.weight");
    const float nan = std::nanf("");
    std::memcpy(gates.data.data(), &nan, sizeof nan);
    weights.write(file);
    const auto before = checkpoint_of(out);
    const finished f = run(short_training(out, {"--steps", "5000", "--resume"}));
    CHECK(f.code == 1);
    INFO(f.err);
    CHECK(has(f.err, "first non-finite value: controller"));
    CHECK(has(f.err, "the checkpoint of step 600 is kept"));
    CHECK(checkpoint_of(out) == before);
}
