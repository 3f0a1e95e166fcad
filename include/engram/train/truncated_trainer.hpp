#pragma once
// SPDX-License-Identifier: MIT

// Truncated BPTT: one update an unroll. Rows go through their sequences unroll by unroll (train/sequence_rows.hpp);
// states are carried on and their gradient stops at the unroll's ends. A row whose sequence ends inside an unroll idles
// to its end without weight. An unroll in which no row has a target teaches nothing: it carries the states on, runs no
// backward sweep and leaves weights, moments and the count of updates alone, since a step on a gradient of zeros would
// go on along the old moments.
//
// A checkpoint holds weights, moments, states and where each row stands: a resumed run goes on with the same bits.

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/sequence_rows.hpp>
#include <engram/train/sequence_trainer.hpp>
#include <engram/train/weight_update.hpp>

namespace engram {

template <class Backend>
class truncated_trainer {
public:
    using real = typename Backend::real;

    truncated_trainer(const traced_agent<Backend>& model, std::shared_ptr<const sequence_source> source,
                      const sequence_settings& s, const optimiser_settings& o, std::uint64_t seed, int threads,
                      std::int64_t total_steps)
        : model_(&model),
          source_(std::move(source)),
          batch_(s.batch),
          total_steps_(total_steps),
          optimiser_(o, *model.store),
          pool_(std::max(1, threads)) {
        require(threads > 0 && threads <= s.batch, "threads: expected 1 to ", s.batch,
                " (the number of sequences in a batch), got ", threads);
        require(model.unroll > 0 && model.unroll <= source_->info().steps, "learner.unroll: an unroll of ",
                model.unroll, " steps is longer than a sequence of ", source_->info().name, ", which has ",
                source_->info().steps);
        int first = 0;
        for (int i = 0; i < threads; ++i) {
            const int last = s.batch * (i + 1) / threads;
            shards_.push_back(std::make_unique<shard>(*this, seed, last - first, first));
            first = last;
        }
    }

    /// One unroll, and an update where it has a target. Throws, leaving the weights as they were, when a loss or
    /// gradient is not finite.
    void iterate() {
        pool_.run([&](int i) {
            shard& s = *shards_[static_cast<std::size_t>(i)];
            s.rows.draw();
            s.rows.fill(s.learner, model_->unroll);
            s.learner.replay_count() = static_cast<std::uint64_t>(unrolls_);
            s.learner.forward();
        });
        const auto programs = learners();
        const double loss = sum_losses(programs);
        double norm = 0;
        if (learns()) {
            pool_.run([&](int i) { shards_[static_cast<std::size_t>(i)]->learner.backward(); });
            norm = update_weights(optimiser_, *model_->store, loss, steps_, progress(), programs);
        } else if (!std::isfinite(loss)) {
            refuse_update(steps_, "loss", loss, programs);
        }
        ++unrolls_;
        for (auto& s : shards_) {
            for (int b = 0; b < s->rows.rows(); ++b) steps_ += s->rows.left(b, model_->unroll);
            s->learner.carry();
            s->rows.advance(model_->unroll);
        }
        note(loss, norm);
    }

    /// Of the weights; unrolls without a target make none.
    std::int64_t updates() const { return optimiser_.updates(); }
    /// Time steps over all sequences.
    std::int64_t steps() const { return steps_; }
    double progress() const {
        return total_steps_ > 0 ? static_cast<double>(steps_) / static_cast<double>(total_steps_) : 0;
    }
    sequence_window take_window() {
        sequence_window w = std::exchange(window_, {});
        const double n = std::max(1, w.updates);
        for (double* x : {&w.loss, &w.gradient_norm}) *x /= n;
        for (auto& [name, value] : w.losses) value /= n;
        return w;
    }
    program<Backend>& learner(std::size_t i) { return shards_[i]->learner; }

    /// The newest weights are in the store; on a device they are elsewhere while it trains.
    void settle() { fetch_weights(shards_[0]->learner, *model_->store); }

    /// Adds everything that the next update depends on.
    void save(safetensors& file) {
        settle();
        save_weights(file, *model_->store, optimiser_);
        save_counters(file, mode, {optimiser_.updates(), steps_, unrolls_});
        each_part([&](const std::string& name, std::span<std::byte> part) { save_bytes(file, name, part); });
    }
    /// Restores what save() wrote; throws before anything changes when the file belongs to another model.
    void load(const safetensors& file) {
        const auto counters = load_counters(file, mode, 3);
        check_weights(file, *model_->store);
        each_part([&](const std::string& name, std::span<std::byte> part) { check_bytes(file, name, part); });
        optimiser_.updates() = counters[0];
        steps_ = counters[1];
        unrolls_ = counters[2];
        load_weights(file, *model_->store, optimiser_);
        each_part([&](const std::string& name, std::span<std::byte> part) { load_bytes(file, name, part); });
        for (auto& s : shards_) s->rows.redraw();
        window_ = {};
    }

private:
    static constexpr const char* mode = "unrolls";

    struct shard {
        shard(const truncated_trainer& t, std::uint64_t seed, int batch, int first)
            : learner(*t.model_->g, t.model_->store,
                      plan_options{.steps = t.model_->unroll,
                                   .batch = batch,
                                   .gradients = true,
                                   .total_batch = t.batch_,
                                   .first_row = first}),
              rows(t.source_, t.source_->info().levels.front(), seed, batch, first, t.batch_) {}
        program<Backend> learner;
        sequence_rows rows;
    };

    /// Whether the unroll has a target, or a loss that needs none (an auxiliary one).
    bool learns() const {
        if (shards_.front()->learner.losses().size() > 1) return true;
        for (const auto& s : shards_)
            if (s->rows.asks(model_->unroll)) return true;
        return false;
    }

    template <class Body>
    void each_part(Body body) {
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            shard& s = *shards_[i];
            const std::string prefix = message("shard.", i);
            body(prefix + ".places", std::as_writable_bytes(s.rows.places()));
            each_state(s.learner, prefix, body);
        }
    }

    void note(double loss, double norm) {
        ++window_.updates;
        window_.loss += loss;
        window_.gradient_norm += norm;
        window_.learning_rate = optimiser_.learning_rate(progress());
        add_losses(window_.losses, learners());
    }

    std::vector<program<Backend>*> learners() {
        std::vector<program<Backend>*> all;
        for (auto& s : shards_) all.push_back(&s->learner);
        return all;
    }

    const traced_agent<Backend>* model_;
    std::shared_ptr<const sequence_source> source_;
    int batch_;
    std::int64_t total_steps_, steps_ = 0, unrolls_ = 0;
    optimiser_of<Backend> optimiser_;
    std::vector<std::unique_ptr<shard>> shards_;
    thread_pool pool_;
    sequence_window window_;
};

}  // namespace engram
