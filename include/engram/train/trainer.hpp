#pragma once
// SPDX-License-Identifier: MIT

// Synchronous training: act for T steps in all environments, learn once from them, repeat.
//
// Environments are split over threads; each thread acts and learns on its own rows, then the gradients are summed in
// the order of the threads and one optimiser step follows. Behaviour and learner have equal weights, so importance
// ratios are exactly 1, and the same seed and thread count give the same bits. A checkpoint holds everything between
// two iterations: weights, moments, environments, states, memories, random streams.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/unroll.hpp>

namespace engram {

struct rollout_settings {
    int environments = 32;  // B over all threads
    int unroll = 10;        // T
    void check() const {
        require(environments > 0, "rollout.environments: expected at least one, got ", environments);
        require(unroll > 0, "rollout.unroll: expected at least one step, got ", unroll);
    }
};

/// Used by asynchronous training only.
struct asynchronous_settings {
    int groups = 0;  // of environments, each learnt from on its own; 0: at least two a thread that acts
    int queue = 2;   // unrolls under way a thread that acts: being filled, or waiting for the learner
    void check() const {
        require(groups >= 0, "asynchronous.groups: expected zero (automatic) or more, got ", groups);
        require(queue > 0, "asynchronous.queue: expected at least one, got ", queue);
    }
};

struct trainer_settings {
    rollout_settings rollout;
    optimiser_settings optimiser;
    asynchronous_settings asynchronous{};
};

/// Numbers of the updates since they were last taken.
struct training_window {
    std::vector<double> episodes;                        // rewards of finished episodes
    std::vector<std::pair<std::string, double>> losses;  // last update, by name
    double loss = 0, gradient_norm = 0, learning_rate = 0;
    double lag = 0, largest_lag = 0;  // updates between acting and learning, mean and largest
};

/// Makes `count` environments whose first row has the global number `first_row`.
using environment_maker = std::function<std::unique_ptr<batch_environment>(int count, int first_row)>;

/// The learner's plan of one shard of the rows.
template <class Backend>
struct learner_part {
    learner_part(const traced_agent<Backend>& agent, int steps, int rows, int total_rows)
        : learner(*agent.g, agent.store,
                  {.steps = steps, .batch = rows, .gradients = true, .replay = true, .total_batch = total_rows}),
          inputs(unroll_inputs(agent, learner)) {}

    program<Backend> learner;
    unroll_blocks<typename Backend::real> inputs;
};

/// One thread's environments and plans.
template <class Backend>
struct training_shard : learner_part<Backend> {
    training_shard(const traced_agent<Backend>& agent, const environment_maker& make, const rollout_settings& s,
                   std::uint64_t seed, int count, int first_row)
        : learner_part<Backend>(agent, s.unroll, count, s.environments),
          recorder(agent, agent.store, make(count, first_row), seed, first_row, this->inputs),
          behaviour(recorder.acting()) {}

    /// Acts for T steps, filling the learner's inputs.
    void act() { recorder.record(this->inputs); }

    /// The learner's memories begin where the behaviour's stand now.
    void align_resources() {
        for (std::size_t r = 0; r < this->learner.resource_count(); ++r) {
            const auto from = behaviour.program().bound_resource(r)->bytes();
            const auto to = this->learner.bound_resource(r)->bytes();
            for (std::size_t i = 0; i < from.size(); ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
        }
    }

    recording_actor<Backend> recorder;
    actor<Backend>& behaviour;
};

/// Throws the sentence with which training ends at a number that is not finite; `where` is the value it came from.
[[noreturn]] inline void stop_training(std::int64_t step, const char* what, double number, const std::string& where) {
    fail("training stopped at step ", step, ": the ", what, " is ", number,
         "; first non-finite value: ", where.empty() ? std::string("a gradient") : where);
}

template <class Backend>
class trainer {
public:
    using real = typename Backend::real;

    /// `threads` shards; environments must divide among them as evenly as rows go.
    trainer(const traced_agent<Backend>& agent, const environment_maker& make, const trainer_settings& s,
            std::uint64_t seed, int threads, std::int64_t total_steps)
        : agent_(&agent),
          settings_(s),
          total_steps_(total_steps),
          optimiser_(s.optimiser, *agent.store),
          pool_(std::max(1, threads)) {
        require(threads > 0 && threads <= s.rollout.environments, "threads: expected 1 to ", s.rollout.environments,
                " (the number of environments), got ", threads);
        int first = 0;
        for (int i = 0; i < threads; ++i) {
            const int last = s.rollout.environments * (i + 1) / threads;
            shards_.push_back(
                std::make_unique<training_shard<Backend>>(agent, make, s.rollout, seed, last - first, first));
            first = last;
        }
    }

    /// One unroll and one update. Throws, leaving the weights as they were, when a loss or gradient is not finite.
    void iterate() {
        pool_.run([this](int i) {
            auto& s = *shards_[static_cast<std::size_t>(i)];
            s.act();
            s.learner.forward();
            s.learner.backward();
        });
        steps_ += std::int64_t{settings_.rollout.unroll} * settings_.rollout.environments;
        const auto total = shards_[0]->learner.gradient();
        for (std::size_t i = 1; i < shards_.size(); ++i) {
            const auto part = shards_[i]->learner.gradient();
            for (std::size_t j = 0; j < total.size(); ++j) total[j] += part[j];
        }
        double loss = 0;
        for (auto& s : shards_) loss += s->learner.loss();
        if (!std::isfinite(loss)) stop("loss", loss);
        window_.learning_rate = optimiser_.learning_rate(progress());
        window_.gradient_norm = optimiser_.update(*agent_->store, total, progress());
        if (!std::isfinite(window_.gradient_norm)) stop("gradient norm", window_.gradient_norm);
        window_.loss = loss;
        window_.losses = shards_[0]->learner.losses();
        for (std::size_t i = 1; i < shards_.size(); ++i)
            for (std::size_t k = 0; k < window_.losses.size(); ++k)
                window_.losses[k].second += shards_[i]->learner.losses()[k].second;
        for (auto& s : shards_) {
            auto& done = s->behaviour.finished();
            window_.episodes.insert(window_.episodes.end(), done.begin(), done.end());
            done.clear();
        }
    }

    std::int64_t steps() const { return steps_; }
    std::int64_t total_steps() const { return total_steps_; }
    std::int64_t updates() const { return optimiser_.updates(); }
    double progress() const {
        return total_steps_ > 0 ? static_cast<double>(steps_) / static_cast<double>(total_steps_) : 0;
    }
    training_window take_window() { return std::exchange(window_, {}); }
    const traced_agent<Backend>& agent() const { return *agent_; }
    training_shard<Backend>& shard(std::size_t i) { return *shards_[i]; }

    /// Adds everything that the next iteration depends on.
    void save(safetensors& file) {
        save_weights(file, *agent_->store, optimiser_);
        save_counters(file, mode, {steps_, optimiser_.updates(), static_cast<std::int64_t>(shards_.size())});
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            each_shard_part(i,
                            [&](const std::string& name, std::span<std::byte> part) { save_bytes(file, name, part); });
            save_environments(file, shards_[i]->behaviour, message("shard.", i));
        }
    }

    /// Restores what save() wrote; throws with both sizes when the file belongs to another model, before anything
    /// changes.
    void load(const safetensors& file) {
        const auto counters = load_counters(file, mode, 3);
        require(counters[2] == static_cast<std::int64_t>(shards_.size()), file.source(), ": was written with ",
                counters[2], " threads, this run has ", shards_.size(),
                "; a synchronous run resumes with the same number");
        check_weights(file, *agent_->store);
        std::vector<std::pair<actor<Backend>*, std::string>> actors;
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            each_shard_part(i,
                            [&](const std::string& name, std::span<std::byte> part) { check_bytes(file, name, part); });
            actors.emplace_back(&shards_[i]->behaviour, message("shard.", i));
        }
        load_environments(file, actors);
        steps_ = counters[0];
        optimiser_.updates() = counters[1];
        load_weights(file, *agent_->store, optimiser_);
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            each_shard_part(i,
                            [&](const std::string& name, std::span<std::byte> part) { load_bytes(file, name, part); });
            shards_[i]->behaviour.finished().clear();
            shards_[i]->align_resources();
        }
        window_ = {};
    }

private:
    static constexpr const char* mode = "synchronous";

    template <class Body>
    void each_shard_part(std::size_t i, Body body) {
        each_part(shards_[i]->behaviour, message("shard.", i), body);
        body(message("shard.", i, ".learner_replays"),
             std::as_writable_bytes(std::span(&shards_[i]->learner.replay_count(), 1)));
    }

    [[noreturn]] void stop(const char* what, double number) {
        std::string where;
        for (auto& s : shards_)
            if (where.empty()) where = s->learner.first_non_finite();
        stop_training(steps_, what, number, where);
    }

    const traced_agent<Backend>* agent_;
    trainer_settings settings_;
    std::int64_t total_steps_, steps_ = 0;
    optimiser<real> optimiser_;
    std::vector<std::unique_ptr<training_shard<Backend>>> shards_;
    thread_pool pool_;
    training_window window_;
};

}  // namespace engram

BOOST_HANA_ADAPT_STRUCT(engram::rollout_settings, environments, unroll);
BOOST_HANA_ADAPT_STRUCT(engram::asynchronous_settings, groups, queue);
BOOST_HANA_ADAPT_STRUCT(engram::trainer_settings, rollout, optimiser, asynchronous);
