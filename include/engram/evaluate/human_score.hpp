#pragma once
// SPDX-License-Identifier: MIT

// The score of an agent on a task, step by step as the paper takes it (facts 1.11):
//
//   1. of each seed, the exponential average of the training episode rewards, corrected for its start,
//        m_n = (1 - alpha) m_{n-1} + alpha r_n,   a_n = m_n / (1 - (1 - alpha)^n),   m_0 = 0,
//      alpha = 0.05 for the PsychLab tasks and the maze, 0.001 for the others (suite_tasks.hpp)
//   2. its rolling mean over 10 points
//   3. its greatest value, R_train, and the step at which it stands
//   4. the reward of the holdout levels at that step, smoothed in the same way
//   5. score = 100 (R - Zero) / (Hundred - Zero), its mean over seeds and the standard error of that mean
//
// What the paper leaves open (ours): a point is a row of metrics.csv, the mean reward r of e episodes, and counts as e
// rewards of r; only full windows can be the greatest; "the same" smoothing is one over the same stretch of training,
// so that it does not depend on how often a run was evaluated: an evaluation moves the average by as many episodes as
// were trained on since the one before, and the rolling mean of holdout levels covers the steps that the 10 points of
// training did. A run without a curve of a level is judged by its evaluation after training, and `from_curve` says so.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <engram/evaluate/run_folder.hpp>
#include <engram/evaluate/suite_tasks.hpp>

namespace engram {

/// Rewards over training: `episodes[i]` of them, with the mean `reward[i]`, up to step `step[i]`.
struct reward_series {
    std::vector<double> step{}, reward{}, episodes{};
};

/// a_n after the episodes of each point.
inline std::vector<double> exponential_average(const reward_series& series, double alpha) {
    std::vector<double> out;
    double moving = 0, weight = 0;  // weight: what the average of a constant 1 would be
    for (std::size_t i = 0; i < series.reward.size(); ++i) {
        const double kept = std::pow(1 - alpha, series.episodes[i]);
        moving = series.reward[i] + kept * (moving - series.reward[i]);
        weight = 1 + kept * (weight - 1);
        out.push_back(moving / weight);
    }
    return out;
}

/// Means of `window` values that end at each place, NaN before the first full one; the mean of all at the end of a
/// shorter list.
inline std::vector<double> rolling_mean(const std::vector<double>& values, std::size_t window = 10) {
    std::vector<double> out(values.size(), std::numeric_limits<double>::quiet_NaN());
    window = std::min(window, values.size());
    for (std::size_t end = window; window > 0 && end <= values.size(); ++end) {
        double sum = 0;
        for (std::size_t i = end - window; i < end; ++i) sum += values[i];
        out[end - 1] = sum / static_cast<double>(window);
    }
    return out;
}

/// The greatest value of a smoothed series, where it stands, and the steps that its window covers.
struct best_moment {
    double value = 0, step = 0, span = 0;
};

/// Steps 1 to 3: the greatest smoothed value, and where it stands.
inline std::optional<best_moment> find_best(const reward_series& series, double alpha, std::size_t window = 10) {
    const auto smooth = rolling_mean(exponential_average(series, alpha), window);
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < smooth.size(); ++i)
        if (std::isfinite(smooth[i]) && (!best || smooth[i] > smooth[*best])) best = i;
    if (!best) return {};
    const double from = *best < window ? 0 : series.step[*best - window];
    return best_moment{smooth[*best], series.step[*best], series.step[*best] - from};
}

/// A smoothed series at a moment: the mean of what lies within its span, or the nearest value before it, or the first.
inline double read_at(const reward_series& series, double alpha, const best_moment& when) {
    const auto smooth = exponential_average(series, alpha);
    double sum = 0, nearest = smooth.empty() ? std::numeric_limits<double>::quiet_NaN() : smooth.front();
    int count = 0;
    for (std::size_t i = 0; i < smooth.size() && series.step[i] <= when.step; ++i) {
        nearest = smooth[i];
        if (series.step[i] > when.step - when.span) sum += smooth[i], ++count;
    }
    return count > 0 ? sum / count : nearest;
}

/// The training rewards of a run; empty rows of its table hold no episodes.
inline reward_series training_series(const metrics_columns& metrics) {
    reward_series out;
    const auto *steps = metrics.steps(), *rewards = metrics.find("reward"), *episodes = metrics.find("episodes");
    if (!steps || !rewards) return out;
    double before = 0;
    for (std::size_t i = 0; i < rewards->size(); ++i) {
        if (!std::isfinite((*rewards)[i]) || !std::isfinite((*steps)[i])) continue;
        const double count = episodes && std::isfinite((*episodes)[i]) ? (*episodes)[i] : before + 1;
        out.step.push_back((*steps)[i]), out.reward.push_back((*rewards)[i]);
        out.episodes.push_back(std::max(1.0, count - before));
        before = count;
    }
    return out;
}

/// A level's evaluations, each counted as the training episodes since the one before.
inline reward_series evaluation_series(const level_curve& curve, const reward_series& training) {
    const auto trained_until = [&](double step) {
        double sum = 0, from = 0;
        for (std::size_t i = 0; i < training.step.size() && from < step; from = training.step[i++]) {
            const double length = training.step[i] - from;
            sum += training.episodes[i] * (length > 0 ? std::min(1.0, (step - from) / length) : 1);
        }
        return sum;
    };
    reward_series out;
    double before = 0;
    for (std::size_t i = 0; i < curve.step.size(); ++i) {
        if (!std::isfinite(curve.mean[i])) continue;
        const double now = trained_until(curve.step[i]);
        out.step.push_back(curve.step[i]), out.reward.push_back(curve.mean[i]);
        out.episodes.push_back(std::max(1.0, now - before));
        before = now;
    }
    return out;
}

/// What one seed earned on a level; the error is that of its episodes, NaN of what was read off a curve.
struct level_reward {
    double reward = 0, standard_error = std::numeric_limits<double>::quiet_NaN();
    bool from_curve = false;
};

/// On the levels of `suite_scores`; `step` is that of the greatest training reward.
struct seed_rewards {
    std::array<std::optional<level_reward>, 3> levels{};
    std::optional<double> step{};
};

/// Steps 1 to 4 for every level of a run.
inline seed_rewards judge_run(const run_record& run, double alpha) {
    seed_rewards out;
    const reward_series training = training_series(run.metrics);
    const auto best = find_best(training, alpha);
    if (best) out.step = best->step;
    for (std::size_t i = 0; i < suite_scores.size(); ++i) {
        for (const auto& result : run.levels)
            if (result.level == suite_scores[i]) out.levels[i] = {result.mean, result.standard_error, false};
        if (!best) continue;
        const double none = std::numeric_limits<double>::quiet_NaN();
        if (i == 0) out.levels[0] = {best->value, none, true};
        for (const auto& curve : run.curves)
            if (i > 0 && curve.level == suite_scores[i])
                if (const auto series = evaluation_series(curve, training); !series.step.empty())
                    out.levels[i] = {read_at(series, alpha, *best), none, true};
    }
    return out;
}

/// What counts as 0 and as 100.
struct score_scale {
    double zero = 0, hundred = 1;
    double score(double reward) const { return 100 * (reward - zero) / (hundred - zero); }
    double points(double difference) const { return 100 * difference / (hundred - zero); }
};

}  // namespace engram
