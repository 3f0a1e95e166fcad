#pragma once
// SPDX-License-Identifier: MIT

// A replay: the last transitions of B environments, drawn uniformly (facts 3.8: up to 10^6 of them).
//
// An observed number is kept as one byte, in 254 equal steps of the task's range, so that both ends and the middle come
// back exactly and nothing else is off by more than 1/508 of the range; the observation after a step is the next one
// of the same row, kept once. A transition costs F + 7 bytes. It is (o, a_before, a, r, whether it ended the episode,
// o'); it can be drawn when the step after it is there. Draws depend on the Philox stream that is given alone, so a
// checkpoint of the replay and of a counter resumes bit for bit.

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/task/environment.hpp>

namespace engram {

/// Transitions in the layout of a learner's inputs: observations [n, F], all others [n]. `last_action` is -1 at an
/// episode's start.
template <class Real>
struct transition_batch {
    std::span<Real> observation, last_action, action, reward, continues, next_observation, next_last_action;
};

template <class Real>
class replay {
public:
    replay(const task_info& task, int rows, std::int64_t capacity)
        : task_(task.name),
          width_(task.observation.size()),
          actions_(task.actions),
          rows_(rows),
          // The last step has no step after it: one more than can be drawn.
          steps_(capacity / std::max(rows, 1) + 1),
          lowest_(static_cast<Real>(task.lowest)),
          highest_(static_cast<Real>(task.highest)),
          step_((highest_ - lowest_) / levels) {
        require(rows > 0, "replay: expected at least one environment, got ", rows);
        require(capacity >= rows, "replay: a capacity of ", capacity,
                " transitions, expected at least one for each of ", rows, " environments");
        require(actions_ < none, "replay: ", actions_, " actions, expected fewer than ", none);
        require(task.highest > task.lowest, "replay: the range of what task '", task.name, "' shows is empty");
        const auto all = static_cast<std::size_t>(steps_ * rows_);
        observation_.resize(all * static_cast<std::size_t>(width_));
        last_action_.resize(all);
        action_.resize(all);
        done_.resize(all);
        reward_.resize(all);
    }

    /// One step of every environment: what it showed [B, F], the action before, the action [B] and what that gave.
    void push(std::span<const Real> observation, std::span<const Real> last_action, std::span<const Real> action,
              std::span<const Real> reward, std::span<const char> done) {
        const std::size_t at = static_cast<std::size_t>(pushed_ % steps_ * rows_);
        std::uint8_t* codes = observation_.data() + at * static_cast<std::size_t>(width_);
        for (std::size_t i = 0; i < observation.size(); ++i) codes[i] = encode(observation[i]);
        for (std::size_t b = 0; b < static_cast<std::size_t>(rows_); ++b) {
            last_action_[at + b] = last_action[b] < 0 ? none : static_cast<std::uint8_t>(last_action[b]);
            action_[at + b] = static_cast<std::uint8_t>(action[b]);
            reward_[at + b] = reward[b];
            done_[at + b] = done[b] != 0;
        }
        ++pushed_;
    }

    /// Transitions that can be drawn.
    std::int64_t size() const { return std::max<std::int64_t>(0, std::min(pushed_, steps_) - 1) * rows_; }
    /// Steps that were pushed, of every environment.
    std::int64_t pushed() const { return pushed_; }
    std::int64_t bytes() const { return steps_ * rows_ * (width_ + 3 + static_cast<std::int64_t>(sizeof(Real))); }

    /// What is there step by step: steps oldest() ... pushed() - 1 of every row, at most steps() of them.
    struct moment {
        int last_action, action;  // last_action is -1 at an episode's start
        Real reward;
        bool done;
    };
    int rows() const { return static_cast<int>(rows_); }
    int width() const { return static_cast<int>(width_); }
    std::int64_t steps() const { return steps_; }
    std::int64_t oldest() const { return pushed_ > steps_ ? pushed_ - steps_ : 0; }
    moment at(std::int64_t step, int row) const {
        const auto i = static_cast<std::size_t>(step % steps_ * rows_ + row);
        return {last_action_[i] == none ? -1 : last_action_[i], action_[i], reward_[i], done_[i] != 0};
    }
    void observe(std::int64_t step, int row, float* to) const {
        const std::uint8_t* codes = observation_.data() + (step % steps_ * rows_ + row) * width_;
        for (std::int64_t f = 0; f < width_; ++f) to[f] = static_cast<float>(decode(codes[f]));
    }

    /// Fills `to` with transitions, each drawn uniformly from all that are there.
    void draw(philox& random, const transition_batch<Real>& to) const {
        require(size() > 0, "replay: nothing to draw from yet; two steps of every environment are needed");
        const auto all = static_cast<std::uint64_t>(size());
        const auto F = static_cast<std::size_t>(width_);
        for (std::size_t i = 0; i < to.action.size(); ++i) {
            const std::uint64_t high = random.next();
            const auto chosen = static_cast<std::int64_t>((high << 32 | random.next()) % all);
            const std::int64_t step = oldest() + chosen / rows_, row = chosen % rows_;
            const auto now = static_cast<std::size_t>(step % steps_ * rows_ + row),
                       next = static_cast<std::size_t>((step + 1) % steps_ * rows_ + row);
            for (std::size_t f = 0; f < F; ++f) {
                to.observation[i * F + f] = decode(observation_[now * F + f]);
                to.next_observation[i * F + f] = decode(observation_[next * F + f]);
            }
            to.last_action[i] = number(last_action_[now]);
            to.next_last_action[i] = number(last_action_[next]);
            to.action[i] = number(action_[now]);
            to.reward[i] = reward_[now];
            to.continues[i] = done_[now] ? Real(0) : Real(1);
        }
    }

    /// Adds what is there to a checkpoint.
    void save(safetensors& file, const std::string& prefix) const {
        const auto used = static_cast<std::size_t>(std::min(pushed_, steps_) * rows_);
        const auto shape = std::vector<std::int64_t>{std::min(pushed_, steps_), rows_};
        file.add(prefix + ".steps", {2}, std::vector<std::int64_t>{pushed_, steps_});
        auto wide = shape;
        wide.push_back(width_);
        file.add<std::uint8_t>(prefix + ".observation", wide,
                               std::span(observation_).first(used * static_cast<std::size_t>(width_)));
        file.add<std::uint8_t>(prefix + ".last_action", shape, std::span(last_action_).first(used));
        file.add<std::uint8_t>(prefix + ".action", shape, std::span(action_).first(used));
        file.add<std::uint8_t>(prefix + ".done", shape, std::span(done_).first(used));
        file.add<Real>(prefix + ".reward", shape, std::span<const Real>(reward_).first(used));
    }

    /// Restores what save() wrote; throws before anything changes when it belongs to another task or size.
    void load(const safetensors& file, const std::string& prefix) {
        const auto steps = file.values<std::int64_t>(prefix + ".steps", {2});
        require(steps[1] == steps_ && steps[0] >= 0, file.source(), ": a replay of ", steps[1], " steps, this run has ",
                steps_, " of each environment");
        const std::int64_t used = std::min(steps[0], steps_);
        const std::vector<std::int64_t> shape{used, rows_};
        const auto observation = file.values<std::uint8_t>(prefix + ".observation", {used, rows_, width_});
        const auto last_action = file.values<std::uint8_t>(prefix + ".last_action", shape);
        const auto action = file.values<std::uint8_t>(prefix + ".action", shape);
        const auto done = file.values<std::uint8_t>(prefix + ".done", shape);
        const auto reward = file.values<Real>(prefix + ".reward", shape);
        for (std::size_t i = 0; i < action.size(); ++i)
            require(action[i] < actions_ && (last_action[i] < actions_ || last_action[i] == none), file.source(),
                    ": the replay holds an action that task '", task_, "' does not have");
        std::copy(observation.begin(), observation.end(), observation_.begin());
        std::copy(last_action.begin(), last_action.end(), last_action_.begin());
        std::copy(action.begin(), action.end(), action_.begin());
        std::copy(done.begin(), done.end(), done_.begin());
        std::copy(reward.begin(), reward.end(), reward_.begin());
        pushed_ = steps[0];
    }

private:
    static constexpr int levels = 254, none = 255;

    std::uint8_t encode(Real x) const {
        const Real code = std::round((x - lowest_) / step_);
        return static_cast<std::uint8_t>(code > 0 ? (code < levels ? code : Real(levels)) : Real(0));
    }
    /// Exact at the ends and in the middle, whether or not the compiler fuses the sum.
    Real decode(std::uint8_t code) const {
        return (lowest_ * static_cast<Real>(levels - code) + highest_ * static_cast<Real>(code)) / levels;
    }
    static Real number(std::uint8_t index) { return index == none ? Real(-1) : static_cast<Real>(index); }

    std::string task_;
    std::int64_t width_;
    int actions_;
    std::int64_t rows_, steps_;
    Real lowest_, highest_, step_;
    std::vector<std::uint8_t> observation_, last_action_, action_, done_;
    std::vector<Real> reward_;
    std::int64_t pushed_ = 0;
};

}  // namespace engram
