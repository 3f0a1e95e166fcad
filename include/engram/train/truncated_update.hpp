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
#include <vector>

#include <engram/train/sequence_rows.hpp>
#include <engram/train/sequence_update.hpp>
#include <engram/train/training_loop.hpp>

namespace engram {

template <class Backend>
class truncated_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "unrolls";

    truncated_update(const loop_settings& loop, const traced_agent<Backend>& model,
                     std::shared_ptr<const sequence_source> source, const sequence_settings& s,
                     const optimiser_settings& o)
        : model_(&model), source_(std::move(source)), optimiser_(o), mine_(s.mine(loop)) {
        require(model.unroll > 0 && model.unroll <= source_->info().steps, "learner.unroll: an unroll of ",
                model.unroll, " steps is longer than a sequence of ", source_->info().name, ", which has ",
                source_->info().steps);
        for (int i = mine_.first; i < mine_.last; ++i)
            shards_.push_back(std::make_unique<shard>(model, source_, loop.seed, first_row(i, mine_.all, s.batch),
                                                      first_row(i + 1, mine_.all, s.batch), s.batch));
    }

    /// One unroll, and an update where it has a target.
    void iterate(training_context<Backend>& by) {
        by.each_shard(mine_.count(), [&](int i) {
            shard& s = *shards_[static_cast<std::size_t>(i)];
            s.rows.draw();
            s.rows.fill(s.learner, model_->unroll);
            s.learner.replay_count() = static_cast<std::uint64_t>(by.iterations);
            s.learner.forward();
        });
        std::vector<program<Backend>*> programs;
        for (auto& s : shards_) programs.push_back(&s->learner);
        const double loss = by.sum_losses(programs);
        // Of all rows: how many have a target, and the steps that they take.
        std::vector<std::vector<double>> counts;
        for (auto& s : shards_) {
            std::int64_t steps = 0;
            for (int b = 0; b < s->rows.rows(); ++b) steps += s->rows.left(b, model_->unroll);
            counts.push_back({s->rows.asks(model_->unroll) ? 1.0 : 0.0, static_cast<double>(steps)});
        }
        const auto count = by.sum(counts);
        double norm = 0;
        // A loss that needs no target is an auxiliary one.
        if (count[0] > 0 || programs[0]->losses().size() > 1) {
            by.each_shard(mine_.count(), [&](int i) { shards_[static_cast<std::size_t>(i)]->learner.backward(); });
            norm = by.step(programs, mine_.all, loss);
        } else if (!std::isfinite(loss)) {
            refuse_update(by.steps, "loss", loss, programs, by.settings.others);
        }
        by.note(loss, norm);
        by.steps += static_cast<std::int64_t>(count[1]);
        for (auto& s : shards_) {
            s->learner.carry();
            s->rows.advance(model_->unroll);
        }
    }

    const optimiser_settings& optimiser() const { return optimiser_; }
    const std::shared_ptr<parameters<real>>& store() const { return model_->store; }
    int shards() const { return mine_.all; }
    program<Backend>& learner(std::size_t i) { return shards_[i]->learner; }
    std::vector<std::string> loss_names() const { return names_of_losses(shards_[0]->learner); }

    template <class Body>
    void each_part(Body body) {
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            const std::string prefix = message("shard.", mine_.first + static_cast<int>(i));
            body(prefix + ".places", std::as_writable_bytes(shards_[i]->rows.places()));
            each_state(shards_[i]->learner, prefix, body);
        }
    }
    void loaded(training_context<Backend>&) {
        for (auto& s : shards_) s->rows.redraw();
    }

private:
    struct shard {
        shard(const traced_agent<Backend>& model, const std::shared_ptr<const sequence_source>& source,
              std::uint64_t seed, int from, int to, int all)
            : learner(*model.g, model.store,
                      plan_options{.steps = model.unroll,
                                   .batch = to - from,
                                   .gradients = true,
                                   .total_batch = all,
                                   .first_row = from}),
              rows(source, source->info().levels.front(), seed, to - from, from, all) {}
        program<Backend> learner;
        sequence_rows rows;
    };

    const traced_agent<Backend>* model_;
    std::shared_ptr<const sequence_source> source_;
    optimiser_settings optimiser_;
    shard_range mine_;
    std::vector<std::unique_ptr<shard>> shards_;
};

}  // namespace engram
