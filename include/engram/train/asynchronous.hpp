#pragma once
// SPDX-License-Identifier: MIT

// Asynchronous training (IMPALA): threads that act fill unrolls while the caller's thread learns from earlier ones.
//
// The environments are divided into groups, each of one actor thread. An actor takes a free unroll buffer, copies the
// newest published weights into a store of its own if they changed, acts for T steps in its next group and queues the
// buffer. The learner takes the oldest one, copies it into its plan of T x group rows, lends that plan the group's
// memories, updates and publishes. An unroll is learnt from `lag` updates after the weights that acted (V-trace). With
// `whole` an update sums the gradients of the oldest unrolls, as many as there are groups: its batch is that of
// synchronous training, however the environments are divided.
//
// What the unroll's returns end in is valued by the learner, from the states and memories that its own sweep arrived
// at; PPO, whose returns are of the behaviour's values, ends in the behaviour's.
//
// Actors wait for a buffer before they act, not after, so that they act with weights as new as can be: with one actor
// thread the lag is at most the number of buffers.
//
// Each group has two sets of memories. The behaviour's stand where acting stands; the mirror stands where learning does
// and replays the contents that the behaviour recorded, under keys of the learner's own weights. The rings are never
// shipped.
//
// Which weights act depends on timing, so runs do not repeat bit for bit. A checkpoint is taken between unrolls of all
// actors and keeps the queue; a resumed run goes on from there, but not with the bits of the uninterrupted one.
// On a device actors and learner have streams of their own, and weights come to the actors through the host. A learner
// with memories runs unrecorded: its groups take turns, and a recorded sweep holds the memories of one of them.

#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <engram/train/trainer.hpp>

namespace engram {

/// The same face as `trainer`.
template <class Backend>
class asynchronous_trainer {
public:
    using real = typename Backend::real;

    /// One thread learns (the caller's), max(1, threads - 1) act. The actors start with the first iterate().
    asynchronous_trainer(const traced_agent<Backend>& agent, const environment_maker& make, const trainer_settings& s,
                         std::uint64_t seed, int threads, std::int64_t total_steps)
        : agent_(&agent),
          settings_(s),
          total_steps_(total_steps),
          optimiser_(s.optimiser, *agent.store),
          group_count_(count_groups(s, threads)),
          rows_(s.rollout.environments / group_count_),
          part_(agent, s.rollout.unroll, rows_, s.asynchronous.whole ? s.rollout.environments : rows_),
          published_(agent.store->flat().begin(), agent.store->flat().end()) {
        require(s.rollout.epochs == 1 && s.rollout.minibatches == 1, "rollout: ", s.rollout.epochs, " epochs of ",
                s.rollout.minibatches, " minibatches, but asynchronous training learns once from every unroll");
        if (!part_.learner.has_input("behaviour_value")) {
            after_ = std::make_unique<program<Backend>>(*agent.g, agent.store,
                                                        plan_options{.steps = 1, .batch = rows_, .side_effects = false},
                                                        std::vector<var<Backend>>{agent.value});
            part_.inputs.end = end_inputs(*after_);
        }
        if (s.asynchronous.whole) held_.emplace(part_.learner);
        for (int i = 0; i < std::max(1, threads - 1); ++i)
            actors_.push_back({std::make_shared<parameters<real>>(*agent.store), -1, {}});
        for (int i = 0; i < group_count_; ++i) {
            auto& who = actors_[static_cast<std::size_t>(i) % actors_.size()];
            who.groups.push_back(i);
            groups_.push_back(
                std::make_unique<group>(agent, who.store, make(rows_, i * rows_), seed, i * rows_, part_));
        }
        const std::size_t buffers = actors_.size() * static_cast<std::size_t>(s.asynchronous.queue);
        for (std::size_t i = 0; i < buffers; ++i) {
            buffers_.push_back(std::make_unique<filled_unroll>(part_.inputs));
            free_.push_back(buffers_.back().get());
        }
    }
    ~asynchronous_trainer() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        free_or_told_.notify_all();
        threads_.clear();
    }

    /// Lets the actors run ahead; iterate() does it too.
    void start() {
        if (!threads_.empty()) return;
        publish();
        for (std::size_t i = 0; i < actors_.size(); ++i) threads_.emplace_back([this, i] { run(i); });
    }

    /// One update from the oldest unroll (with `whole`, unrolls), waiting for one if need be. Throws what an actor
    /// threw, and, leaving the weights as they were, when a loss or gradient is not finite.
    void iterate() {
        start();
        auto& learner = part_.learner;
        const int unrolls = settings_.asynchronous.whole ? group_count_ : 1;
        double loss = 0;
        std::vector<std::pair<std::string, double>> losses;
        for (int i = 0; i < unrolls; ++i) {
            take_unroll();
            learner.forward();
            if (after_) value_the_end();
            steps_ += std::int64_t{settings_.rollout.unroll} * rows_;
            if (!std::isfinite(learner.loss())) refuse_update(steps_, "loss", learner.loss(), programs());
            loss += learner.loss();
            add_losses(losses, programs());
            learner.backward();
            if (i + 1 < unrolls) held_->hold(learner, i == 0);
        }
        if (unrolls > 1) held_->give(learner);
        window_.learning_rate = optimiser_.learning_rate(progress());
        window_.gradient_norm = update_weights(optimiser_, *agent_->store, loss, steps_, progress(), programs());
        publish();
        window_.loss = loss;
        window_.losses = losses;
    }

    std::int64_t steps() const { return steps_; }
    std::int64_t total_steps() const { return total_steps_; }
    std::int64_t updates() const { return optimiser_.updates(); }
    double progress() const {
        return total_steps_ > 0 ? static_cast<double>(steps_) / static_cast<double>(total_steps_) : 0;
    }
    training_window take_window() {
        window_unrolls_ = 0;
        return std::exchange(window_, {});
    }
    const traced_agent<Backend>& agent() const { return *agent_; }
    int groups() const { return group_count_; }
    /// The group of the last update, and the plan that it ran.
    int group_learnt_from() const { return learning_from_; }
    program<Backend>& learner() { return part_.learner; }
    /// Unrolls that wait for the learner.
    std::size_t queued() const {
        const std::lock_guard lock(mutex_);
        return queue_.size();
    }

    /// Adds everything that training depends on, between unrolls; the actors pause meanwhile.
    void save(safetensors& file) {
        const pause still(*this);
        save_weights(file, *agent_->store, optimiser_);
        save_counters(file, mode,
                      {steps_, optimiser_.updates(), group_count_, static_cast<std::int64_t>(queue_.size())});
        for (int i = 0; i < group_count_; ++i) {
            each_group_part(i,
                            [&](const std::string& name, std::span<std::byte> part) { save_bytes(file, name, part); });
            save_environments(file, groups_[static_cast<std::size_t>(i)]->recorder.acting(), message("group.", i));
        }
        std::size_t at = 0;
        for (auto* unroll : queue_) {
            const std::string prefix = message("queue.", at++);
            file.add(prefix + ".from", {2}, std::vector<std::int64_t>{unroll->group, unroll->version});
            file.add(prefix + ".episodes", {static_cast<std::int64_t>(unroll->episodes.size())}, unroll->episodes);
            unroll->values.blocks().each([&](const auto& b) {
                file.add<real>(message(prefix, ".", b.name), {static_cast<std::int64_t>(b.data.size())},
                               std::span<const real>(b.data));
            });
        }
    }

    /// Restores what save() wrote, for the same division into groups; checks everything before anything changes.
    void load(const safetensors& file) {
        const pause still(*this);
        const auto counters = load_counters(file, mode, 4);
        require(counters[2] == group_count_, file.source(), ": was written with ", counters[2],
                " groups of environments, this run has ", group_count_,
                "; pass the same number of threads, or asynchronous.groups = ", counters[2]);
        const auto waiting = static_cast<std::size_t>(counters[3]);
        require(waiting <= buffers_.size(), file.source(), ": ", counters[3],
                " unrolls wait in its queue, this run has room for ", buffers_.size(), "; raise asynchronous.queue");
        check_weights(file, *agent_->store);
        std::vector<std::pair<actor<Backend>*, std::string>> acting;
        for (int i = 0; i < group_count_; ++i) {
            each_group_part(i,
                            [&](const std::string& name, std::span<std::byte> part) { check_bytes(file, name, part); });
            acting.emplace_back(&groups_[static_cast<std::size_t>(i)]->recorder.acting(), message("group.", i));
        }
        for (std::size_t k = 0; k < waiting; ++k) check_unroll(file, message("queue.", k));
        load_environments(file, acting);

        steps_ = counters[0];
        optimiser_.updates() = counters[1];
        load_weights(file, *agent_->store, optimiser_);
        for (int i = 0; i < group_count_; ++i) {
            each_group_part(i,
                            [&](const std::string& name, std::span<std::byte> part) { load_bytes(file, name, part); });
            groups_[static_cast<std::size_t>(i)]->recorder.acting().finished().clear();
        }
        queue_.clear();
        free_.clear();
        for (std::size_t k = 0; k < buffers_.size(); ++k) {
            if (k >= waiting) {
                free_.push_back(buffers_[k].get());
                continue;
            }
            load_unroll(file, message("queue.", k), *buffers_[k]);
            queue_.push_back(buffers_[k].get());
        }
        // The weights of an actor may be those of another run that had as many updates.
        for (auto& a : actors_) a.version = -1;
        publish();
        (void)take_window();
    }

private:
    static constexpr const char* mode = "asynchronous";

    /// Rows that act and learn together.
    struct group {
        group(const traced_agent<Backend>& agent, std::shared_ptr<parameters<real>> store,
              std::unique_ptr<batch_environment> environment, std::uint64_t seed, int first_row,
              const learner_part<Backend>& part)
            : recorder(agent, std::move(store), std::move(environment), seed, first_row, part.inputs) {
            for (const auto& r : agent.g->resources()) mirrors.push_back(r.make(recorder.acting().batch()));
        }
        recording_actor<Backend> recorder;
        std::vector<std::shared_ptr<resource>> mirrors;
    };

    /// What one actor thread owns: the copy of the weights that all its groups act with.
    struct actor_thread {
        std::shared_ptr<parameters<real>> store;
        std::int64_t version;
        std::vector<int> groups;
    };

    struct filled_unroll {
        explicit filled_unroll(const unroll_blocks<real>& layout) : values(layout) {}
        unroll_buffer<real> values;
        int group = 0;
        std::int64_t version = 0;
        std::vector<double> episodes;
    };

    /// No actor is in an unroll while this lives.
    class pause {
    public:
        explicit pause(asynchronous_trainer& t) : trainer_(&t) {
            std::unique_lock lock(t.mutex_);
            t.paused_ = true;
            t.changed_.wait(lock, [&] { return t.acting_ == 0; });
        }
        pause(const pause&) = delete;
        pause& operator=(const pause&) = delete;
        ~pause() {
            {
                const std::lock_guard lock(trainer_->mutex_);
                trainer_->paused_ = false;
            }
            trainer_->free_or_told_.notify_all();
        }

    private:
        asynchronous_trainer* trainer_;
    };

    // Groups have equally many rows, because all are learnt from with one plan.
    static int count_groups(const trainer_settings& s, int threads) {
        const int rows = s.rollout.environments, actors = std::max(1, threads - 1), wanted = s.asynchronous.groups;
        s.asynchronous.check();
        require(threads > 0 && actors <= rows, "threads: expected 1 to ", rows + 1,
                " (one more than environments), got ", threads);
        if (wanted > 0) {
            require(wanted >= actors && rows % wanted == 0, "asynchronous.groups: ", rows, " environments on ", actors,
                    " acting threads do not divide into ", wanted, " equal groups of at least one a thread");
            return wanted;
        }
        for (const int least : {2 * actors, actors})
            for (int n = least; n <= rows; ++n)
                if (rows % n == 0) return n;
        return rows;
    }

    void run(std::size_t index) {
        auto& self = actors_[index];
        try {
            for (std::size_t turn = 0;; turn = (turn + 1) % self.groups.size()) {
                filled_unroll* unroll = nullptr;
                {
                    std::unique_lock lock(mutex_);
                    free_or_told_.wait(lock, [this] { return ending_ || failure_ || (!paused_ && !free_.empty()); });
                    if (ending_ || failure_) return;
                    unroll = free_.back();
                    free_.pop_back();
                    ++acting_;
                }
                take_weights(self);
                unroll->group = self.groups[turn];
                unroll->version = self.version;
                auto& recorder = groups_[static_cast<std::size_t>(unroll->group)]->recorder;
                recorder.record(unroll->values.blocks());
                unroll->episodes.clear();
                std::swap(unroll->episodes, recorder.acting().finished());
                {
                    const std::lock_guard lock(mutex_);
                    queue_.push_back(unroll);
                    --acting_;
                }
                changed_.notify_one();
            }
        } catch (...) {
            {
                const std::lock_guard lock(mutex_);
                if (!failure_) failure_ = std::current_exception();
                --acting_;
            }
            changed_.notify_one();
            free_or_told_.notify_all();
        }
    }

    /// The oldest unroll into the learner's plan, with the memories of its group.
    void take_unroll() {
        filled_unroll* unroll = nullptr;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return failure_ || !queue_.empty(); });
            if (failure_) std::rethrow_exception(failure_);
            unroll = queue_.front();
            queue_.pop_front();
        }
        ask_for(part_.learner, part_.inputs);
        if constexpr (device_backend<Backend>)
            if (after_) (void)end_inputs(*after_);
        unroll->values.copy_to(part_.inputs);
        const auto lag = static_cast<double>(optimiser_.updates() - unroll->version);
        window_.lag += (lag - window_.lag) / static_cast<double>(++window_unrolls_);
        window_.largest_lag = std::max(window_.largest_lag, lag);
        learning_from_ = unroll->group;
        window_.episodes.insert(window_.episodes.end(), unroll->episodes.begin(), unroll->episodes.end());
        {
            const std::lock_guard lock(mutex_);
            free_.push_back(unroll);
        }
        free_or_told_.notify_one();
        auto& mirrors = groups_[static_cast<std::size_t>(learning_from_)]->mirrors;
        for (std::size_t r = 0; r < mirrors.size(); ++r) {
            part_.learner.bound_resource(r) = mirrors[r];
            if (after_) after_->bound_resource(r) = mirrors[r];
        }
    }

    /// The learner's value of what comes after the unroll, which stands in its buffers, becomes the bootstrap.
    void value_the_end() {
        auto& learner = part_.learner;
        for (const auto& name : after_->state_names()) {
            const auto from = learner.next_state(name);
            std::copy(from.begin(), from.end(), after_->state(name).begin());
        }
        if constexpr (device_backend<Backend>) learner.executor().wait();  // what it wrote into the memories is there
        after_->forward();
        const auto value = after_->output(agent_->value);
        const auto to = learner.input("bootstrap");
        for (int b = 0; b < rows_; ++b) to[static_cast<std::size_t>(b)] = value.data[b * value.stride];
        learner.refresh("bootstrap");
    }

    std::vector<program<Backend>*> programs() { return {&part_.learner}; }

    void take_weights(actor_thread& self) {
        std::unique_lock lock(weights_mutex_);
        if (self.version == published_version_) return;
        auto edit = self.store->edit();
        std::copy(published_.begin(), published_.end(), edit.flat().begin());
        self.version = published_version_;
        lock.unlock();  // packing, when the edit ends, is the actor's own affair
    }

    void publish() {
        fetch_weights(part_.learner, *agent_->store);
        const std::lock_guard lock(weights_mutex_);
        const auto now = agent_->store->flat();
        std::copy(now.begin(), now.end(), published_.begin());
        published_version_ = optimiser_.updates();
    }

    template <class Body>
    void each_group_part(int i, Body body) {
        if constexpr (device_backend<Backend>) part_.learner.executor().wait();  // it may be at a mirror
        auto& g = *groups_[static_cast<std::size_t>(i)];
        const std::string prefix = message("group.", i);
        each_part(g.recorder.acting(), prefix, body);
        for (std::size_t r = 0; r < g.mirrors.size(); ++r) {
            std::size_t k = 0;
            for (auto part : g.mirrors[r]->bytes()) body(message(prefix, ".mirror.", r, ".", k++), part);
        }
        if (i == 0) body("trainer.replays", std::as_writable_bytes(std::span(&part_.learner.replay_count(), 1)));
    }

    void check_unroll(const safetensors& file, const std::string& prefix) const {
        const auto from = file.values<std::int64_t>(prefix + ".from", {2});
        require(from[0] >= 0 && from[0] < group_count_, file.source(), ": ", prefix, " comes from group ", from[0],
                " of ", group_count_);
        (void)file.values<double>(prefix + ".episodes");
        part_.inputs.each([&](const auto& b) {
            (void)file.values<real>(message(prefix, ".", b.name), {static_cast<std::int64_t>(b.data.size())});
        });
    }
    void load_unroll(const safetensors& file, const std::string& prefix, filled_unroll& to) {
        const auto from = file.values<std::int64_t>(prefix + ".from");
        to.group = static_cast<int>(from[0]);
        to.version = from[1];
        const auto episodes = file.values<double>(prefix + ".episodes");
        to.episodes.assign(episodes.begin(), episodes.end());
        to.values.blocks().each([&](const auto& b) {
            const auto values = file.values<real>(message(prefix, ".", b.name));
            std::copy(values.begin(), values.end(), b.data.begin());
        });
    }

    const traced_agent<Backend>* agent_;
    trainer_settings settings_;
    std::int64_t total_steps_, steps_ = 0;
    optimiser_of<Backend> optimiser_;
    int group_count_, rows_;
    learner_part<Backend> part_;
    std::unique_ptr<program<Backend>>
        after_;  // one step, looking on; null where the behaviour's value is the bootstrap
    std::optional<gradient_sum<Backend>> held_;  // of the unrolls of an update, where there are several
    std::vector<actor_thread> actors_;
    std::vector<std::unique_ptr<group>> groups_;
    std::vector<std::unique_ptr<filled_unroll>> buffers_;
    int learning_from_ = -1;
    training_window window_;
    std::int64_t window_unrolls_ = 0;

    mutable std::mutex mutex_;  // guards the next six
    std::vector<filled_unroll*> free_;
    std::deque<filled_unroll*> queue_;  // oldest first
    int acting_ = 0;                    // threads in an unroll
    bool paused_ = false, ending_ = false;
    std::exception_ptr failure_;
    std::condition_variable free_or_told_;  // for actors: a buffer came free, the pause or the run ends
    std::condition_variable changed_;       // for the learner: an unroll was queued, an actor stopped

    std::mutex weights_mutex_;  // guards the next two
    std::vector<real> published_;
    std::int64_t published_version_ = 0;

    std::vector<std::jthread> threads_;  // last: nothing goes before they are joined
};

}  // namespace engram
