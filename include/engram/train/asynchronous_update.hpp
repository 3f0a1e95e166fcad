#pragma once
// SPDX-License-Identifier: MIT

// Asynchronous training (IMPALA): threads that act fill unrolls while the caller's thread learns from earlier ones.
//
// The environments are divided into groups, each of one thread that acts (train/acting_threads.hpp). It takes a free
// buffer, copies the newest published weights into a store of its own if they changed, acts for T steps in its next
// group and queues the buffer (train/unroll_queue.hpp). The learner takes the oldest one, copies it into its plan of
// T x group rows, lends that plan the group's memories, updates and publishes. An unroll is learnt from `lag` updates
// after the weights that acted (V-trace). With `whole` an update sums the gradients of the oldest unrolls, as many as
// there are groups: its batch is that of synchronous training, however the environments are divided.
//
// What the unroll's returns end in is valued by the learner, from the states and memories that its own sweep arrived
// at; PPO, whose returns are of the behaviour's values, ends in the behaviour's.
//
// With other processes the first one learns and the others act, by the same threads (train/actors_apart.hpp).
//
// Each group has two sets of memories. The behaviour's stand where acting stands; the mirror stands where learning does
// and replays the contents that the behaviour recorded, under keys of the learner's own weights. The rings are never
// shipped.
//
// Which weights act depends on timing, so runs do not repeat bit for bit. A checkpoint is taken between unrolls of all
// actors and keeps the queue; a resumed run goes on from there, but not with the bits of the uninterrupted one.
// On a device actors and learner have streams of their own, and weights come to the actors through the host. A learner
// with memories runs unrecorded: its groups take turns, and a recorded sweep holds the memories of one of them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <engram/train/acting_threads.hpp>
#include <engram/train/acting_update.hpp>
#include <engram/train/actors_apart.hpp>
#include <engram/train/unroll_queue.hpp>

namespace engram {

/// The plan that learns from unrolls of `rows` rows out of `total_rows`, and where they go in.
template <class Backend>
struct learner_part {
    learner_part(const traced_agent<Backend>& agent, int steps, int rows, int total_rows)
        : learner(*agent.g, agent.store,
                  {.steps = steps, .batch = rows, .gradients = true, .replay = true, .total_batch = total_rows}),
          inputs(unroll_inputs(agent, learner)) {
        if (learner.has_input("behaviour_value")) return;
        after = std::make_unique<program<Backend>>(*agent.g, agent.store,
                                                   plan_options{.steps = 1, .batch = rows, .side_effects = false},
                                                   std::vector<var<Backend>>{agent.value});
        inputs.end = end_inputs(*after);
    }

    program<Backend> learner;
    unroll_blocks<typename Backend::real> inputs;
    // One step, looking on; null where the behaviour's value is the bootstrap.
    std::unique_ptr<program<Backend>> after;
};

template <class Backend>
class asynchronous_update {
public:
    using backend = Backend;
    using real = typename Backend::real;
    static constexpr const char* mode = "asynchronous";

    static constexpr bool one_process_learns = true;

    /// One thread learns (the caller's), max(1, threads - 1) act; of several processes the first one learns and each of
    /// the others acts with `threads` threads. The actors start with the first iterate() or serve().
    asynchronous_update(const loop_settings& loop, const traced_agent<Backend>& agent, const environment_maker& make,
                        const acting_settings& s)
        : agent_(&agent),
          settings_(s),
          role_(!loop.others               ? process_role::trains
                : loop.others->rank() == 0 ? process_role::learns
                                           : process_role::acts),
          groups_(divide_into_groups(s, loop.threads, loop.others ? loop.others->count() - 1 : 0)),
          part_(plan_learner(groups_.rows)),
          queue_(part_->inputs, static_cast<std::size_t>(s.asynchronous.queue * acting_for_this_process()),
                 unrolls_of_update()),
          weights_(agent.store->flat()),
          actors_(queue_, weights_) {
        require(!device_backend<Backend> || !loop.others, "processes act apart on the host alone, not on a device");
        s.rollout.check_asynchronous();
        if (const auto& adapted = agent.g->adaptive_weights(); !adapted.empty())
            fail(adapted.front().loss,
                 ": its weight is adapted between passes, but asynchronous training learns once from every unroll");
        if (acts())
            actors_.add_groups(groups_, loop.others ? loop.others->rank() : 0, agent, make, loop.seed, part_->inputs);
        if (role_ == process_role::acts) {
            to_learner_.emplace(*loop.others, queue_, weights_);
            // What does not learn needs its names, and not the memory of a whole plan.
            part_ = plan_learner(1);
            return;
        }
        if (s.asynchronous.whole) held_.emplace(part_->learner);
        mirrors_.resize(static_cast<std::size_t>(groups_.count));
        for (auto& mirror : mirrors_)
            for (const auto& r : agent.g->resources()) mirror.push_back(r.make(groups_.rows));
        if (loop.others)
            to_actors_.emplace(*loop.others, queue_, groups_,
                               static_cast<std::size_t>(groups_.threads * s.asynchronous.queue));
    }
    asynchronous_update(const asynchronous_update&) = delete;
    asynchronous_update& operator=(const asynchronous_update&) = delete;
    ~asynchronous_update() {
        if (to_actors_) to_actors_->end(last_words_);
    }

    /// Lets the actors run ahead; iterate() does it too.
    void start() {
        if (std::exchange(started_, true)) return;
        if (learns()) publish();
        actors_.start();
    }

    /// One update from the oldest unroll (with `whole`, unrolls), waiting for one if need be. Throws what an actor
    /// threw.
    void iterate(training_context<Backend>& by) {
        with_all([&] { learn(by); });
    }

    process_role role() const { return role_; }
    /// Of a process that acts: carries what its threads fill to the learner, and its weights back, for a tenth of a
    /// second or until it is called. Throws what the learner ended with.
    process_call serve() {
        start();
        return to_learner_ ? to_learner_->serve([this] { actors_.end(); }) : process_call::none;
    }
    void tell_to_stop() { to_learner_->tell_to_stop(); }
    bool told_to_stop() const { return to_actors_ && to_actors_->told_to_stop(); }

    /// No unroll is learnt from more updates after the weights that it acted with.
    std::int64_t longest_lag() const { return queue_.longest_lag(); }

    const optimiser_settings& optimiser() const { return settings_.optimiser; }
    const std::shared_ptr<parameters<real>>& store() const { return agent_->store; }
    int shards() const { return 1; }
    program<Backend>& learner(std::size_t = 0) { return part_->learner; }
    std::vector<std::string> loss_names() const { return names_of_losses(part_->learner); }
    const traced_agent<Backend>& agent() const { return *agent_; }
    int groups() const { return groups_.count; }
    /// The group of the last update.
    int group_learnt_from() const { return learning_from_; }
    /// Unrolls that wait for the learner.
    std::size_t queued() const { return queue_.size(); }

    /// A checkpoint is made between unrolls of all actors.
    auto pause() { return between_unrolls(*this); }

    template <class Body>
    void each_part(Body body) {
        if constexpr (device_backend<Backend>) part_->learner.executor().wait();  // it may be at a mirror
        actors_.each([&](int i, auto& acting) { engram::each_part(acting, message("group.", i), body); });
        for (std::size_t i = 0; i < mirrors_.size(); ++i)
            for (std::size_t r = 0; r < mirrors_[i].size(); ++r) {
                std::size_t k = 0;
                for (auto part : mirrors_[i][r]->bytes()) body(message("group.", i, ".mirror.", r, ".", k++), part);
            }
        if (learns()) body("trainer.replays", std::as_writable_bytes(std::span(&part_->learner.replay_count(), 1)));
    }
    void save(safetensors& file) {
        actors_.each([&](int i, auto& acting) { save_environments(file, acting.environment(), message("group.", i)); });
        if (!learns()) return;
        file.add("asynchronous.groups", {2},
                 std::vector<std::int64_t>{groups_.count, static_cast<std::int64_t>(queue_.size())});
        queue_.save(file);
    }

    void check(const safetensors& file) {
        require(role_ == process_role::trains || !started_,
                "a run whose actors are apart is loaded before it goes on, not while");
        queue_.check(file, waiting(file), groups_.count, learns());
    }
    void load(const safetensors& file) {
        std::vector<std::pair<environment_rows*, std::string>> all;
        actors_.each([&](int i, auto& acting) {
            all.emplace_back(&acting.environment(), message("group.", i));
            acting.finished().clear();
        });
        load_environments(file, all);
        if (learns()) queue_.load(file, waiting(file));
    }
    void loaded(training_context<Backend>& by) {
        actors_.forget_weights();
        updates_ = by.optimiser.updates();
        window_unrolls_ = 0;
        if (learns()) publish();
        actors_.each([](int, auto& acting) {
            if (!acting.environment().resumes()) acting.begin_anew();
        });
    }
    void describe(training_context<Backend>&) { window_unrolls_ = 0; }

private:
    /// No actor is in an unroll while this lives.
    class between_unrolls {
    public:
        explicit between_unrolls(asynchronous_update& t) : queue_(&t.queue_) {
            queue_->pause();
            t.with_all([&] {
                // A group whose actor failed stands within an unroll that nobody will learn from.
                if (t.learns()) queue_->throw_failure();
                if (t.to_actors_ && t.started_) t.to_actors_->pause();
            });
        }
        between_unrolls(const between_unrolls&) = delete;
        between_unrolls& operator=(const between_unrolls&) = delete;
        ~between_unrolls() { queue_->resume(); }

    private:
        unroll_queue<real>* queue_;
    };

    /// Whatever is thrown here all processes end with.
    template <class Body>
    void with_all(Body body) {
        try {
            body();
        } catch (const error& problem) {
            if (!to_actors_) throw;
            last_words_ = problem.what();
            throw agreed_error(last_words_);
        }
    }

    bool acts() const { return role_ != process_role::learns; }
    bool learns() const { return role_ != process_role::acts; }
    /// Threads whose unrolls come into this process's queue.
    int acting_for_this_process() const { return learns() ? groups_.all_threads : groups_.threads; }
    std::size_t unrolls_of_update() const {
        return settings_.asynchronous.whole ? static_cast<std::size_t>(groups_.count) : 1;
    }
    std::unique_ptr<learner_part<Backend>> plan_learner(int rows) const {
        return std::make_unique<learner_part<Backend>>(
            *agent_, settings_.rollout.unroll, rows,
            settings_.asynchronous.whole ? settings_.rollout.environments : rows);
    }

    void learn(training_context<Backend>& by) {
        updates_ = by.optimiser.updates();
        start();
        auto& learner = part_->learner;
        const auto count = unrolls_of_update();
        double loss = 0;
        for (std::size_t i = 0; i < count; ++i) {
            take_unroll(by.window);
            learner.forward();
            if (part_->after) value_the_end();
            by.steps += std::int64_t{settings_.rollout.unroll} * groups_.rows;
            if (!std::isfinite(learner.loss())) refuse_update(by.steps, "loss", learner.loss(), programs());
            loss += learner.loss();
            (void)by.sum_losses(programs());
            learner.backward();
            if (i + 1 == count) break;
            held_->hold(learner, i == 0);
            if (to_actors_) to_actors_->permit(agent_->store->flat(), updates_);  // a buffer came free
        }
        if (count > 1) held_->give(learner);
        by.note(loss, by.step(programs(), 1, loss));
        updates_ = by.optimiser.updates();
        publish();
    }

    /// The oldest unroll into the learner's plan, with the memories of its group.
    void take_unroll(training_window& window) {
        auto* const unroll = to_actors_ ? to_actors_->wait_for_next(updates_) : queue_.wait_for_next(updates_);
        ask_for(part_->learner, part_->inputs);
        if constexpr (device_backend<Backend>)
            if (part_->after) (void)end_inputs(*part_->after);
        unroll->values.copy_to(part_->inputs);
        const auto lag = static_cast<double>(updates_ - unroll->version);
        window.lag += (lag - window.lag) / static_cast<double>(++window_unrolls_);
        window.largest_lag = std::max(window.largest_lag, lag);
        learning_from_ = unroll->group;
        window.episodes.insert(window.episodes.end(), unroll->episodes.begin(), unroll->episodes.end());
        queue_.give_back(unroll);
        const auto& mirror = mirrors_[static_cast<std::size_t>(learning_from_)];
        for (std::size_t r = 0; r < mirror.size(); ++r) {
            part_->learner.bound_resource(r) = mirror[r];
            if (part_->after) part_->after->bound_resource(r) = mirror[r];
        }
    }

    /// The learner's value of what comes after the unroll, which stands in its buffers, becomes the bootstrap.
    void value_the_end() {
        auto &learner = part_->learner, &after = *part_->after;
        for (const auto& name : after.state_names()) {
            const auto from = learner.next_state(name);
            std::copy(from.begin(), from.end(), after.state(name).begin());
        }
        if constexpr (device_backend<Backend>) learner.executor().wait();  // what it wrote into the memories is there
        after.forward();
        const auto value = after.output(agent_->value);
        const auto to = learner.input("bootstrap");
        for (int b = 0; b < groups_.rows; ++b) to[static_cast<std::size_t>(b)] = value.data[b * value.stride];
        learner.refresh("bootstrap");
    }

    std::vector<program<Backend>*> programs() { return {&part_->learner}; }

    void publish() {
        fetch_weights(part_->learner, *agent_->store);
        const auto now = agent_->store->flat();
        if (to_actors_) {
            if (started_) to_actors_->permit(now, updates_);
            return;
        }
        weights_.publish(updates_, [&](auto to) { std::copy(now.begin(), now.end(), to.begin()); });
        queue_.published(updates_);
    }

    /// Unrolls that wait in a file; throws when it belongs to another division into groups.
    std::size_t waiting(const safetensors& file) const {
        const auto of = file.values<std::int64_t>("asynchronous.groups", {2});
        require(of[0] == groups_.count, file.source(), ": was written with ", of[0],
                " groups of environments, this run has ", groups_.count,
                "; pass the same number of threads, or asynchronous.groups = ", of[0]);
        require(of[1] >= 0, file.source(), ": ", of[1], " unrolls wait in its queue; expected none or more");
        return static_cast<std::size_t>(of[1]);
    }

    const traced_agent<Backend>* agent_;
    acting_settings settings_;
    process_role role_;
    acting_groups groups_;
    std::int64_t updates_ = 0;
    std::unique_ptr<learner_part<Backend>> part_;
    std::optional<gradient_sum<Backend>> held_;  // of the unrolls of an update, where there are several
    std::vector<std::vector<std::shared_ptr<resource>>> mirrors_;  // of each group, where this process learns
    int learning_from_ = -1;
    std::int64_t window_unrolls_ = 0;
    bool started_ = false;
    std::string last_words_;  // the sentence that other processes end with

    unroll_queue<real> queue_;
    published_weights<real> weights_;
    std::optional<actors_apart<real>> to_actors_;    // of the process that learns, where others act
    std::optional<learner_apart<real>> to_learner_;  // of a process that acts
    acting_threads<Backend> actors_;                 // last: they use what stands above
};

}  // namespace engram
