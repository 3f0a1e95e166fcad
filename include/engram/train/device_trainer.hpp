#pragma once
// SPDX-License-Identifier: MIT

// Synchronous training that never leaves the device: act for T steps in all environments, learn once from them, repeat.
//
// An iteration is five recorded sweeps: T steps of acting, the value after the last one, forward, backward, update. The
// host starts them and waits for nothing; what it wants to know it asks for by take_window(). Episodes, actions and
// updates are those of the host's trainer (train/acting_update.hpp) with one thread at equal seeds, as far as rounding
// lets two policies be equal. One pass over what was done and one minibatch (rollout.epochs and rollout.minibatches 1).

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <engram/train/acting_update.hpp>
#include <engram/train/device_actor.hpp>
#include <engram/train/device_optimiser.hpp>

namespace engram {

/// Numbers of the updates since they were last taken.
struct device_window {
    int episodes = 0;                                    // that ended
    double episode_reward = 0;                           // their mean; 0 without any
    std::vector<std::pair<std::string, double>> losses;  // of the last unroll, by name
    double loss = 0, gradient_norm = 0;                  // of the last update
};

template <device_backend Backend, environment Environment>
class device_trainer {
public:
    using real = typename Backend::real;

    device_trainer(const traced_agent<Backend>& agent, const std::string& level, const acting_settings& s,
                   std::uint64_t seed, std::int64_t total_steps, const task_options& options = {},
                   const stimulus_set* stimuli = nullptr)
        : agent_(&agent),
          settings_(checked(s)),
          total_steps_(total_steps),
          actor_(agent, agent.store, level, s.rollout.environments, seed, 0, options, stimuli),
          peek_(*agent.g, agent.store, {.steps = 1, .batch = s.rollout.environments, .side_effects = false},
                {agent.value}),
          learner_(*agent.g, agent.store,
                   {.steps = s.rollout.unroll,
                    .batch = s.rollout.environments,
                    .gradients = true,
                    .replay = true,
                    .total_batch = s.rollout.environments}),
          optimiser_(s.optimiser, *agent.store) {
        auto& acting = actor_.program();
        for (std::size_t r = 0; r < acting.resource_count(); ++r) peek_.bound_resource(r) = acting.bound_resource(r);
        graph<Backend>& g = *agent.g;
        const auto read = [&](const std::string& name) { return place_of(learner_, g, name); };
        unroll_ = {s.rollout.unroll,
                   read("last_action"),
                   read("last_reward"),
                   read("reset"),
                   read("action"),
                   read("reward"),
                   read("continues"),
                   read("behaviour_log_probability"),
                   read("behaviour_value"),
                   read("bootstrap"),
                   {},
                   {},
                   {}};
        pair(unroll_.before, acting, learner_, "observation");
        for (const auto& r : agent.records) pair(unroll_.after, acting, learner_, g.info(r).name);
        for (const auto& name : learner_.state_names()) pair(unroll_.states, acting, learner_, name);
        for (const auto& name : peek_.state_names()) pair(shown_, acting, peek_, name);
        for (const char* name : {"observation", "last_action", "last_reward", "reset"})
            pair(shown_, acting, peek_, name);
    }

    /// One unroll and one update. Does not wait for the device.
    void iterate() {
        auto& acting = actor_.program().executor();
        actor_.unroll(unroll_);
        acted_.record(acting);
        acted_.await(peek_.executor());
        peeking_.run(1, [&] {
            for (const auto& [from, into] : shown_) copy_rows(from, into);
            peeking_.forward();
            copy_rows(peek_.on_device(agent_->value), unroll_.bootstrap);
        });
        peeked_.record(peek_.executor());
        peeked_.await(learner_.executor());
        learner_.forward();
        learner_.backward();
        steps_ += std::int64_t{settings_.rollout.unroll} * settings_.rollout.environments;
        optimiser_.update(learner_, progress());
    }

    std::int64_t steps() const { return steps_; }
    std::int64_t updates() const { return optimiser_.updates(); }
    double progress() const {
        return total_steps_ > 0 ? static_cast<double>(steps_) / static_cast<double>(total_steps_) : 0;
    }

    /// Waits for the device. Throws when the last update's gradient was not finite: it changed no weight.
    device_window take_window() {
        device_window window;
        int finished = 0;
        double reward = 0;
        for (const auto& s : actor_.fetch()) {
            finished += s.finished;
            reward += s.finished_reward;
        }
        peek_.executor().wait();
        window.episodes = finished - finished_;
        window.episode_reward = window.episodes > 0 ? (reward - finished_reward_) / window.episodes : 0;
        finished_ = finished;
        finished_reward_ = reward;
        window.losses = learner_.losses();
        window.loss = learner_.loss();
        window.gradient_norm = optimiser_.norm(learner_.executor());
        for (const auto& [what, number] :
             {std::pair{"loss", window.loss}, std::pair{"gradient norm", window.gradient_norm}})
            if (!std::isfinite(number)) refuse_update<Backend>(steps_, what, number, {&learner_});
        return window;
    }
    /// Brings the weights into the agent's store.
    void fetch_weights() { learner_.device_weights_in_use().fetch(learner_.executor(), *agent_->store); }

    device_actor<Backend, Environment>& behaviour() { return actor_; }
    program<Backend>& learner() { return learner_; }

private:
    using rows_pair = std::pair<operand<real>, operand<real>>;

    static const acting_settings& checked(const acting_settings& s) {
        s.rollout.check();
        require(s.rollout.epochs == 1 && s.rollout.minibatches == 1, "device_trainer: rollout.epochs is ",
                s.rollout.epochs, " and rollout.minibatches is ", s.rollout.minibatches,
                "; training that stays on a device makes one pass over one minibatch");
        return s;
    }
    /// From where the actor has it to where another plan reads it, where both do.
    void pair(std::vector<rows_pair>& to, program<Backend>& from, program<Backend>& into, const std::string& name) {
        const operand<real> a = place_of(from, *agent_->g, name), b = place_of(into, *agent_->g, name);
        if (a && b) to.emplace_back(a, b);
    }
    void copy_rows(const operand<real>& from, const operand<real>& into) {
        send_rows(peek_.executor(), from, into, settings_.rollout.environments, false);
    }

    const traced_agent<Backend>* agent_;
    acting_settings settings_;
    std::int64_t total_steps_, steps_ = 0;
    device_actor<Backend, Environment> actor_;
    program<Backend> peek_, learner_;
    recorded_steps<Backend> peeking_{peek_};
    device_optimiser<Backend> optimiser_;
    device_unroll<real> unroll_;
    std::vector<rows_pair> shown_;  // to the plan that looks at the value after the last step
    typename executor<Backend>::fence acted_, peeked_;
    int finished_ = 0;
    double finished_reward_ = 0;
};

}  // namespace engram
