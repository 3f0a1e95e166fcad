#pragma once
// SPDX-License-Identifier: MIT

// Acting that never leaves a device, for an Update: environments, policy and records lie where the learner reads them.
//
// T steps are one recorded sweep of the actor's program, the value after the last one is another; the host starts them
// and waits for nothing. Episodes and actions are those of rows on the host (train/acting_rows.hpp) at equal seeds, as
// far as rounding lets two policies be equal, and so are checkpoints: a run goes on with either.

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/acting_rows.hpp>
#include <engram/train/device_actor.hpp>

namespace engram {

template <device_backend Backend>
class rows_on_device final : public acting_rows<Backend> {
public:
    using real = typename Backend::real;

    rows_on_device(const traced_agent<Backend>& agent, program<Backend>& learner, const resident_maker<Backend>& make,
                   std::uint64_t seed, int count, int first_row)
        : agent_(&agent),
          learner_(&learner),
          batch_(count),
          actor_(agent, agent.store, make, count, seed, first_row),
          peek_(*agent.g, agent.store, {.steps = 1, .batch = count, .side_effects = false}, {agent.value}) {
        auto& acting = actor_.program();
        for (std::size_t r = 0; r < acting.resource_count(); ++r) peek_.bound_resource(r) = acting.bound_resource(r);
        const auto read = [&](const char* name) { return place_of(learner, *agent.g, name); };
        unroll_.last_action = read("last_action");
        unroll_.last_reward = read("last_reward");
        unroll_.reset = read("reset");
        unroll_.action = read("action");
        unroll_.reward = read("reward");
        unroll_.continues = read("continues");
        unroll_.log_probability = read("behaviour_log_probability");
        unroll_.value = read("behaviour_value");
        unroll_.bootstrap = read("bootstrap");
        unroll_.steps = learner.options().steps;
        unroll_.batch = count;
        ended_ = array<double>(static_cast<std::size_t>(unroll_.steps) * static_cast<std::size_t>(count));
        unroll_.ended = ended_.data();
        pair(unroll_.before, learner, "observation");
        for (const auto& r : agent.records) pair(unroll_.after, actor_.program().on_device(r), learner.on_device(r));
        for (const auto& name : learner.state_names()) pair(unroll_.states, learner, name);
        for (const auto& name : peek_.state_names()) pair(shown_, peek_, name);
        for (const char* name : {"observation", "last_action", "last_reward", "reset"}) pair(shown_, peek_, name);
    }
    rows_on_device(const rows_on_device&) = delete;
    rows_on_device& operator=(const rows_on_device&) = delete;

    void act() override {
        actor_.unroll(unroll_);
        acted_.record(actor_.program().executor());
        acted_.await(peek_.executor());
        peeking_.run(1, [&] {
            for (const auto& [from, into] : shown_) copy_rows(from, into);
            peeking_.forward();
            copy_rows(peek_.on_device(agent_->value), unroll_.bootstrap);
        });
        peeked_.record(peek_.executor());
        peeked_.await(learner_->executor());
        acts_ = true;
    }
    program<Backend>& acting() override { return actor_.program(); }
    environment_rows& environments() override { return actor_.environments(); }
    std::vector<double> take_finished() override {
        std::vector<double> rewards;
        if (!std::exchange(acts_, false)) return rewards;
        std::vector<double> ended(ended_.size());
        auto& on = actor_.program().executor();
        on.wait();
        on.download_bytes(ended_.data(), ended.data(), sizeof(double) * ended.size());
        for (const double reward : ended)
            if (!std::isnan(reward)) rewards.push_back(reward);
        return rewards;
    }
    void each_part(const std::string& prefix, const typename acting_rows<Backend>::part_body& body) override {
        actor_.each_part(prefix, body);
    }
    void loaded() override {
        actor_.tell();
        acts_ = false;
    }

private:
    template <class T>
    using array = typename executor<Backend>::template array<T>;
    using rows_pair = std::pair<operand<real>, operand<real>>;

    /// From where the actor has it to where another plan reads it, where both do.
    void pair(std::vector<rows_pair>& to, program<Backend>& into, const std::string& name) {
        pair(to, place_of(actor_.program(), *agent_->g, name), place_of(into, *agent_->g, name));
    }
    static void pair(std::vector<rows_pair>& to, const operand<real>& from, const operand<real>& into) {
        if (from && into) to.emplace_back(from, into);
    }
    void copy_rows(const operand<real>& from, const operand<real>& into) {
        send_rows(peek_.executor(), from, into, batch_, false);
    }

    const traced_agent<Backend>* agent_;
    program<Backend>* learner_;
    int batch_;
    device_actor<Backend> actor_;
    program<Backend> peek_;
    recorded_steps<Backend> peeking_{peek_};
    device_unroll<real> unroll_;
    array<double> ended_;           // [T, B] of the last unroll
    std::vector<rows_pair> shown_;  // to the plan that looks at the value after the last step
    typename executor<Backend>::fence acted_, peeked_;
    bool acts_ = false;  // an unroll whose episodes nobody has asked for
};

/// The maker of rows on a device; the agent must outlive it and what it makes.
template <device_backend Backend>
rows_maker<Backend> on_device(const traced_agent<Backend>& agent, resident_maker<Backend> make, std::uint64_t seed) {
    return [&agent, make = std::move(make), seed](program<Backend>& learner, int count, int first_row) {
        return std::make_unique<rows_on_device<Backend>>(agent, learner, make, seed, count, first_row);
    };
}

}  // namespace engram
