#pragma once
// SPDX-License-Identifier: MIT

// Training by MemUP (facts 3.2, docs/decisions/0007): one update a rollout.
//
//   1  rows that begin an episode draw it, and the moving averages say how uncertain each of its steps is
//   2  targets are chosen; the memory runs r steps; its outputs are gathered into the pairs (i, k)
//   3  the pairs' gradient at m_i is handed into the memory's backward sweep; both gradients are clipped and applied
//      together; the moving averages follow
//
// Rows are split over threads; means are over the pairs of the whole batch. Activations take O(K r / f + r) rows,
// however long a sequence is. A checkpoint holds weights, moments, averages, states, where each row stands, and the
// uncertainties of the episodes that are under way: a resumed run goes on with the same bits.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/sequence_rows.hpp>
#include <engram/train/sequence_trainer.hpp>

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
            shards_.push_back(std::make_unique<shard>(*this, seed, last - first, first));
            first = last;
        }
    }

    /// Uncertainties come from `measure` instead of the moving averages: it fills those of the steps of row b's
    /// episode. Called by several threads.
    using uncertainty_measure = std::function<void(const sequence_rows& rows, int b, std::span<float> uncertainty)>;
    void measure_with(uncertainty_measure measure) { measure_ = std::move(measure); }

    /// One rollout. Throws, leaving the weights as they were, when a loss or gradient is not finite.
    void iterate() {
        const auto number = static_cast<std::uint64_t>(updates());
        const auto part = plan_.stepped(updates());
        pool_.run([&](int i) { shards_[static_cast<std::size_t>(i)]->choose(part); });
        tally all;
        for (const auto& s : shards_) all += s->counted;
        pool_.run([&](int i) { shards_[static_cast<std::size_t>(i)]->sweep(all, number); });
        const auto total = shards_[0]->memory.gradient();
        for (std::size_t i = 0; i < shards_.size(); ++i)
            for (auto* p : shards_[i]->programs()) {
                const auto more = p->gradient();
                for (std::size_t j = 0; more.data() != total.data() && j < total.size(); ++j) total[j] += more[j];
            }
        double loss = 0;
        for (auto& s : shards_) loss += s->pairs.loss();
        if (!std::isfinite(loss)) stop("loss", loss);
        keep_only(part, total);
        auto& stepped = part == prediction_schedule::part::predictor ? predictor_optimiser_ : optimiser_;
        const double norm = stepped.update(*fast_->store, total, progress());
        if (!std::isfinite(norm)) stop("gradient norm", norm);
        if (updates() % plan_.period == 0) follow();
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
        for (const auto& s : shards_) {
            sum += s->detector.memory();
            for (const auto* p : s->programs()) sum += p->memory();
        }
        return sum;
    }
    program<Backend>& memory_program(std::size_t i) { return shards_[i]->memory; }
    program<Backend>& pair_program(std::size_t i) { return shards_[i]->pairs; }

    /// Adds everything that the next update depends on.
    void save(safetensors& file) {
        save_weights(file, *fast_->store, optimiser_);
        each_parameter(
            *slow_->store, [&](const std::string& name, const auto& shape, std::ptrdiff_t at, std::size_t n) {
                file.add<real>("slow." + name, shape, std::span<const real>(slow_->store->flat().data() + at, n));
            });
        save_counters(file, mode, {optimiser_.updates(), predictor_optimiser_.updates(), steps_});
        each_part([&](const std::string& name, std::span<std::byte> part) { save_bytes(file, name, part); });
    }
    /// Restores what save() wrote; throws before anything changes when the file belongs to another model.
    void load(const safetensors& file) {
        const auto counters = load_counters(file, mode, 3);
        check_weights(file, *fast_->store);
        each_parameter(*slow_->store, [&](const std::string& name, const auto& shape, std::ptrdiff_t, std::size_t) {
            (void)file.values<real>("slow." + name, shape);
        });
        each_part([&](const std::string& name, std::span<std::byte> part) { check_bytes(file, name, part); });
        optimiser_.updates() = counters[0];
        predictor_optimiser_.updates() = counters[1];
        steps_ = counters[2];
        load_weights(file, *fast_->store, optimiser_);
        {
            auto edit = slow_->store->edit();
            each_parameter(*slow_->store, [&](const std::string& name, const auto&, std::ptrdiff_t at, std::size_t) {
                const auto values = file.values<real>("slow." + name);
                std::copy(values.begin(), values.end(), edit.flat().data() + at);
            });
        }
        each_part([&](const std::string& name, std::span<std::byte> part) { load_bytes(file, name, part); });
        for (auto& s : shards_) s->rows.redraw();
        window_ = {};
    }

private:
    static constexpr const char* mode = "memup";

    struct tally {
        std::int64_t chosen = 0, current = 0, judged = 0, distance = 0, steps = 0;
        double chosen_loss = 0, current_loss = 0;
        tally& operator+=(const tally& o) {
            chosen += o.chosen, current += o.current, judged += o.judged, distance += o.distance, steps += o.steps;
            return *this;
        }
    };

    struct shard {
        shard(const memup_trainer& t, std::uint64_t seed, int batch, int first)
            : owner(&t),
              rows(t.source_, t.source_->info().levels.front(), seed, batch, first, t.batch_),
              memory(*t.fast_->g, t.fast_->store, options(t.plan_.rollout, batch, first, t.batch_), {t.fast_->h}),
              pairs(*t.fast_->predictor->g, t.fast_->store, options(t.plan_.pairs(), batch, first, t.batch_),
                    {t.fast_->predictor->row_loss}),
              detector(*t.slow_->g, t.slow_->store, {.steps = t.plan_.rollout, .batch = batch, .first_row = first},
                       watched(*t.slow_)),
              uncertainty(static_cast<std::size_t>(batch) * static_cast<std::size_t>(t.source_->info().steps)),
              step(static_cast<std::size_t>(batch) * static_cast<std::size_t>(t.plan_.pairs()), -1),
              target(step.size(), -1),
              candidates(static_cast<std::size_t>(targets_of(t.plan_.selector, t.plan_.selected))) {
            const auto& predictor = *t.fast_->predictor;
            if (!predictor.context_graph) return;
            context = std::make_unique<program<Backend>>(*predictor.context_graph, t.fast_->store,
                                                         options(t.plan_.rollout, batch, first, t.batch_),
                                                         std::vector<var<Backend>>{predictor.context_output});
            contexts.resize(uncertainty.size() * static_cast<std::size_t>(predictor.context.width));
        }

        static std::vector<var<Backend>> watched(const traced_agent<Backend>& slow) {
            std::vector<var<Backend>> all{*slow.row_loss};
            if (slow.context) all.push_back(*slow.context);
            return all;
        }
        std::vector<program<Backend>*> programs() {
            if (context) return {&memory, &pairs, context.get()};
            return {&memory, &pairs};
        }
        real* context_of(int b, int k) {
            const auto T = static_cast<std::size_t>(rows.info().steps);
            return contexts.data() + (static_cast<std::size_t>(b) * T + static_cast<std::size_t>(k)) *
                                         static_cast<std::size_t>(owner->fast_->predictor->context.width);
        }
        static plan_options options(int steps, int batch, int first, int total) {
            return {.steps = steps, .batch = batch, .gradients = true, .total_batch = total, .first_row = first};
        }
        std::span<float> uncertainty_of(int b) {
            const auto T = static_cast<std::size_t>(rows.info().steps);
            return std::span(uncertainty).subspan(static_cast<std::size_t>(b) * T, T);
        }

        /// Goes through the new episodes with the moving averages, a rollout's length at a time.
        void detect() {
            const int n = owner->plan_.rollout;
            for (int from = 0; from < rows.info().steps; from += n) {
                rows.fill(detector, n, [from](int) { return from; });
                detector.forward();
                detector.carry();
                const auto loss = detector.output(*owner->slow_->row_loss);
                for (int b = 0; b < rows.rows(); ++b) {
                    if (rows.position(b) != 0) continue;
                    const auto s = uncertainty_of(b);
                    for (int j = 0; j < n && from + j < rows.info().steps; ++j) {
                        const int k = from + j;
                        s[static_cast<std::size_t>(k)] = k < rows.length(b) && rows.weight(b, k) > 0
                                                             ? static_cast<float>(loss.at(j)[b * loss.stride])
                                                             : no_target<float>;
                        if (!context) continue;
                        const auto c = detector.output(*owner->slow_->context);
                        for (int f = 0; f < c.width; ++f)
                            context_of(b, k)[f] = c.at(j)[b * c.stride + f];
                    }
                }
            }
        }

        void measure() {
            for (int b = 0; b < rows.rows(); ++b) {
                if (rows.position(b) != 0) continue;
                const auto s = uncertainty_of(b).first(static_cast<std::size_t>(rows.length(b)));
                owner->measure_(rows, b, s);
                for (int k = 0; k < rows.length(b); ++k)
                    if (!(rows.weight(b, k) > 0)) s[static_cast<std::size_t>(k)] = no_target<float>;
            }
        }

        /// New episodes, their uncertainties, and the pairs of the next rollout.
        void choose(prediction_schedule::part part) {
            using parts = prediction_schedule::part;
            const prediction_schedule& plan = owner->plan_;
            if (rows.draw()) owner->measure_ ? measure() : detect();
            counted = {};
            std::fill(step.begin(), step.end(), -1);
            const int per_prediction = static_cast<int>(candidates.size());
            for (int b = 0; b < rows.rows(); ++b) {
                const int n = rows.left(b, plan.rollout), from = static_cast<int>(rows.position(b));
                counted.steps += n;
                int prediction = 0;
                for (int j = 0; part != parts::predictor && j < n; ++j) {
                    if ((j + 1) % plan.every != 0 && j != n - 1) continue;
                    select_targets<float>(plan.selector,
                                          uncertainty_of(b).first(static_cast<std::size_t>(rows.length(b))), from + j,
                                          candidates);
                    for (int i = 0; i < per_prediction; ++i) {
                        const int k = candidates[static_cast<std::size_t>(i)];
                        if (k < 0) continue;
                        pair(prediction * per_prediction + i, b, j, k);
                        ++counted.chosen;
                        counted.judged += rows.judged(b, k);
                        counted.distance += k - from - j;
                    }
                    ++prediction;
                }
                for (int j = 0; part != parts::memory && plan.current_weight > 0 && j < n; ++j) {
                    if (!(rows.weight(b, from + j) > 0)) continue;
                    pair(plan.chosen() + j, b, j, from + j);
                    ++counted.current;
                }
            }
        }
        void pair(int q, int b, int j, int k) {
            const auto i =
                static_cast<std::size_t>(q) * static_cast<std::size_t>(rows.rows()) + static_cast<std::size_t>(b);
            step[i] = j;
            target[i] = k;
        }

        void sweep(const tally& all, std::uint64_t number) {
            for (auto* p : programs()) p->replay_count() = number;
            for (auto* p : programs()) {
                if (p == &pairs) continue;
                rows.fill(*p, owner->plan_.rollout);
                p->forward();
            }
            gather(all);
            pairs.forward();
            pairs.backward();
            scatter();
            memory.backward();
            if (context) context->backward();
        }
        void gather(const tally& all) {
            const auto m = memory.output(owner->fast_->h);
            const auto to_memory = pairs.input("memory"), seen = pairs.input(context ? "context" : "observation"),
                       wanted = pairs.input("target"), weight = pairs.input("weight");
            const int B = rows.rows(), M = m.width, O = rows.info().observation.size(), Y = rows.info().targets;
            const real chosen = all.chosen > 0 ? real(1) / static_cast<real>(all.chosen) : real(0);
            const real current = all.current > 0
                                     ? static_cast<real>(owner->plan_.current_weight) / static_cast<real>(all.current)
                                     : real(0);
            for (std::size_t i = 0; i < step.size(); ++i) {
                const int b = static_cast<int>(i) % B, j = step[i], k = target[i];
                const auto put = [&](std::span<real> to, int width, const auto* from) {
                    real* row = to.data() + i * static_cast<std::size_t>(width);
                    for (int f = 0; f < width; ++f) row[f] = j < 0 ? real(0) : static_cast<real>(from[f]);
                };
                put(to_memory, M, m.at(std::max(j, 0)) + b * m.stride);
                const bool is_current = static_cast<int>(i) / B >= owner->plan_.chosen();
                if (!context) {
                    put(seen, O, rows.observation(b, std::max(k, 0)));
                } else if (is_current) {
                    const auto c = context->output(owner->fast_->predictor->context_output);
                    put(seen, c.width, c.at(std::max(j, 0)) + b * c.stride);
                } else {
                    put(seen, owner->fast_->predictor->context.width, context_of(b, std::max(k, 0)));
                }
                put(wanted, Y, rows.target(b, std::max(k, 0)));
                weight[i] = j < 0 ? real(0) : (is_current ? current : chosen) * static_cast<real>(rows.weight(b, k));
            }
        }
        /// The gradients of the pairs, summed at the rollout's steps: at m_i, and at c_i of the current steps.
        void scatter() {
            const auto& predictor = *owner->fast_->predictor;
            add_back(pairs.gradient_of(predictor.memory), memory.input("memory_gradient"), 0);
            if (context)
                add_back(pairs.gradient_of(predictor.context), context->input("context_gradient"),
                         owner->plan_.chosen());
            const auto loss = pairs.output(predictor.row_loss);
            for (std::size_t i = 0; i < step.size(); ++i) {
                if (step[i] < 0) continue;
                const int b = static_cast<int>(i) % rows.rows(), q = static_cast<int>(i) / rows.rows();
                (q >= owner->plan_.chosen() ? counted.current_loss : counted.chosen_loss) +=
                    static_cast<double>(loss.at(q)[b * loss.stride]);
            }
        }
        void add_back(operand<const real> d, std::span<real> to, int first_pair) {
            const int B = rows.rows();
            std::fill(to.begin(), to.end(), real(0));
            for (std::size_t i = 0; i < step.size(); ++i) {
                const int b = static_cast<int>(i) % B, q = static_cast<int>(i) / B;
                if (step[i] < 0 || q < first_pair) continue;
                const real* from = d.at(q) + b * d.stride;
                real* row = to.data() + static_cast<std::ptrdiff_t>(step[i] * B + b) * d.width;
                for (int f = 0; f < d.width; ++f) row[f] += from[f];
            }
        }
        void finish() {
            memory.carry();
            if (context) context->carry();
            rows.advance(owner->plan_.rollout);
        }

        const memup_trainer* owner;
        sequence_rows rows;
        program<Backend> memory, pairs, detector;
        std::unique_ptr<program<Backend>> context;
        std::vector<float> uncertainty;  // [B, T]
        std::vector<real> contexts;      // [B, T, C], of the moving averages
        std::vector<int> step, target;   // [P, B]: the rollout's step and the sequence's; -1: no pair
        std::vector<int> candidates;
        tally counted;
    };

    /// Leaves the gradient of what an update steps.
    void keep_only(prediction_schedule::part part, std::span<real> gradient) const {
        using parts = prediction_schedule::part;
        if (part == parts::both) return;
        for (const auto& e : fast_->store->entries())
            if (e.name.starts_with("predictor.") != (part == parts::predictor))
                std::fill_n(gradient.begin() + e.offset, e.size(), real(0));
    }

    void follow() {
        const auto from = fast_->store->flat();
        const real by = static_cast<real>(1 - plan_.decay);
        auto edit = slow_->store->edit();
        const auto to = edit.flat();
        for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * (from[i] - to[i]);
    }

    template <class Body>
    void each_part(Body body) {
        const auto raw = [](auto span) { return std::as_writable_bytes(span); };
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            shard& s = *shards_[i];
            const std::string prefix = message("shard.", i);
            if (i == 0 && plan_.block + plan_.pretrain > 0) {
                body("predictor_optimiser.first", raw(predictor_optimiser_.first_moment()));
                body("predictor_optimiser.second", raw(predictor_optimiser_.second_moment()));
            }
            body(prefix + ".places", raw(s.rows.places()));
            body(prefix + ".uncertainty", raw(std::span(s.uncertainty)));
            if (s.context) body(prefix + ".contexts", raw(std::span(s.contexts)));
            for (auto* p : s.programs())
                for (const auto& name : p->state_names()) body(prefix + ".state." + name, raw(p->state(name)));
            for (std::size_t r = 0; r < s.memory.resource_count(); ++r) {
                std::size_t k = 0;
                for (auto part : s.memory.bound_resource(r)->bytes())
                    body(message(prefix, ".resource.", r, ".", k++), part);
            }
        }
    }

    void note(double loss, double norm, const tally& all) {
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

    [[noreturn]] void stop(const char* what, double number) {
        std::string where;
        for (auto& s : shards_)
            for (const auto* p : s->programs())
                if (where.empty()) where = p->first_non_finite();
        fail("training stopped at step ", steps_, ": the ", what, " is ", number,
             "; first non-finite value: ", where.empty() ? std::string("a gradient") : where);
    }

    const traced_agent<Backend>* fast_;
    const traced_agent<Backend>* slow_;
    std::shared_ptr<const sequence_source> source_;
    prediction_schedule plan_;
    uncertainty_measure measure_;
    int batch_;
    std::int64_t total_steps_, steps_ = 0;
    optimiser<real> optimiser_, predictor_optimiser_;  // the second one where the predictor is stepped alone
    std::vector<std::unique_ptr<shard>> shards_;
    thread_pool pool_;
    memup_window window_;
};

}  // namespace engram
