#pragma once
// SPDX-License-Identifier: MIT

// An actor whose environments live on the device: inference, sampling, stepping and rendering never leave it.
//
// Row b draws its actions and its episodes from the streams of row first_row + b of the host's actor (train/actor.hpp),
// by the same arithmetic, so at equal logits both play the same episodes. What a step saw and did stays in the device's
// memory; fetch() copies it to the host. unroll() is T steps in one recorded sweep, written down where a learner reads
// them (train/rows_on_device.hpp).

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/flag.hpp>
#include <engram/device/recorded_steps.hpp>
#include <engram/model/agent.hpp>
#include <engram/train/device_environments.hpp>

namespace engram {

/// Where a learner reads T steps; a null operand is not read.
template <class Real>
struct device_unroll {
    int steps = 0;
    operand<Real> last_action, last_reward, reset, action, reward, continues, log_probability, value;
    operand<Real> bootstrap;                                      // [B, 1]: the value after the last step
    double* ended = nullptr;                                      // [T, B]: rewards of ended episodes, else NaN
    int batch = 0;                                                // B
    std::vector<std::pair<operand<Real>, operand<Real>>> before;  // from the actor: what a step begins with ...
    std::vector<std::pair<operand<Real>, operand<Real>>> after;   // ... what it leaves (stored rows of a memory)
    std::vector<std::pair<operand<Real>, operand<Real>>> states;  // ... and what the first step enters with

    device_record<Real> at(int t) const {
        return {{{last_action, t}, {last_reward, t}, {reset, t}},
                {action, t},
                {reward, t},
                {continues, t},
                {log_probability, t},
                {value, t},
                ended ? ended + std::ptrdiff_t{t} * batch : nullptr};
    }
};

template <device_backend Backend>
class device_actor {
public:
    using real = typename Backend::real;
    using variable = var<Backend>;

    device_actor(const traced_agent<Backend>& agent, std::shared_ptr<parameters<real>> store,
                 const resident_maker<Backend>& make, int batch, std::uint64_t seed, int first_row)
        : batch_(batch),
          program_(*agent.g, std::move(store), {.steps = 1, .batch = batch}, outputs(agent)),
          environments_(make(program_.executor(), batch, first_row)),
          random_(size()),
          steps_(size()),
          log_policy_(program_.on_device(agent.log_policy), 0),
          value_(program_.on_device(agent.value), 0),
          observation_(place_of(program_, *agent.g, "observation"), 0),
          inputs_{{place_of(program_, *agent.g, "last_action"), 0},
                  {place_of(program_, *agent.g, "last_reward"), 0},
                  {place_of(program_, *agent.g, "reset"), 0}},
          alarm_(program_.executor().alarm("acting stopped: a policy is not finite")),
          last_action_(size(), told<real>{}.last_action),
          last_reward_(size(), told<real>{}.last_reward),
          reset_(size(), told<real>{}.reset),
          episode_reward_(size(), 0.0) {
        require_fits(agent.task, environments_->info());
        for (int b = 0; b < batch; ++b)
            streams_.emplace_back(seed, stream_id("action", static_cast<std::uint32_t>(first_row + b)));
        tell();
    }

    /// One step of every environment. Does not wait for the device.
    void step() {
        program_.forward();
        act({});
        program_.carry();
    }
    /// T steps of every environment in one recorded sweep. Does not wait either.
    void unroll(const device_unroll<real>& to) {
        auto& on = program_.executor();
        steps_of_unroll_.run(to.steps, [&] {
            for (const auto& [from, into] : to.states) send_rows(on, from, into, batch_, false);
            for (int t = 0; t < to.steps; ++t) {
                for (const auto& [from, into] : to.before) copy_rows(from, into, t);
                steps_of_unroll_.forward();
                for (const auto& [from, into] : to.after) copy_rows(from, into, t);
                act(to.at(t));
                program_.carry();
            }
        });
    }
    /// What the last step saw and did.
    std::vector<device_step<real>> fetch() {
        program_.executor().wait();
        std::vector<device_step<real>> steps(size());
        program_.executor().download_bytes(steps_.data(), steps.data(), sizeof(device_step<real>) * steps.size());
        return steps;
    }
    engram::program<Backend>& program() { return program_; }
    resident_environments<Backend>& environments() { return *environments_; }

    /// Every block of a checkpoint but the environments, by the names and with the bytes of the host's actor. After
    /// they were written, tell().
    template <class Body>
    void each_part(const std::string& prefix, Body body) {
        const auto steps = fetch();
        for (std::size_t b = 0; b < steps.size(); ++b) {
            const device_step<real>& s = steps[b];
            const auto next = told_after(s.action, s.reward, s.done != 0);
            last_action_[b] = next.last_action, last_reward_[b] = next.last_reward, reset_[b] = next.reset;
            episode_reward_[b] = s.done ? 0 : s.episode_reward;
        }
        program_.executor().download_bytes(random_.data(), streams_.data(), sizeof(philox) * streams_.size());
        each_actor_part(program_, prefix, std::span(last_action_), std::span(last_reward_), std::span(reset_),
                        std::span(episode_reward_), std::span(streams_), body);
    }
    /// The device goes on from what each_part() and the environments were given.
    void tell() {
        auto& on = program_.executor();
        std::vector<device_step<real>> steps(size());
        for (std::size_t b = 0; b < steps.size(); ++b)
            steps[b] = {last_action_[b], 0, 0, last_reward_[b], episode_reward_[b], is_set(reset_[b])};
        on.upload_bytes(steps.data(), steps_.data(), sizeof(device_step<real>) * steps.size());
        on.upload_bytes(streams_.data(), random_.data(), sizeof(philox) * streams_.size());
        for (const auto& [to, from] :
             {std::pair{&inputs_.last_action, &last_action_}, std::pair{&inputs_.last_reward, &last_reward_},
              std::pair{&inputs_.reset, &reset_}})
            if (to->wanted()) on.upload(from->data(), to->data, batch_);
        environments_->observe(observation_);
        on.wait();
    }

private:
    template <class T>
    using array = typename executor<Backend>::template array<T>;

    static std::vector<variable> outputs(const traced_agent<Backend>& a) {
        std::vector<variable> o{a.log_policy, a.value};
        o.insert(o.end(), a.records.begin(), a.records.end());
        return o;
    }
    std::size_t size() const { return static_cast<std::size_t>(batch_); }
    void copy_rows(const operand<real>& from, operand<real> into, int t) {
        into.data = into.at(t);
        send_rows(program_.executor(), from, into, batch_, false);
    }
    void act(const device_record<real>& record) {
        environments_->act({random_.data(), steps_.data(), log_policy_, value_, inputs_, record, alarm_});
        environments_->observe(observation_);
    }

    int batch_;
    engram::program<Backend> program_;
    recorded_steps<Backend> steps_of_unroll_{program_};
    std::unique_ptr<resident_environments<Backend>> environments_;
    array<philox> random_;
    array<device_step<real>> steps_;
    step_rows<real> log_policy_, value_, observation_;
    device_inputs<real> inputs_;
    int* alarm_;
    // What a checkpoint keeps, on the host.
    std::vector<real> last_action_, last_reward_, reset_;
    std::vector<double> episode_reward_;
    std::vector<philox> streams_;
};

}  // namespace engram
