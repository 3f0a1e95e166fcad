#pragma once
// SPDX-License-Identifier: MIT

// Episodes of an environment under uniformly random actions, as sequences for whoever learns to predict their returns
// (facts 3.7: what MemUP's memory is trained on). Episode `index` of a seed is a pure function of both.
//
//   observation [o_t, onehot a_{t-1}, onehot a_t]   O + 2 A columns; no action before the first step: zeros;
//               and r_{t-1} as it was paid          where it is asked for, one column more
//   target      y_t = sum_j discount^j r_{t+j}      to the end of the episode
//
// A sequence is played when it is drawn, and once more when its length is asked for.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/sequence.hpp"

namespace engram {

/// One environment of a level whose chance comes from that stream of that seed.
using single_maker = std::function<std::unique_ptr<batch_environment>(const std::string& level, std::uint64_t seed,
                                                                      std::uint32_t stream)>;

class played_episodes final : public sequence_source {
public:
    played_episodes(const task_info& task, single_maker make, double discount, bool with_reward = false)
        : make_(std::move(make)),
          seen_(task.observation.size()),
          actions_(task.actions),
          discount_(discount),
          with_reward_(with_reward) {
        require(discount >= 0 && discount <= 1, "random play: expected a discount in 0..1, got ", discount);
        info_.name = task.name;
        info_.steps = task.level(task.levels.front()).longest_episode;
        info_.observation = {1, 1, seen_ + 2 * actions_ + (with_reward ? 1 : 0)};
        info_.targets = 1;
        info_.numbers = true;
        info_.levels = {task.levels.front()};
    }

    const sequence_info& info() const override { return info_; }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        const int F = info_.observation.size();
        std::vector<float> rewards;
        int last = -1;
        const auto row = [&](int t) { return to.observation + std::ptrdiff_t{t} * to.rows * F; };
        play(
            level, seed, index,
            [&](const batch_environment& env, int action) {
                if (!to.observation) return;
                float* o = row(static_cast<int>(rewards.size()));
                env.observe(0, o);
                std::fill_n(o + seen_, 2 * actions_, 0.0f);
                if (last >= 0) o[seen_ + last] = 1;
                o[seen_ + actions_ + action] = 1;
                if (with_reward_) o[seen_ + 2 * actions_] = rewards.empty() ? 0.0f : rewards.back();
                last = action;
            },
            [&](float reward) { rewards.push_back(reward); });
        const int n = static_cast<int>(rewards.size());
        double sum = 0;
        for (int t = info_.steps - 1; t >= 0; --t) {
            const bool there = t < n;
            if (there) sum = static_cast<double>(rewards[static_cast<std::size_t>(t)]) + discount_ * sum;
            if (!there && to.observation) std::fill_n(row(t), F, 0.0f);
            if (to.target) to.target[std::ptrdiff_t{t} * to.rows] = there ? static_cast<float>(sum) : 0.0f;
            if (to.weight) to.weight[std::ptrdiff_t{t} * to.rows] = there ? 1.0f : 0.0f;
            if (to.origin) to.origin[t] = -1;
            if (to.label) to.label[t] = -1;
        }
    }

    int length(const std::string& level, std::uint64_t seed, std::uint64_t index) const override {
        int steps = 0;
        play(
            level, seed, index, [](const batch_environment&, int) {}, [&](float) { ++steps; });
        return steps;
    }

private:
    template <class Look, class Note>
    void play(const std::string& level, std::uint64_t seed, std::uint64_t index, Look look, Note note) const {
        // Other episodes than those that agents of the same seed act in.
        philox random(seed, stream_id("random play", 0));
        const std::uint64_t high = random.next(), own = high << 32 | random.next();
        const auto stream = static_cast<std::uint32_t>(index);
        const auto env = make_(level, own, stream);
        philox actions(own, stream_id("random action", stream));
        int steps = 0;
        for (bool done = false; !done; ++steps) {
            require(steps < info_.steps, info_.name, ": an episode of more than ", info_.steps,
                    " steps, which the task says is its longest");
            const int action = actions.below(actions_);
            look(*env, action);
            const outcome got = env->step(0, action);
            note(got.reward);
            done = got.done;
        }
    }

    single_maker make_;
    sequence_info info_;
    int seen_, actions_;
    double discount_;
    bool with_reward_;
};

}  // namespace engram
