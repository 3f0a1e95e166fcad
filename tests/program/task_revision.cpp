// A checkpoint is of one revision of its task: where episodes have become others, it is refused in one sentence.

#include <doctest/doctest.h>

#include <map>
#include <string>

#include <engram/program/run_files.hpp>
#include <engram/task/registry.hpp>

#include "composed.hpp"

using namespace engram;

namespace {

struct stamped {
    composed::agent_of model;
    configuration config{model};
    safetensors file;

    explicit stamped(const std::string& task, const std::string& preset = "small",
                     const std::string& learner = "vtrace")
        : model{composed::composition{"impala_resnet", "lstm", "fifo_knn", "cpc", learner}} {
        config.task = task;
        config.apply_preset(preset);
        stamp_checkpoint(file, config);
    }
    void check() { check_checkpoint(file, config, false); }
    /// As a program wrote it that did not have the setting.
    void forget(const std::string& part, const std::string& name) {
        json settings = parse_json(file.text_at("settings"), "settings");
        REQUIRE(settings[part].erase(name) == 1);
        file.metadata["settings"] = settings.dump();
    }
};

}  // namespace

TEST_CASE("each change of a task is another revision; at paper fidelity one has changed") {
    const std::map<std::string, int> changed{{"what_then_where", 2},
                                             {"spot_diff_passive", 2},
                                             {"spot_diff", 3},
                                             {"spot_diff_motion", 5},
                                             {"spot_diff_multi", 5},
                                             {"visible_goal_with_buildings", 6},
                                             {"invisible_goal_with_buildings", 5},
                                             {"invisible_goal_empty_arena", 3},
                                             {"visible_goal_procedural_maze", 6},
                                             {"transitive_inference", 3}};
    for (const char* fidelity : {"small", "paper"}) {
        task_options options;
        options.fidelity = fidelity;
        for (const task_info& task : all_tasks(options)) {
            CAPTURE(task.name);
            const int paper = task.name == "spot_diff_motion" ? 2 : 1;
            CHECK(task.revision == (fidelity[0] == 'p'            ? paper
                                    : changed.contains(task.name) ? changed.at(task.name)
                                                                  : 1));
        }
    }
}

TEST_CASE("a checkpoint of another revision is refused, one that does not say is of the first") {
    stamped now("spot_diff");
    CHECK_NOTHROW(now.check());
    now.file.metadata.erase("task_revision");
    const char* sentence =
        " was written for revision 1 of spot_diff, whose episodes are others than those of revision 3 now; train it "
        "anew; nothing was changed";
    CHECK_THROWS_WITH_AS(now.check(), doctest::Contains(sentence), error);
    now.file.metadata["task_revision"] = "1";
    CHECK_THROWS_WITH_AS(now.check(), doctest::Contains(sentence), error);

    stamped unchanged("spot_diff", "paper");
    unchanged.file.metadata.erase("task_revision");
    CHECK_NOTHROW(unchanged.check());
    stamped panels("change_detection");
    panels.file.metadata.erase("task_revision");
    CHECK_NOTHROW(panels.check());
}

TEST_CASE("a checkpoint from before a setting is one with the value that changes nothing, and of no other") {
    stamped old("change_detection", "small", "ppo");
    old.forget("learner", "divergence_cost");
    old.forget("learner", "divergence_target");
    CHECK_NOTHROW(old.check());
    old.config.set({{"learner.divergence_cost", "0.2"}});
    CHECK_THROWS_WITH_AS(old.check(), doctest::Contains("was written with learner.divergence_cost 0, expected 0.2"),
                         error);
    stamped other("change_detection", "small", "ppo");
    other.forget("learner", "clip");
    CHECK_THROWS_WITH_AS(other.check(), doctest::Contains("knows no setting learner.clip; nothing was changed"), error);
}
