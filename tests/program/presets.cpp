// Presets by policy: every line names what there is, an agent gets what its policies are given and nothing else, --set
// comes on top and all is checked once, every value says where it comes from, and the values that papers print are the
// printed ones.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include <engram/program/configuration.hpp>
#include <engram/program/presets.hpp>

#include "composed.hpp"
#include "somebodys.hpp"

using namespace engram;
using composed::composition;

namespace {

/// What a configuration has after a preset.
struct outcome {
    std::map<std::string, std::string> value, origin;
    std::int64_t steps;

    const std::string& operator[](const std::string& name) const {
        REQUIRE_MESSAGE(value.count(name) == 1, "no setting ", name);
        return value.at(name);
    }
    double number(const std::string& name) const { return std::stod((*this)[name]); }
};

outcome after(ablation& model, const std::string& preset, const std::string& task,
              const std::vector<std::string>& set = {}) {
    configuration config(model);
    config.task = task;
    config.apply_preset(preset, parse_assignments(set));
    outcome got{{}, {}, config.steps};
    for (const auto& s : config.settings()) got.value[s.name] = s.value, got.origin[s.name] = config.origin_of(s.name);
    return got;
}
outcome after(const composition& c, const std::string& preset, const std::string& task,
              const std::vector<std::string>& set = {}) {
    composed::agent_of model(c);
    return after(model, preset, task, set);
}

const composition mra{"impala_resnet", "lstm", "fifo_knn", "cpc", "vtrace"};
const composition memup_of_tokens{"token_embedding", "stacked_lstm", "no_memory", "no_auxiliary", "memup"};
const composition acting_memup{"numbers_or_image", "lstm", "no_memory", "no_auxiliary", "memup_ppo"};
const composition acting_lstm{"numbers_or_image", "lstm", "no_memory", "no_auxiliary", "ppo"};

composition gtmm(const std::string& memory) {
    return {"gtmm_vision", "lstm", memory, "no_auxiliary", "variational"};
}

template <class Choice>
void add_policies(const std::string& slot, std::vector<presettable_policy>& all) {
    for (const auto& name : Choice::names()) {
        Choice one;
        one.choose(name);
        presettable_policy p{slot, name, {}};
        one.visit([&]<class P>(const typename P::settings& s) {
            for (const auto& setting : list_settings(s)) p.settings.push_back(slot + "." + setting.name);
            if constexpr (requires {
                              typename P::role;
                              requires std::is_same_v<typename P::role, learner_role>;
                          })
                for (const auto& setting : list_settings(composed::wiring_settings<P>{}))
                    p.settings.push_back("wiring." + setting.name);
        });
        all.push_back(p);
    }
}

std::vector<presettable_policy> library() {
    std::vector<presettable_policy> all;
    add_policies<composed::encoders>("encoder", all);
    add_policies<composed::controllers>("controller", all);
    add_policies<composed::memories>("memory", all);
    add_policies<composed::auxiliaries>("auxiliary", all);
    add_policies<composed::learners>("learner", all);
    return all;
}

std::vector<std::string> names_of_run_settings() {
    std::vector<std::string> all;
    for (const auto& s : list_settings(run_settings{})) all.push_back(s.name);
    return all;
}

std::vector<std::string> all_task_names() {
    auto all = task_names();
    for (const auto& name : sequence_names()) all.push_back(name);
    return all;
}

void check_lines(const std::string& name, const std::vector<preset_line>& lines) {
    check_preset_lines(name, lines, library(), names_of_run_settings(), all_task_names());
}

}  // namespace

TEST_CASE("the policies of these tests are those that the headers declare") {
    static const std::regex opening(R"(^struct ([a-z0-9_]+)(?: : ([a-z0-9_]+)(?:<[a-z0-9_]+>)?)? \{)"),
        role(R"(^    using role = ([a-z]+)_role;)");
    std::set<std::string> known, declared;
    std::vector<std::pair<std::string, std::string>> derived;
    for (const auto& p : library()) known.insert(p.slot + " " + p.name);
    for (const char* slot : {"encoder", "controller", "memory", "auxiliary", "learner"}) {
        const auto folder = std::filesystem::path(ENGRAM_SOURCE_DIR) / "include/engram" / slot;
        for (const auto& file : std::filesystem::directory_iterator(folder)) {
            std::ifstream in(file.path());
            std::string line, type;
            for (std::smatch found; std::getline(in, line);) {
                if (std::regex_search(line, found, opening)) {
                    type = found[1];
                    derived.emplace_back(std::string(slot) + " " + found.str(2), std::string(slot) + " " + type);
                }
                if (std::regex_search(line, found, role)) declared.insert(found.str(1) + " " + type);
            }
        }
    }
    for (const auto& [base, name] : derived)
        if (declared.count(base) == 1) declared.insert(name);
    // A template of layers, which is no policy by itself.
    CHECK(declared.erase("controller layered") == 1);
    // One template, two names.
    CHECK(declared.erase("memory basic_fifo_knn") == 1);
    declared.insert({"memory fifo_knn", "memory fifo_knn_no_jumpy"});
    CHECK(known == declared);
}

TEST_CASE("every line of every preset names policies, settings and tasks that there are") {
    std::size_t lines = 0;
    for (const auto& p : presets()) {
        CHECK_NOTHROW(check_lines(p.name, p.lines));
        lines += p.lines.size();
    }
    CHECK(lines > 500);
}

TEST_CASE("a line that can never hold is one sentence") {
    const auto refused = [](const preset_scope& scope, const char* setting, const std::string& sentence) {
        preset_table table;
        table.of(scope, {{setting, "1"}});
        CHECK_THROWS_WITH_AS(check_lines("small", table.lines()), doctest::Contains(sentence.c_str()), error);
    };
    refused({.learner = "vtrase"}, "learner.discount",
            "preset small, line learner.discount=1: there is no learner 'vtrase'; did you mean 'vtrace'?");
    refused({.controller = "lstm", .learner = "vtrase"}, "controller.hidden", "there is no learner 'vtrase'");
    refused({.memory = {"fifo_knn", "ntm"}}, "memory.neighbours", "the memory ntm has no such setting");
    refused({.memory = "fifo_knn"}, "memory.slot", "the memory fifo_knn has no such setting; did you mean");
    refused({.learner = "memup_ppo"}, "wiring.last_action_reward", "the learner memup_ppo has no such setting");
    refused({.learner = "ppo"}, "controller.hidden", "no policy is named that could have the setting");
    refused({}, "learner.discount", "no policy is named that could have the setting");
    refused({}, "rollout.enviroments", "no policy is named that could have the setting");
    refused({.task = "t_mase"}, "rollout.unroll", "there is no task 't_mase'; did you mean 't_maze'?");
}

TEST_CASE("every preset can be applied to every task, whatever it is for") {
    std::set<std::string> done;
    for (const auto& p : presets())
        for (const auto& line : p.lines) {
            composition c{"mlp", "lstm", "no_memory", "no_auxiliary", "vtrace"};
            const auto choose = [](std::string& to, const one_of& names) {
                if (!names.empty()) to = names.names().front();
            };
            choose(c.encoder, line.scope.encoder), choose(c.controller, line.scope.controller);
            choose(c.memory, line.scope.memory), choose(c.auxiliary, line.scope.auxiliary);
            choose(c.learner, line.scope.learner);
            composed::agent_of model(c);
            for (const auto& task : line.scope.task.empty() ? tasks_of(model) : line.scope.task.names()) {
                if (!done.insert(p.name + c.text() + task).second) continue;
                CAPTURE(c.text());
                CAPTURE(line.setting);
                CAPTURE(task);
                CHECK_NOTHROW(after(model, p.name, task));
            }
        }
}

// --- what there is for whom ---

namespace {

/// impala_resnet and no memory with a controller and a learner of one's own.
struct own_agent final : ablation {
    std::string name() const override { return "own"; }
    std::vector<std::pair<std::string, std::string>> policies() const override {
        return {{"encoder", "impala_resnet"},
                {"controller", policy_name<somebodys::lstm>()},
                {"memory", "no_memory"},
                {"auxiliary", "no_auxiliary"},
                {"learner", policy_name<somebodys::ppo>()}};
    }
    std::vector<std::pair<std::string, std::string>> library_policies() const override {
        return {{"encoder", library_policy_name<impala_resnet>()},
                {"controller", library_policy_name<somebodys::lstm>()},
                {"memory", library_policy_name<no_memory>()},
                {"auxiliary", library_policy_name<no_auxiliary>()},
                {"learner", library_policy_name<somebodys::ppo>()}};
    }
    struct parts {
        BOOST_HANA_DEFINE_STRUCT(parts, (impala_resnet::settings, encoder), (somebodys::lstm::settings, controller),
                                 (somebodys::ppo::settings, learner));
    } all;
    std::vector<setting> settings() const override { return list_settings(all); }
    void set(const std::vector<std::pair<std::string, std::string>>& pairs) override { engram::set(all, pairs); }
    learning_kind learns() const override { return learning_kind::acting; }
    traced_agent<cpu<float>> trace(const task_shape&, std::uint64_t, purpose) const override { fail("settings alone"); }
};

}  // namespace

TEST_CASE("policies of one's own get nothing, whatever they and their settings are called") {
    CHECK(policy_name<somebodys::ppo>() == "ppo");
    CHECK(library_policy_name<somebodys::ppo>().empty());
    CHECK(library_policy_name<engram::ppo>() == "ppo");
    CHECK(library_policy_name<fifo_knn_no_jumpy>() == "fifo_knn_no_jumpy");
    for (const char* preset : {"small", "paper"})
        for (const char* task : {"arbitrary_visuomotor_mapping", "t_maze", "transitive_inference", "two_colors"}) {
            own_agent model;
            const auto got = after(model, preset, task);
            for (const auto& s : model.settings())
                if (!s.name.starts_with("encoder.")) CHECK_MESSAGE(got.origin.at(s.name) == "default", s.name);
            CHECK(got.number("learner.discount") == 0.5);
            CHECK(got.number("controller.hidden") == 9);
            CHECK(got.number("rollout.epochs") == 1);
            CHECK(got.number("optimiser.final_fraction") == 1);
        }
    own_agent model;
    const auto got = after(model, "small", "arbitrary_visuomotor_mapping");
    CHECK(got["encoder.channels"].empty());  // what is the library's gets its own
    CHECK(got.number("rollout.unroll") == 10);
    CHECK(got.number("rollout.environments") == 32);
    CHECK(got.number("optimiser.learning_rate") == 3e-4);
    CHECK_THROWS_WITH_AS(after(model, "published", "t_maze"),
                         "preset published: there is none for engram-own; expected small or paper", error);
}

TEST_CASE("what belongs to a task of the library does not reach another one") {
    CHECK(after(mra, "small", "arbitrary_visuomotor_mapping").number("learner.discount") == 0);
    CHECK(after(mra, "small", "change_detection").number("learner.discount") == 0);
    const auto got = after(mra, "small", "a_task_of_ones_own");
    CHECK(got.number("learner.discount") == 0.98);
    CHECK(got.origin.at("learner.discount") == "default");
    CHECK(got["encoder.subtract_mean"] == "false");
    CHECK(after(mra, "small", "change_detection")["encoder.subtract_mean"] == "true");
}

// docs/decisions/0017
TEST_CASE(
    "suite tasks at the small fidelity are learnt several times from an unroll, visuomotor mapping and others once") {
    for (const char* task : {"change_detection", "continuous_recognition", "spot_diff_multi", "transitive_inference"}) {
        CAPTURE(task);
        const auto got = after(mra, "small", task);
        CHECK(got.number("learner.clip") == 0.1);
        CHECK(got.number("rollout.environments") == 64);
        CHECK(got.number("rollout.epochs") == 4);
        CHECK(got.number("rollout.minibatches") == 4);
        CHECK(got.number("optimiser.epsilon") == 1e-8);
        CHECK(got.number("optimiser.final_fraction") == 0);
        CHECK(got.number("auxiliary.weight") == (std::string(task).starts_with("c") ? 0.0002 : 0.001));
    }
    for (const char* task : {"arbitrary_visuomotor_mapping", "t_maze", "a_task_of_ones_own"}) {
        CAPTURE(task);
        const auto got = after(mra, "small", task);
        CHECK(got.number("learner.clip") == 0);
        CHECK(got.number("rollout.environments") == 32);
        CHECK(got.number("rollout.epochs") == 1);
        CHECK(got.number("auxiliary.weight") == 0.1);
    }
    CHECK(after(mra, "paper", "change_detection").number("learner.clip") == 0);
    CHECK(after(mra, "small", "spot_diff").number("learner.baseline_cost") == 0.5);
    for (const char* task : {"invisible_goal_empty_arena", "visible_goal_procedural_maze"}) {
        CHECK(after(mra, "small", task).number("learner.baseline_cost") == 0.1);  // docs/decisions/0019
        CHECK(after(mra, "small", task).number("learner.discount") == 0.9);
    }
    CHECK(after(mra, "small", "visible_goal_procedural_maze").number("learner.entropy_cost") == 0.003);
    CHECK(after(mra, "small", "invisible_goal_empty_arena").number("learner.entropy_cost") == 0.01);
    CHECK(after(mra, "small", "spot_diff")["encoder.strided"] == "16,32");
    CHECK(after(mra, "small", "spot_diff")["encoder.subtract_mean"] == "false");
    CHECK(after(mra, "small", "change_detection")["encoder.strided"].empty());
}

TEST_CASE("what no line is for keeps its defaults") {
    const composition conv{"small_conv", "lstm", "no_memory", "no_auxiliary", "vtrace"};
    const auto got = after(conv, "small", "arbitrary_visuomotor_mapping");
    CHECK(got["encoder.channels"] == "16,32");
    CHECK(got.origin.at("encoder.channels") == "default");
    CHECK(got["encoder.output"] == "128");
    CHECK(got["encoder.centre"] == "true");
    CHECK(after({"mlp", "lstm", "dnc", "no_auxiliary", "vtrace"}, "paper", "t_maze")["memory.slots"] == "16");
}

// --- --set ---

TEST_CASE("a preset and --set are checked once, together") {
    const composition conv{"small_conv", "lstm", "no_memory", "no_auxiliary", "vtrace"};
    CHECK(after(conv, "small", "t_maze",
                {"encoder.channels=16,32,64", "encoder.kernels=4,3,2", "encoder.strides=2,2,1"})["encoder.channels"] ==
          "16,32,64");
    // Neither half would be valid beside the preset's other one.
    const auto got = after(acting_lstm, "small", "t_maze", {"rollout.environments=30", "rollout.minibatches=5"});
    CHECK(got["rollout.environments"] == "30");
    CHECK(after(acting_lstm, "paper", "t_maze",
                {"rollout.minibatches=5", "rollout.environments=30"})["rollout.minibatches"] == "5");
}

TEST_CASE("--set that contradicts a preset is one sentence, and changes nothing") {
    const auto refused = [](const composition& c, const char* task, const std::vector<std::string>& set,
                            const std::string& sentence) {
        composed::agent_of model(c);
        configuration config(model);
        config.task = task;
        const auto before = config.to_json().dump();
        CHECK_THROWS_WITH_AS(config.apply_preset("small", parse_assignments(set)), sentence.c_str(), error);
        CHECK(config.to_json().dump() == before);
    };
    refused(acting_lstm, "t_maze", {"rollout.environments=30"},
            "rollout.minibatches: 30 environments do not divide into 4 equal minibatches; preset small has "
            "rollout.minibatches=4");
    refused(acting_lstm, "two_colors", {"encoder.image.channels=16,32,64"},
            "encoder: channels, kernels and strides need one number a layer each, got 3, 2 and 2; preset small has "
            "encoder.image.kernels=4,3, encoder.image.strides=2,2");
    refused({"token_embedding", "transformer", "no_memory", "no_auxiliary", "supervised"}, "copy",
            {"controller.heads=3"},
            "controller.heads: 128 columns (controller.hidden) do not divide into 3 heads; preset small has "
            "controller.hidden=128");
    // What is wrong by itself is not the preset's matter.
    refused(mra, "t_maze", {"memory.slots=0"}, "memory.slots: expected at least one slot, got 0");
    refused(mra, "t_maze", {"memory.slot=5"}, "unknown setting 'memory.slot'; did you mean 'memory.slots'?");
    refused(mra, "t_maze", {"task.lenght=5"}, "unknown setting 'task.lenght'; did you mean 'task.length'?");
    refused(gtmm("ntm"), "perfect_recall", {"memory.slots=0"}, "memory.slots: expected at least one slot, got 0");
}

TEST_CASE("every value says where it comes from") {
    const auto got = after(mra, "small", "change_detection", {"memory.slots=50", "task.stimulus_count=7"});
    CHECK(got.origin.at("memory.slots") == "--set");
    CHECK(got.origin.at("task.stimulus_count") == "--set");
    CHECK(got.origin.at("memory.key") == "preset");
    CHECK(got.origin.at("optimiser.kind") == "preset");
    CHECK(got.origin.at("rollout.environments") == "task");
    CHECK(got.origin.at("rollout.unroll") == "task");
    CHECK(got.origin.at("learner.discount") == "task");
    CHECK(got.origin.at("learner.rho_bar") == "default");
    CHECK(got.origin.at("memory.epsilon") == "default");
    CHECK(after(mra, "small", "arbitrary_visuomotor_mapping").origin.at("memory.epsilon") == "task");
    CHECK(after(gtmm("dnc"), "small", "perfect_recall").origin.at("memory.slots") == "task");
    CHECK(after(gtmm("dnc"), "small", "perfect_recall").origin.at("memory.word") == "preset");
}

// --- values ---

TEST_CASE("a model of tokens has a controller of 128, whichever it is") {
    int models = 0;
    for (const auto& p : presets())
        for (const char* controller : {"feed_forward", "lstm", "srnn", "stacked_lstm", "transformer"})
            for (const char* learner : {"memup", "supervised", "truncated_supervised"})
                for (const char* task : {"copy", "scattered_copy", "add", "permuted_mnist"}) {
                    const composition c{"token_embedding", controller, "no_memory", "no_auxiliary", learner};
                    CAPTURE(p.name);
                    CAPTURE(c.text());
                    CHECK(after(c, p.name, task)["controller.hidden"] == "128");
                    ++models;
                }
    CHECK(models == 4 * 5 * 3 * 4);
}

TEST_CASE("slots of generative models follow the steps of a sequence, unless they are set") {
    for (const char* preset : {"small", "paper"})
        for (const auto& [memory, times] : {std::pair{"introspection", 1}, {"ntm", 1}, {"dnc", 1}, {"lru_access", 5}})
            for (const auto& task : {"perfect_recall", "parity_recall", "one_shot_recall", "dynamic_dependency",
                                     "similarity_cued_recall", "mnist_map", "rotation"}) {
                const std::string kind = memory;  // clang before 16 captures no binding
                CAPTURE(kind);
                CAPTURE(task);
                const auto T = describe_sequence(task).steps;
                CHECK(after(gtmm(memory), preset, task)["memory.slots"] == std::to_string(times * T));
                CHECK(after(gtmm(memory), preset, task, {"memory.slots=60"})["memory.slots"] == "60");
            }
    // Ten items and five of them again.
    CHECK(after(gtmm("dnc"), "small", "similarity_cued_recall", {"task.items=10"})["memory.slots"] == "15");
    CHECK(after(gtmm("lru_access"), "paper", "similarity_cued_recall", {"task.items=10"})["memory.slots"] == "75");
    CHECK(after(gtmm("ntm"), "paper", "perfect_recall", {"task.items=50"})["memory.slots"] == "55");
}

TEST_CASE("the introspection network's slots go by write position in paper, by age in small") {
    CHECK(after(gtmm("introspection"), "paper", "perfect_recall")["memory.order"] == "position");
    CHECK(after(gtmm("introspection"), "small", "perfect_recall")["memory.order"] == "age");
}

TEST_CASE("MemUP for agents in paper is the printed table") {
    // Facts 3.8 and 3.9, column by column: T-Maze-100, T-Maze-1000, Two Colors.
    struct column {
        const char* task;
        std::vector<std::string> set;
        double memory_batch, memory_rate, batches_an_epoch, epochs, selected, discount;
        double environments, policy_steps, policy_discount, detector_steps, detector_discount;
    };
    const std::vector<column> columns{
        {"t_maze", {}, 128, 2e-5, 300, 100, 1, 0, 128, 5e7, 0.99, 4e6, 0},
        {"t_maze", {"task.length=1000"}, 128, 2e-5, 300, 1000, 1, 0, 128, 6e8, 0.99, 4e6, 0},
        {"two_colors", {}, 64, 3e-4, 400, 300, 3, 0.8, 64, 1e8, 0.995, 5e6, 0.8}};
    for (const auto& c : columns) {
        CAPTURE(c.task);
        CAPTURE(c.epochs);
        const auto got = after(acting_memup, "paper", c.task, c.set);
        const double memory_steps = c.memory_batch * c.batches_an_epoch * c.epochs;
        CHECK(got.number("phases.memory.batch") == c.memory_batch);
        CHECK(got.number("phases.memory.optimiser.learning_rate") == c.memory_rate);
        CHECK(got.number("phases.memory.steps") == memory_steps);
        CHECK(got.number("phases.detector_steps") == c.detector_steps);
        CHECK(static_cast<double>(got.steps) == c.detector_steps + memory_steps + c.policy_steps);
        // K targets and not the step itself.
        CHECK(got.number("learner.memory.rollout") == 1);
        CHECK(got.number("learner.memory.selected") == c.selected);
        CHECK(got.number("learner.memory.current_weight") == 0);
        CHECK(got.number("learner.memory.discount") == c.discount);
        CHECK(got.number("learner.memory.context") == 256);
        CHECK(got.number("learner.memory.hidden") == 512);
        CHECK(got["learner.memory.uncertainty"] == "quantiles");
        // QR-DQN.
        CHECK(got.number("learner.detector.discount") == c.detector_discount);
        CHECK(got.number("learner.detector.atoms") == 200);
        CHECK(got.number("learner.detector.kappa") == 1);
        CHECK(got.number("learner.detector_hidden") == (std::string(c.task) == "t_maze" ? 256 : 512));
        CHECK(got.number("phases.detector.environments") == 4);  // an update every 4 steps
        CHECK(got.number("phases.detector.batch") == 512);
        CHECK(got.number("phases.detector.start") == 5e4);
        CHECK(got.number("phases.detector.target_period") == 1e4);
        CHECK(got.number("phases.detector.replay.capacity") == 1e6);
        CHECK(got.number("phases.detector.optimiser.learning_rate") == 5e-5);
        CHECK(got.number("phases.detector.optimiser.epsilon") == 0.01 / 512);
        // PPO, and its baseline with the same numbers.
        for (const auto& agent : {acting_memup, acting_lstm}) {
            const auto acts = after(agent, "paper", c.task, c.set);
            CHECK(acts.number("rollout.environments") == c.environments);
            CHECK(acts.number("rollout.unroll") == 5);
            CHECK(acts.number("rollout.minibatches") == 4);
            CHECK(acts.number("rollout.epochs") == 4);
            CHECK(acts.number("optimiser.learning_rate") == 1e-3);
            CHECK(acts.number("controller.hidden") == 256);
            CHECK(acts.number("task.length_spread") == 9);
            const bool baseline = agent.learner == "ppo";
            CHECK(acts.number(baseline ? "learner.discount" : "learner.policy.discount") == c.policy_discount);
            if (baseline) CHECK(static_cast<double>(acts.steps) == c.policy_steps);
        }
    }
    CHECK(after(acting_memup, "paper", "t_maze", {"task.length=999"}).steps ==
          after(acting_memup, "paper", "t_maze").steps);
    // Errata U23: the authors' code has the step itself among the targets.
    CHECK(after(acting_memup, "published", "t_maze").number("learner.memory.current_weight") == 1);
}

TEST_CASE("POPGym in paper is what its authors ran, in small nothing is paid for entropy") {
    for (const auto& task : popgym_tasks.names()) {
        CAPTURE(task);
        // 65,536 steps a batch, minibatches of 8192 steps, 30 passes.
        const auto got = after(acting_lstm, "paper", task);
        CHECK(got.steps == 15'000'000);
        CHECK(got.number("rollout.environments") * got.number("rollout.unroll") == 65'536);
        CHECK(65'536 / got.number("rollout.minibatches") == 8192);
        CHECK(got.number("rollout.epochs") == 30);
        CHECK(got.number("learner.clip") == 0.3);
        CHECK(got.number("learner.lambda") == 1);
        CHECK(got.number("learner.discount") == 0.99);
        CHECK(got.number("learner.entropy_cost") == 0);
        CHECK(got["learner.standardise"] == "true");
        CHECK(got["learner.head_layers"] == "128,128");
        CHECK(got["encoder.numbers.layers"] == "128,128");
        CHECK(got["encoder.numbers.normalise"] == "true");
        CHECK(got["wiring.last_action_reward"] == "false");
        CHECK(got.number("optimiser.learning_rate") == 5e-5);
        CHECK(got.number("optimiser.final_fraction") == 1);
        CHECK(got.number("controller.hidden") == 256);
        CHECK(after(acting_lstm, "small", task).number("learner.entropy_cost") == 0);
        CHECK(after(acting_lstm, "small", task).steps == 3'000'000);
    }
    std::size_t there = 0;
    for (const auto& task : task_names()) there += task.starts_with("popgym_");
    CHECK(popgym_tasks.names().size() == there);
    CHECK(after(acting_lstm, "small", "t_maze").number("learner.entropy_cost") == 0.01);
    CHECK(after(acting_lstm, "paper", "popgym_count_recall")["task.rules"] == "paper");
    CHECK(after(acting_lstm, "paper", "popgym_mine_sweeper")["task.rules"] == "paper");
    const auto dnc = after({"numbers_or_image", "lstm", "dnc", "no_auxiliary", "ppo"}, "paper", "popgym_autoencode");
    CHECK(dnc.number("memory.slots") * dnc.number("memory.word") == 256);
    CHECK(dnc.number("memory.read_heads") == 4);
}

TEST_CASE("every preset says how long a run is") {
    for (const auto& [c, task, preset, steps] : std::vector<std::tuple<composition, std::string, std::string, double>>{
             {mra, "t_maze", "small", 1.5e6},
             {mra, "change_detection", "paper", 1e8},
             {gtmm("dnc"), "perfect_recall", "small", 1.5e6},
             {gtmm("dnc"), "one_shot_recall", "small", 2e6},
             {gtmm("dnc"), "rotation", "paper", 1e8},
             {memup_of_tokens, "copy", "small", 4e6},
             {memup_of_tokens, "copy", "paper", 1e8},
             {memup_of_tokens, "add", "published", 1e8},
             {memup_of_tokens, "copy", "tuned", 12.8e6},
             {acting_lstm, "change_detection", "published", 1e8},
             {acting_memup, "t_maze", "published", 1e8}}) {
        const std::string run = c.text() + " " + preset + " " + task;  // clang before 16 captures no binding
        CAPTURE(run);
        CHECK(static_cast<double>(after(c, preset, task).steps) == steps);
    }
}

TEST_CASE("MemUP predicts within a rollout on small copies, and at its end on pixels") {
    CHECK(after(memup_of_tokens, "small", "copy")["learner.every"] == "5");
    CHECK(after(memup_of_tokens, "small", "permuted_mnist")["learner.every"] == "20");
    CHECK(after(memup_of_tokens, "small", "permuted_mnist")["learner.rollout"] == "20");
}

TEST_CASE("copies of 5020 steps have rollouts of 100, in paper and in the code") {
    CHECK(after(memup_of_tokens, "paper", "copy", {"task.steps=5020"})["learner.rollout"] == "100");
    CHECK(after(memup_of_tokens, "paper", "copy", {"task.steps=5020"})["learner.every"] == "100");
    CHECK(after(memup_of_tokens, "published", "scattered_copy", {"task.steps=5020"})["learner.every"] == "10");
    CHECK(after(memup_of_tokens, "paper", "copy", {"task.steps=1020"})["learner.rollout"] == "20");
    CHECK(after({"token_embedding", "srnn", "no_memory", "no_auxiliary", "truncated_supervised"}, "paper", "copy",
                {"task.steps=5020"})["learner.unroll"] == "100");
}

TEST_CASE("every encoder of images centres pixels and takes the mean colour away where it is told to") {
    for (const auto& p : library()) {
        if (p.slot != "encoder" || p.name == "identity" || p.name == "token_embedding") continue;
        const std::string image = p.name == "numbers_or_image" ? "encoder.image." : "encoder.";
        for (const char* setting : {"centre", "subtract_mean"})
            CHECK_MESSAGE(std::count(p.settings.begin(), p.settings.end(), image + setting) == 1, p.name, " ", setting);
    }
}

// Facts 1.9, 3.4 and 3.9; errata M43, U21, U23 and U24.
TEST_CASE("what a controller is told, what an update learns from, and what the authors' code does otherwise") {
    const composition reconstructing{"impala_resnet", "lstm", "fifo_knn", "reconstruction", "vtrace"};
    const std::string maze = "visible_goal_procedural_maze";
    CHECK(after(reconstructing, "paper", maze)["wiring.last_action_reward"] == "false");
    CHECK(after(reconstructing, "small", maze)["wiring.last_action_reward"] == "true");
    CHECK(after(reconstructing, "paper", maze)["asynchronous.whole"] == "true");
    CHECK(after(reconstructing, "small", maze)["asynchronous.whole"] == "false");
    CHECK(after(acting_lstm, "paper", "t_maze")["wiring.last_action_reward"] == "true");
    const auto told = after(memup_of_tokens, "paper", "copy"), theirs = after(memup_of_tokens, "published", "copy");
    CHECK(told["learner.context.and_step"] == "false");
    CHECK(theirs["learner.context.and_step"] == "true");
    CHECK(told.number("learner.chosen_weight") == 1);
    CHECK(theirs.number("learner.chosen_weight") == 0.1);
    CHECK(told["learner.last"] == "0");
    CHECK(theirs["learner.last"] == "10");
    const auto acts = after(acting_memup, "paper", "t_maze"), published = after(acting_memup, "published", "t_maze");
    for (const char* name : {"wiring.last_reward", "wiring.memory_alone"}) {
        CHECK(acts[name] == "false");
        CHECK(published[name] == "true");
    }
    CHECK(acts["learner.layers"] == "1");
    CHECK(published["learner.layers"] == "2");
    CHECK(acts.number("phases.memory.least_loss") == 0);
    CHECK(published.number("phases.memory.least_loss") == 2e-5);
}
