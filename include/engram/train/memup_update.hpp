#pragma once
// SPDX-License-Identifier: MIT

// Training by MemUP (facts 3.2, docs/decisions/0007): one update a rollout, none of a rollout without a pair.
//
//   1  rows that begin an episode draw it, and the moving averages say how uncertain each of its steps is
//   2  targets are chosen; the memory runs r steps; its outputs are gathered into the pairs (i, k)
//   3  the pairs' gradient at m_i is handed into the memory's backward sweep; both gradients are clipped and applied
//      together; the moving averages follow
//
// Rows are divided into shards; means are over the pairs of the whole batch. Activations take O(K r / f + r) rows,
// however long a sequence is. A checkpoint holds weights, moments, averages, states, where each row stands, and the
// uncertainties of the episodes that are under way: a resumed run goes on with the same bits.
//
// On a device the weights, their averages, the gradients and the moments stay there; sync_weights() brings the weights
// and the averages to the stores.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/memup_rollout.hpp>
#include <engram/train/sequence_update.hpp>
#include <engram/train/training_loop.hpp>

namespace engram {

/// What the window calls its numbers: the losses of the chosen targets and of the current steps, the share of the
/// chosen targets that are steps whose answer is judged, and the steps from a prediction to its targets.
inline const std::vector<std::string>& memup_numbers() {
    static const std::vector<std::string> names{"chosen_loss", "current_loss", "judged_share", "distance"};
    return names;
}

template <class Backend>
class memup_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "memup";

    /// `fast` is traced for learning, `slow` for generating: its store becomes the moving averages.
    memup_update(const loop_settings& loop, const traced_agent<Backend>& fast, const traced_agent<Backend>& slow,
                 std::shared_ptr<const sequence_source> source, const sequence_settings& s, const optimiser_settings& o)
        : fast_(&fast), slow_(&slow), source_(std::move(source)), settings_(o), predictor_optimiser_(o, *fast.store) {
        require(fast.predictor && slow.row_loss && fast.schedule,
                "memup: this model was not traced by a MemUP learner");
        plan_ = *fast.schedule;
        require(plan_.rollout <= source_->info().steps, "learner.rollout: a rollout of ", plan_.rollout,
                " steps is longer than a sequence of ", source_->info().name, ", which has ", source_->info().steps);
        require(fast.store->flat_size() == slow.store->flat_size(), "memup: the two traces differ in their weights");
        mine_ = s.mine(loop);
        for (int i = mine_.first; i < mine_.last; ++i) {
            const int from = first_row(i, mine_.all, s.batch), to = first_row(i + 1, mine_.all, s.batch);
            shards_.push_back(std::make_unique<memup_rollout<Backend>>(fast, slow, source_, measure_, loop.seed,
                                                                       to - from, from, s.batch));
        }
    }
    memup_update(const memup_update&) = delete;  // shards look at measure_
    memup_update& operator=(const memup_update&) = delete;

    /// Uncertainties come from `measure` instead of the moving averages.
    void measure_with(uncertainty_measure measure) { measure_ = std::move(measure); }

    /// Updates whose loss is below this are left out.
    void leave_out_below(double loss) { least_loss_ = loss; }

    /// One rollout.
    void iterate(training_context<Backend>& by) {
        const auto number = static_cast<std::uint64_t>(by.iterations);
        const std::int64_t updates = by.optimiser.updates() + predictor_optimiser_.updates();
        const auto part = plan_.stepped(updates);
        const bool in_turn = part == prediction_schedule::part::predictor && updates >= plan_.pretrain;
        by.each_shard(mine_.count(),
                      [&](int i) { shards_[static_cast<std::size_t>(i)]->choose(part, in_turn ? plan_.last : 0); });
        const rollout_tally all = count(by);
        by.each_shard(mine_.count(), [&](int i) { shards_[static_cast<std::size_t>(i)]->sweep(all, number); });
        std::vector<program<Backend>*> programs;
        for (auto& s : shards_)
            for (auto* p : s->programs()) programs.push_back(p);
        std::vector<std::vector<double>> losses;
        for (auto& s : shards_) losses.push_back({s->pairs.loss(), s->counted.chosen_loss, s->counted.current_loss});
        const auto sums = by.sum(losses);
        const double loss = sums[0];
        double norm = 0;
        // Without a pair there is no gradient: a step would go on along the old moments.
        if (all.chosen + all.current > 0 && !(loss < least_loss_)) {
            norm = step(by, part, loss, programs);
            if ((updates + 1) % plan_.period == 0) update_average();
        }
        for (auto& s : shards_) s->finish();
        by.note(loss, norm);
        note(by, all, sums[1], sums[2]);
        by.steps += all.steps;
    }

    const traced_agent<Backend>& fast() const { return *fast_; }
    const traced_agent<Backend>& slow() const { return *slow_; }
    const sequence_source& source() const { return *source_; }
    /// Bytes of all programs: activations and gradients, without the sequences themselves.
    std::size_t memory() const {
        std::size_t sum = 0;
        for (const auto& s : shards_) sum += s->bytes();
        return sum;
    }
    program<Backend>& pair_program(std::size_t i) { return shards_[i]->pairs; }

    const optimiser_settings& optimiser() const { return settings_; }
    const std::shared_ptr<parameters<real>>& store() const { return fast_->store; }
    int shards() const { return mine_.all; }
    program<Backend>& learner(std::size_t i) { return shards_[i]->memory; }
    std::vector<std::string> loss_names() const { return memup_numbers(); }
    /// Of the predictor alone.
    std::int64_t updates() const { return predictor_optimiser_.updates(); }
    void collect_moments() { predictor_optimiser_.collect_moments(); }
    void sync_weights() { fetch_weights(shards_[0]->detector, *slow_->store); }

    template <class Body>
    void each_part(Body body) {
        body("predictor_optimiser.updates", std::as_writable_bytes(std::span(&predictor_optimiser_.updates(), 1)));
        if (plan_.block + plan_.pretrain > 0) {
            body("predictor_optimiser.first", std::as_writable_bytes(predictor_optimiser_.first_moment()));
            body("predictor_optimiser.second", std::as_writable_bytes(predictor_optimiser_.second_moment()));
        }
        for (std::size_t i = 0; i < shards_.size(); ++i)
            shards_[i]->each_part(message("shard.", mine_.first + static_cast<int>(i)), body);
    }
    void save(safetensors& file) { save_values(file, averages, *slow_->store); }
    void check(const safetensors& file) { check_values(file, averages, *slow_->store); }
    void load(const safetensors& file) { load_values(file, averages, *slow_->store); }
    void loaded(training_context<Backend>&) {
        for (auto& s : shards_) s->rows.redraw();
    }

private:
    static constexpr const char* averages = "slow.";

    /// One step of the optimiser of `part`; returns the norm of its gradient.
    double step(training_context<Backend>& by, prediction_schedule::part part, double loss,
                const std::vector<program<Backend>*>& programs) {
        auto& stepped = part == prediction_schedule::part::predictor ? predictor_optimiser_ : by.optimiser;
        // Their sum may be made where nobody sees it before it is used, so every program loses its share.
        for (auto* p : programs)
            each_left_out(
                part, [&](std::ptrdiff_t at, std::ptrdiff_t n) { p->executor().clear(p->device_gradient() + at, n); });
        return by.step(stepped, programs, mine_.all, loss, static_cast<int>(programs.size() / shards_.size()));
    }
    /// body(offset, size) for the parameters that an update does not step.
    template <class Body>
    void each_left_out(prediction_schedule::part part, Body body) const {
        using parts = prediction_schedule::part;
        if (part == parts::both) return;
        for (const auto& e : fast_->store->entries())
            if (e.name.starts_with("predictor.") != (part == parts::predictor)) body(e.offset, e.size());
    }

    void update_average() {
        const real by = static_cast<real>(1 - plan_.decay);
        if constexpr (device_backend<Backend>) {
            auto& learner = shards_[0]->memory;
            auto& to = shards_[0]->detector.device_weights_in_use();
            to.refresh(learner.executor(), *slow_->store);
            learner.executor().launch(
                "averages", to.size(),
                internal::follow_number<real>{to.data(), learner.device_weights_in_use().data(), by});
            return to.changed(learner.executor());
        }
        const auto from = fast_->store->flat();
        auto edit = slow_->store->edit();
        const auto to = edit.flat();
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * (from[i] - to[i]);
    }

    /// Over all shards.
    rollout_tally count(training_context<Backend>& by) const {
        std::vector<std::vector<double>> counts;
        for (const auto& s : shards_) {
            const rollout_tally& c = s->counted;
            counts.push_back({});
            for (const std::int64_t n : {c.chosen, c.current, c.judged, c.distance, c.steps})
                counts.back().push_back(static_cast<double>(n));
        }
        const auto sums = by.sum(counts);
        const auto whole = [&](std::size_t k) { return static_cast<std::int64_t>(sums[k]); };
        return {.chosen = whole(0), .current = whole(1), .judged = whole(2), .distance = whole(3), .steps = whole(4)};
    }

    void note(training_context<Backend>& by, const rollout_tally& all, double chosen, double current) {
        const auto mean = [](double sum, std::int64_t n) { return n > 0 ? sum / static_cast<double>(n) : 0; };
        by.note("chosen_loss", mean(chosen, all.chosen));
        by.note("current_loss", mean(current, all.current));
        by.note("judged_share", mean(static_cast<double>(all.judged), all.chosen));
        by.note("distance", mean(static_cast<double>(all.distance), all.chosen));
    }

    const traced_agent<Backend>* fast_;
    const traced_agent<Backend>* slow_;
    std::shared_ptr<const sequence_source> source_;
    prediction_schedule plan_;
    uncertainty_measure measure_;
    double least_loss_ = 0;
    optimiser_settings settings_;
    optimiser_of<Backend> predictor_optimiser_;  // where the predictor is stepped alone
    shard_range mine_;
    std::vector<std::unique_ptr<memup_rollout<Backend>>> shards_;
};

}  // namespace engram
