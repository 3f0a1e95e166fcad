#pragma once
// SPDX-License-Identifier: MIT

// Training a model on the sequences of a task.

#include <limits>
#include <numeric>

#include <engram/program/prepared_model.hpp>
#include <engram/train/truncated_update.hpp>

#include "data_checksum.hpp"
#include "sequence_runs.hpp"
#include "training_run.hpp"

namespace engram {

/// Update: of sequences.
template <class Update>
class sequence_job {
    using backend = typename Update::backend;

public:
    explicit sequence_job(const configuration& config)
        : config_(config),
          run_(config),
          training_({static_cast<std::uint64_t>(config.seed), config.threads, config.steps, config.others},
                    run_.learning, run_.source, config.run.sequence, config.run.optimiser) {}

    std::string data() const { return data_checksum(*run_.source); }
    void iterate() { training_.iterate(); }
    std::int64_t steps() const { return training_.steps(); }
    std::int64_t updates() const { return training_.updates(); }
    std::int64_t steps_an_update() const {
        const int unroll = run_.learning.unroll;
        return std::int64_t{config_.run.sequence.batch} * (unroll > 0 ? unroll : run_.source->info().steps);
    }
    const parameters<float>& store() {
        training_.sync_weights();
        return *run_.learning.store;
    }
    std::string headline_name() const { return run_.learning.generative ? "KL of the last step" : "loss"; }
    double headline_best() const { return std::numeric_limits<double>::quiet_NaN(); }
    double headline() const { return headline_; }

    /// free_energy is summed over the steps; kl_first is the mean KL a step before the recall, kl_recall from it on.
    std::vector<std::string> columns() const {
        std::vector<std::string> names{"loss"};
        for (const auto& name : training_.loss_names()) names.push_back(column_of(name) + "_a_step");
        if (run_.learning.generative)
            names.insert(names.end(), {"negative_elbo", "kl", "log_likelihood", "kl_last", "kl_first", "kl_recall"});
        return names;
    }
    std::vector<std::string> last_columns() const { return {}; }

    metrics_row take_row() {
        const training_window w = training_.take_window();
        metrics_row row{{w.loss}, {}, w.gradient_norm, w.learning_rate};
        for (const auto& loss : w.losses) row.values.push_back(loss.second);
        headline_ = w.loss;
        if (!run_.learning.generative) return row;
        const auto sum = [](auto first, auto last) { return std::accumulate(first, last, 0.0); };
        const auto &kl = w.divergence, &log_p = w.log_likelihood;
        const double all = sum(kl.begin(), kl.end()), fit = sum(log_p.begin(), log_p.end());
        const int recall = run_.source->info().recall, T = run_.source->info().steps;
        const double none = std::numeric_limits<double>::quiet_NaN();
        row.values.insert(row.values.end(), {all - fit, all, fit, kl.back(),
                                             recall > 0 ? sum(kl.begin(), kl.begin() + recall) / recall : none,
                                             recall > 0 ? sum(kl.begin() + recall, kl.end()) / (T - recall) : none});
        headline_ = kl.back();
        return row;
    }

    void save(safetensors& file) { training_.save(file); }
    void load(const safetensors& file) { training_.load(file); }
    void describe_training(json& summary) const {
        summary["sequences"] = training_.steps() / run_.source->info().steps;
    }
    /// Scores every level, together with `others`; false when it was interrupted.
    bool evaluate(int sequences, const run_paths&, json& summary, processes* others) {
        training_.sync_weights();
        run_.share_weights(training_->learner(0));
        return evaluate_levels(run_, {}, sequences, static_cast<std::uint64_t>(config_.seed), interrupted, summary,
                               others);
    }

private:
    const configuration& config_;
    prepared_model<backend> run_;
    training_loop<Update> training_;
    double headline_ = std::numeric_limits<double>::quiet_NaN();
};

template <class Backend>
int sequence_runs<Backend>::train(const configuration& config, const run_paths& paths, const arguments& a) {
    if (config.model().learns() == learning_kind::unrolls)
        return training_run<sequence_job<truncated_update<Backend>>>(config, paths, a).go();
    return training_run<sequence_job<sequence_update<Backend>>>(config, paths, a).go();
}

template <class Backend>
std::unique_ptr<prepared_sequences> sequence_runs<Backend>::prepare(const configuration& config) {
    return std::make_unique<prepared_model<Backend>>(config);
}

}  // namespace engram
