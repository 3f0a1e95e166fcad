// Every composition of encoder, controller, memory, auxiliary loss and learner that the sentences of model/agent.hpp
// let compile, under the presets small and paper: described, and trained for one update, on a task that it fits. What
// does not fit is one sentence. Sizes that only cost time are set smaller.
//
// The compositions are made while the test runs (traced.hpp), some thousands of them; tests/model and the catalogue
// compile some as types of their own.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include <engram/program/commands.hpp>
#include <engram/program/compiled_tasks.hpp>

#include "../io/temporary.hpp"
#include "traced.hpp"

using namespace engram;
using composed::composition;

namespace {

// --- frames that every encoder of images takes, to act on, to judge and to draw ---

void paint(float* pixels, int count, int t) {
    for (int i = 0; i < count; ++i) pixels[i] = static_cast<float>((i * 7 + t * 13) % 16) / 15;
}

template <int Side>
struct shown {
    static constexpr own_task specification{.name = Side == 16 ? "shown_16" : "shown_32",
                                            .observation = {Side, Side, 3},
                                            .actions = 3,
                                            .longest_episode = 4,
                                            .maximum_reward = 4};
    int time;
    void reset(philox&) { time = 0; }
    outcome step(int action) {
        const bool right = action == time % 3;
        return {right ? 1.0f : 0.0f, ++time == 4};
    }
    void observe(float* pixels) const { paint(pixels, Side * Side * 3, time); }
};

template <int Side, bool Judged>
class frames final : public sequence_source {
public:
    static sequence_info describe(const task_options&) {
        sequence_info info{
            .name = (Judged ? "judged_" : "drawn_") + std::to_string(Side), .steps = 4, .observation = {Side, Side, 3}};
        if (Judged) info.targets = 1, info.classes = 3;
        return info;
    }
    explicit frames(const task_options& options) : info_(describe(options)) {}
    const sequence_info& info() const override { return info_; }
    void draw(const std::string&, std::uint64_t, std::uint64_t index, const sequence_place& to) const override {
        for (int t = 0; t < info_.steps; ++t) {
            const int size = info_.observation.size();
            const std::ptrdiff_t at = std::ptrdiff_t{t} * to.rows;
            if (to.observation) paint(to.observation + at * size, size, t + static_cast<int>(index % 5));
            if (to.target) to.target[at] = static_cast<float>((t + static_cast<int>(index)) % 3);
            if (to.weight) to.weight[at] = 1;
            if (to.query) to.query[t] = 1;
            if (to.origin) to.origin[t] = -1;
            if (to.label) to.label[t] = -1;
        }
    }

private:
    sequence_info info_;
};

void add_tasks() {
    static const bool once = [] {
        add_task<shown<16>>(), add_task<shown<32>>();
        add_sequence<frames<16, true>>(), add_sequence<frames<32, true>>();
        add_sequence<frames<16, false>>(), add_sequence<frames<32, false>>();
        return true;
    }();
    (void)once;
}

bool among(const std::string& one, std::initializer_list<const char*> all) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

/// A task that fits, of frames, of tokens or of numbers.
std::string task_of(const composition& c, const std::string& preset) {
    const bool of_targets = among(c.learner, {"supervised", "truncated_supervised", "memup"});
    if (among(c.encoder, {"token_embedding", "identity", "numbers_or_image"}) && c.learner != "variational") {
        if (of_targets) return c.encoder == "token_embedding" ? "copy" : "bit_copy";
        // Of either kind of observation, one a preset.
        if (c.encoder != "numbers_or_image" || preset == "small") return "t_maze";
    }
    const char* side = c.encoder == "two_pathway" ? "32" : "16";
    return (c.learner == "variational" ? "drawn_" : of_targets ? "judged_" : "shown_") + std::string(side);
}

/// Lengths and sizes that only cost time.
std::vector<std::string> smaller(const ablation& model, const std::string& task, const std::string& preset) {
    std::vector<std::string> wanted{
        "rollout.environments=4",  "rollout.unroll=2",        "sequence.batch=2",
        "auxiliary.steps=1",       "learner.rollout=2",       "learner.every=1",
        "learner.selected=1",      "phases.detector_steps=8", "phases.detector.environments=4",
        "phases.detector.batch=4", "phases.detector.start=4", "phases.detector.replay.capacity=8",
        "phases.memory.steps=2",   "phases.memory.batch=2"};
    if (task == "t_maze") wanted.insert(wanted.end(), {"task.length=5", "task.length_spread=0"});
    if (among(task, {"copy", "bit_copy"})) wanted.push_back("task.items=2");
    if (task == "copy") wanted.push_back("task.steps=8");
    // Whole sequences: the first steps of some have no target.
    wanted.push_back(task == "copy"       ? "learner.unroll=8"
                     : task == "bit_copy" ? "learner.unroll=6"
                                          : "learner.unroll=4");
    // Drawing first weights is what a model costs.
    for (const char* width : {"controller.hidden",
                              "controller.inner",
                              "controller.hyper",
                              "controller.states",
                              "controller.key",
                              "controller.value",
                              "controller.size",
                              "controller.traces",
                              "controller.window",
                              "encoder.output",
                              "encoder.hidden",
                              "encoder.layers",
                              "encoder.width",
                              "encoder.numbers.layers",
                              "encoder.image.output",
                              "encoder.stream_maps",
                              "learner.detector_hidden",
                              "learner.memory.context",
                              "learner.memory.hidden",
                              "learner.context.hidden",
                              "learner.latent",
                              "learner.detector.atoms",
                              "memory.slots",
                              "memory.word",
                              "memory.key",
                              "memory.hidden",
                              "wiring.features"})
        wanted.push_back(std::string(width) + "=8");
    wanted.insert(wanted.end(), {"encoder.global_maps=4,4,4", "encoder.local_maps=4,4", "encoder.maps=4,4"});
    wanted.push_back(preset == "paper" ? "encoder.image.channels=4,4,4" : "encoder.image.channels=4,4");
    if (preset == "paper") wanted.push_back("encoder.channels=4,4,4");
    const std::string learner = model.policies()[4].second;
    if (among(learner, {"ppo", "memup_ppo"}))
        wanted.insert(wanted.end(), {"rollout.epochs=2", "rollout.minibatches=2"});
    if (learner == "memup") wanted.push_back("learner.hidden=8,8");
    if (learner == "memup_ppo" || (learner == "variational" && preset == "small")) wanted.push_back("learner.hidden=8");
    const auto settings = model.settings();
    std::vector<std::string> kept;
    for (const auto& text : wanted) {
        const auto name = text.substr(0, text.find('='));
        if (name.starts_with("phases.") && model.learns() != learning_kind::phases) continue;
        const bool of_run = among(name.substr(0, name.find('.')), {"rollout", "sequence", "task", "phases"});
        const bool there =
            of_run || std::any_of(settings.begin(), settings.end(), [&](const setting& s) { return s.name == name; });
        // small_conv has as many kernels and strides as channels.
        const bool fits = name != "encoder.channels" || model.policies()[0].second == "impala_resnet";
        if (there && fits) kept.push_back(text);
    }
    return kept;
}

/// The sentence that a composition has to be refused with; empty: it has to work. Describing comes before training.
struct expected {
    std::string description, training;
};
expected expected_of(const composition& c) {
    const bool of_targets = among(c.learner, {"supervised", "truncated_supervised", "memup"});
    if (c.auxiliary == "reconstruction" && of_targets)
        return {"reconstruction: it predicts the last action and reward, and the task has none", ""};
    if (c.learner == "quantile_regression") return {"", "the learner does not learn from what an agent does"};
    return {};
}

std::string folder_of_runs() {
    // Where files cost least.
    if (std::filesystem::is_directory("/dev/shm")) ::setenv("TMPDIR", "/dev/shm", 1);
    static const temporary_folder folder;
    return folder.path;
}

/// Empty if all was as it should be.
std::string trial(const composition& c, const std::string& preset) {
    composed::traced_agent_of model(c);
    arguments a;
    a.task = task_of(c, preset), a.preset = preset;
    a.set = smaller(model, *a.task, preset);
    const expected wanted = expected_of(c);
    // As the preset is.
    configuration config(model);
    config.task = *a.task;
    config.apply_preset(preset);
    const auto outcome_of = [](const std::string& refusal, auto body) -> std::string {
        try {
            body();
        } catch (const error& problem) {
            const std::string text = problem.what();
            if (text.find('\n') != text.npos) return "more than a sentence: " + text;
            if (refusal.empty()) return "refused: " + text;
            return text.find(refusal) == text.npos ? "other words: " + text : "";
        }
        return refusal.empty() ? "" : "not refused";
    };
    const auto described = outcome_of(wanted.description, [&] {
        const auto text = description(model, a);
        require(text.find("controller  " + c.controller) != text.npos && text.find("  preset") != text.npos,
                "the description names neither the policies nor where values come from");
        if (c.controller == "gru" && c.learner == "supervised")
            require(text.find("state of a row\n  8 numbers, 32 bytes\n") != text.npos,
                    "it does not say what is carried");
    });
    if (!described.empty() || !wanted.description.empty()) return described;
    a.command = "train", a.steps = "1", a.seed = "1", a.threads = "1", a.evaluate = "0", a.quiet = true;
    a.out = folder_of_runs() + "/run";
    if (model.learns() == learning_kind::phases) a.steps = "11";  // 8 of the detector, 2 of the memory
    const auto trained = outcome_of(wanted.training, [&] {
        composed::traced_agent_of fresh(c);
        require(train(fresh, a) == 0, "the program failed");
        const bytes table = read_file(*a.out + "/metrics.csv");
        std::istringstream rows(std::string(table.begin(), table.end()));
        std::string names, values, more;
        std::getline(rows, names), std::getline(rows, values);
        while (std::getline(rows, more)) values = more;
        std::istringstream columns(names), row(values);
        bool moved = false;
        for (std::string name, value; std::getline(columns, name, ',') && std::getline(row, value, ',');)
            if (name == "gradient_norm" || (name == "loss" && !value.empty())) {
                require(!value.empty() && std::isfinite(std::stod(value)), name, " is '", value, "'");
                moved |= name == "gradient_norm" && std::stod(value) > 0;
            }
        require(moved, "the update had no gradient");
    });
    std::filesystem::remove_all(*a.out);
    return trained;
}

/// The recurrences of today, memory traces and the hybrid memory: each of them stands once beside plain policies, with
/// every learner.
bool is_of_today(const composition& c) {
    return among(c.memory, {"memory_traces", "hybrid"}) ||
           among(c.controller, {"fast_and_forgetful", "gated_delta_net", "gru", "gtrxl", "linear_recurrent_unit",
                                "min_gru", "mlstm", "s5", "stable_hadamard"});
}
bool is_plain(const composition& c) {
    return c.encoder == "mlp" && c.auxiliary == "no_auxiliary" &&
           (c.memory == "no_memory" ||
            (among(c.memory, {"memory_traces", "hybrid"}) && c.controller == "feed_forward"));
}

/// Every composition with a learner; says how many compile.
int all_with(const std::string& learner) {
    add_tasks();
    int count = 0;
    for (const auto& encoder : composed::encoders::names())
        for (const auto& controller : composed::controllers::names())
            for (const auto& memory : composed::memories::names())
                for (const auto& auxiliary : composed::auxiliaries::names()) {
                    const composition c{encoder, controller, memory, auxiliary, learner};
                    if (is_of_today(c) && !is_plain(c)) continue;
                    if (!composed::compiles(composed::agent_of(c))) continue;
                    ++count;
                    for (const char* preset : {"small", "paper"}) {
                        const std::string problem = trial(c, preset);
                        CHECK_MESSAGE(problem.empty(), c.text(), " (", preset, "): ", problem);
                    }
                }
    MESSAGE(learner, ": ", count);
    return count;
}

}  // namespace

// Nine encoders, of which two cannot decode and so have no reconstruction, four controllers that are stepped, seven
// memories: 25 * 4 * 7; the Transformer without a memory under learners of whole sequences; and once each, eight
// controllers and two memories of today.
TEST_CASE("V-trace") {
    CHECK(all_with("vtrace") == 711);
}
TEST_CASE("PPO") {
    CHECK(all_with("ppo") == 711);
}
TEST_CASE("MemUP that acts") {
    CHECK(all_with("memup_ppo") == 45);
}
TEST_CASE("QR-DQN, which is a detector and no learner of an agent") {
    CHECK(all_with("quantile_regression") == 711);
}
TEST_CASE("supervised") {
    CHECK(all_with("supervised") == 736);
}
TEST_CASE("truncated") {
    CHECK(all_with("truncated_supervised") == 736);
}
TEST_CASE("MemUP") {
    CHECK(all_with("memup") == 736);
}
TEST_CASE("variational") {
    CHECK(all_with("variational") == 207);
}
