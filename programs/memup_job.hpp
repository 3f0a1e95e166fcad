#pragma once
// SPDX-License-Identifier: MIT

// Training a memory by predictions of far steps (MemUP).

#include <limits>

#include <engram/program/prepared_model.hpp>
#include <engram/train/memup_update.hpp>

#include "data_checksum.hpp"
#include "memup_runs.hpp"
#include "training_run.hpp"

namespace engram {

template <class Backend>
class memup_job {
public:
    explicit memup_job(const configuration& config)
        : config_(config),
          run_(config),
          training_({static_cast<std::uint64_t>(config.seed), config.threads, config.steps, config.others},
                    run_.learning, run_.generating, run_.source, config.run.sequence, config.run.optimiser) {}

    std::string data() const { return data_checksum(*run_.source); }
    void iterate() { training_.iterate(); }
    std::int64_t steps() const { return training_.steps(); }
    std::int64_t updates() const { return training_.updates(); }
    std::int64_t steps_an_update() const {
        return std::int64_t{config_.run.sequence.batch} * run_.learning.schedule->rollout;
    }
    const parameters<float>& store() {
        training_.sync_weights();
        return *run_.learning.store;
    }
    std::string headline_name() const { return "loss of far steps"; }
    double headline_best() const { return std::numeric_limits<double>::quiet_NaN(); }
    double headline() const { return headline_; }

    /// Losses of the chosen targets and of the current steps; judged_share is the part of the chosen targets whose
    /// answers are judged, distance the steps from a prediction to its targets.
    std::vector<std::string> columns() const {
        return {"loss", "chosen_loss", "current_loss", "judged_share", "distance"};
    }
    std::vector<std::string> last_columns() const { return {}; }

    metrics_row take_row() {
        const training_window w = training_.take_window();
        headline_ = w["chosen_loss"];
        return {{w.loss, w["chosen_loss"], w["current_loss"], w["judged_share"], w["distance"]},
                {},
                w.gradient_norm,
                w.learning_rate};
    }

    void save(safetensors& file) { training_.save(file); }
    void load(const safetensors& file) { training_.load(file); }
    void describe_training(json& summary) const {
        summary["sequences"] = training_.steps() / run_.source->info().steps;
        summary["program_bytes"] = training_->memory();
    }
    /// Scores every level, together with `others`; false when it was interrupted.
    /// The generating model holds the moving averages already.
    bool evaluate(int sequences, const run_paths&, json& summary, processes* others) {
        training_.sync_weights();
        return evaluate_levels(run_, {}, sequences, static_cast<std::uint64_t>(config_.seed), interrupted, summary,
                               others);
    }

private:
    const configuration& config_;
    prepared_model<Backend> run_;
    training_loop<memup_update<Backend>> training_;
    double headline_ = std::numeric_limits<double>::quiet_NaN();
};

template <class Backend>
int memup_runs<Backend>::train(const configuration& config, const run_paths& paths, const arguments& a) {
    return training_run<memup_job<Backend>>(config, paths, a).go();
}

}  // namespace engram
