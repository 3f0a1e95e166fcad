#pragma once
// SPDX-License-Identifier: MIT

// A run folder as an application reads it that uses the trained model and nothing else of the run:
//
//   const trained_run run("runs/match");                                    config.json: task and settings
//   const auto settings = run.settings_of<my_agent::settings>();            those that it was trained with
//   auto agent = my_agent::trace<cpu<float>>(settings, shape, 1);
//   load_weights(run.checkpoint(), *agent.store);                           train/saved_state.hpp
//
// The program that trained it is not needed, nor what that needs besides the headers. Errors name the file.

#include <string>

#include <engram/io/json.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/task/environment.hpp>

ENGRAM_REFLECT(engram::task_options, data, stimuli, stimulus_count, fidelity, scheme, length, length_spread, backward,
               items, recalled, steps, glyph_side, markers, difficulty, trials, decks, rules);

namespace engram {

/// Where a run folder keeps what.
struct run_paths {
    std::string folder;
    std::string config() const { return folder + "/config.json"; }
    std::string metrics() const { return folder + "/metrics.csv"; }
    std::string levels() const { return folder + "/levels.csv"; }
    // TensorBoard looks for "tfevents" in a name.
    std::string events() const { return folder + "/events.out.tfevents.engram"; }
    std::string summary() const { return folder + "/summary.json"; }
    std::string retrieval() const { return folder + "/retrieval.json"; }
    std::string checkpoint() const { return folder + "/checkpoint/latest.safetensors"; }
};

/// What config.json says of a model: which one it is, what it was trained on, and every setting.
class trained_run {
public:
    /// Throws unless the folder holds a config.json that names ablation, task and settings.
    explicit trained_run(const std::string& folder) : paths_{folder} {
        const json content = read_json(paths_.config());
        const auto has = [&](const char* key) -> const json& {
            require(content.is_object() && content.contains(key), paths_.config(), ": no '", key,
                    "'; expected the configuration of a run");
            return content[key];
        };
        const auto text = [&](const char* key) {
            require(has(key).is_string(), paths_.config(), ": '", key, "' must be a text");
            return has(key).get<std::string>();
        };
        ablation_ = text("ablation"), task_ = text("task");
        settings_ = has("settings");
        require(settings_.is_object(), paths_.config(), ": 'settings' must be an object");
    }

    const std::string& ablation() const { return ablation_; }
    const std::string& task() const { return task_; }

    /// The settings of the groups that S has, such as `agent<...>::settings`; those of other groups belong to the run.
    /// What the file does not mention keeps its default. Throws for a setting that S lacks: it is another model's.
    template <reflected S>
    S settings_of() const {
        json known = json::object();
        for (const std::string& group : member_names<S>())
            if (settings_.contains(group)) known[group] = settings_[group];
        return read<S>(known);
    }
    /// How its task was.
    task_options options() const {
        return settings_.contains("task") ? read<task_options>(settings_["task"]) : task_options{};
    }

    /// What the run has learnt so far; throws when it has saved nothing yet.
    safetensors checkpoint() const { return safetensors::read(paths_.checkpoint()); }

private:
    template <reflected S>
    S read(const json& values) const {
        S settings;
        try {
            settings_from_json(settings, values);
        } catch (const error& problem) {
            fail(paths_.config(), ": ", problem.what());
        }
        return settings;
    }

    run_paths paths_;
    std::string ablation_, task_;
    json settings_;
};

}  // namespace engram
