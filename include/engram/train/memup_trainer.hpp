#pragma once
// SPDX-License-Identifier: MIT

// Training by MemUP (facts 3.2, docs/decisions/0007): one update a rollout, none of a rollout without a pair.
//
//   1  rows that begin an episode draw it, and the moving averages say how uncertain each of its steps is
//   2  targets are chosen; the memory runs r steps; its outputs are gathered into the pairs (i, k)
//   3  the pairs' gradient at m_i is handed into the memory's backward sweep; both gradients are clipped and applied
//      together; the moving averages follow
//
// Rows are split over threads; means are over the pairs of the whole batch. Activations take O(K r / f + r) rows,
// however long a sequence is. A checkpoint holds weights, moments, averages, states, where each row stands, and the
// uncertainties of the episodes that are under way: a resumed run goes on with the same bits.
//
// On a device the weights, their averages, the gradients and the moments stay there; settle() brings the weights and
// the averages to the stores.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/train/memup_rollout.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/sequence_trainer.hpp>
#include <engram/train/weight_update.hpp>

namespace engram {

/// Means over the updates since they were last taken.
struct memup_window {
    int updates = 0;
    double loss = 0, chosen_loss = 0, current_loss = 0, gradient_norm = 0, learning_rate = 0;
    double judged_share = 0;   // of the chosen targets that are steps whose answer is judged
    double mean_distance = 0;  // steps from a prediction to its targets
};

template <class Backend>
class memup_trainer {
public:
    using real = typename Backend::real;

    /// `fast` is traced for learning, `slow` for generating: its store becomes the moving averages.
    memup_trainer(const traced_agent<Backend>& fast, const traced_agent<Backend>& slow,
                  std::shared_ptr<const sequence_source> source, const sequence_settings& s,
                  const optimiser_settings& o, std::uint64_t seed, int threads, std::int64_t total_steps)
        : fast_(&fast),
          slow_(&slow),
          source_(std::move(source)),
          batch_(s.batch),
          total_steps_(total_steps),
          optimiser_(o, *fast.store),
          predictor_optimiser_(o, *fast.store),
          pool_(std::max(1, threads)) {
        require(fast.predictor && slow.row_loss && fast.schedule,
                "memup: this model was not traced by a MemUP learner");
        plan_ = *fast.schedule;
        require(plan_.rollout <= source_->info().steps, "learner.rollout: a rollout of ", plan_.rollout,
                " steps is longer than a sequence of ", source_->info().name, ", which has ", source_->info().steps);
        require(fast.store->flat_size() == slow.store->flat_size(), "memup: the two traces differ in their weights");
        require(threads > 0 && threads <= s.batch, "threads: expected 1 to ", s.batch,
                " (the number of sequences in a batch), got ", threads);
        int first = 0;
        for (int i = 0; i < threads; ++i) {
            const int last = s.batch * (i + 1) / threads;
            shards_.push_back(std::make_unique<memup_rollout<Backend>>(fast, slow, source_, measure_, seed,
                                                                       last - first, first, s.batch));
            first = last;
        }
    }

    /// Uncertainties come from `measure` instead of the moving averages.
    void measure_with(uncertainty_measure measure) { measure_ = std::move(measure); }

    /// Updates whose loss is below this are left out.
    void leave_out_below(double loss) { least_loss_ = loss; }

    /// One rollout. Throws, leaving the weights as they were, when a loss or gradient is not finite.
    void iterate() {
        const auto number = static_cast<std::uint64_t>(rollouts_);
        const auto part = plan_.stepped(updates());
        const bool in_turn = part == prediction_schedule::part::predictor && updates() >= plan_.pretrain;
        pool_.run([&](int i) { shards_[static_cast<std::size_t>(i)]->choose(part, in_turn ? plan_.last : 0); });
        rollout_tally all;
        for (const auto& s : shards_) all += s->counted;
        pool_.run([&](int i) { shards_[static_cast<std::size_t>(i)]->sweep(all, number); });
        std::vector<program<Backend>*> all_programs, all_pairs;
        for (auto& s : shards_) {
            for (auto* p : s->programs()) all_programs.push_back(p);
            all_pairs.push_back(&s->pairs);
        }
        const double loss = sum_losses(all_pairs);
        double norm = 0;
        // Without a pair there is no gradient: a step would go on along the old moments.
        if (all.chosen + all.current > 0 && !(loss < least_loss_)) {
            norm = step(part, loss, all_programs);
            if (updates() % plan_.period == 0) follow();
        }
        ++rollouts_;
        for (auto& s : shards_) s->finish();
        steps_ += all.steps;
        note(loss, norm, all);
    }

    std::int64_t updates() const { return optimiser_.updates() + predictor_optimiser_.updates(); }
    /// Time steps over all sequences.
    std::int64_t steps() const { return steps_; }
    double progress() const {
        return total_steps_ > 0 ? static_cast<double>(steps_) / static_cast<double>(total_steps_) : 0;
    }
    memup_window take_window() {
        memup_window w = std::exchange(window_, {});
        const double n = std::max(1, w.updates);
        for (double* x :
             {&w.loss, &w.chosen_loss, &w.current_loss, &w.gradient_norm, &w.judged_share, &w.mean_distance})
            *x /= n;
        return w;
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
    /// The newest weights and averages are in the stores; on a device they are elsewhere while it trains.
    void settle() {
        fetch_weights(shards_[0]->memory, *fast_->store);
        fetch_weights(shards_[0]->detector, *slow_->store);
    }
    program<Backend>& memory_program(std::size_t i) { return shards_[i]->memory; }
    program<Backend>& pair_program(std::size_t i) { return shards_[i]->pairs; }

    /// Adds everything that the next update depends on.
    void save(safetensors& file) {
        settle();
        save_weights(file, *fast_->store, optimiser_);
        save_values(file, "slow.", *slow_->store);
        save_counters(file, mode, {optimiser_.updates(), predictor_optimiser_.updates(), steps_, rollouts_});
        each_part([&](const std::string& name, std::span<std::byte> part) { save_bytes(file, name, part); });
    }
    /// Restores what save() wrote; throws before anything changes when the file belongs to another model.
    void load(const safetensors& file) {
        const auto counters = load_counters(file, mode, 4);
        check_weights(file, *fast_->store);
        check_values(file, "slow.", *slow_->store);
        each_part([&](const std::string& name, std::span<std::byte> part) { check_bytes(file, name, part); });
        optimiser_.updates() = counters[0];
        predictor_optimiser_.updates() = counters[1];
        steps_ = counters[2];
        rollouts_ = counters[3];
        load_weights(file, *fast_->store, optimiser_);
        load_values(file, "slow.", *slow_->store);
        each_part([&](const std::string& name, std::span<std::byte> part) { load_bytes(file, name, part); });
        for (auto& s : shards_) s->rows.redraw();
        window_ = {};
    }

private:
    static constexpr const char* mode = "memup";

    /// One step of the optimiser of `part`; returns the norm of its gradient.
    double step(prediction_schedule::part part, double loss, const std::vector<program<Backend>*>& programs) {
        auto& stepped = part == prediction_schedule::part::predictor ? predictor_optimiser_ : optimiser_;
        // Their sum may be made where nobody sees it before it is used, so every program loses its share.
        for (auto* p : programs)
            each_left_out(
                part, [&](std::ptrdiff_t at, std::ptrdiff_t n) { p->executor().clear(p->device_gradient() + at, n); });
        return update_weights(stepped, *fast_->store, loss, steps_, progress(), programs);
    }
    /// body(offset, size) for the parameters that an update does not step.
    template <class Body>
    void each_left_out(prediction_schedule::part part, Body body) const {
        using parts = prediction_schedule::part;
        if (part == parts::both) return;
        for (const auto& e : fast_->store->entries())
            if (e.name.starts_with("predictor.") != (part == parts::predictor)) body(e.offset, e.size());
    }

    void follow() {
        const real by = static_cast<real>(1 - plan_.decay);
        if constexpr (device_backend<Backend>) {
            auto& learner = shards_[0]->memory;
            auto& to = shards_[0]->detector.device_weights_in_use();
            to.refresh(learner.executor(), *slow_->store);
            learner.executor().launch("averages", to.size(),
                                      follow_number<real>{to.data(), learner.device_weights_in_use().data(), by});
            return to.changed(learner.executor());
        }
        const auto from = fast_->store->flat();
        auto edit = slow_->store->edit();
        const auto to = edit.flat();
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * (from[i] - to[i]);
    }

    template <class Body>
    void each_part(Body body) {
        if (plan_.block + plan_.pretrain > 0) {
            body("predictor_optimiser.first", std::as_writable_bytes(predictor_optimiser_.first_moment()));
            body("predictor_optimiser.second", std::as_writable_bytes(predictor_optimiser_.second_moment()));
        }
        for (std::size_t i = 0; i < shards_.size(); ++i) shards_[i]->each_part(message("shard.", i), body);
    }

    void note(double loss, double norm, const rollout_tally& all) {
        ++window_.updates;
        window_.loss += loss;
        window_.gradient_norm += norm;
        window_.learning_rate = optimiser_.learning_rate(progress());
        double chosen = 0, current = 0;
        for (const auto& s : shards_) chosen += s->counted.chosen_loss, current += s->counted.current_loss;
        const auto mean = [](double sum, std::int64_t n) { return n > 0 ? sum / static_cast<double>(n) : 0; };
        window_.chosen_loss += mean(chosen, all.chosen);
        window_.current_loss += mean(current, all.current);
        window_.judged_share += mean(static_cast<double>(all.judged), all.chosen);
        window_.mean_distance += mean(static_cast<double>(all.distance), all.chosen);
    }

    const traced_agent<Backend>* fast_;
    const traced_agent<Backend>* slow_;
    std::shared_ptr<const sequence_source> source_;
    prediction_schedule plan_;
    uncertainty_measure measure_;
    int batch_;
    double least_loss_ = 0;
    std::int64_t total_steps_, steps_ = 0, rollouts_ = 0;
    optimiser_of<Backend> optimiser_, predictor_optimiser_;  // the second one where the predictor is stepped alone
    std::vector<std::unique_ptr<memup_rollout<Backend>>> shards_;
    thread_pool pool_;
    memup_window window_;
};

}  // namespace engram
