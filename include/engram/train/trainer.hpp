#pragma once
// SPDX-License-Identifier: MIT

// Synchronous training: act for T steps in all environments, learn once from them, repeat.
//
// Environments are split over threads; each thread acts and learns on its own rows, then the gradients are summed in the
// order of the threads and one optimiser step follows. Behaviour and learner have equal weights, so importance ratios are
// exactly 1, and the same seed and thread count give the same bits. A checkpoint holds everything between two
// iterations: weights, moments, environments, states, memories, random streams.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <engram/core/thread_pool.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/train/actor.hpp>
#include <engram/train/optimiser.hpp>

namespace engram {

struct rollout_settings {
    int environments = 32;     // B over all threads
    int unroll = 10;           // T
    void check() const {
        require(environments > 0, "rollout.environments: expected at least one, got ", environments);
        require(unroll > 0, "rollout.unroll: expected at least one step, got ", unroll);
    }
};

struct trainer_settings {
    rollout_settings rollout;
    optimiser_settings optimiser;
};

/// Numbers of the updates since they were last taken.
struct training_window {
    std::vector<double> episodes;                          // rewards of finished episodes
    std::vector<std::pair<std::string, double>> losses;    // last update, by name
    double loss = 0, gradient_norm = 0, learning_rate = 0, lag = 0;
};

/// Makes `count` environments whose first row has the global number `first_row`.
using environment_maker = std::function<std::unique_ptr<batch_environment>(int count, int first_row)>;

/// One thread's environments and plans.
template <class Backend>
struct training_shard {
    using real = typename Backend::real;

    training_shard(const traced_agent<Backend>& agent, const environment_maker& make, const rollout_settings& s, std::uint64_t seed,
                   int count, int first_row)
        : behaviour(agent, agent.store, make(count, first_row), seed, first_row),
          learner(*agent.g, agent.store,
                  {.steps = s.unroll, .batch = count, .gradients = true, .replay = true, .total_batch = s.environments}) {}

    /// Acts for T steps, filling the learner's inputs.
    void act(const traced_agent<Backend>& agent) {
        for (const auto& name : learner.state_names()) copy(behaviour.program().state(name), learner.state(name), 0);
        const int T = learner.options().steps;
        for (int t = 0; t < T; ++t) {
            behaviour.step();
            for (const char* name : {"observation", "last_action", "last_reward", "reset"})
                if (behaviour.program().has_input(name) && learner.has_input(name))
                    copy(behaviour.program().input(name), learner.input(name), t);
            copy(behaviour.action(), learner.input("action"), t);
            copy(behaviour.reward(), learner.input("reward"), t);
            copy(behaviour.log_probability(), learner.input("behaviour_log_probability"), t);
            const auto continues = learner.input("continues");
            for (int b = 0; b < behaviour.batch(); ++b)
                continues[static_cast<std::size_t>(t * behaviour.batch() + b)] = behaviour.done()[static_cast<std::size_t>(b)] ? 0 : 1;
            for (const auto& r : agent.records) {
                const auto o = behaviour.program().output(r);
                copy(std::span<const real>(o.data, static_cast<std::size_t>(behaviour.batch() * o.width)), learner.input(agent.g->info(r).name), t);
            }
        }
        const real* value = behaviour.peek();
        std::copy_n(value, behaviour.batch(), learner.input("bootstrap").begin());
    }

    /// The learner's memories begin where the behaviour's stand now.
    void align_resources() {
        for (std::size_t r = 0; r < learner.resource_count(); ++r) {
            const auto from = behaviour.program().bound_resource(r)->bytes();
            const auto to = learner.bound_resource(r)->bytes();
            for (std::size_t i = 0; i < from.size(); ++i) std::copy(from[i].begin(), from[i].end(), to[i].begin());
        }
    }

    actor<Backend> behaviour;
    program<Backend> learner;

private:
    template <class From>
    static void copy(From from, std::span<real> to, int t) {
        std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(from.size()) * t);
    }
};

template <class Backend>
class trainer {
public:
    using real = typename Backend::real;

    /// `threads` shards; environments must divide among them as evenly as rows go.
    trainer(const traced_agent<Backend>& agent, const environment_maker& make, const trainer_settings& s, std::uint64_t seed, int threads,
            std::int64_t total_steps)
        : agent_(&agent), settings_(s), total_steps_(total_steps), optimiser_(s.optimiser, *agent.store), pool_(std::max(1, threads)) {
        require(threads > 0 && threads <= s.rollout.environments, "threads: expected 1 to ", s.rollout.environments,
                " (the number of environments), got ", threads);
        int first = 0;
        for (int i = 0; i < threads; ++i) {
            const int last = s.rollout.environments * (i + 1) / threads;
            shards_.push_back(std::make_unique<training_shard<Backend>>(agent, make, s.rollout, seed, last - first, first));
            first = last;
        }
    }

    /// One unroll and one update. Throws, leaving the weights as they were, when a loss or gradient is not finite.
    void iterate() {
        pool_.run([this](int i) {
            auto& s = *shards_[static_cast<std::size_t>(i)];
            s.act(*agent_);
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
            for (std::size_t k = 0; k < window_.losses.size(); ++k) window_.losses[k].second += shards_[i]->learner.losses()[k].second;
        for (auto& s : shards_) {
            auto& done = s->behaviour.finished();
            window_.episodes.insert(window_.episodes.end(), done.begin(), done.end());
            done.clear();
        }
    }

    std::int64_t steps() const { return steps_; }
    std::int64_t total_steps() const { return total_steps_; }
    std::int64_t updates() const { return optimiser_.updates(); }
    double progress() const { return total_steps_ > 0 ? static_cast<double>(steps_) / static_cast<double>(total_steps_) : 0; }
    training_window take_window() { return std::exchange(window_, {}); }
    const traced_agent<Backend>& agent() const { return *agent_; }
    training_shard<Backend>& shard(std::size_t i) { return *shards_[i]; }

    /// Adds everything that the next iteration depends on.
    void save(safetensors& file) {
        const auto& store = *agent_->store;
        each_parameter([&](const std::string& name, std::vector<std::int64_t> shape, std::ptrdiff_t at, std::size_t n) {
            file.add<real>(name, shape, std::span<const real>(store.flat().data() + at, n));
            file.add<real>("optimiser.first." + name, shape, std::span<const real>(optimiser_.first_moment().data() + at, n));
            file.add<real>("optimiser.second." + name, shape, std::span<const real>(optimiser_.second_moment().data() + at, n));
        });
        add_numbers(file, "trainer.counters", std::vector<std::int64_t>{steps_, optimiser_.updates(), static_cast<std::int64_t>(shards_.size())});
        for (std::size_t i = 0; i < shards_.size(); ++i)
            each_part(i, [&](const std::string& name, std::span<std::byte> part) {
                const std::span<const std::uint8_t> raw(reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
                file.add<std::uint8_t>(name, {static_cast<std::int64_t>(raw.size())}, raw);
            });
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            auto& env = shards_[i]->behaviour.environment();
            for (int b = 0; b < env.size(); ++b) {
                const auto state = env.state(b);
                const std::span<const std::uint8_t> raw(reinterpret_cast<const std::uint8_t*>(state.data()), state.size());
                file.add<std::uint8_t>(message("shard.", i, ".environment.", b), {static_cast<std::int64_t>(raw.size())}, raw);
            }
        }
    }

    /// Restores what save() wrote; throws with both sizes when the file belongs to another model, before anything changes.
    void load(const safetensors& file) {
        const auto counters = file.values<std::int64_t>("trainer.counters", {3});
        require(counters[2] == static_cast<std::int64_t>(shards_.size()), file.source(), ": was written with ", counters[2],
                " threads, this run has ", shards_.size(), "; a synchronous run resumes with the same number");
        each_parameter([&](const std::string& name, std::vector<std::int64_t> shape, std::ptrdiff_t, std::size_t) {
            for (const char* kind : {"", "optimiser.first.", "optimiser.second."}) (void)file.values<real>(kind + name, shape);
        });
        for (std::size_t i = 0; i < shards_.size(); ++i)
            each_part(i, [&](const std::string& name, std::span<std::byte> part) {
                (void)file.values<std::uint8_t>(name, {static_cast<std::int64_t>(part.size())});
            });
        steps_ = counters[0];
        optimiser_.updates() = counters[1];
        {
            auto edit = agent_->store->edit();
            each_parameter([&](const std::string& name, std::vector<std::int64_t>, std::ptrdiff_t at, std::size_t) {
                const auto put = [&](const std::string& from, real* to) {
                    const auto values = file.values<real>(from);
                    std::copy(values.begin(), values.end(), to);
                };
                put(name, edit.flat().data() + at);
                put("optimiser.first." + name, optimiser_.first_moment().data() + at);
                put("optimiser.second." + name, optimiser_.second_moment().data() + at);
            });
        }
        for (std::size_t i = 0; i < shards_.size(); ++i) {
            each_part(i, [&](const std::string& name, std::span<std::byte> part) {
                const auto values = file.values<std::uint8_t>(name);
                std::memcpy(part.data(), values.data(), part.size());
            });
            auto& env = shards_[i]->behaviour.environment();
            for (int b = 0; b < env.size(); ++b) {
                const auto values = file.values<std::uint8_t>(message("shard.", i, ".environment.", b));
                env.restore(b, std::as_bytes(std::span(values.data(), values.size())));
            }
            shards_[i]->align_resources();
        }
    }

private:
    template <class Body>
    void each_parameter(Body body) const {
        for (const auto& e : agent_->store->entries())
            body(e.name, std::vector<std::int64_t>{e.rows, e.columns}, e.offset, static_cast<std::size_t>(e.size()));
    }
    static void add_numbers(safetensors& file, const std::string& name, const std::vector<std::int64_t>& values) {
        file.add<std::int64_t>(name, {static_cast<std::int64_t>(values.size())}, std::span<const std::int64_t>(values));
    }

    // Every block of plain bytes of a shard, under its name in a checkpoint.
    template <class Body>
    void each_part(std::size_t i, Body body) {
        auto& a = shards_[i]->behaviour;
        const std::string prefix = message("shard.", i, ".");
        const auto raw = [](auto span) { return std::as_writable_bytes(span); };
        for (const auto& name : a.program().state_names()) body(prefix + "state." + name, raw(a.program().state(name)));
        for (std::size_t r = 0; r < a.program().resource_count(); ++r) {
            std::size_t k = 0;
            for (auto part : a.program().bound_resource(r)->bytes()) body(message(prefix, "resource.", r, ".", k++), part);
        }
        body(prefix + "last_action", raw(a.last_action()));
        body(prefix + "last_reward", raw(a.last_reward()));
        body(prefix + "reset", raw(a.reset()));
        body(prefix + "episode_reward", raw(a.episode_reward()));
        body(prefix + "random", raw(std::span(a.random())));
        body(prefix + "replays", raw(std::span(&a.program().replay_count(), 1)));
        body(prefix + "learner_replays", raw(std::span(&shards_[i]->learner.replay_count(), 1)));
    }

    [[noreturn]] void stop(const char* what, double number) {
        std::string where;
        for (auto& s : shards_)
            if (where.empty()) where = s->learner.first_non_finite();
        fail("training stopped at step ", steps_, ": the ", what, " is ", number, "; first non-finite value: ",
             where.empty() ? std::string("a gradient") : where);
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
BOOST_HANA_ADAPT_STRUCT(engram::trainer_settings, rollout, optimiser);
