#pragma once
// SPDX-License-Identifier: MIT

// What a sequence model is worth on a level (facts 4.10), and what it draws when it is left alone.
//
//   generative   mean = average over sequences of -F = sum_t [KL_t - log p(x_t)] in nats, lower is better, with KL_t a
//                step; recall is the mean KL from the task's recall on (without one: over the steps that repeat a
//                frame), before that of all other steps, first_sight that of the repeated frames when they were new
//   supervised   mean = wrong bits a sequence, a logit above 0 standing for 1
//
// The sequences depend on the seed and the level alone, and are none of those of training.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <engram/evaluate/levels.hpp>
#include <engram/train/sequence_batch.hpp>

namespace engram {

struct sequence_score {
    std::string level, unit;
    int sequences = 0;
    double mean = 0, standard_error = 0;
    std::vector<double> divergence, log_likelihood;        // a step, nats
    double before = NAN, recall = NAN, first_sight = NAN;  // mean KL a step, NaN where there is no such step

    /// Below 1 where memory helps.
    double recall_over_before() const { return recall / before; }
    double recall_over_first_sight() const { return recall / first_sight; }
};

/// Frames and weights of sequences, each [T, rows, width].
struct sequence_drawing {
    int steps = 0, rows = 0, alone_from = 0;
    std::vector<float> observed, generated, read_weight, write_weight, divergence;
    int read_width = 0, write_width = 0;
};

/// Plays sequences on a model that was traced for generating (supervised models: any trace).
template <class Backend>
class sequence_player {
public:
    using real = typename Backend::real;

    sequence_player(const traced_agent<Backend>& model, std::shared_ptr<const sequence_source> source, int rows)
        : model_(&model),
          play_(*model.g, model.store, {.steps = source->info().steps, .batch = rows}, outputs(model)),
          batch_(play_, std::move(source)) {}

    program<Backend>& played() { return play_; }

    /// Scores `count` sequences of a level; none when `stop`, asked before every batch, says so.
    sequence_score score(const std::string& level, int count, std::uint64_t seed,
                         const std::function<bool()>& stop = {}) {
        require(count > 0, "evaluation: expected at least one sequence, got ", count);
        require_known("level", level, info().known_levels());
        const int T = info().steps;
        sequence_score s{level, model_->generative ? "nats" : "wrong bits a sequence", 0, 0, 0, {}, {}};
        s.divergence.resize(model_->generative ? static_cast<std::size_t>(T) : 0);
        s.log_likelihood.resize(s.divergence.size());
        std::vector<double> values;
        double first = 0, recall = 0, before = 0;
        std::int64_t repeats = 0, recalled = 0, fresh = 0;
        use_prior_from(T);
        for (int done = 0; done < count; done += batch_.rows()) {
            if (stop && stop()) return s;
            play(level, seed, static_cast<std::uint64_t>(done));
            // Asked for once a batch, since a device copies them then.
            operand<const real> kl_of, log_p_of, logits;
            if (model_->generative) {
                kl_of = play_.output(model_->generative->divergence);
                log_p_of = play_.output(model_->generative->log_likelihood);
            } else {
                logits = play_.output(model_->logits);
            }
            for (int b = 0; b < std::min(batch_.rows(), count - done); ++b) {
                if (!model_->generative) {
                    values.push_back(wrong_bits(logits, b));
                    continue;
                }
                double total = 0;
                for (int t = 0; t < T; ++t) {
                    const double kl = at(kl_of, t, b);
                    const double log_p = at(log_p_of, t, b);
                    total += kl - log_p;
                    s.divergence[static_cast<std::size_t>(t)] += kl / count;
                    s.log_likelihood[static_cast<std::size_t>(t)] += log_p / count;
                    const int origin = batch_.origin(b)[static_cast<std::size_t>(t)];
                    const bool recalls = info().recall >= 0 ? t >= info().recall : origin >= 0;
                    (recalls ? recall : before) += kl;
                    ++(recalls ? recalled : fresh);
                    if (!recalls || origin < 0) continue;
                    first += at(kl_of, origin, b);
                    ++repeats;
                }
                values.push_back(total);
            }
        }
        s.sequences = count;
        for (const double v : values) s.mean += v / count;
        double squares = 0;
        for (const double v : values) squares += (v - s.mean) * (v - s.mean);
        if (count > 1) s.standard_error = std::sqrt(squares / (count - 1) / count);
        if (recalled > 0) {
            s.before = before / static_cast<double>(fresh);
            s.recall = recall / static_cast<double>(recalled);
            s.first_sight = first / static_cast<double>(repeats);
        }
        return s;
    }

    /// Follows the sequences of a level up to step `alone_from`, and draws from the prior after it.
    sequence_drawing draw(const std::string& level, std::uint64_t seed, int alone_from) {
        require(model_->generative.has_value(), "drawing: this model does not generate frames");
        use_prior_from(alone_from);
        play(level, seed, 0);
        sequence_drawing d{info().steps, batch_.rows(), alone_from, {}, {}, {}, {}, {}};
        const auto seen = play_.input("observation");
        d.observed.assign(seen.begin(), seen.end());
        const auto copy = [&](const var<Backend>& v, std::vector<float>& to) {
            const auto o = play_.output(v);
            for (int t = 0; t < d.steps; ++t)
                for (int b = 0; b < d.rows; ++b)
                    for (int f = 0; f < v.width; ++f) to.push_back(static_cast<float>(o.at(t)[b * o.stride + f]));
            return v.width;
        };
        copy(model_->generative->frame, d.generated);
        copy(model_->generative->divergence, d.divergence);
        if (model_->slot_read_weight) d.read_width = copy(*model_->slot_read_weight, d.read_weight);
        if (model_->slot_write_weight) d.write_width = copy(*model_->slot_write_weight, d.write_weight);
        return d;
    }

private:
    static std::vector<var<Backend>> outputs(const traced_agent<Backend>& m) {
        if (!m.generative) return {m.logits};
        std::vector<var<Backend>> all{m.generative->divergence, m.generative->log_likelihood, m.generative->frame};
        for (const auto* v : {&m.slot_read_weight, &m.slot_write_weight})
            if (*v) all.push_back(**v);
        return all;
    }
    const sequence_info& info() const { return batch_.source().info(); }

    void play(const std::string& level, std::uint64_t seed, std::uint64_t first) {
        batch_.draw(level, evaluation_seed(seed, level), first);
        play_.replay_count() = first;
        play_.forward();
    }
    void use_prior_from(int step) {
        if (!play_.has_input("use_prior")) return;
        const auto flags = play_.input("use_prior");
        for (std::size_t i = 0; i < flags.size(); ++i) flags[i] = static_cast<int>(i) / batch_.rows() >= step ? 1 : 0;
    }
    static double at(const operand<const real>& o, int t, int b) { return static_cast<double>(o.at(t)[b * o.stride]); }
    double wrong_bits(const operand<const real>& o, int b) const {
        const auto target = batch_.target(), weight = batch_.weight();
        double wrong = 0;
        for (int t = 0; t < info().steps; ++t) {
            const std::ptrdiff_t row = std::ptrdiff_t{t} * batch_.rows() + b;
            if (weight[static_cast<std::size_t>(row)] == 0) continue;
            for (int f = 0; f < o.width; ++f)
                wrong +=
                    (o.at(t)[b * o.stride + f] > 0) != (target[static_cast<std::size_t>(row * o.width + f)] > 0.5f);
        }
        return wrong;
    }

    const traced_agent<Backend>* model_;
    program<Backend> play_;
    sequence_batch<Backend> batch_;
};

}  // namespace engram
