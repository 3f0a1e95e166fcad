#pragma once
// SPDX-License-Identifier: MIT

// What one shard does of a MemUP update (train/memup_update.hpp): its rows, the programs of the memory, the pairs,
// the contexts and the detector, and what is handed from one to the other.
//
//   choose   new episodes, their uncertainties, and the pairs (i, k) of the next rollout
//   sweep    memory forward, outputs gathered into pairs, pairs forward and backward, gradients at m_i (and at the
//            contexts of current steps) summed at the steps they came from, memory backward
//   finish   states and rows go on to the next rollout
//
// Pairs are chosen on the host on every backend: the uncertainties of an episode come to it once, T numbers a row, and
// the choice is a search through them. On a device what the pairs read and the gradients that they give stay there
// (train/device_pairs.hpp); an update sends their observations, targets and weights, and fetches a loss a pair.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/model/traced_agent.hpp>
#include <engram/train/device_pairs.hpp>
#include <engram/train/memup_contexts.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/sequence_rows.hpp>

namespace engram {

/// Fills the uncertainties of the steps of row b's episode. Called by several threads.
using uncertainty_measure = std::function<void(const sequence_rows& rows, int b, std::span<float> uncertainty)>;

/// Counts and sums over the rows of a rollout.
struct rollout_tally {
    std::int64_t chosen = 0, current = 0, judged = 0, distance = 0, steps = 0;
    double chosen_loss = 0, current_loss = 0;
};

template <class Backend>
class memup_rollout {
public:
    using real = typename Backend::real;

    /// Rows first ... first + batch - 1 of a batch of `total`. `measure`, where it is set, stands for the averages.
    memup_rollout(const traced_agent<Backend>& fast, const traced_agent<Backend>& slow,
                  std::shared_ptr<const sequence_source> source, const uncertainty_measure& measure, std::uint64_t seed,
                  int batch, int first, int total)
        : fast_(&fast),
          slow_(&slow),
          measure_(&measure),
          plan_(*fast.schedule),
          rows(source, source->info().levels.front(), seed, batch, first, total),
          memory(*fast.g, fast.store, options(plan_.rollout, batch, first, total), {fast.h}),
          pairs(*fast.predictor->g, fast.store, options(plan_.pairs(), batch, first, total),
                {fast.predictor->row_loss}),
          detector(*slow.g, slow.store, {.steps = plan_.rollout, .batch = batch, .first_row = first}, watched(slow)),
          uncertainty(static_cast<std::size_t>(batch) * static_cast<std::size_t>(source->info().steps)),
          step_(static_cast<std::size_t>(batch) * static_cast<std::size_t>(plan_.pairs()), -1),
          target_(step_.size(), -1),
          candidates_(static_cast<std::size_t>(targets_of(plan_.selector, plan_.selected))),
          there_(plan_.pairs(), batch) {
        if (fast.predictor->context_graph)
            context = std::make_unique<memup_contexts<Backend>>(fast, slow, options(plan_.rollout, batch, first, total),
                                                                source->info(), plan_.retraced);
    }

    std::vector<program<Backend>*> programs() {
        std::vector<program<Backend>*> all{&memory, &pairs};
        if (context)
            for (auto* p : context->programs()) all.push_back(p);
        return all;
    }
    /// New episodes, their uncertainties, and the pairs of the next rollout; `last`: current steps are targets among
    /// the last steps of an episode alone, or, for 0, everywhere.
    void choose(prediction_schedule::part part, int last) {
        using parts = prediction_schedule::part;
        if (rows.draw()) *measure_ ? measure() : detect();
        counted = {};
        std::fill(step_.begin(), step_.end(), -1);
        std::fill(target_.begin(), target_.end(), -1);
        const int per_prediction = static_cast<int>(candidates_.size());
        for (int b = 0; b < rows.rows(); ++b) {
            const int n = rows.left(b, plan_.rollout), from = static_cast<int>(rows.position(b));
            counted.steps += n;
            int prediction = 0;
            for (int j = 0; part != parts::predictor && j < n; ++j) {
                if ((j + 1) % plan_.every != 0 && j != n - 1) continue;
                select_targets<float>(plan_.selector, uncertainty_of(b).first(static_cast<std::size_t>(rows.length(b))),
                                      from + j, candidates_);
                for (int i = 0; i < per_prediction; ++i) {
                    const int k = candidates_[static_cast<std::size_t>(i)];
                    if (k < 0) continue;
                    pair(prediction * per_prediction + i, b, j, k);
                    ++counted.chosen;
                    counted.judged += rows.judged(b, k);
                    counted.distance += k - from - j;
                }
                ++prediction;
            }
            for (int j = 0; part != parts::memory && plan_.current_weight > 0 && j < n; ++j) {
                if (!(rows.weight(b, from + j) > 0)) continue;
                if (last > 0 && from + j < rows.length(b) - last) continue;
                pair(plan_.chosen() + j, b, j, from + j);
                ++counted.current;
            }
        }
        if (context)
            context->choose_blocks(rows, plan_.chosen(), [this](int b, int q) {
                return target_[static_cast<std::size_t>(q) * static_cast<std::size_t>(rows.rows()) +
                               static_cast<std::size_t>(b)];
            });
        if constexpr (device_backend<Backend>) send_lists();
    }
    /// `all`: counts over all shards; `number` of the update.
    void sweep(const rollout_tally& all, std::uint64_t number) {
        memory.replay_count() = pairs.replay_count() = number;
        rows.fill(memory, plan_.rollout);
        memory.forward();
        if (context) context->forward(rows, number);
        gather(all);
        pairs.forward();
        pairs.backward();
        scatter();
        memory.backward();
        if (context)
            for (auto* p : context->programs()) p->backward();
        count_losses();
    }
    void finish() {
        memory.carry();
        if (context) context->current.carry();
        rows.advance(plan_.rollout);
    }

    std::size_t bytes() {
        std::size_t sum = detector.memory();
        for (const auto* p : programs()) sum += p->memory();
        return sum;
    }
    /// body(name, bytes) for everything that a checkpoint keeps.
    template <class Body>
    void each_part(const std::string& prefix, Body body) {
        const auto raw = [](auto span) { return std::as_writable_bytes(span); };
        body(prefix + ".places", raw(rows.places()));
        body(prefix + ".uncertainty", raw(std::span(uncertainty)));
        if (context) context->each_part(prefix, body);
        std::vector<program<Backend>*> carried{&memory, &pairs};
        if (context) carried.push_back(&context->current);
        for (auto* p : carried)
            for (const auto& name : p->state_names()) body(prefix + ".state." + name, raw(p->state(name)));
        each_resource(memory, prefix, body);
    }

private:
    const traced_agent<Backend>*fast_, *slow_;
    const uncertainty_measure* measure_;
    prediction_schedule plan_;

public:
    sequence_rows rows;
    program<Backend> memory, pairs, detector;
    std::unique_ptr<memup_contexts<Backend>> context;  // null where the predictor sees observations
    std::vector<float> uncertainty;                    // [B, T]
    rollout_tally counted;

private:
    static std::vector<var<Backend>> watched(const traced_agent<Backend>& slow) {
        std::vector<var<Backend>> all{*slow.row_loss};
        if (slow.context) all.push_back(*slow.context);
        return all;
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
        const int n = plan_.rollout;
        for (int from = 0; from < rows.info().steps; from += n) {
            if (context) context->keep_states(detector, rows, from);
            rows.fill(detector, n, [from](int) { return from; });
            detector.forward();
            detector.carry();
            if (context) context->keep_contexts(detector, rows, from);
            const auto loss = detector.output(*slow_->row_loss);
            for (int b = 0; b < rows.rows(); ++b) {
                if (rows.position(b) != 0) continue;
                const auto s = uncertainty_of(b);
                for (int j = 0; j < n && from + j < rows.info().steps; ++j) {
                    const int k = from + j;
                    s[static_cast<std::size_t>(k)] = k < rows.length(b) && rows.weight(b, k) > 0
                                                         ? static_cast<float>(loss.at(j)[b * loss.stride])
                                                         : no_target<float>;
                }
            }
        }
    }

    void measure() {
        for (int b = 0; b < rows.rows(); ++b) {
            if (rows.position(b) != 0) continue;
            const auto s = uncertainty_of(b).first(static_cast<std::size_t>(rows.length(b)));
            (*measure_)(rows, b, s);
            for (int k = 0; k < rows.length(b); ++k)
                if (!(rows.weight(b, k) > 0)) s[static_cast<std::size_t>(k)] = no_target<float>;
        }
    }

    void pair(int q, int b, int j, int k) {
        const auto i =
            static_cast<std::size_t>(q) * static_cast<std::size_t>(rows.rows()) + static_cast<std::size_t>(b);
        step_[i] = j;
        target_[i] = k;
    }

    void gather(const rollout_tally& all) {
        constexpr bool there = device_backend<Backend>;
        if constexpr (there) gather_there();
        operand<const real> m;
        std::span<real> to_memory, seen, contexts;
        if constexpr (!there) m = memory.output(fast_->h), to_memory = pairs.input("memory");
        if (pairs.has_input("observation")) seen = pairs.input("observation");
        if (!there && context) contexts = pairs.input("context");
        const auto wanted = pairs.input("target"), weight = pairs.input("weight");
        const int B = rows.rows(), M = m.width, O = rows.info().observation.size(), Y = rows.info().targets;
        const real chosen =
            all.chosen > 0 ? static_cast<real>(plan_.chosen_weight) / static_cast<real>(all.chosen) : real(0);
        const real current =
            all.current > 0 ? static_cast<real>(plan_.current_weight) / static_cast<real>(all.current) : real(0);
        for (std::size_t i = 0; i < step_.size(); ++i) {
            const int b = static_cast<int>(i) % B, j = step_[i], k = target_[i];
            const auto put = [&](std::span<real> to, int width, const auto* from) {
                real* row = to.data() + i * static_cast<std::size_t>(width);
                for (int f = 0; f < width; ++f) row[f] = j < 0 ? real(0) : static_cast<real>(from[f]);
            };
            if constexpr (!there) put(to_memory, M, m.at(std::max(j, 0)) + b * m.stride);
            const bool is_current = static_cast<int>(i) / B >= plan_.chosen();
            if (!seen.empty()) put(seen, O, rows.observation(b, std::max(k, 0)));
            if constexpr (!there)
                if (context)
                    put(contexts, context->width(),
                        is_current ? context->of_current(b, std::max(j, 0)) : context->of_chosen(b, std::max(k, 0)));
            put(wanted, Y, rows.target(b, std::max(k, 0)));
            weight[i] = j < 0 ? real(0) : (is_current ? current : chosen) * static_cast<real>(rows.weight(b, k));
        }
    }
    /// The gradients of the pairs, summed at the steps they came from: at m_i, at c_i of the current steps, and at
    /// those c_k of the chosen ones that carry one.
    void scatter() {
        if constexpr (device_backend<Backend>) return scatter_there();
        const auto& predictor = *fast_->predictor;
        const auto rollout_step = [this](std::size_t i, int, int) { return step_[i]; };
        add_back(pairs.gradient_of(predictor.memory), memory.input("memory_gradient"), rollout_step);
        if (context) {
            const auto d = pairs.gradient_of(predictor.context);
            add_back(d, context->current.input("context_gradient"),
                     [this](std::size_t i, int q, int) { return q >= plan_.chosen() ? step_[i] : -1; });
            if (context->again)
                add_back(d, context->again->input("context_gradient"), [this](std::size_t i, int q, int b) {
                    const int k = target_[i];
                    return q < plan_.chosen() && k >= 0 && context->is_retraced(b, k) ? context->retraced_step(b, k)
                                                                                      : -1;
                });
        }
    }
    void count_losses() {
        const auto loss = pairs.output(fast_->predictor->row_loss);
        for (std::size_t i = 0; i < step_.size(); ++i) {
            if (step_[i] < 0) continue;
            const int b = static_cast<int>(i) % rows.rows(), q = static_cast<int>(i) / rows.rows();
            (q >= plan_.chosen() ? counted.current_loss : counted.chosen_loss) +=
                static_cast<double>(loss.at(q)[b * loss.stride]);
        }
    }
    /// Adds the gradient of pair i = q B + b at step step_of(i, q, b) of `to` [r, B, .], unless that is negative.
    template <class StepOf>
    void add_back(operand<const real> d, std::span<real> to, StepOf step_of) {
        const int B = rows.rows();
        std::fill(to.begin(), to.end(), real(0));
        for (std::size_t i = 0; i < step_.size(); ++i) {
            const int b = static_cast<int>(i) % B, q = static_cast<int>(i) / B;
            const int step = step_of(i, q, b);
            if (step < 0) continue;
            const real* from = d.at(q) + b * d.stride;
            real* row = to.data() + static_cast<std::ptrdiff_t>(step * B + b) * d.width;
            for (int f = 0; f < d.width; ++f) row[f] += from[f];
        }
    }

    // --- the same on a device ---

    // Which step of what a pair reads: of the rollout, m_i and current contexts; of the episode, what the averages
    // kept; of the block that is retraced.
    enum list { memory_list, current_list, kept_list, retraced_list };

    void send_lists() {
        const std::size_t n = step_.size();
        std::vector<int> lists(device_pairs<Backend>::lists * n, -1);
        for (std::size_t i = 0; i < n; ++i) {
            const int b = static_cast<int>(i) % rows.rows(), k = target_[i];
            if (k < 0) continue;
            lists[memory_list * n + i] = step_[i];
            if (!context) continue;
            if (static_cast<int>(i) / rows.rows() >= plan_.chosen())
                lists[current_list * n + i] = step_[i];
            else if (context->is_retraced(b, k))
                lists[retraced_list * n + i] = context->retraced_step(b, k);
            else
                lists[kept_list * n + i] = k;
        }
        there_.send(pairs.executor(), lists);
    }
    void gather_there() {
        auto& on = pairs.executor();
        const auto& predictor = *fast_->predictor;
        there_.order(memory.executor(), on);
        there_.gather(on, memory_list, memory.on_device(fast_->h), pairs.on_device(predictor.memory), false);
        if (!context) return;
        const auto to = pairs.on_device(predictor.context);
        there_.order(context->current.executor(), on);
        there_.gather(on, current_list, context->on_device(context->current), to, false);
        there_.gather(on, kept_list, context->all_kept(), to, true);
        if (!context->again) return;
        there_.order(context->again->executor(), on);
        there_.gather(on, retraced_list, context->on_device(*context->again), to, true);
    }
    void scatter_there() {
        const auto give_back = [this](int which, const var<Backend>& v, program<Backend>& to, graph<Backend>& of,
                                      const char* input) {
            there_.order(pairs.executor(), to.executor());
            there_.scatter(to.executor(), which, pairs.on_device(v, true), place_of(to, of, input), plan_.rollout);
        };
        const auto& predictor = *fast_->predictor;
        give_back(memory_list, predictor.memory, memory, *fast_->g, "memory_gradient");
        if (!context) return;
        graph<Backend>& of_context = *predictor.context_graph;
        give_back(current_list, predictor.context, context->current, of_context, "context_gradient");
        if (context->again)
            give_back(retraced_list, predictor.context, *context->again, of_context, "context_gradient");
    }

    std::vector<int> step_, target_;  // [P, B]: the rollout's step and the sequence's; -1: no pair
    std::vector<int> candidates_;
    device_pairs<Backend> there_;
};

}  // namespace engram
