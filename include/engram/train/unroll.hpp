#pragma once
// SPDX-License-Identifier: MIT

// An unroll: what a group of environments showed, did and stored for T steps, in the layout of a learner's inputs.
//
// The blocks are found by name once, when a learner is planned; recording and copying an unroll then allocates nothing.

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <engram/core/aligned.hpp>
#include <engram/train/actor.hpp>

namespace engram {

/// Where an unroll lies: views of a learner's inputs, or of an `unroll_buffer`.
template <class Real>
struct unroll_blocks {
    struct block {
        std::string name;
        std::span<Real> data;
    };
    std::vector<block> steps;    // [T, B, F] each
    std::vector<block> states;   // [B, F] each, as the first step entered with them
    block continues, bootstrap;  // [T, B]: 0 where the step ended an episode; [B]: value after the last step
    // What the step after the last one begins with, [B, F] each, for a learner that values it itself; with none the
    // behaviour's value is the bootstrap.
    std::vector<block> end;

    template <class Body>
    void each(Body body) const {
        for (const auto* list : {&steps, &states, &end})
            for (const block& b : *list) body(b);
        body(continues);
        body(bootstrap);
    }
};

/// The inputs and states of a learner's program that acting fills.
template <class Backend>
unroll_blocks<typename Backend::real> unroll_inputs(const traced_agent<Backend>& agent, program<Backend>& learner) {
    unroll_blocks<typename Backend::real> found;
    std::vector<std::string> names{
        "observation",    "last_action", "last_reward", "reset", "action", "reward", "behaviour_log_probability",
        "behaviour_value"};
    for (const auto& r : agent.records) names.push_back(agent.g->info(r).name);
    for (const auto& name : names)
        if (learner.has_input(name)) found.steps.push_back({name, learner.input(name)});
    for (const auto& name : learner.state_names()) found.states.push_back({name, learner.state(name)});
    require(learner.has_input("continues") && learner.has_input("bootstrap"),
            "the learner does not learn from what an agent does: it has no inputs 'continues' and 'bootstrap'");
    found.continues = {"continues", learner.input("continues")};
    found.bootstrap = {"bootstrap", learner.input("bootstrap")};
    return found;
}

/// The inputs of a program of one step that looks at what comes after an unroll.
template <class Backend>
std::vector<typename unroll_blocks<typename Backend::real>::block> end_inputs(program<Backend>& after) {
    std::vector<typename unroll_blocks<typename Backend::real>::block> found;
    for (const char* name : {"observation", "last_action", "last_reward", "reset"})
        if (after.has_input(name)) found.push_back({std::string("end.") + name, after.input(name)});
    return found;
}

/// Before the host writes an unroll into a learner: a device is sent what was written since it was asked for.
template <class Backend>
void ask_for(program<Backend>& learner, const unroll_blocks<typename Backend::real>& inputs) {
    if constexpr (device_backend<Backend>) {
        for (const auto& b : inputs.steps) (void)learner.input(b.name);
        for (const auto& b : inputs.states) (void)learner.state(b.name);
    }
}

/// An unroll with memory of its own.
template <class Real>
class unroll_buffer {
public:
    explicit unroll_buffer(const unroll_blocks<Real>& layout) : blocks_(layout) {
        std::size_t size = 0;
        layout.each([&](const auto& b) { size += b.data.size(); });
        values_.resize(size);
        std::size_t at = 0;
        const auto place = [&](auto& b) {
            b.data = std::span<Real>(values_).subspan(at, b.data.size());
            at += b.data.size();
        };
        for (auto& b : blocks_.steps) place(b);
        for (auto& b : blocks_.states) place(b);
        for (auto& b : blocks_.end) place(b);
        place(blocks_.continues);
        place(blocks_.bootstrap);
    }
    unroll_buffer(const unroll_buffer&) = delete;
    unroll_buffer& operator=(const unroll_buffer&) = delete;

    const unroll_blocks<Real>& blocks() const { return blocks_; }
    /// All of it, one after the other.
    std::span<Real> values() { return values_; }

    /// Copies everything into blocks of the same layout.
    void copy_to(const unroll_blocks<Real>& to) const {
        auto from = values_.begin();
        to.each([&](const auto& b) {
            std::copy_n(from, b.data.size(), b.data.begin());
            from += static_cast<std::ptrdiff_t>(b.data.size());
        });
    }

private:
    unroll_blocks<Real> blocks_;
    aligned_vector<Real> values_;
};

/// An actor that writes down its unrolls.
template <class Backend>
class recording_actor {
public:
    using real = typename Backend::real;

    recording_actor(const traced_agent<Backend>& agent, std::shared_ptr<parameters<real>> store,
                    std::unique_ptr<batch_environment> environment, std::uint64_t seed, int first_row,
                    const unroll_blocks<real>& layout)
        : actor_(agent, std::move(store), std::move(environment), seed, first_row), records_(agent.records) {
        for (const auto& b : layout.steps) sources_.push_back(source_of(agent, b.name));
        for (const auto& b : layout.states) states_.push_back(actor_.program().state(b.name));
    }
    recording_actor(const recording_actor&) = delete;
    recording_actor& operator=(const recording_actor&) = delete;

    /// Acts for T steps.
    void record(const unroll_blocks<real>& to) {
        if constexpr (device_backend<Backend>)
            for (const auto& b : to.states) (void)actor_.program().state(b.name);  // fetched to where states_ look
        for (std::size_t i = 0; i < states_.size(); ++i)
            std::copy(states_[i].begin(), states_[i].end(), to.states[i].data.begin());
        const auto batch = static_cast<std::size_t>(actor_.batch());
        const std::size_t steps = to.continues.data.size() / batch;
        for (std::size_t t = 0; t < steps; ++t) {
            write(to, t, true);
            actor_.step();
            if constexpr (device_backend<Backend>)
                for (const auto& r : records_) (void)actor_.program().output(r);  // to where sources_ look
            write(to, t, false);
            for (std::size_t b = 0; b < batch; ++b)
                to.continues.data[t * batch + b] = actor_.done()[b] ? real(0) : real(1);
        }
        if (to.end.empty()) {
            std::copy_n(actor_.peek(), batch, to.bootstrap.data.begin());
            return;
        }
        actor_.show([&to](const char* name) {
            for (const auto& b : to.end)
                if (b.name.compare(4, std::string::npos, name) == 0) return b.data;
            return std::span<real>();
        });
    }

    actor<Backend>& acting() { return actor_; }

private:
    // What a step begins with is gone after it.
    struct source {
        std::span<const real> data;
        bool before;
    };

    source source_of(const traced_agent<Backend>& agent, const std::string& name) {
        if (name == "last_action") return {actor_.last_action(), true};
        if (name == "last_reward") return {actor_.last_reward(), true};
        if (name == "reset") return {actor_.reset(), true};
        if (name == "action") return {actor_.action(), false};
        if (name == "reward") return {actor_.reward(), false};
        if (name == "behaviour_log_probability") return {actor_.log_probability(), false};
        if (name == "behaviour_value") return {actor_.value(), false};
        for (const auto& r : agent.records)
            if (agent.g->info(r).name == name) {
                const auto o = actor_.program().output(r);
                return {{o.data, static_cast<std::size_t>(actor_.batch() * o.width)}, false};
            }
        return {actor_.program().input(name), false};
    }

    void write(const unroll_blocks<real>& to, std::size_t t, bool before) {
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            const auto& from = sources_[i];
            if (from.before == before)
                std::copy(from.data.begin(), from.data.end(), to.steps[i].data.data() + t * from.data.size());
        }
    }

    actor<Backend> actor_;
    std::vector<var<Backend>> records_;
    std::vector<source> sources_;
    std::vector<std::span<real>> states_;
};

}  // namespace engram
