#pragma once
// SPDX-License-Identifier: MIT

// How soon an agent finds the goal again: in an episode whose goal stays, the steps to the first time that it is
// reached, from there to the second time, and so on. Who remembers the place needs fewer steps after the first time.
//
// The n-th number is a mean over the episodes that reached the goal n times, which are fewer the larger n is, and
// faster than the others: `episodes` says how many.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <engram/version.hpp>

namespace engram {

struct goal_times {
    std::vector<double> steps;  // [n]
    std::vector<int> episodes;  // [n]

    /// As far as at least half of `all` episodes came.
    std::vector<double> of_most(double all) const {
        std::vector<double> most;
        for (std::size_t n = 0; n < std::min(steps.size(), episodes.size()) && 2.0 * episodes[n] >= all; ++n)
            most.push_back(steps[n]);
        return most;
    }
};

/// Follows `rows` environments, each of which plays one episode after the other.
class goal_clock {
public:
    explicit goal_clock(int rows) : since_(static_cast<std::size_t>(rows), 0), found_(since_) {}

    /// One step of a row; `reached` tells whether it ended at the goal, `done` whether it ended the episode.
    void step(int row, bool reached, bool done) {
        const auto r = static_cast<std::size_t>(row);
        ++since_[r];
        if (reached && found_[r] < longest) {
            const auto n = static_cast<std::size_t>(found_[r]++);
            if (n == sum_.size()) sum_.push_back(0), times_.episodes.push_back(0);
            sum_[n] += since_[r];
            ++times_.episodes[n];
            since_[r] = 0;
        }
        if (done) since_[r] = found_[r] = 0;
    }

    /// What it has counted: sums of steps and numbers of episodes, [n] each.
    std::vector<std::vector<double>> counted() const {
        return {sum_, {times_.episodes.begin(), times_.episodes.end()}};
    }
    /// Adds what another clock has counted.
    void add(const std::vector<double>& steps, const std::vector<double>& episodes) {
        if (sum_.size() < steps.size()) sum_.resize(steps.size()), times_.episodes.resize(steps.size());
        for (std::size_t n = 0; n < steps.size(); ++n) {
            sum_[n] += steps[n];
            times_.episodes[n] += static_cast<int>(episodes[n]);
        }
    }

    goal_times times() const {
        goal_times all = times_;
        for (std::size_t n = 0; n < sum_.size(); ++n) all.steps.push_back(sum_[n] / all.episodes[n]);
        return all;
    }

private:
    static constexpr int longest = 20;
    std::vector<int> since_, found_;  // [rows]
    std::vector<double> sum_;
    goal_times times_;
};

}  // namespace engram
