#pragma once
// SPDX-License-Identifier: MIT

// All that determines a run: the agent with its settings, the task, the seed, the length. It is written to config.json
// of the run folder and, without what may change from one resumption to the next, into every checkpoint.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/evaluate/levels.hpp>
#include <engram/io/json.hpp>
#include <engram/program/ablation.hpp>
#include <engram/program/compiled_tasks.hpp>
#include <engram/program/world.hpp>
#include <engram/train/acting_update.hpp>
#include <engram/train/phase_settings.hpp>
#include <engram/train/sequence_update.hpp>
#include <engram/train/trained_run.hpp>

namespace engram {

struct run_settings {
    rollout_settings rollout;    // of agents
    sequence_settings sequence;  // of models that learn from sequences
    optimiser_settings optimiser;
    asynchronous_settings asynchronous;
    phase_settings phases;  // of agents whose memory is trained before they act
    task_options task;
};

/// Names of settings and texts of their values.
using named_texts = std::vector<std::pair<std::string, std::string>>;
/// The pairs of texts `name=value`.
named_texts parse_assignments(const std::vector<std::string>& assignments);

class configuration {
public:
    explicit configuration(ablation& model) : model_(&model) {}

    std::string task, preset, mode = "synchronous", device = "cpu", products = "float";
    std::int64_t seed = 1, steps = 0, checkpoint_every = 100'000, evaluation_episodes = 100;
    // While it trains: steps between evaluations (0: none), and the episodes a level of each.
    std::int64_t evaluate_every = 0, evaluate_episodes = 20;
    // Training ends once the training episodes between two rows of metrics.csv, a hundred or more, have this mean
    // reward.
    std::optional<double> until_reward;
    // The folder of the run whose weights this one begins with; empty: its own, drawn from the seed.
    std::string weights;
    int threads = 1;
    int actors = 0;               // processes that act for the one that learns
    processes* others = nullptr;  // that train with this one; never written
    // An environment of another process, in place of a task of the library, and once it was joined.
    std::optional<world_settings> elsewhere;
    std::shared_ptr<engram::world> joined;
    run_settings run;

    ablation& model() const { return *model_; }
    /// Settings of the agent, then of the run.
    std::vector<setting> settings() const;
    /// Changes settings of either kind; throws with the nearest name for an unknown one.
    void set(const named_texts& pairs);
    /// Texts `name=value`.
    void assign(const std::vector<std::string>& assignments);
    /// What `products` names; throws for an unknown name, and for other products than float on a device.
    product_precision products_on(const std::string& device_name) const;
    /// One sentence on stderr where the products that were chosen are slower here than those of float. For whoever has
    /// nothing more to refuse.
    void note_slow_products() const;
    /// Gives the settings what a preset has for the agent's policies and the task, then what `further` says, and checks
    /// the outcome once; and the run the preset's number of steps.
    void apply_preset(const std::string& name, const named_texts& further = {});
    /// Throws where a setting of a task was asked for that the task of this run does not read.
    void refuse_foreign(const named_texts& asked) const;
    /// Takes what a command line says of a world elsewhere, on top of what is known of one; its name becomes the task.
    void ask_for_world(const arguments& a);
    /// Takes how long a command line has a world waited for.
    void be_patient(const arguments& a);
    /// Joins that world, if there is one, and makes it a task of the registry; shapes are known from then on.
    void join();
    /// What the task shows and accepts; of a world elsewhere once it was joined.
    task_shape shape() const;
    /// Where a setting's value comes from: default, preset, task (the preset's for this task) or --set.
    std::string origin_of(const std::string& setting) const;

    json to_json() const;
    void from_json(const json& content, const std::string& source);

private:
    void set_all(const named_texts& pairs);

    ablation* model_;
    std::map<std::string, std::string> origin_;  // of what is not a default
};

/// The configuration's model on a backend, with its seed and its products.
template <class Backend>
traced_agent<Backend> traced(const configuration& config, const task_shape& task, purpose why = purpose::learning) {
    auto model = trace_on<Backend>(config.model(), task, static_cast<std::uint64_t>(config.seed), why);
    model.store->set_products(config.products_on(Backend::name));
    return model;
}

/// Settings as nested JSON: {"memory": {"slots": 1024}}.
json settings_to_json(const std::vector<setting>& settings);
/// The inverse: names and texts.
named_texts settings_from_json(const json& settings, const std::string& source);

struct recorded_step;

/// A configuration's task, its images, and its agent, which is on some device.
struct prepared_run {
    explicit prepared_run(const configuration& config);
    virtual ~prepared_run() = default;
    level_maker maker() const;

    /// The agent's weights.
    virtual parameters<float>& store() const = 0;
    /// Whether its memory tells what it read.
    virtual bool tells_reads() const = 0;
    /// evaluate_level() for the agent and its weights.
    virtual level_score score(const std::string& level, int episodes, std::uint64_t seed,
                              const std::function<bool()>& stop, processes* others = nullptr) const = 0;
    /// One episode by the agent's weights, cut after `longest` steps (program/episode.hpp).
    virtual std::vector<recorded_step> play(const std::string& level, std::uint64_t seed,
                                            int longest = 100'000) const = 0;

    task_options options;
    task_info info;
    std::shared_ptr<const stimulus_set> stimuli;
    int rows = 50;  // that play together when it is judged: every one of a world elsewhere is a world
};

/// The tasks that a model can be trained on.
std::vector<std::string> tasks_of(const ablation& model);
/// Throws unless `task` is one of them; for a task that other models are trained on it says which those are.
void require_task(const ablation& model, const std::string& task);

struct sequence_score;
struct sequence_drawing;
struct given_answer;

/// A configuration's sequence task, and its model, which is on some device (program/prepared_model.hpp).
struct prepared_sequences {
    explicit prepared_sequences(const configuration& config);
    virtual ~prepared_sequences() = default;
    /// Whether it is judged by classes or numbers that it answers.
    bool gives_answers() const;

    /// Whether it draws frames.
    virtual bool generates() const = 0;
    /// What is judged gets what a checkpoint holds of it.
    virtual void load_weights(const safetensors& file) = 0;
    /// score() of sequence_player or answer_player; `others` play with this process.
    virtual sequence_score score(const std::string& level, int sequences, std::uint64_t seed,
                                 const std::function<bool()>& stop, processes* others = nullptr) = 0;
    /// draw() of sequence_player, of `rows` sequences.
    virtual sequence_drawing draw(const std::string& level, std::uint64_t seed, int rows, int alone_from) = 0;
    /// What it answers at the judged steps of `rows` sequences, each with its row, step by step.
    virtual std::vector<std::pair<int, given_answer>> answer(const std::string& level, std::uint64_t seed,
                                                             int rows) = 0;

    std::shared_ptr<const sequence_source> source;
};

}  // namespace engram

ENGRAM_REFLECT(engram::run_settings, rollout, sequence, optimiser, asynchronous, phases, task);
