#pragma once
// SPDX-License-Identifier: MIT

// Synchronous training: act for T steps in all environments, learn once from them, repeat.
//
// Environments are split over threads; each thread acts and learns on its own rows, then the gradients are summed in
// the order of the threads and one optimiser step follows. Behaviour and learner have equal weights, so importance
// ratios are exactly 1, and the same seed and thread count give the same bits. A checkpoint holds everything between
// two iterations: weights, moments, environments, states, memories, random streams.
//
// PPO learns more than once from what it did: `epochs` passes over the rows in `minibatches` equal parts, one optimiser
// step each. A part holds whole unrolls, since what is carried begins with them, and always the same environments
// (ours): only the order of the parts is drawn anew every epoch. Memories begin every epoch where the unroll began.

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/train/optimiser.hpp>
#include <engram/train/saved_state.hpp>
#include <engram/train/unroll.hpp>
#include <engram/train/weight_update.hpp>

namespace engram {

struct rollout_settings {
    int environments = 32;  // B over all threads
    int unroll = 10;        // T
    int epochs = 1;         // passes over what was done (PPO)
    int minibatches = 1;    // parts of the environments, one optimiser step each
    void check() const {
        require(environments > 0, "rollout.environments: expected at least one, got ", environments);
        require(unroll > 0, "rollout.unroll: expected at least one step, got ", unroll);
        require(epochs > 0, "rollout.epochs: expected at least one, got ", epochs);
        require(minibatches > 0 && minibatches <= environments, "rollout.minibatches: expected 1 to ", environments,
                " (the number of environments), got ", minibatches);
        require(environments % minibatches == 0, "rollout.minibatches: ", environments,
                " environments do not divide into ", minibatches, " equal minibatches");
    }
    /// Environments of a minibatch.
    int part() const { return environments / minibatches; }
};

/// Used by asynchronous training only.
struct asynchronous_settings {
    int groups = 0;  // of environments, each learnt from on its own; 0: at least two a thread that acts
    int queue = 2;   // unrolls under way a thread that acts: being filled, or waiting for the learner
    // An update learns from as many unrolls as there are groups, that is from as many rows as there are environments;
    // false: from one group's.
    bool whole = false;
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
    std::vector<std::pair<std::string, double>> losses;  // of the last unroll, by name; means over its updates
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
        : learner_part<Backend>(agent, s.unroll, count, s.part()),
          recorder(agent, agent.store, make(count, first_row), seed, first_row, this->inputs),
          behaviour(recorder.acting()) {}

    /// Acts for T steps, filling the learner's inputs. `aligned`: the learner's memories begin where the behaviour's
    /// stand; they do so by themselves as long as both had equal weights.
    void act(bool aligned) {
        if (aligned) align_resources();
        ask_for(this->learner, this->inputs);
        recorder.record(this->inputs);
    }

    /// Gradients of what was done; pass 0 is the first of this unroll, `more` says that others follow.
    void learn(int pass, bool more) {
        if (pass == 0 && more) {
            begun_.clear();
            each_memory([&](std::span<std::byte> part) { begun_.insert(begun_.end(), part.begin(), part.end()); });
        } else if (pass > 0) {
            auto from = begun_.begin();
            each_memory([&](std::span<std::byte> part) {
                std::copy_n(from, part.size(), part.begin());
                from += static_cast<std::ptrdiff_t>(part.size());
            });
        }
        this->learner.forward();
        this->learner.backward();
    }

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

private:
    template <class Body>
    void each_memory(Body body) {
        for (std::size_t r = 0; r < this->learner.resource_count(); ++r)
            for (const auto part : this->learner.bound_resource(r)->bytes()) body(part);
    }

    std::vector<std::byte> begun_;  // what the learner's memories held when the unroll began
};

template <class Backend>
class trainer {
public:
    using real = typename Backend::real;

    /// `threads` shards of every minibatch; environments must divide among them as evenly as rows go.
    trainer(const traced_agent<Backend>& agent, const environment_maker& make, const trainer_settings& s,
            std::uint64_t seed, int threads, std::int64_t total_steps)
        : agent_(&agent),
          settings_(s),
          seed_(seed),
          total_steps_(total_steps),
          optimiser_(s.optimiser, *agent.store),
          pool_(std::max(1, threads)) {
        const int parts = s.rollout.minibatches, rows = s.rollout.part();
        s.rollout.check();
        require(
            threads > 0 && threads <= rows, "threads: expected 1 to ", rows,
            parts > 1 ? " (the number of environments of a minibatch), got " : " (the number of environments), got ",
            threads);
        for (int m = 0; m < parts; ++m)
            for (int i = 0, first = m * rows; i < threads; ++i) {
                const int last = m * rows + rows * (i + 1) / threads;
                shards_.push_back(
                    std::make_unique<training_shard<Backend>>(agent, make, s.rollout, seed, last - first, first));
                first = last;
            }
    }

    /// One unroll and epochs * minibatches updates. Throws, leaving the weights as they were before the update, when a
    /// loss or gradient is not finite.
    void iterate() {
        const int epochs = settings_.rollout.epochs, parts = settings_.rollout.minibatches;
        const std::int64_t each = std::int64_t{settings_.rollout.unroll} * settings_.rollout.environments;
        philox order(seed_, stream_id("minibatches", 0) + static_cast<std::uint64_t>(steps_ / each));
        // With one minibatch a thread goes straight from acting to learning.
        if (parts > 1) pool_.run([this](int i) { each_of_thread(i, [](auto& s) { s.act(true); }); });
        std::vector<int> turns(static_cast<std::size_t>(parts));
        std::iota(turns.begin(), turns.end(), 0);
        window_.loss = 0;
        window_.losses.clear();
        window_.gradient_norm = 0;
        for (int epoch = 0; epoch < epochs; ++epoch) {
            for (int m = parts - 1; m > 0; --m)
                std::swap(turns[static_cast<std::size_t>(m)], turns[static_cast<std::size_t>(order.below(m + 1))]);
            for (const int m : turns) {
                pool_.run([&](int i) {
                    auto& s = *shards_[static_cast<std::size_t>(m * pool_.size() + i)];
                    if (parts == 1 && epoch == 0) s.act(epochs > 1);
                    s.learn(epoch, epochs > 1);
                });
                if (m == turns.front() && epoch == 0) steps_ += each;
                update(std::span(shards_).subspan(static_cast<std::size_t>(m * pool_.size()),
                                                  static_cast<std::size_t>(pool_.size())),
                       1.0 / (epochs * parts));
            }
        }
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
    /// Their rows one after the other are the environments in order.
    std::size_t shards() const { return shards_.size(); }

    /// The newest weights are in the store; on a device they are elsewhere while it trains.
    void settle() { fetch_weights(shards_[0]->learner, *agent_->store); }

    /// Adds everything that the next iteration depends on.
    void save(safetensors& file) {
        settle();
        save_weights(file, *agent_->store, optimiser_);
        save_counters(file, mode, {steps_, optimiser_.updates(), std::int64_t{pool_.size()}});
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
        require(counters[2] == pool_.size(), file.source(), ": was written with ", counters[2],
                " threads, this run has ", pool_.size(), "; a synchronous run resumes with the same number");
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
    void each_of_thread(int i, Body body) {
        for (std::size_t k = static_cast<std::size_t>(i); k < shards_.size();
             k += static_cast<std::size_t>(pool_.size()))
            body(*shards_[k]);
    }

    /// One optimiser step with the gradients of the shards of a minibatch; `share` weighs it in the window's means.
    void update(std::span<std::unique_ptr<training_shard<Backend>>> part, double share) {
        std::vector<program<Backend>*> programs;
        for (auto& s : part) programs.push_back(&s->learner);
        const double loss = sum_losses(programs);
        window_.learning_rate = optimiser_.learning_rate(progress());
        window_.gradient_norm += share * update_weights(optimiser_, *agent_->store, loss, steps_, progress(), programs);
        window_.loss += share * loss;
        add_losses(window_.losses, programs, share);
    }

    template <class Body>
    void each_shard_part(std::size_t i, Body body) {
        each_part(shards_[i]->behaviour, message("shard.", i), body);
        body(message("shard.", i, ".learner_replays"),
             std::as_writable_bytes(std::span(&shards_[i]->learner.replay_count(), 1)));
    }

    const traced_agent<Backend>* agent_;
    trainer_settings settings_;
    std::uint64_t seed_;
    std::int64_t total_steps_, steps_ = 0;
    optimiser_of<Backend> optimiser_;
    std::vector<std::unique_ptr<training_shard<Backend>>> shards_;
    thread_pool pool_;
    training_window window_;
};

}  // namespace engram

ENGRAM_REFLECT(engram::rollout_settings, environments, unroll, epochs, minibatches);
ENGRAM_REFLECT(engram::asynchronous_settings, groups, queue, whole);
ENGRAM_REFLECT(engram::trainer_settings, rollout, optimiser, asynchronous);
