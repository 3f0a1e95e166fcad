#pragma once
// SPDX-License-Identifier: MIT

// Training on whole sequences (BPTT): draw a batch, one forward and backward sweep, one optimiser step, repeat.
//
// The rows of a batch are split over threads and gradients summed in the order of the threads. Update u draws the
// sequences u B, ..., u B + B - 1 of the seed, whatever the number of threads, so a checkpoint of weights, moments and
// the number of updates resumes a run bit for bit. A model that mixes the rows of a batch (batch normalisation) needs
// one thread.
//
// On a device the weights, the gradient, the optimiser's moments and the sums of what is judged a step stay there; an
// update fetches its losses and the gradient's norm.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/sequence_batch.hpp>
#include <engram/train/step_sums.hpp>
#include <engram/train/weight_update.hpp>

namespace engram {

struct sequence_settings {
    int batch = 32;  // B over all threads
    void check() const { require(batch > 0, "sequence.batch: expected at least one sequence, got ", batch); }
};

/// Means over the updates since they were last taken.
struct sequence_window {
    int updates = 0;
    double loss = 0, gradient_norm = 0, learning_rate = 0;
    std::vector<std::pair<std::string, double>> losses;
    std::vector<double> divergence, log_likelihood;  // a step, nats; empty for a model that is not generative
};

template <class Backend>
class sequence_trainer {
public:
    using real = typename Backend::real;

    sequence_trainer(const traced_agent<Backend>& model, std::shared_ptr<const sequence_source> source,
                     const sequence_settings& s, const optimiser_settings& o, std::uint64_t seed, int threads,
                     std::int64_t total_steps)
        : model_(&model),
          source_(std::move(source)),
          batch_(s.batch),
          seed_(seed),
          total_steps_(total_steps),
          optimiser_(o, *model.store),
          pool_(std::max(1, threads)) {
        require(threads > 0 && threads <= s.batch, "threads: expected 1 to ", s.batch,
                " (the number of sequences in a batch), got ", threads);
        std::vector<var<Backend>> watched;
        if (model.generative) watched = {model.generative->divergence, model.generative->log_likelihood};
        int first = 0;
        for (int i = 0; i < threads; ++i) {
            const int last = s.batch * (i + 1) / threads;
            shards_.push_back(std::make_unique<shard>(model, source_,
                                                      plan_options{.steps = source_->info().steps,
                                                                   .batch = last - first,
                                                                   .gradients = true,
                                                                   .total_batch = s.batch,
                                                                   .first_row = first},
                                                      watched));
            first = last;
        }
    }

    /// One update. Throws, leaving the weights as they were, when a loss or gradient is not finite.
    void iterate() {
        const auto number = static_cast<std::uint64_t>(optimiser_.updates());
        const std::string& level = source_->info().levels.front();
        pool_.run([&](int i) {
            shard& s = *shards_[static_cast<std::size_t>(i)];
            s.batch.draw(level, seed_,
                         number * static_cast<std::uint64_t>(batch_) +
                             static_cast<std::uint64_t>(s.learner.options().first_row));
            s.learner.replay_count() = number;
            s.learner.forward();
            s.learner.backward();
        });
        const auto programs = learners();
        const double loss = sum_losses(programs);
        const double norm = update_weights(optimiser_, *model_->store, loss, steps(), progress(), programs);
        note(loss, norm);
    }

    std::int64_t updates() const { return optimiser_.updates(); }
    /// Time steps over all sequences.
    std::int64_t steps() const { return updates() * batch_ * source_->info().steps; }
    double progress() const {
        return total_steps_ > 0 ? static_cast<double>(steps()) / static_cast<double>(total_steps_) : 0;
    }
    sequence_window take_window() {
        if (model_->generative)
            for (auto& s : shards_) {
                s->divergence->fetch(window_.divergence);
                s->log_likelihood->fetch(window_.log_likelihood);
            }
        sequence_window w = std::exchange(window_, {});
        const double n = std::max(1, w.updates);
        for (double* x : {&w.loss, &w.gradient_norm}) *x /= n;
        for (auto& [name, value] : w.losses) value /= n;
        for (auto* list : {&w.divergence, &w.log_likelihood})
            for (double& x : *list) x /= n * batch_;
        return w;
    }
    const traced_agent<Backend>& model() const { return *model_; }
    const sequence_source& source() const { return *source_; }
    program<Backend>& learner(std::size_t i) { return shards_[i]->learner; }

    /// The newest weights are in the store; on a device they are elsewhere while it trains.
    void settle() { fetch_weights(shards_[0]->learner, *model_->store); }

    /// Adds everything that the next update depends on.
    void save(safetensors& file) {
        settle();
        save_weights(file, *model_->store, optimiser_);
        save_counters(file, mode, {optimiser_.updates()});
        each_kept([&](const std::string& name, std::span<std::byte> part) { save_bytes(file, name, part); });
    }
    /// Restores what save() wrote; throws before anything changes when the file belongs to another model.
    void load(const safetensors& file) {
        const auto counters = load_counters(file, mode, 1);
        check_weights(file, *model_->store);
        each_kept([&](const std::string& name, std::span<std::byte> part) { check_bytes(file, name, part); });
        optimiser_.updates() = counters[0];
        load_weights(file, *model_->store, optimiser_);
        each_kept([&](const std::string& name, std::span<std::byte> part) { load_bytes(file, name, part); });
        take_window();
    }

private:
    static constexpr const char* mode = "sequences";

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
    };

    // What a memory holds is gone when the next sequence begins; what remains are statistics of batches.
    template <class Body>
    void each_kept(Body body) {
        for (std::size_t i = 0; i < shards_.size(); ++i) each_resource(shards_[i]->learner, message("shard.", i), body);
    }

    void note(double loss, double norm) {
        ++window_.updates;
        window_.loss += loss;
        window_.gradient_norm += norm;
        window_.learning_rate = optimiser_.learning_rate(progress());
        add_losses(window_.losses, learners());
        if (!model_->generative) return;
        for (auto& s : shards_) s->divergence->add(window_.divergence);
        for (auto& s : shards_) s->log_likelihood->add(window_.log_likelihood);
    }

    std::vector<program<Backend>*> learners() {
        std::vector<program<Backend>*> all;
        for (auto& s : shards_) all.push_back(&s->learner);
        return all;
    }

    const traced_agent<Backend>* model_;
    std::shared_ptr<const sequence_source> source_;
    int batch_;
    std::uint64_t seed_;
    std::int64_t total_steps_;
    optimiser_of<Backend> optimiser_;
    std::vector<std::unique_ptr<shard>> shards_;
    thread_pool pool_;
    sequence_window window_;
};

}  // namespace engram

ENGRAM_REFLECT(engram::sequence_settings, batch);
