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

#include <engram/train/acting_update.hpp>

namespace engram {

template <class Backend>
class asynchronous_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "asynchronous";

    /// One thread learns (the caller's), max(1, threads - 1) act. The actors start with the first iterate().
    asynchronous_update(const loop_settings& loop, const traced_agent<Backend>& agent, const environment_maker& make,
                        const acting_settings& s)
        : agent_(&agent),
          settings_(s),
          group_count_(count_groups(s, loop.threads)),
          rows_(s.rollout.environments / group_count_),
          part_(agent, s.rollout.unroll, rows_, s.asynchronous.whole ? s.rollout.environments : rows_),
          published_(agent.store->flat().begin(), agent.store->flat().end()) {
        require(!loop.others, "asynchronous training is one process, not ", loop.process_count());
        require(s.rollout.epochs == 1 && s.rollout.minibatches == 1, "rollout: ", s.rollout.epochs, " epochs of ",
                s.rollout.minibatches, " minibatches, but asynchronous training learns once from every unroll");
        if (!part_.learner.has_input("behaviour_value")) {
            after_ = std::make_unique<program<Backend>>(*agent.g, agent.store,
                                                        plan_options{.steps = 1, .batch = rows_, .side_effects = false},
                                                        std::vector<var<Backend>>{agent.value});
            part_.inputs.end = end_inputs(*after_);
        }
        if (s.asynchronous.whole) held_.emplace(part_.learner);
        for (int i = 0; i < std::max(1, loop.threads - 1); ++i)
            actors_.push_back({std::make_shared<parameters<real>>(*agent.store), -1, {}});
        for (int i = 0; i < group_count_; ++i) {
            auto& who = actors_[static_cast<std::size_t>(i) % actors_.size()];
            who.groups.push_back(i);
            groups_.push_back(
                std::make_unique<group>(agent, who.store, make(rows_, i * rows_), loop.seed, i * rows_, part_));
        }
        const std::size_t buffers = actors_.size() * static_cast<std::size_t>(s.asynchronous.queue);
        for (std::size_t i = 0; i < buffers; ++i) {
            buffers_.push_back(std::make_unique<filled_unroll>(part_.inputs));
            free_.push_back(buffers_.back().get());
        }
    }
    asynchronous_update(const asynchronous_update&) = delete;
    asynchronous_update& operator=(const asynchronous_update&) = delete;
    ~asynchronous_update() {
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
    /// threw.
    void iterate(training_context<Backend>& by) {
        updates_ = by.optimiser.updates();
        start();
        auto& learner = part_.learner;
        const int unrolls = settings_.asynchronous.whole ? group_count_ : 1;
        double loss = 0;
        for (int i = 0; i < unrolls; ++i) {
            take_unroll(by.window);
            learner.forward();
            if (after_) value_the_end();
            by.steps += std::int64_t{settings_.rollout.unroll} * rows_;
            if (!std::isfinite(learner.loss())) refuse_update(by.steps, "loss", learner.loss(), programs());
            loss += learner.loss();
            (void)by.sum_losses(programs());
            learner.backward();
            if (i + 1 < unrolls) held_->hold(learner, i == 0);
        }
        if (unrolls > 1) held_->give(learner);
        by.note(loss, by.step(programs(), 1, loss));
        updates_ = by.optimiser.updates();
        publish();
    }

    const optimiser_settings& optimiser() const { return settings_.optimiser; }
    const std::shared_ptr<parameters<real>>& store() const { return agent_->store; }
    int shards() const { return 1; }
    program<Backend>& learner(std::size_t = 0) { return part_.learner; }
    std::vector<std::string> loss_names() const { return names_of_losses(part_.learner); }
    const traced_agent<Backend>& agent() const { return *agent_; }
    int groups() const { return group_count_; }
    /// The group of the last update.
    int group_learnt_from() const { return learning_from_; }
    /// Unrolls that wait for the learner.
    std::size_t queued() const {
        const std::lock_guard lock(mutex_);
        return queue_.size();
    }

    /// A checkpoint is made between unrolls of all actors.
    auto pause() { return between_unrolls(*this); }

    template <class Body>
    void each_part(Body body) {
        for (int i = 0; i < group_count_; ++i) each_group_part(i, body);
    }
    void save(safetensors& file) {
        file.add("asynchronous.groups", {2},
                 std::vector<std::int64_t>{group_count_, static_cast<std::int64_t>(queue_.size())});
        for (int i = 0; i < group_count_; ++i)
            save_environments(file, groups_[static_cast<std::size_t>(i)]->recorder.acting(), message("group.", i));
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

    void check(const safetensors& file) {
        for (std::size_t k = 0; k < waiting(file); ++k) check_unroll(file, message("queue.", k));
    }
    void load(const safetensors& file) {
        std::vector<std::pair<actor<Backend>*, std::string>> acting;
        for (int i = 0; i < group_count_; ++i)
            acting.emplace_back(&groups_[static_cast<std::size_t>(i)]->recorder.acting(), message("group.", i));
        load_environments(file, acting);
        for (const auto& a : acting) a.first->finished().clear();
        queue_.clear();
        free_.clear();
        for (std::size_t k = 0; k < buffers_.size(); ++k) {
            if (k >= waiting(file)) {
                free_.push_back(buffers_[k].get());
                continue;
            }
            load_unroll(file, message("queue.", k), *buffers_[k]);
            queue_.push_back(buffers_[k].get());
        }
    }
    void loaded(training_context<Backend>& by) {
        // The weights of an actor may be those of another run that had as many updates.
        for (auto& a : actors_) a.version = -1;
        updates_ = by.optimiser.updates();
        window_unrolls_ = 0;
        publish();
    }
    void describe(training_context<Backend>&) { window_unrolls_ = 0; }

private:
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
    class between_unrolls {
    public:
        explicit between_unrolls(asynchronous_update& t) : update_(&t) {
            std::unique_lock lock(t.mutex_);
            t.paused_ = true;
            t.changed_.wait(lock, [&] { return t.acting_ == 0; });
        }
        between_unrolls(const between_unrolls&) = delete;
        between_unrolls& operator=(const between_unrolls&) = delete;
        ~between_unrolls() {
            {
                const std::lock_guard lock(update_->mutex_);
                update_->paused_ = false;
            }
            update_->free_or_told_.notify_all();
        }

    private:
        asynchronous_update* update_;
    };

    // Groups have equally many rows, because all are learnt from with one plan.
    static int count_groups(const acting_settings& s, int threads) {
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
    void take_unroll(training_window& window) {
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
        const auto lag = static_cast<double>(updates_ - unroll->version);
        window.lag += (lag - window.lag) / static_cast<double>(++window_unrolls_);
        window.largest_lag = std::max(window.largest_lag, lag);
        learning_from_ = unroll->group;
        window.episodes.insert(window.episodes.end(), unroll->episodes.begin(), unroll->episodes.end());
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
        published_version_ = updates_;
    }

    template <class Body>
    void each_group_part(int i, Body body) {
        if constexpr (device_backend<Backend>) part_.learner.executor().wait();  // it may be at a mirror
        auto& g = *groups_[static_cast<std::size_t>(i)];
        const std::string prefix = message("group.", i);
        engram::each_part(g.recorder.acting(), prefix, body);
        for (std::size_t r = 0; r < g.mirrors.size(); ++r) {
            std::size_t k = 0;
            for (auto part : g.mirrors[r]->bytes()) body(message(prefix, ".mirror.", r, ".", k++), part);
        }
        if (i == 0) body("trainer.replays", std::as_writable_bytes(std::span(&part_.learner.replay_count(), 1)));
    }

    /// Unrolls that wait in a file; throws when it belongs to another division into groups.
    std::size_t waiting(const safetensors& file) const {
        const auto of = file.values<std::int64_t>("asynchronous.groups", {2});
        require(of[0] == group_count_, file.source(), ": was written with ", of[0],
                " groups of environments, this run has ", group_count_,
                "; pass the same number of threads, or asynchronous.groups = ", of[0]);
        require(of[1] >= 0 && static_cast<std::size_t>(of[1]) <= buffers_.size(), file.source(), ": ", of[1],
                " unrolls wait in its queue, this run has room for ", buffers_.size(), "; raise asynchronous.queue");
        return static_cast<std::size_t>(of[1]);
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
    acting_settings settings_;
    std::int64_t updates_ = 0;
    int group_count_, rows_;
    learner_part<Backend> part_;
    std::unique_ptr<program<Backend>>
        after_;  // one step, looking on; null where the behaviour's value is the bootstrap
    std::optional<gradient_sum<Backend>> held_;  // of the unrolls of an update, where there are several
    std::vector<actor_thread> actors_;
    std::vector<std::unique_ptr<group>> groups_;
    std::vector<std::unique_ptr<filled_unroll>> buffers_;
    int learning_from_ = -1;
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
