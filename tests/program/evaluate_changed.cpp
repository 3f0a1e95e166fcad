// A run is evaluated on its task played otherwise than it was trained, and keeps its own levels. What else evaluate
// writes: scores beside those that are not finite, and an episode trial by trial at paper fidelity.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <engram/evaluate/retrieval.hpp>
#include <engram/io/json.hpp>
#include <engram/program/episode.hpp>
#include <engram/program/run_files.hpp>

#include "child.hpp"

namespace {

/// Plays the task with knowledge of its state, until the last trial asks for its answer. Every step reads the first one
/// of the first trial.
struct played_by_the_oracle final : engram::prepared_run {
    explicit played_by_the_oracle(const engram::configuration& config)
        : prepared_run(config), trials(config.run.task.trials) {}

    engram::parameters<float>& store() const override { engram::fail("there are no weights"); }
    bool tells_reads() const override { return true; }
    engram::level_score score(const std::string&, int, std::uint64_t, const std::function<bool()>&,
                              engram::processes*) const override {
        return {};
    }
    std::vector<engram::recorded_step> play(const std::string& level, std::uint64_t seed, int longest) const override {
        const auto world = maker()(level, 1, seed, 0);
        std::vector<engram::recorded_step> steps;
        int first = -1;
        while (static_cast<int>(steps.size()) < longest) {
            engram::recorded_step now;
            now.observation.resize(static_cast<std::size_t>(info.observation.size()));
            world->observe(0, now.observation.data());
            now.event = world->event(0);
            now.action = world->oracle(0);
            if (first >= 0) now.reads.push_back({first, 1});
            if (now.event && first < 0) first = static_cast<int>(steps.size());
            const bool last = now.event && now.event->trial == trials - 1;
            if (!last) now.reward = world->step(0, now.action).reward;
            steps.push_back(now);
            if (last) break;
        }
        return steps;
    }

    int trials;
};

}  // namespace

TEST_CASE("a longer task is scored beside the levels of the run") {
    const temporary_folder folder;
    const finished trained =
        run({"train", "--task", "t_maze", "--out", folder / "run", "--threads", "1", "--quiet", "--steps", "960",
             "--evaluate", "20", "--set", "task.length=5", "--set", "task.length_spread=0"});
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const auto summary = [&] { return engram::read_json(folder / "run/summary.json"); };
    const auto before = summary();
    CHECK_FALSE(before.contains("changed"));

    const std::vector<std::string> longer{"evaluate", "--from", folder / "run", "--episodes", "30", "--level", "train"};
    auto changed = longer;
    changed.insert(changed.end(), {"--set", "task.length=20"});
    const finished scored = run(changed);
    INFO(scored.err);
    REQUIRE(scored.code == 0);
    CHECK(has(scored.out, "train"));
    auto after = summary();
    REQUIRE(after.contains("changed"));
    CHECK(after["changed"].size() == 1);
    CHECK(after["changed"]["task.length=20"]["train"]["episodes"] == 30);
    after.erase("changed");
    CHECK(after == before);

    // The run as it was trained, once more: its own levels change, what was noted of others stays.
    REQUIRE(run(longer).code == 0);
    CHECK(summary()["levels"]["train"]["episodes"] == 30);
    CHECK(summary()["changed"].size() == 1);

    const auto refused = [&](const char* setting) {
        auto asked = longer;
        asked.insert(asked.end(), {"--set", setting});
        const finished wrong = run(asked);
        CHECK(wrong.code == 2);
        return wrong.err;
    };
    CHECK(has(refused("memory.slots=4"),
              "a model is evaluated as it was trained; only options of its task can be others"));
    CHECK(has(refused("task.decks=4"),
              "task.decks: the task t_maze does not read it; it reads task.length, task.length_spread"));
    CHECK(has(refused("task.length=1"), "a length of 1 was asked for; expected 2 to 1000000"));
    CHECK(summary()["changed"].size() == 1);
}

TEST_CASE("a score that is not finite is a dash in the table of levels") {
    const auto table = [](const char* levels) {
        return engram::level_table({{"levels", engram::parse_json(levels, "the levels")}});
    };
    const std::string acted = table(R"({"a": {"mean": null, "stderr": 0.5, "maximum": 4},
                                        "b": {"mean": 1, "stderr": null, "maximum": null}})");
    CHECK(has(acted, "\na                                -     0.500         4             -\n"));
    CHECK(has(acted, "\nb                            1.000         -         -             -\n"));
    const std::string read = table(R"({"a": {"mean": null, "stderr": null, "unit": "nats", "kl_per_step": [1, null],
                                             "kl_at_recall": null, "recall_over_before": 2}})");
    CHECK(has(read,
              "\na                                  -         -  nats                             -           -"
              "       2.000\n"));
    engram::json now;  // as it is before it is written
    now["levels"]["a"] = {{"mean", NAN}, {"stderr", 1.0}, {"maximum", 4.0}};
    CHECK(!has(engram::level_table(now), "nan"));
}

TEST_CASE("a level is scored beside one whose score is null, and kept even where no table can be printed") {
    const temporary_folder folder;
    const std::string out = folder / "run", path = out + "/summary.json";
    const finished trained = run(
        {"train", "--task", "t_maze", "--out", out, "--threads", "1", "--quiet", "--steps", "960", "--evaluate", "20"});
    INFO(trained.err);
    REQUIRE(trained.code == 0);
    const engram::json whole = engram::read_json(path);
    const auto score_beside = [&](const engram::json& train) {
        engram::json summary = whole;
        summary["levels"]["train"] = train;
        engram::write_json(path, summary);
        const finished f = run({"evaluate", "--from", out, "--episodes", "30", "--level", "holdout_extrapolate"});
        const engram::json after = engram::read_json(path);
        CHECK(after["levels"]["train"] == train);
        CHECK(after["levels"]["holdout_extrapolate"]["episodes"] == 30);
        return f;
    };
    engram::json unknown = whole["levels"]["train"];
    unknown["mean"] = nullptr;
    const finished f = score_beside(unknown);
    INFO(f.err);
    CHECK(f.code == 0);
    CHECK(has(f.out, "\ntrain                            -  "));
    CHECK(has(f.out, "\nholdout_extrapolate "));
    score_beside(3);
}

TEST_CASE("at paper fidelity, where an episode begins with no trial, it is noted trial by trial") {
    engram::ablation_of<recalling> model("recalling");
    engram::configuration config(model);
    config.task = "continuous_recognition";
    config.set({{"task.fidelity", "paper"}, {"task.trials", "3"}});
    const played_by_the_oracle acting(config);
    const auto steps = acting.play("holdout_interpolate", 1, 1000);
    REQUIRE(!steps.front().event);
    REQUIRE(std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.event.has_value(); }));

    const temporary_folder folder;
    const std::string path = folder / "retrieval.json";
    REQUIRE(engram::record_retrieval(acting, "recalling", 1, path));
    const auto episode = engram::parse_retrieval(engram::read_json(path), path);
    REQUIRE(episode.trials.size() == 3);
    for (const auto& trial : episode.trials) {
        CHECK(trial.correct == (trial.trial != "2"));  // nobody answered the last one
        CHECK(trial.action.empty());                   // an action turns the eye
        REQUIRE(trial.read.size() == 1);
        CHECK(trial.read[0].position == 0);
    }
}
