#pragma once
// SPDX-License-Identifier: MIT

// Synchronous training of an agent: act for T steps in all environments, learn from them, repeat.
//
// A shard acts and learns on its own rows; then the gradients are summed over the shards and one optimiser step
// follows. Behaviour and learner have equal weights, so importance ratios are exactly 1, and the same seed and shards
// give the same bits on any number of threads. A checkpoint holds everything between two iterations: weights, moments,
// environments, states, memories, random streams.
//
// PPO learns more than once from what it did: `epochs` passes over the rows in `minibatches` equal parts, one optimiser
// step each. A part holds whole unrolls, since what is carried begins with them, and always the same environments
// (ours): only the order of the parts is drawn anew every epoch. Memories begin every epoch where the unroll began.

#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <engram/train/acting_rows.hpp>
#include <engram/train/adaptive_weights.hpp>
#include <engram/train/training_loop.hpp>

namespace engram {

struct rollout_settings {
    int environments = 32;  // B over all shards
    int unroll = 10;        // T
    int epochs = 1;         // passes over what was done (PPO)
    int minibatches = 1;    // parts of the environments, one optimiser step each
    int shards = 0;         // of a minibatch, carried by threads (train/shards.hpp); 0: as many as threads
    void check() const {
        require(environments > 0, "rollout.environments: expected at least one, got ", environments);
        require(unroll > 0, "rollout.unroll: expected at least one step, got ", unroll);
        require(epochs > 0, "rollout.epochs: expected at least one, got ", epochs);
        require(minibatches > 0 && minibatches <= environments, "rollout.minibatches: expected 1 to ", environments,
                " (the number of environments), got ", minibatches);
        require(environments % minibatches == 0, "rollout.minibatches: ", environments,
                " environments do not divide into ", minibatches, " equal minibatches");
        require(shards >= 0, "rollout.shards: expected zero (as many as threads) or more, got ", shards);
    }
    /// Throws where asynchronous training, which learns once from every unroll, is asked for more.
    void check_asynchronous() const {
        require(epochs == 1 && minibatches == 1, "rollout: ", epochs, " epochs of ", minibatches,
                " minibatches, but asynchronous training learns once from every unroll; expected rollout.epochs=1 and "
                "rollout.minibatches=1");
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

struct acting_settings {
    rollout_settings rollout;
    optimiser_settings optimiser;
    asynchronous_settings asynchronous{};
};

/// One shard's environments and plans.
template <class Backend>
struct acting_shard {
    acting_shard(const traced_agent<Backend>& agent, const rows_maker<Backend>& make, const rollout_settings& s,
                 int count, int first_row)
        : learner(*agent.g, agent.store,
                  {.steps = s.unroll, .batch = count, .gradients = true, .replay = true, .total_batch = s.part()}),
          rows(make(learner, count, first_row)) {}

    /// Acts for T steps, filling the learner's inputs. `aligned`: the learner's memories begin where the behaviour's
    /// stand; they do so by themselves as long as both had equal weights.
    void act(bool aligned) {
        if (aligned) align_resources();
        rows->act();
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
        learner.forward();
        learner.backward();
    }

    /// The learner's memories begin where the behaviour's stand now.
    void align_resources() {
        for (std::size_t r = 0; r < learner.resource_count(); ++r) {
            const auto from = rows->acting().bound_resource(r)->bytes();
            const auto to = learner.bound_resource(r)->bytes();
            for (std::size_t i = 0; i < from.size(); ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
        }
    }

    program<Backend> learner;
    std::unique_ptr<acting_rows<Backend>> rows;

private:
    template <class Body>
    void each_memory(Body body) {
        for (std::size_t r = 0; r < learner.resource_count(); ++r)
            for (const auto part : learner.bound_resource(r)->bytes()) body(part);
    }

    std::vector<std::byte> begun_;  // what the learner's memories held when the unroll began
};

template <class Backend>
class acting_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "synchronous";

    /// With environments on the host.
    acting_update(const loop_settings& loop, const traced_agent<Backend>& agent, const environment_maker& make,
                  const acting_settings& s)
        : acting_update(loop, agent, on_host(agent, make, loop.seed), s) {}
    acting_update(const loop_settings& loop, const traced_agent<Backend>& agent, const rows_maker<Backend>& make,
                  const acting_settings& s)
        : agent_(&agent), settings_(s), seed_(loop.seed), adaptive_(*agent.g) {
        const int parts = s.rollout.minibatches, rows = s.rollout.part();
        s.rollout.check();
        mine_ = loop.mine(loop.count(s.rollout.shards, "rollout.shards", rows,
                                     parts > 1 ? "environments of a minibatch" : "environments"));
        for (int m = 0; m < parts; ++m)
            for (int i = mine_.first; i < mine_.last; ++i) {
                const int from = first_row(i, mine_.all, rows), to = first_row(i + 1, mine_.all, rows);
                shards_.push_back(
                    std::make_unique<acting_shard<Backend>>(agent, make, s.rollout, to - from, m * rows + from));
            }
    }

    /// One unroll and epochs * minibatches updates.
    void iterate(training_context<Backend>& by) {
        const int epochs = settings_.rollout.epochs, parts = settings_.rollout.minibatches;
        philox order(seed_, stream_id("minibatches", 0) + static_cast<std::uint64_t>(by.iterations));
        for (auto& s : shards_) adaptive_.fill(s->learner);
        // With one minibatch a thread goes straight from acting to learning.
        if (parts > 1)
            by.each_shard(mine_.count(), [&](int i) {
                for (int m = 0; m < parts; ++m) part(m)[static_cast<std::size_t>(i)]->act(true);
            });
        std::vector<int> turns(static_cast<std::size_t>(parts));
        std::iota(turns.begin(), turns.end(), 0);
        const double share = 1.0 / (epochs * parts);
        for (int epoch = 0; epoch < epochs; ++epoch) {
            for (int m = parts - 1; m > 0; --m)
                std::swap(turns[static_cast<std::size_t>(m)], turns[static_cast<std::size_t>(order.below(m + 1))]);
            for (const int m : turns) {
                by.each_shard(mine_.count(), [&](int i) {
                    auto& s = *part(m)[static_cast<std::size_t>(i)];
                    if (parts == 1 && epoch == 0) s.act(epochs > 1);
                    s.learn(epoch, epochs > 1);
                });
                if (m == turns.front() && epoch == 0)
                    by.steps += std::int64_t{settings_.rollout.unroll} * settings_.rollout.environments;
                std::vector<program<Backend>*> programs;
                for (auto& s : part(m)) programs.push_back(&s->learner);
                const double loss = by.sum_losses(programs, share);
                adaptive_.see(by, programs, share);
                by.note(loss, by.step(programs, mine_.all, loss), share);
            }
        }
        adaptive_.adapt();
        for (int m = 0; m < parts; ++m) {
            std::vector<std::vector<double>> finished;
            for (auto& s : part(m)) finished.push_back(s->rows->take_finished());
            for (const auto& rewards : by.gather(finished))
                by.window.episodes.insert(by.window.episodes.end(), rewards.begin(), rewards.end());
        }
    }

    const optimiser_settings& optimiser() const { return settings_.optimiser; }
    const std::shared_ptr<parameters<real>>& store() const { return agent_->store; }
    /// Of all minibatches; their rows one after the other are the environments in order.
    int shards() const { return mine_.all * settings_.rollout.minibatches; }
    /// Of a minibatch.
    int shards_a_part() const { return mine_.all; }
    acting_shard<Backend>& shard(int i) { return *shards_[static_cast<std::size_t>(i)]; }
    program<Backend>& learner(std::size_t i) { return shards_[i]->learner; }
    std::vector<std::string> loss_names() const { return names_of_losses(shards_[0]->learner); }

    template <class Body>
    void each_part(Body body) {
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            shards_[i]->rows->each_part(name_of(i), body);
            body(name_of(i) + ".learner_replays",
                 std::as_writable_bytes(std::span(&shards_[i]->learner.replay_count(), 1)));
        }
    }
    void save(safetensors& file) {
        for (std::size_t i = 0; i < shards_.size(); ++i)
            save_environments(file, shards_[i]->rows->environments(), name_of(i));
    }
    void save_whole(safetensors& file) { adaptive_.save(file); }
    void check(const safetensors& file) { adaptive_.check(file); }
    void load(const safetensors& file) {
        adaptive_.load(file);
        std::vector<std::pair<environment_rows*, std::string>> all;
        for (std::size_t i = 0; i < shards_.size(); ++i)
            all.emplace_back(&shards_[i]->rows->environments(), name_of(i));
        load_environments(file, all);
    }
    void loaded(training_context<Backend>&) {
        for (auto& s : shards_) {
            s->rows->loaded();
            s->align_resources();
        }
    }

private:
    /// In files, of shards_[i]: by its place among all shards.
    std::string name_of(std::size_t i) const {
        const int at = static_cast<int>(i), own = mine_.count();
        return message("shard.", at / own * mine_.all + mine_.first + at % own);
    }
    std::span<std::unique_ptr<acting_shard<Backend>>> part(int m) {
        return std::span(shards_).subspan(static_cast<std::size_t>(m * mine_.count()),
                                          static_cast<std::size_t>(mine_.count()));
    }

    const traced_agent<Backend>* agent_;
    acting_settings settings_;
    std::uint64_t seed_;
    adaptive_weights<Backend> adaptive_;
    shard_range mine_;  // of every minibatch
    std::vector<std::unique_ptr<acting_shard<Backend>>> shards_;
};

}  // namespace engram

ENGRAM_REFLECT(engram::rollout_settings, environments, unroll, epochs, minibatches, shards);
ENGRAM_REFLECT(engram::asynchronous_settings, groups, queue, whole);
ENGRAM_REFLECT(engram::acting_settings, rollout, optimiser, asynchronous);
