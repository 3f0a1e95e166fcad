#pragma once
// SPDX-License-Identifier: MIT

// What a sequence model is worth on a level (facts 4.10), and what it draws when it is left alone.
//
//   generative   mean = average over sequences of -F = sum_t [KL_t - log p(x_t)] in nats, lower is better, with KL_t a
//                step; recall is the mean KL from the task's recall on (without one: over the steps that repeat a
//                frame), before that of all other steps, first_sight that of the repeated frames when they were new
//   supervised   mean = wrong bits a sequence, a logit above 0 standing for 1
//
// The sequences depend on the seed and the level alone, and are none of those of training. Several processes play some
// rows of every batch each, and have the score of one.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <engram/core/flag.hpp>
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

/// The rows of a batch that this process plays; it has a plan for one row where it plays none.
inline shard_range rows_to_play(processes* others, int batch) {
    return others ? shards_of(others->rank(), others->count(), batch) : shard_range{0, batch, batch};
}
/// Those rows of `steps` steps.
inline plan_options plan_to_play(int steps, const shard_range& rows) {
    return {.steps = steps, .batch = std::max(1, rows.count()), .first_row = rows.first};
}

/// Numbers of all sequences, in order of these, at every process; `own` are some sequences' numbers, each behind that
/// of its sequence.
inline std::vector<std::vector<double>> in_order_of_sequences(processes* others,
                                                              const std::vector<std::vector<double>>& own) {
    auto all = rows_of_all(others, own);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a[0] < b[0]; });
    for (auto& row : all) row.erase(row.begin());
    return all;
}

/// Fills mean and standard error.
inline void judge(sequence_score& s, const std::vector<double>& values) {
    const auto count = static_cast<int>(values.size());
    s.sequences = count;
    for (const double v : values) s.mean += v / count;
    double squares = 0;
    for (const double v : values) squares += (v - s.mean) * (v - s.mean);
    if (count > 1) s.standard_error = std::sqrt(squares / (count - 1) / count);
}

/// Plays sequences on a model that was traced for generating (supervised models: any trace).
template <class Backend>
class sequence_player {
public:
    using real = typename Backend::real;

    sequence_player(const traced_agent<Backend>& model, std::shared_ptr<const sequence_source> source, int rows,
                    processes* others = nullptr)
        : model_(&model),
          others_(others),
          mine_(rows_to_play(others, rows)),
          play_(*model.g, model.store, plan_to_play(source->info().steps, mine_), outputs(model)),
          batch_(play_, std::move(source)) {}

    program<Backend>& played() { return play_; }

    /// Scores `count` sequences of a level; none when `stop`, asked before every batch, says so to some process.
    sequence_score score(const std::string& level, int count, std::uint64_t seed,
                         const std::function<bool()>& stop = {}) {
        require(count > 0, "evaluation: expected at least one sequence, got ", count);
        require_known("level", level, info().known_levels());
        const int T = info().steps;
        sequence_score s{level, model_->generative ? "nats" : "wrong bits a sequence", 0, 0, 0, {}, {}};
        s.divergence.resize(model_->generative ? static_cast<std::size_t>(T) : 0);
        s.log_likelihood.resize(s.divergence.size());
        // Of every sequence: wrong bits, or KL and log-likelihood and origin of its steps.
        std::vector<std::vector<double>> own;
        bool stopped = mine_.count() == 0 && stop && stop();
        use_prior_from(T);
        for (int done = 0; done < count && mine_.count() > 0; done += mine_.all) {
            if ((stopped = stop && stop())) break;
            play(level, seed, static_cast<std::uint64_t>(done));
            // Asked for once a batch, since a device copies them then.
            operand<const real> kl_of, log_p_of, logits;
            if (model_->generative) {
                kl_of = play_.output(model_->generative->divergence);
                log_p_of = play_.output(model_->generative->log_likelihood);
            } else {
                logits = play_.output(model_->logits);
            }
            for (int b = 0; b < mine_.count() && done + mine_.first + b < count; ++b) {
                auto& row = own.emplace_back(1, done + mine_.first + b);
                if (!model_->generative) {
                    row.push_back(wrong_bits(logits, b));
                    continue;
                }
                for (int t = 0; t < T; ++t)
                    for (const double x : {at(kl_of, t, b), at(log_p_of, t, b),
                                           static_cast<double>(batch_.origin(b)[static_cast<std::size_t>(t)])})
                        row.push_back(x);
            }
        }
        if (any_of_them(others_, stopped)) return s;
        std::vector<double> values;
        double first = 0, recall = 0, before = 0;
        std::int64_t repeats = 0, recalled = 0, fresh = 0;
        for (const auto& row : in_order_of_sequences(others_, own)) {
            if (!model_->generative) {
                values.push_back(row[0]);
                continue;
            }
            double total = 0;
            for (int t = 0; t < T; ++t) {
                const auto k = static_cast<std::size_t>(t);
                const double kl = row[3 * k], log_p = row[3 * k + 1];
                total += kl - log_p;
                s.divergence[k] += kl / count;
                s.log_likelihood[k] += log_p / count;
                const auto origin = static_cast<int>(row[3 * k + 2]);
                const bool recalls = info().recall >= 0 ? t >= info().recall : origin >= 0;
                (recalls ? recall : before) += kl;
                ++(recalls ? recalled : fresh);
                if (!recalls || origin < 0) continue;
                first += row[3 * static_cast<std::size_t>(origin)];
                ++repeats;
            }
            values.push_back(total);
        }
        judge(s, values);
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
        batch_.draw(level, evaluation_seed(seed, level), first + static_cast<std::uint64_t>(mine_.first));
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
                wrong += (o.at(t)[b * o.stride + f] > 0) != is_set(target[static_cast<std::size_t>(row * o.width + f)]);
        }
        return wrong;
    }

    const traced_agent<Backend>* model_;
    processes* others_;
    shard_range mine_;  // rows of a batch
    program<Backend> play_;
    sequence_batch<Backend> batch_;
};

}  // namespace engram
