#pragma once
// SPDX-License-Identifier: MIT

// An actor whose environments live on the device: inference, sampling, stepping and rendering never leave it.
//
// Row b draws its actions and its episodes from the streams of row first_row + b of the host's actor (train/actor.hpp),
// by the same arithmetic, so at equal logits both play the same episodes. What a step saw and did stays in the device's
// memory; fetch() copies it to the host. unroll() is T steps in one recorded sweep, written down where a learner reads
// them (train/device_trainer.hpp).

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <engram/device/recorded_steps.hpp>
#include <engram/model/agent.hpp>
#include <engram/train/device_environments.hpp>

namespace engram {

/// What the steps of one environment did, in the host actor's terms.
template <class Real>
struct device_step {
    Real action, log_probability, value, reward;
    double episode_reward;  // so far, this step's reward included
    int done;
    int finished;            // episodes that have ended so far
    double finished_reward;  // and the sum of their rewards
};

/// What an environment's step fills for the next one.
template <class Real>
struct device_inputs {
    step_rows<Real> last_action, last_reward, reset;
};

/// Where a learner reads what one step began with and did, [B, 1] each; what it does not read is not wanted.
template <class Real>
struct device_record {
    device_inputs<Real> began;
    step_rows<Real> action, reward, continues, log_probability, value;
};

/// Where a learner reads T steps; a null operand is not read.
template <class Real>
struct device_unroll {
    int steps = 0;
    operand<Real> last_action, last_reward, reset, action, reward, continues, log_probability, value;
    operand<Real> bootstrap;                                      // [B, 1]: the value after the last step
    std::vector<std::pair<operand<Real>, operand<Real>>> before;  // from the actor: what a step begins with ...
    std::vector<std::pair<operand<Real>, operand<Real>>> after;   // ... what it leaves (stored rows of a memory)
    std::vector<std::pair<operand<Real>, operand<Real>>> states;  // ... and what the first step enters with

    device_record<Real> at(int t) const {
        return {{{last_action, t}, {last_reward, t}, {reset, t}},
                {action, t},
                {reward, t},
                {continues, t},
                {log_probability, t},
                {value, t}};
    }
};

/// Samples row b's action by its policy, takes it, and says what the next step is told about it.
template <class Real, class Environment>
struct act_row {
    Environment* rows;
    philox* random;
    device_step<Real>* steps;
    step_rows<Real> log_policy, value;
    device_inputs<Real> to;
    device_record<Real> record;
    int* alarm;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        const Real* const policy = log_policy.row(b);
        const double u = static_cast<double>(random[b].uniform());
        double sum = 0;
        int a = 0;
        for (; a < log_policy.width - 1; ++a) {
            sum += std::exp(static_cast<double>(policy[a]));
            if (!(sum - sum == 0)) *alarm = 1;
            if (u < sum) break;
        }
        const outcome out = rows[b].step(a);
        if (out.done) rows[b].reset();
        device_step<Real>& s = steps[b];
        const double before = s.done ? 0 : s.episode_reward, total = before + static_cast<double>(out.reward);
        const Real reward = static_cast<Real>(out.reward);
        s = {static_cast<Real>(a),
             policy[a],
             *value.row(b),
             reward,
             total,
             out.done,
             s.finished + out.done,
             out.done ? s.finished_reward + total : s.finished_reward};
        put(record.began.last_action, b, to.last_action.wanted() ? *to.last_action.row(b) : Real(0));
        put(record.began.last_reward, b, to.last_reward.wanted() ? *to.last_reward.row(b) : Real(0));
        put(record.began.reset, b, to.reset.wanted() ? *to.reset.row(b) : Real(0));
        put(record.action, b, s.action);
        put(record.reward, b, reward);
        put(record.continues, b, out.done ? Real(0) : Real(1));
        put(record.log_probability, b, s.log_probability);
        put(record.value, b, s.value);
        put(to.last_action, b, out.done ? Real(-1) : static_cast<Real>(a));
        put(to.last_reward, b, out.done ? Real(0) : reward);
        put(to.reset, b, out.done ? Real(1) : Real(0));
    }

private:
    ENGRAM_HD static void put(const step_rows<Real>& to, std::ptrdiff_t b, Real by) {
        if (to.wanted()) *to.row(b) = by;
    }
};

template <device_backend Backend, environment Environment>
class device_actor {
public:
    using real = typename Backend::real;
    using variable = var<Backend>;

    device_actor(const traced_agent<Backend>& agent, std::shared_ptr<parameters<real>> store, const std::string& level,
                 int batch, std::uint64_t seed, std::uint32_t first_row, const task_options& options,
                 const stimulus_set* stimuli)
        : batch_(batch),
          program_(*agent.g, std::move(store), {.steps = 1, .batch = batch}, outputs(agent)),
          environments_(program_.executor(), level, batch, seed, first_row, options, stimuli),
          random_(size()),
          steps_(size()),
          log_policy_(program_.on_device(agent.log_policy), 0),
          value_(program_.on_device(agent.value), 0),
          observation_(place_of(program_, *agent.g, "observation"), 0),
          inputs_{{place_of(program_, *agent.g, "last_action"), 0},
                  {place_of(program_, *agent.g, "last_reward"), 0},
                  {place_of(program_, *agent.g, "reset"), 0}},
          alarm_(program_.executor().alarm("acting stopped: a policy is not finite")) {
        const task_info& info = environments_.info();
        require(info.observation.size() == agent.task.observation.size() && info.actions == agent.task.actions,
                "task '", info.name, "' shows ", info.observation.size(), " numbers and takes ", info.actions,
                " actions, the model was made for ", agent.task.observation.size(), " and ", agent.task.actions);
        std::vector<philox> random;
        for (int b = 0; b < batch; ++b)
            random.emplace_back(seed, stream_id("action", first_row + static_cast<std::uint32_t>(b)));
        program_.executor().upload_bytes(random.data(), random_.data(), sizeof(philox) * random.size());
        // An episode begins with this step.
        fill(inputs_.last_action, real(-1));
        fill(inputs_.reset, real(1));
        environments_.observe(observation_);
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
    device_environments<Backend, Environment>& environments() { return environments_; }

private:
    template <class T>
    using array = typename executor<Backend>::template array<T>;

    static std::vector<variable> outputs(const traced_agent<Backend>& a) {
        std::vector<variable> o{a.log_policy, a.value};
        o.insert(o.end(), a.records.begin(), a.records.end());
        return o;
    }
    std::size_t size() const { return static_cast<std::size_t>(batch_); }
    void fill(const step_rows<real>& input, real by) {
        if (!input.wanted()) return;
        const std::vector<real> numbers(size(), by);
        program_.executor().upload(numbers.data(), input.data, batch_);
        program_.executor().wait();
    }
    void copy_rows(const operand<real>& from, operand<real> into, int t) {
        into.data = into.at(t);
        send_rows(program_.executor(), from, into, batch_, false);
    }
    void act(const device_record<real>& record) {
        program_.executor().launch("act", batch_,
                                   act_row<real, Environment>{environments_.rows(), random_.data(), steps_.data(),
                                                              log_policy_, value_, inputs_, record, alarm_});
        environments_.observe(observation_);
    }

    int batch_;
    engram::program<Backend> program_;
    recorded_steps<Backend> steps_of_unroll_{program_};
    device_environments<Backend, Environment> environments_;
    array<philox> random_;
    array<device_step<real>> steps_;
    step_rows<real> log_policy_, value_, observation_;
    device_inputs<real> inputs_;
    int* alarm_;
};

}  // namespace engram
