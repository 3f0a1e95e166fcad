#pragma once
// SPDX-License-Identifier: MIT

// A trained agent inside a program of one's own: its weights from a run folder, one observation in, the logarithms of
// its action probabilities out. The headers alone are needed, not the program that trained it.

#include <span>
#include <string>

#include <engram/catalogue.hpp>
#include <engram/graph/program.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/trained_run.hpp>

namespace acting {

using engram::cpu;

// [load]
using model = engram::catalogue::lstm_mem;  // the type that was trained

/// The agent of a run, for a task that shows `shape`, with what it has learnt.
inline engram::traced_agent<cpu<float>> load(const engram::trained_run& run, const engram::task_shape& shape) {
    auto agent = model::trace<cpu<float>>(run.settings_of<model::settings>(), shape, 1);
    engram::load_weights(run.checkpoint(), *agent.store);
    return agent;
}
// [load]

// [step]
/// One stream of observations. What the agent remembers of it lives in its program.
class stream {
public:
    explicit stream(const engram::traced_agent<cpu<float>>& agent)
        : log_policy_(agent.log_policy),
          program_(*agent.g, agent.store, {.steps = 1, .batch = 1}, {agent.log_policy}),
          last_action_(input("last_action")),
          last_reward_(input("last_reward")),
          reset_(input("reset")) {
        begin();
    }

    /// The next observation is the first of an episode: nothing that was seen before counts.
    void begin() { tell(-1, 0, 1); }
    /// Where the next observation goes, height x width x channels numbers.
    std::span<float> observation() { return program_.input("observation"); }
    /// log p of each action, given the observations so far.
    std::span<const float> decide() {
        program_.forward();
        program_.carry();
        const auto out = program_.output(log_policy_);
        return {out.data, static_cast<std::size_t>(out.width)};
    }
    /// What was done then, and what it earned.
    void done(int action, float reward) { tell(static_cast<float>(action), reward, 0); }

private:
    // An agent that does not look at one of its inputs has no place for it.
    std::span<float> input(const char* name) {
        return program_.has_input(name) ? program_.input(name) : std::span<float>{};
    }
    void tell(float action, float reward, float reset) {
        for (float& x : last_action_) x = action;
        for (float& x : last_reward_) x = reward;
        for (float& x : reset_) x = reset;
    }

    engram::var<cpu<float>> log_policy_;
    engram::program<cpu<float>> program_;
    std::span<float> last_action_, last_reward_, reset_;
};
// [step]

}  // namespace acting
