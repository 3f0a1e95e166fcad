#pragma once
// SPDX-License-Identifier: MIT

// An actor whose environments live on the device: inference, sampling, stepping and rendering never leave it.
//
// Row b draws its actions and its episodes from the streams of row first_row + b of the host's actor (train/actor.hpp),
// by the same arithmetic, so at equal logits both play the same episodes. One thread steps and renders one environment,
// and fills the program's inputs for the next step. What a step saw and did stays in the device's memory for whoever
// makes trajectories of it; fetch() copies it to the host.

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <engram/core/philox.hpp>
#include <engram/device/kernel.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/environment.hpp>

namespace engram {

/// What the step of one environment did, in the host actor's terms.
template <class Real>
struct device_step {
    Real action, log_probability, value, reward;
    double episode_reward;  // so far, this step's reward included
    int done;
};

/// The inputs that an environment fills.
template <class Real>
struct device_inputs {
    device_rows<Real> observation, last_action, last_reward, reset;
};

/// Renders row b into the program's input.
template <class Real, class Environment>
struct show_row {
    const Environment* rows;
    const float* images;
    float* seen;  // [B, pixels]
    device_inputs<Real> to;
    ENGRAM_HD void operator()(std::ptrdiff_t b) const {
        float* const pixels = seen + b * to.observation.width;
        rows[b].observe(images, pixels);
        for (int i = 0; i < to.observation.width; ++i) to.observation.row(b)[i] = static_cast<Real>(pixels[i]);
    }
};

/// Samples row b's action by its policy, takes it, and says what the next step is told about it.
template <class Real, class Environment>
struct act_row {
    Environment* rows;
    philox* random;
    device_step<Real>* steps;
    device_rows<Real> log_policy, value;
    device_inputs<Real> to;
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
        const double before = s.done ? 0 : s.episode_reward;
        const Real reward = static_cast<Real>(out.reward);
        s = {
            static_cast<Real>(a), policy[a], *value.row(b), reward, before + static_cast<double>(out.reward), out.done};
        if (to.last_action.wanted()) *to.last_action.row(b) = out.done ? Real(-1) : static_cast<Real>(a);
        if (to.last_reward.wanted()) *to.last_reward.row(b) = out.done ? Real(0) : reward;
        if (to.reset.wanted()) *to.reset.row(b) = out.done ? Real(1) : Real(0);
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
          program_(*agent.g, std::move(store), {.steps = 1, .batch = batch}, {agent.log_policy, agent.value}),
          environments_(size()),
          random_(size()),
          steps_(size()),
          seen_(size() * static_cast<std::size_t>(agent.task.observation.size())),
          images_(stimuli ? stimuli->pixels().size() : 0),
          log_policy_(program_.on_device(agent.log_policy), 0),
          value_(program_.on_device(agent.value), 0),
          alarm_(program_.executor().alarm("acting stopped: a policy is not finite")) {
        const task_info info = Environment::describe(options);
        require(info.observation.size() == agent.task.observation.size() && info.actions == agent.task.actions,
                "task '", info.name, "' shows ", info.observation.size(), " numbers and takes ", info.actions,
                " actions, the model was made for ", agent.task.observation.size(), " and ", agent.task.actions);
        const auto input = [&](const std::string& name) {
            variable v;
            for (std::size_t i = 0; i < agent.g->values().size(); ++i)
                if (agent.g->values()[i].name == name && program_.has_input(name)) {
                    v.value = static_cast<int>(i);
                    v.width = agent.g->values()[i].width;
                }
            return v.value < 0 ? device_rows<real>{} : device_rows<real>(program_.on_device(v), 0);
        };
        inputs_ = {input("observation"), input("last_action"), input("last_reward"), input("reset")};

        const Environment fresh = Environment::make(info.level(level).name, options, stimuli);
        std::vector<Environment> rows(size(), fresh);
        std::vector<philox> random(size());
        for (int b = 0; b < batch; ++b) {
            const auto i = static_cast<std::size_t>(b);
            const std::uint32_t stream = first_row + static_cast<std::uint32_t>(b);
            rows[i].random = philox(seed, stream_id("environment", stream));
            rows[i].reset();
            random[i] = philox(seed, stream_id("action", stream));
        }
        send(rows, environments_);
        send(random, random_);
        if (stimuli) send(std::vector<float>(stimuli->pixels().begin(), stimuli->pixels().end()), images_);
        // An episode begins with this step.
        fill(inputs_.last_action, real(-1));
        fill(inputs_.reset, real(1));
        show();
    }

    /// One step of every environment. Does not wait for the device.
    void step() {
        program_.forward();
        program_.executor().launch("act", batch_,
                                   act_row<real, Environment>{environments_.data(), random_.data(), steps_.data(),
                                                              log_policy_, value_, inputs_, alarm_});
        show();
        program_.carry();
    }
    /// What the last step saw and did.
    std::vector<device_step<real>> fetch() {
        program_.executor().wait();
        std::vector<device_step<real>> steps(size());
        program_.executor().download_bytes(steps_.data(), steps.data(), sizeof(device_step<real>) * steps.size());
        return steps;
    }
    engram::program<Backend>& program() { return program_; }

private:
    template <class T>
    using array = typename executor<Backend>::template array<T>;

    std::size_t size() const { return static_cast<std::size_t>(batch_); }
    template <class T, class Array>
    void send(const std::vector<T>& from, Array& to) {
        program_.executor().upload_bytes(from.data(), to.data(), sizeof(T) * from.size());
    }
    void fill(const device_rows<real>& input, real by) {
        if (!input.wanted()) return;
        const std::vector<real> numbers(size(), by);
        program_.executor().upload(numbers.data(), input.data, batch_);
    }
    void show() {
        program_.executor().launch(
            "observe", batch_,
            show_row<real, Environment>{environments_.data(), images_.empty() ? nullptr : images_.data(), seen_.data(),
                                        inputs_});
    }

    int batch_;
    engram::program<Backend> program_;
    array<Environment> environments_;
    array<philox> random_;
    array<device_step<real>> steps_;
    array<float> seen_, images_;
    device_rows<real> log_policy_, value_;
    device_inputs<real> inputs_;
    int* alarm_;
};

}  // namespace engram
