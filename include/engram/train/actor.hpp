#pragma once
// SPDX-License-Identifier: MIT

// A vectorised actor: B environments, one batched inference a step, actions sampled from the policy.
//
// Row b draws its actions from a Philox stream of its own, numbered from `first_row`, so splitting rows over actors
// changes nothing. What a step is told of the one before: train/told.hpp.

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/graph/program.hpp>
#include <engram/kernels/optimiser.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/environment.hpp>
#include <engram/train/told.hpp>

namespace engram {

/// Makes `count` environments whose first row has the global number `first_row`.
using environment_maker = std::function<std::unique_ptr<batch_environment>(int count, int first_row)>;

/// What a model must know of a task in which it acts.
inline task_shape shape_of(const task_info& info) {
    return {{info.observation.height, info.observation.width, info.observation.channels}, info.actions};
}

/// Throws unless a model made for `made` can act in the task.
inline void require_fits(const task_shape& made, const task_info& task) {
    require(task.observation.size() == made.observation.size() && task.actions == made.actions, "task '", task.name,
            "' shows ", task.observation.size(), " numbers and takes ", task.actions,
            " actions, the model was made for ", made.observation.size(), " and ", made.actions);
}

template <class Backend>
class actor {
public:
    using real = typename Backend::real;

    actor(const traced_agent<Backend>& agent, std::shared_ptr<parameters<real>> store,
          std::unique_ptr<batch_environment> environment, std::uint64_t seed, int first_row)
        : agent_(&agent),
          environment_(std::move(environment)),
          batch_(environment_->size()),
          program_(*agent.g, store, {.steps = 1, .batch = batch_}, outputs(agent)),
          peek_(*agent.g, store, {.steps = 1, .batch = batch_, .side_effects = false}, {agent.value}),
          last_action_(size()),
          last_reward_(size()),
          reset_(size()),
          action_(size()),
          reward_(size()),
          done_(size()),
          interrupted_(size()),
          log_probability_(size()),
          value_(size()),
          episode_reward_(size()) {
        require_fits(agent.task, environment_->info());
        begin_anew();
        for (int b = 0; b < batch_; ++b)
            random_.emplace_back(seed, stream_id("action", static_cast<std::uint32_t>(first_row + b)));
        for (std::size_t r = 0; r < program_.resource_count(); ++r)
            peek_.bound_resource(r) = program_.bound_resource(r);
    }

    /// One step of every environment. What it saw and did stays readable until the next one.
    void step() {
        observe(program_);
        program_.forward();
        const auto policy = program_.output(agent_->log_policy);
        require_finite(policy);
        const auto value = program_.output(agent_->value);
        // All are told before one is waited for.
        for (int b = 0; b < batch_; ++b) {
            const auto i = static_cast<std::size_t>(b);
            const double u = static_cast<double>(random_[i].uniform());
            const int a = draw_action(policy.data + b * policy.stride, policy.width, u).action;
            action_[i] = static_cast<real>(a);
            log_probability_[i] = policy.data[b * policy.stride + a];
            value_[i] = value.data[b * value.stride];
            environment_->announce(b, a);
        }
        bool interrupted = false;
        for (int b = 0; b < batch_; ++b) {
            const auto i = static_cast<std::size_t>(b);
            const int a = static_cast<int>(action_[i]);
            const outcome out = environment_->step(b, a);
            interrupted_[i] = out.interrupted;
            interrupted |= out.interrupted;
            reward_[i] = static_cast<real>(out.reward);
            done_[i] = out.done;
            tell(i, told_after(action_[i], reward_[i], out.done));
            episode_reward_[i] += static_cast<double>(out.reward);
            if (out.done) finished_.push_back(std::exchange(episode_reward_[i], 0.0));
        }
        program_.carry();
        if (interrupted) [[unlikely]]
            value_interrupted();
    }

    /// Value [B] of what is observed now, without acting: the bootstrap of an unroll that ends here.
    const real* peek() {
        observe_to_peek();
        peek_.forward();
        return peek_.output(agent_->value).data;
    }

    /// What the next step will begin with, without acting: written to input_of(name) [B, .] of "observation",
    /// "last_action", "last_reward" and "reset"; an empty span is left out.
    template <class InputOf>
    void show(InputOf input_of) const {
        const auto pixels = input_of("observation");
        const int width = agent_->task.observation.size();
        for (int b = 0; b < batch_; ++b) environment_->observe(b, pixels.data() + std::ptrdiff_t{b} * width);
        const std::ptrdiff_t bad = first_non_finite(pixels.data(), static_cast<std::ptrdiff_t>(pixels.size()));
        require(bad < 0, "task '", environment_->info().name, "': environment ", bad / width,
                " shows a number that is not finite, pixel ", bad % width);
        const auto copy = [&](const char* name, const std::vector<real>& from) {
            const auto to = input_of(name);
            if (!to.empty()) std::copy(from.begin(), from.end(), to.begin());
        };
        copy("last_action", last_action_);
        copy("last_reward", last_reward_);
        copy("reset", reset_);
    }

    /// What the environments show now, without acting.
    std::optional<trial_event> event(int b) const { return environment_->event(b); }

    int batch() const { return batch_; }
    engram::program<Backend>& program() { return program_; }
    batch_environment& environment() { return *environment_; }
    std::span<const real> action() const { return action_; }
    std::span<const real> log_probability() const { return log_probability_; }
    /// V of what the step saw.
    std::span<const real> value() const { return value_; }
    std::span<const real> reward() const { return reward_; }
    const std::vector<char>& done() const { return done_; }
    /// Rewards of the episodes that ended since the caller last cleared it, in order of time, then row.
    std::vector<double>& finished() { return finished_; }

    // What a checkpoint keeps besides environments, states and resources.
    std::span<real> last_action() { return last_action_; }
    std::span<real> last_reward() { return last_reward_; }
    std::span<real> reset() { return reset_; }
    std::span<double> episode_reward() { return episode_reward_; }
    std::vector<philox>& random() { return random_; }
    /// Every row's next step is the first of an episode, whatever was loaded.
    void begin_anew() {
        for (std::size_t i = 0; i < size(); ++i) tell(i, {});
        std::fill(episode_reward_.begin(), episode_reward_.end(), 0.0);
    }

private:
    static std::vector<var<Backend>> outputs(const traced_agent<Backend>& a) {
        std::vector<var<Backend>> o{a.log_policy, a.value};
        o.insert(o.end(), a.records.begin(), a.records.end());
        if (a.read_weight) o.insert(o.end(), {*a.read_weight, *a.read_when});
        return o;
    }
    std::size_t size() const { return static_cast<std::size_t>(batch_); }

    void tell(std::size_t i, told<real> next) {
        last_action_[i] = next.last_action, last_reward_[i] = next.last_reward, reset_[i] = next.reset;
    }

    void observe(engram::program<Backend>& p) const {
        show([&p](const char* name) { return p.has_input(name) ? p.input(name) : std::span<real>(); });
    }

    void observe_to_peek() {
        for (const auto& name : peek_.state_names()) {
            const auto from = program_.state(name);
            std::copy(from.begin(), from.end(), peek_.state(name).begin());
        }
        observe(peek_);
    }

    /// An episode that was cut is worth more than it gave: what was seen last has a value, which the last reward gets
    /// for what is learnt. Where nothing was seen, the step teaches nothing: it gave what was expected of it.
    void value_interrupted() {
        observe_to_peek();
        const auto set = [this](const char* name, std::size_t i, real value) {
            if (peek_.has_input(name)) peek_.input(name)[i] = value;
        };
        std::vector<char> seen(size());
        for (int b = 0; b < batch_; ++b) {
            const auto i = static_cast<std::size_t>(b);
            const auto pixels = peek_.input("observation");
            if (!interrupted_[i]) continue;
            seen[i] =
                environment_->observe_last(b, pixels.data() + std::ptrdiff_t{b} * agent_->task.observation.size());
            const auto next = told_after(action_[i], reward_[i], false);
            set("last_action", i, next.last_action);
            set("last_reward", i, next.last_reward);
            set("reset", i, next.reset);
        }
        peek_.forward();
        const auto value = peek_.output(agent_->value);
        for (int b = 0; b < batch_; ++b) {
            const auto i = static_cast<std::size_t>(b);
            if (!interrupted_[i]) continue;
            reward_[i] =
                seen[i] ? reward_[i] + static_cast<real>(agent_->discount) * value.data[b * value.stride] : value_[i];
        }
    }

    // No action can be drawn from a NaN, and what it did to the memories would hide where it came from.
    void require_finite(const operand<const real>& policy) const {
        for (int b = 0; b < batch_; ++b)
            for (int a = 0; a < policy.width; ++a)
                if (!std::isfinite(policy.data[b * policy.stride + a])) [[unlikely]]
                    fail("acting stopped: the policy of environment ", b,
                         " is not finite; first non-finite value: ", program_.first_non_finite());
    }

    const traced_agent<Backend>* agent_;
    std::unique_ptr<batch_environment> environment_;
    int batch_;
    engram::program<Backend> program_, peek_;
    std::vector<real> last_action_, last_reward_, reset_, action_, reward_;
    std::vector<char> done_, interrupted_;
    std::vector<real> log_probability_, value_;
    std::vector<double> episode_reward_, finished_;
    std::vector<philox> random_;
};

}  // namespace engram
