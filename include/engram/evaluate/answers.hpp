#pragma once
// SPDX-License-Identifier: MIT

// What the answers of a sequence model are worth on a level, in the units of the MemUP paper's table (facts 3.5):
//
//   classes   percent of the judged steps whose most likely class is the right one
//   numbers   mean squared error at the judged steps
//
// A model goes through the sequences piece by piece with its states carried, so that memory does not grow with T; a
// piece is a rollout or an unroll of the model, or the whole sequence where it was trained on that. A MemUP model
// answers step k from m_k. The sequences depend on the seed and the level alone, and are none of those of training;
// mean and standard error are over sequences. Several processes play some rows of every batch each.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <engram/evaluate/levels.hpp>
#include <engram/evaluate/sequences.hpp>
#include <engram/train/sequence_rows.hpp>

namespace engram {

/// Whether answers are classes or numbers; bits are counted by sequence_player.
inline bool has_answers(const sequence_info& info) {
    return info.classes > 0 || info.numbers;
}

/// What a model said at one step of a sequence.
struct given_answer {
    int step = 0;
    double wanted = 0, given = 0;  // class or number
};

template <class Backend>
class answer_player {
public:
    /// `model`: traced for generating if it was trained by MemUP, any trace otherwise.
    answer_player(const traced_agent<Backend>& model, std::shared_ptr<const sequence_source> source, int rows,
                  processes* others = nullptr)
        : model_(&model),
          others_(others),
          mine_(rows_to_play(others, rows)),
          source_(std::move(source)),
          piece_(piece_of(model, source_->info())),
          play_(*model.g, model.store, plan_to_play(piece_, mine_), {model.logits}),
          rows_(source_, source_->info().levels.front(), 0, play_.options().batch, mine_.first, rows) {
        require(has_answers(source_->info()), source_->info().name, ": its answers are neither classes nor numbers");
    }

    /// Scores `count` sequences of a level; none when `stop`, asked before every batch, says so to some process.
    sequence_score score(const std::string& level, int count, std::uint64_t seed,
                         const std::function<bool()>& stop = {}) {
        require(count > 0, "evaluation: expected at least one sequence, got ", count);
        sequence_score s;
        s.level = level;
        s.unit = info().classes > 0 ? "% right" : "mean squared error";
        std::vector<std::vector<double>> own;
        bool stopped = mine_.count() == 0 && stop && stop();
        for (int done = 0; done < count && mine_.count() > 0; done += mine_.all) {
            if ((stopped = stop && stop())) break;
            std::vector<double> sum(static_cast<std::size_t>(rows_.rows()), 0), judged(sum);
            play(level, seed, done / mine_.all, [&](int b, const given_answer& a) {
                sum[static_cast<std::size_t>(b)] +=
                    info().classes > 0 ? 100.0 * (a.given == a.wanted) : (a.given - a.wanted) * (a.given - a.wanted);
                ++judged[static_cast<std::size_t>(b)];
            });
            for (int b = 0; b < rows_.rows() && done + mine_.first + b < count; ++b) {
                const auto i = static_cast<std::size_t>(b);
                own.push_back({static_cast<double>(done + mine_.first + b), sum[i] / std::max(1.0, judged[i])});
            }
        }
        if (any_of_them(others_, stopped)) return s;
        std::vector<double> values;
        for (const auto& row : in_order_of_sequences(others_, own)) values.push_back(row[0]);
        judge(s, values);
        return s;
    }

    /// body(row, answer) for every judged step of the `batch`-th batch of a level's sequences.
    template <class Body>
    void play(const std::string& level, std::uint64_t seed, int batch, Body body) {
        require_known("level", level, info().levels);
        rows_.restart(level, evaluation_seed(seed, level), batch);
        rows_.draw();
        for (int from = 0; from < info().steps; from += piece_) {
            rows_.fill(play_, piece_, [from](int) { return from; });
            play_.forward();
            play_.carry();
            const auto answers = play_.output(model_->logits);
            for (int j = 0; j < piece_ && from + j < info().steps; ++j)
                for (int b = 0; b < rows_.rows(); ++b) {
                    const int k = from + j;
                    if (k >= rows_.length(b) || !rows_.judged(b, k)) continue;
                    const auto* row = answers.at(j) + b * answers.stride;
                    body(b, given_answer{k, static_cast<double>(*rows_.target(b, k)),
                                         info().classes > 0
                                             ? static_cast<double>(std::max_element(row, row + answers.width) - row)
                                             : static_cast<double>(row[0])});
                }
        }
    }
    const sequence_rows& rows() const { return rows_; }

private:
    const sequence_info& info() const { return source_->info(); }
    static int piece_of(const traced_agent<Backend>& model, const sequence_info& info) {
        const int piece = model.schedule ? model.schedule->rollout : model.unroll > 0 ? model.unroll : info.steps;
        return std::min(piece, info.steps);
    }

    const traced_agent<Backend>* model_;
    processes* others_;
    shard_range mine_;  // rows of a batch
    std::shared_ptr<const sequence_source> source_;
    int piece_;
    program<Backend> play_;
    sequence_rows rows_;
};

}  // namespace engram
