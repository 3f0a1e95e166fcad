#pragma once
// SPDX-License-Identifier: MIT

// Training on whole sequences (BPTT): draw a batch, one forward and backward sweep, one optimiser step, repeat.
//
// The rows of a batch are divided into shards. Update u draws the sequences u B, ..., u B + B - 1 of the seed, however
// they are divided, so a checkpoint of weights, moments and the number of updates resumes a run bit for bit. A model
// that mixes the rows of a batch (batch normalisation) needs one shard.
//
// On a device the weights, the gradient, the optimiser's moments and the sums of what is judged a step stay there; an
// update fetches its losses and the gradient's norm.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <engram/train/sequence_batch.hpp>
#include <engram/train/step_sums.hpp>
#include <engram/train/training_loop.hpp>

namespace engram {

struct sequence_settings {
    int batch = 32;  // B over all shards
    int shards = 0;  // carried by threads (train/shards.hpp); 0: as many as threads
    void check() const {
        require(batch > 0, "sequence.batch: expected at least one sequence, got ", batch);
        require(shards >= 0, "sequence.shards: expected zero (as many as threads) or more, got ", shards);
    }
    /// The shards that a process carries.
    shard_range mine(const loop_settings& loop) const {
        return loop.mine(loop.count(shards, "sequence.shards", batch, "sequences in a batch"));
    }
};

template <class Backend>
class sequence_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "sequences";

    sequence_update(const loop_settings& loop, const traced_agent<Backend>& model,
                    std::shared_ptr<const sequence_source> source, const sequence_settings& s,
                    const optimiser_settings& o)
        : model_(&model),
          source_(std::move(source)),
          batch_(s.batch),
          seed_(loop.seed),
          optimiser_(o),
          mine_(s.mine(loop)) {
        std::vector<var<Backend>> watched;
        if (model.generative) watched = {model.generative->divergence, model.generative->log_likelihood};
        for (int i = mine_.first; i < mine_.last; ++i) {
            const int from = first_row(i, mine_.all, s.batch), to = first_row(i + 1, mine_.all, s.batch);
            shards_.push_back(std::make_unique<shard>(model, source_,
                                                      plan_options{.steps = source_->info().steps,
                                                                   .batch = to - from,
                                                                   .gradients = true,
                                                                   .total_batch = s.batch,
                                                                   .first_row = from},
                                                      watched));
        }
    }

    /// One update.
    void iterate(training_context<Backend>& by) {
        const auto number = static_cast<std::uint64_t>(by.iterations);
        const std::string& level = source_->info().levels.front();
        by.each_shard(mine_.count(), [&](int i) {
            shard& s = *shards_[static_cast<std::size_t>(i)];
            s.batch.draw(level, seed_,
                         number * static_cast<std::uint64_t>(batch_) +
                             static_cast<std::uint64_t>(s.learner.options().first_row));
            s.learner.replay_count() = number;
            s.learner.forward();
            s.learner.backward();
        });
        std::vector<program<Backend>*> programs;
        for (auto& s : shards_) programs.push_back(&s->learner);
        const double loss = by.sum_losses(programs);
        by.note(loss, by.step(programs, mine_.all, loss));
        by.steps += std::int64_t{batch_} * source_->info().steps;
        if (!model_->generative) return;
        for (auto& s : shards_) {
            s->divergence->add(s->divergences);
            s->log_likelihood->add(s->log_likelihoods);
        }
    }

    const optimiser_settings& optimiser() const { return optimiser_; }
    const std::shared_ptr<parameters<real>>& store() const { return model_->store; }
    int shards() const { return mine_.all; }
    program<Backend>& learner(std::size_t i) { return shards_[i]->learner; }
    std::vector<std::string> loss_names() const { return names_of_losses(shards_[0]->learner); }

    /// Sums over the rows of a batch become means.
    void describe(training_context<Backend>& by) {
        if (!model_->generative) return;
        std::vector<std::vector<double>> divergences, log_likelihoods;
        for (auto& s : shards_) {
            s->divergence->fetch(s->divergences);
            s->log_likelihood->fetch(s->log_likelihoods);
            divergences.push_back(std::exchange(s->divergences, std::vector<double>(s->divergences.size())));
            log_likelihoods.push_back(std::exchange(s->log_likelihoods, std::vector<double>(s->divergences.size())));
        }
        by.window.divergence = by.sum(divergences);
        by.window.log_likelihood = by.sum(log_likelihoods);
        for (auto* list : {&by.window.divergence, &by.window.log_likelihood})
            for (double& x : *list) x /= batch_;
    }

    /// What was summed up belongs to the run before.
    void loaded(training_context<Backend>& by) { describe(by); }

    // What a memory holds is gone when the next sequence begins; what remains are statistics of batches.
    template <class Body>
    void each_part(Body body) {
        for (std::size_t i = 0; i < shards_.size(); ++i)
            each_resource(shards_[i]->learner, message("shard.", mine_.first + static_cast<int>(i)), body);
    }

private:
    struct shard {
        shard(const traced_agent<Backend>& model, const std::shared_ptr<const sequence_source>& source,
              const plan_options& options, const std::vector<var<Backend>>& watched)
            : learner(*model.g, model.store, options, watched), batch(learner, source) {
            if (!model.generative) return;
            divergence.emplace(learner, model.generative->divergence);
            log_likelihood.emplace(learner, model.generative->log_likelihood);
        }
        program<Backend> learner;
        sequence_batch<Backend> batch;
        std::optional<step_sums<Backend>> divergence, log_likelihood;  // of a generative model
        std::vector<double> divergences, log_likelihoods;              // so far, a step
    };

    const traced_agent<Backend>* model_;
    std::shared_ptr<const sequence_source> source_;
    int batch_;
    std::uint64_t seed_;
    optimiser_settings optimiser_;
    shard_range mine_;
    std::vector<std::unique_ptr<shard>> shards_;
};

}  // namespace engram

ENGRAM_REFLECT(engram::sequence_settings, batch, shards);
