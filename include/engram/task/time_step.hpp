#pragma once
// SPDX-License-Identifier: MIT

// One environment of any task, in the terms of dm_env (Muldal et al. 2019): reset() and step(action) give a time step.
//
//   first   the observation that an episode begins with; no reward, no discount
//   mid     reward of the action, discount 1
//   last    reward of the action, discount 0: nothing follows
//
// After `last` comes reset(), and before the first step too. dm_env begins anew by itself where that is forgotten; here
// it is an error with a sentence (ours). An environment need not be observable after its last step, so a `last` step
// shows once more what was seen before its action (ours). Episodes are those of a `batch_environment` of one row with
// the same seed and stream, whose rows begin anew by themselves.
//
//     single_environment task("t_maze", "train", 1);
//     for (time_step now = task.reset(); !now.last();) now = task.step(task.oracle());

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/registry.hpp"

namespace engram {

enum class step_type { first, mid, last };

struct time_step {
    step_type type = step_type::first;
    std::optional<float> reward{}, discount{};
    std::vector<float> observation{};  // [height * width * channels]

    bool first() const { return type == step_type::first; }
    bool mid() const { return type == step_type::mid; }
    bool last() const { return type == step_type::last; }
};

/// Floats of a shape, each between the two limits.
struct observation_specification {
    std::string name = "observation";
    std::vector<int> shape{};  // [height, width, channels]
    float minimum = 0, maximum = 1;
};

/// One integer between the two limits, both included.
struct action_specification {
    std::string name = "action";
    std::vector<int> shape{};  // empty: a scalar
    int minimum = 0, maximum = 0, number = 0;
};

class single_environment {
public:
    /// Without a level the one that is trained on.
    explicit single_environment(const std::string& task, const std::string& level = "", std::uint64_t seed = 0,
                                const task_options& options = {}, std::shared_ptr<const stimulus_set> stimuli = nullptr,
                                std::uint32_t stream = 0)
        : level_(level.empty() ? describe_task(task, options).levels.front() : level),
          row_(make_environment(task, level_, 1, seed, stream, options, std::move(stimuli))) {}

    const task_info& info() const { return row_->info(); }
    const std::string& level() const { return level_; }

    observation_specification observation_spec() const {
        const auto& shape = info().observation;
        return {"observation", {shape.height, shape.width, shape.channels}, info().lowest, info().highest};
    }
    action_specification action_spec() const { return {"action", {}, 0, info().actions - 1, info().actions}; }

    time_step reset() {
        if (state_ == playing) row_->reset(0, 1);
        state_ = playing;
        seen_.resize(static_cast<std::size_t>(info().observation.size()));
        row_->observe(0, seen_.data());
        return {step_type::first, {}, {}, seen_};
    }

    time_step step(int action) {
        require(state_ != untouched, info().name, ": a step before the first reset()");
        require(state_ != finished, info().name, ": a step after the last one of an episode; reset() begins another");
        const outcome result = row_->step(0, action);
        if (result.done) {
            state_ = finished;
            return {step_type::last, result.reward, 0.0f, seen_};
        }
        row_->observe(0, seen_.data());
        return {step_type::mid, result.reward, 1.0f, seen_};
    }

    /// A good action, chosen with knowledge of the state, and what the current observation shows.
    int oracle() const {
        require(state_ == playing, info().name, ": no episode is going on; reset() begins one");
        return row_->oracle(0);
    }
    std::optional<trial_event> event() const {
        require(state_ == playing, info().name, ": no episode is going on; reset() begins one");
        return row_->event(0);
    }

private:
    enum { untouched, playing, finished } state_ = untouched;
    std::string level_;
    std::unique_ptr<batch_environment> row_;
    std::vector<float> seen_;
};

}  // namespace engram
