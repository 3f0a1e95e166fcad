// examples/act.hpp: an agent in a program of one's own does what the program that trained it says it does.

#include <doctest/doctest.h>

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include <engram/evaluate/levels.hpp>
#include <engram/evaluate/run_folder.hpp>
#include <engram/program/compiled_tasks.hpp>

#include "../../examples/act.hpp"
#include "../../examples/own_environment.hpp"
#include "child.hpp"

using namespace engram;

namespace {

constexpr int rows = 40;  // of an evaluation: an episode each

/// One run for all cases.
const std::string& trained() {
    static const temporary_folder folder;
    static const std::string run_folder = [] {
        add_task<own::match_to_sample>();
        const std::string out = folder / "run";
        std::vector<std::string> words{"train",     "--task", "match_to_sample", "--out", out,          "--quiet",
                                       "--threads", "1",      "--steps",         "9600",  "--evaluate", "0"};
        for (const char* s : {"controller.hidden=16", "memory.slots=20", "memory.key=8", "rollout.environments=12"})
            words.insert(words.end(), {"--set", s});
        const finished f = run<acting::model>(words, "lstm_mem");
        INFO(f.err);
        REQUIRE(f.code == 0);
        return out;
    }();
    return run_folder;
}

traced_agent<cpu<float>> agent_of(const std::string& folder) {
    const trained_run run(folder);
    const task_info task = describe_task(run.task(), run.options());
    return acting::load(run, {{task.observation.height, task.observation.width, task.observation.channels}, 2});
}

/// The example's program as a child: exit code and what it said.
std::pair<int, std::string> example(const std::string& arguments) {
    std::FILE* pipe = ::popen((std::string(ENGRAM_BIN_DIR) + "/example-act " + arguments + " 2>&1").c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string text;
    for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

}  // namespace

TEST_CASE("a stream of its own earns what the run's own evaluation says, episode by episode") {
    const auto agent = agent_of(trained());
    const std::uint64_t own = evaluation_seed(1, "train");
    actor<cpu<float>> judged(agent, agent.store, make_environment("match_to_sample", "train", rows, own), own, 0);
    std::vector<std::vector<float>> policies(rows);  // of each row, step by step
    std::vector<double> rewards(rows);
    for (int t = 0; t < 4; ++t) {
        judged.step();
        const auto policy = judged.program().output(agent.log_policy);
        for (std::size_t b = 0; b < rows; ++b) {
            const float* of_row = policy.data + static_cast<std::ptrdiff_t>(b) * policy.stride;
            policies[b].insert(policies[b].end(), of_row, of_row + policy.width);
            rewards[b] += static_cast<double>(judged.reward()[b]);
        }
    }

    double total = 0, largest = 0;
    acting::stream stream(agent);
    for (int b = 0; b < rows; ++b) {
        const auto row = static_cast<std::uint32_t>(b);
        const auto world = make_environment("match_to_sample", "train", 1, own, row);
        philox random(own, stream_id("action", row));
        std::vector<float> said;
        double earned = 0;
        stream.begin();
        for (outcome now{}; !now.done;) {
            world->observe(0, stream.observation().data());
            const auto log_policy = stream.decide();
            said.insert(said.end(), log_policy.begin(), log_policy.end());
            largest = std::max(largest, std::abs(static_cast<double>(log_policy[0] - log_policy[1])));
            const int action =
                static_cast<double>(random.uniform()) < std::exp(static_cast<double>(log_policy[0])) ? 0 : 1;
            now = world->step(0, action);
            stream.done(action, now.reward);
            earned += static_cast<double>(now.reward);
        }
        CHECK(said == policies[static_cast<std::size_t>(b)]);
        CHECK(earned == rewards[static_cast<std::size_t>(b)]);
        total += earned;
    }
    CHECK(largest > 0.1);  // it has an opinion that could differ
    REQUIRE(run<acting::model>({"evaluate", "--from", trained(), "--seed", "1", "--level", "train", "--episodes",
                                std::to_string(rows), "--quiet"},
                               "lstm_mem")
                .code == 0);
    CHECK(read_run(trained()).levels.at(0).mean == doctest::Approx(total / rows).epsilon(1e-12));
}

TEST_CASE("what was trained is what is loaded, every setting and every weight") {
    const auto agent = agent_of(trained());
    const auto file = trained_run(trained()).checkpoint();
    for (const auto& e : agent.store->entries())
        CHECK(std::ranges::equal(
            file.values<float>(e.name),
            agent.store->flat().subspan(static_cast<std::size_t>(e.offset), static_cast<std::size_t>(e.size()))));
    const auto settings = trained_run(trained()).settings_of<acting::model::settings>();
    CHECK(settings.controller.hidden == 16);
    CHECK(settings.memory.slots == 20);
    CHECK(trained_run(trained()).ablation() == "lstm_mem");
}

TEST_CASE("another model's run, a run without a checkpoint and damaged files are sentences") {
    const temporary_folder folder;
    const std::string copy = folder / "copy";
    std::filesystem::copy(trained(), copy, std::filesystem::copy_options::recursive);
    const json good = read_json(copy + "/config.json");
    const auto changed = [&](auto change) {
        json now = good;
        change(now);
        write_json(copy + "/config.json", now);
        return sentence([&] { agent_of(copy); });
    };
    CHECK(has(changed([](json& j) { j["settings"]["memory"]["slot"] = 3; }), "memory.slots"));
    CHECK(has(changed([](json& j) { j["settings"]["controller"]["hidden"] = "x"; }), "expected an integer"));
    CHECK(has(changed([](json& j) { j["settings"]["controller"]["hidden"] = 17; }), "latest.safetensors: tensor '"));
    CHECK(has(changed([](json& j) { j["settings"] = 3; }), "'settings' must be an object"));
    CHECK(has(changed([](json& j) { j["task"] = 3; }), "'task' must be a text"));
    CHECK(has(changed([](json& j) { j.erase("ablation"); }), "no 'ablation'"));
    CHECK(has(changed([](json& j) { j = json::array(); }), "expected the configuration of a run"));
    write_json(copy + "/config.json", good);
    using without = acting::model::with<no_memory>;
    CHECK(has(sentence([&] { (void)trained_run(copy).settings_of<without::settings>(); }), "config.json: "));
    std::filesystem::remove(copy + "/checkpoint/latest.safetensors");
    CHECK(has(sentence([&] { agent_of(copy); }), "latest.safetensors"));
    CHECK(has(sentence([&] { trained_run("/nowhere"); }), "/nowhere/config.json"));
}

TEST_CASE("the example prints what it earns, or one sentence") {
    REQUIRE_MESSAGE(std::filesystem::exists(std::string(ENGRAM_BIN_DIR) + "/example-act"),
                    "build the target example-act");
    const auto played = example(trained() + " 200");
    INFO(played.second);
    CHECK(played.first == 0);
    CHECK(played.second.starts_with("lstm_mem: 200 episodes, 0."));
    for (const char* wrong : {"", "/nowhere", "a b c"}) {
        const auto [refused, said] = example(wrong);
        CHECK(refused == 2);
        CHECK(std::count(said.begin(), said.end(), '\n') == 1);
        CHECK(said.starts_with("example-act: "));
    }
    CHECK(has(example(trained() + " 0").second, "episodes: expected 1 or more, got 0"));
}
