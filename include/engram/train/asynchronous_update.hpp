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
// Actors wait for a buffer before they act, not after, so that they act with weights as new as can be. Of the unrolls
// that wait, the one that acted with the oldest weights comes first, and the learner waits for those still under way
// where they would fall behind: no lag is more than twice the updates that learn from all buffers.
//
// With other processes (docs/decisions/0024) the first one learns and the others act, by the same threads: these find
// free buffers and new weights where they do in one process, and the thread that called serve() carries both from and
// to the learner. A buffer is free when the learner has permitted one more unroll, with its newest weights.
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
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <engram/train/acting_update.hpp>
#include <engram/train/unroll_letters.hpp>

namespace engram {

/// The plan that learns from unrolls of `rows` rows out of `total_rows`, and where they go in.
template <class Backend>
struct learner_part {
    learner_part(const traced_agent<Backend>& agent, int steps, int rows, int total_rows)
        : learner(*agent.g, agent.store,
                  {.steps = steps, .batch = rows, .gradients = true, .replay = true, .total_batch = total_rows}),
          inputs(unroll_inputs(agent, learner)) {}

    program<Backend> learner;
    unroll_blocks<typename Backend::real> inputs;
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
          others_(loop.others),
          learns_(!others_ || others_->rank() == 0),
          acts_(!others_ || !learns_),
          threads_here_(others_ ? loop.threads : std::max(1, loop.threads - 1)),
          acting_threads_(others_ ? (others_->count() - 1) * loop.threads : threads_here_),
          group_count_(count_groups(s, loop)),
          rows_(s.rollout.environments / group_count_),
          part_(plan_learner(s.rollout.unroll, rows_)),
          published_(agent.store->flat().begin(), agent.store->flat().end()) {
        require(!device_backend<Backend> || !others_, "processes act apart on the host alone, not on a device");
        require(s.rollout.epochs == 1 && s.rollout.minibatches == 1, "rollout: ", s.rollout.epochs, " epochs of ",
                s.rollout.minibatches, " minibatches, but asynchronous training learns once from every unroll");
        if (!part_->learner.has_input("behaviour_value")) {
            after_ = std::make_unique<program<Backend>>(*agent.g, agent.store,
                                                        plan_options{.steps = 1, .batch = rows_, .side_effects = false},
                                                        std::vector<var<Backend>>{agent.value});
            part_->inputs.end = end_inputs(*after_);
        }
        if (s.asynchronous.whole && learns_) held_.emplace(part_->learner);
        if (acts_)
            for (int i = 0; i < threads_here_; ++i)
                actors_.push_back({std::make_shared<parameters<real>>(*agent.store), -1, {}});
        for (int i = 0; i < group_count_; ++i) {
            groups_.push_back(std::make_unique<group>());
            if (learns_)
                for (const auto& r : agent.g->resources()) groups_.back()->mirrors.push_back(r.make(rows_));
            if (!acts_here(i)) continue;
            auto& who = actors_[static_cast<std::size_t>(i % acting_threads_ % threads_here_)];
            who.groups.push_back(i);
            groups_.back()->recorder.emplace(agent, who.store, make(rows_, i * rows_), loop.seed, i * rows_,
                                             part_->inputs);
        }
        room_ = static_cast<std::size_t>((learns_ ? acting_threads_ : threads_here_)) *
                static_cast<std::size_t>(s.asynchronous.queue);
        for (std::size_t i = 0; i < room_; ++i) free_.push_back(add_buffer());
        if (!learns_) {
            std::swap(free_, spare_);
            // What does not learn needs its names, and not the memory of a whole plan.
            part_ = plan_learner(s.rollout.unroll, 1);
        }
        if (others_) permitted_.resize(static_cast<std::size_t>(others_->count()));
    }
    asynchronous_update(const asynchronous_update&) = delete;
    asynchronous_update& operator=(const asynchronous_update&) = delete;
    ~asynchronous_update() {
        if (others_ && learns_) end_others();
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        free_or_told_.notify_all();
        threads_.clear();
    }

    /// Lets the actors run ahead; iterate() does it too.
    void start() {
        if (std::exchange(started_, true)) return;
        if (learns_) publish();
        for (std::size_t i = 0; i < actors_.size(); ++i) threads_.emplace_back([this, i] { run(i); });
    }

    /// One update from the oldest unroll (with `whole`, unrolls), waiting for one if need be. Throws what an actor
    /// threw.
    void iterate(training_context<Backend>& by) {
        try {
            learn(by);
        } catch (const error& problem) {
            if (!others_) throw;
            last_words_ = problem.what();
            throw agreed_error(last_words_);
        }
    }

    process_role role() const {
        return !others_ ? process_role::trains : learns_ ? process_role::learns : process_role::acts;
    }
    /// Carries what this process's actors fill to the learner, and its weights back, for a tenth of a second or until
    /// it is called. Throws what the learner ended with.
    process_call serve() {
        using clock = std::chrono::steady_clock;
        start();
        if (!others_ || learns_) return process_call::none;
        for (const auto until = clock::now() + std::chrono::milliseconds(100); clock::now() < until;) {
            bool idle = !deliver();
            while (const auto came = others_->take()) {
                idle = false;
                unroll_letters::reader letter(*came);
                const auto& head = letter.head();
                if (head.what == unroll_letters::kind::weights) take_permission(letter);
                if (head.what == unroll_letters::kind::pause) {
                    wait_until_nobody_acts();
                    (void)deliver();
                    post(0, {.what = unroll_letters::kind::paused});
                    return process_call::checkpoint;
                }
                if (head.what == unroll_letters::kind::end) {
                    end_actors();
                    post(0, {.what = unroll_letters::kind::ended});
                    const std::string why = letter.text();
                    if (!why.empty()) throw agreed_error(why);
                    return process_call::over;
                }
            }
            if (!idle) continue;
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, pause_between_looks, [this] { return !queue_.empty(); });
        }
        return process_call::none;
    }
    void tell_to_stop() { post(0, {.what = unroll_letters::kind::stop}); }
    bool told_to_stop() const { return told_to_stop_; }

    /// No unroll is learnt from more updates after the weights that it acted with.
    std::int64_t longest_lag() const { return 2 * updates_of(buffers_.size()); }

    const optimiser_settings& optimiser() const { return settings_.optimiser; }
    const std::shared_ptr<parameters<real>>& store() const { return agent_->store; }
    int shards() const { return 1; }
    program<Backend>& learner(std::size_t = 0) { return part_->learner; }
    std::vector<std::string> loss_names() const { return names_of_losses(part_->learner); }
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
        for (int i = 0; i < group_count_; ++i)
            if (acts_here(i)) save_environments(file, acting(i).environment(), message("group.", i));
        if (!learns_) return;
        file.add("asynchronous.groups", {2},
                 std::vector<std::int64_t>{group_count_, static_cast<std::int64_t>(queue_.size())});
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
        require(!others_ || !started_, "a run whose actors are apart is loaded before it goes on, not while");
        for (std::size_t k = 0; k < waiting(file); ++k) check_unroll(file, message("queue.", k));
    }
    void load(const safetensors& file) {
        std::vector<std::pair<environment_rows*, std::string>> all;
        for (int i = 0; i < group_count_; ++i)
            if (acts_here(i)) all.emplace_back(&acting(i).environment(), message("group.", i));
        load_environments(file, all);
        for (int i = 0; i < group_count_; ++i)
            if (acts_here(i)) acting(i).finished().clear();
        if (!learns_) return;
        queue_.clear();
        free_.clear();
        // More may wait than fill now: the run was one of more actors.
        const std::size_t found = waiting(file);
        while (buffers_.size() < found) (void)add_buffer();
        for (std::size_t k = 0; k < buffers_.size(); ++k) {
            if (k >= found) {
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
        for (auto& g : groups_)
            if (g->recorder && !g->recorder->acting().environment().resumes()) g->recorder->acting().begin_anew();
    }
    void describe(training_context<Backend>&) { window_unrolls_ = 0; }

private:
    /// Rows that act and learn together: what acts where they act, and what the learner replays where it learns.
    struct group {
        std::optional<recording_actor<Backend>> recorder;
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
        bool under_way = false;     // an actor of this process fills it
        std::int64_t promised = 0;  // it was, or will be, begun with this version of the weights or a newer one
    };

    /// No actor is in an unroll while this lives.
    class between_unrolls {
    public:
        explicit between_unrolls(asynchronous_update& t) : update_(&t) {
            if (t.acts_)
                t.wait_until_nobody_acts();
            else if (t.started_)
                t.pause_others();
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
    int count_groups(const acting_settings& s, const loop_settings& loop) const {
        const int rows = s.rollout.environments, actors = acting_threads_, wanted = s.asynchronous.groups;
        s.asynchronous.check();
        if (others_)
            require(loop.threads > 0 && actors > 0 && actors <= rows, others_->count() - 1, " processes act, with ",
                    loop.threads, " threads each; expected 1 to ", rows, " threads (rollout.environments)");
        else
            require(loop.threads > 0 && actors <= rows, "threads: expected 1 to ", rows + 1,
                    " (one more than environments), got ", loop.threads);
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
    std::unique_ptr<learner_part<Backend>> plan_learner(int steps, int rows) const {
        return std::make_unique<learner_part<Backend>>(
            *agent_, steps, rows, settings_.asynchronous.whole ? settings_.rollout.environments : rows);
    }
    /// The process whose thread acts in a group; threads of all processes take groups in turn.
    int process_of(int g) const { return others_ ? 1 + g % acting_threads_ / threads_here_ : 0; }
    actor<Backend>& acting(int g) { return groups_[static_cast<std::size_t>(g)]->recorder->acting(); }
    bool acts_here(int g) const { return acts_ && (!others_ || process_of(g) == others_->rank()); }

    filled_unroll* add_buffer() { return buffers_.emplace_back(std::make_unique<filled_unroll>(part_->inputs)).get(); }
    /// Of an update.
    std::size_t unrolls() const { return settings_.asynchronous.whole ? static_cast<std::size_t>(group_count_) : 1; }
    /// The updates that learn from so many unrolls, wherever in one they begin.
    std::int64_t updates_of(std::size_t unrolls_under_way) const {
        return static_cast<std::int64_t>((unrolls_under_way + 2 * (unrolls() - 1)) / unrolls());
    }

    void learn(training_context<Backend>& by) {
        updates_ = by.optimiser.updates();
        start();
        auto& learner = part_->learner;
        const auto count = unrolls();
        double loss = 0;
        for (std::size_t i = 0; i < count; ++i) {
            take_unroll(by.window);
            learner.forward();
            if (after_) value_the_end();
            by.steps += std::int64_t{settings_.rollout.unroll} * rows_;
            if (!std::isfinite(learner.loss())) refuse_update(by.steps, "loss", learner.loss(), programs());
            loss += learner.loss();
            (void)by.sum_losses(programs());
            learner.backward();
            if (i + 1 < count) held_->hold(learner, i == 0);
        }
        if (count > 1) held_->give(learner);
        by.note(loss, by.step(programs(), 1, loss));
        updates_ = by.optimiser.updates();
        publish();
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
                    unroll->under_way = true;
                    if (!others_) unroll->promised = published_version_;
                    ++acting_;
                }
                take_weights(self);
                unroll->group = self.groups[turn];
                unroll->version = self.version;
                auto& recorder = *groups_[static_cast<std::size_t>(unroll->group)]->recorder;
                recorder.record(unroll->values.blocks());
                unroll->episodes.clear();
                std::swap(unroll->episodes, recorder.acting().finished());
                {
                    const std::lock_guard lock(mutex_);
                    unroll->under_way = false;
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

    /// Of the unrolls that wait, the one that acted with the oldest weights; none as long as one under way would lag
    /// too far behind if it were learnt from first.
    filled_unroll* ripe_unroll() {
        const auto first = std::min_element(queue_.begin(), queue_.end(),
                                            [](const auto* a, const auto* b) { return a->version < b->version; });
        if (first == queue_.end()) return nullptr;
        auto oldest = std::numeric_limits<std::int64_t>::max();
        for (const auto& b : buffers_)
            if (b->under_way) oldest = std::min(oldest, b->promised);
        for (const auto& list : permitted_)
            for (const auto version : list) oldest = std::min(oldest, version);
        if ((*first)->version > oldest && updates_ + updates_of(buffers_.size()) - oldest > longest_lag())
            return nullptr;
        auto* const unroll = *first;
        queue_.erase(first);
        return unroll;
    }

    filled_unroll* wait_for_unroll() {
        if (others_) {
            while (receive()) {
            }
            for (;;) {
                if (failure_) std::rethrow_exception(failure_);
                if (auto* found = ripe_unroll()) return found;
                if (!receive()) std::this_thread::sleep_for(pause_between_looks);
            }
        }
        std::unique_lock lock(mutex_);
        filled_unroll* found = nullptr;
        changed_.wait(lock, [&] { return failure_ || (found = ripe_unroll()); });
        if (failure_) std::rethrow_exception(failure_);
        return found;
    }

    /// The oldest unroll into the learner's plan, with the memories of its group.
    void take_unroll(training_window& window) {
        filled_unroll* const unroll = wait_for_unroll();
        ask_for(part_->learner, part_->inputs);
        if constexpr (device_backend<Backend>)
            if (after_) (void)end_inputs(*after_);
        unroll->values.copy_to(part_->inputs);
        const auto lag = static_cast<double>(updates_ - unroll->version);
        window.lag += (lag - window.lag) / static_cast<double>(++window_unrolls_);
        window.largest_lag = std::max(window.largest_lag, lag);
        learning_from_ = unroll->group;
        window.episodes.insert(window.episodes.end(), unroll->episodes.begin(), unroll->episodes.end());
        {
            const std::lock_guard lock(mutex_);
            if (buffers_.size() > room_)
                std::erase_if(buffers_, [&](const auto& b) { return b.get() == unroll; });
            else
                free_.push_back(unroll);
        }
        free_or_told_.notify_one();
        auto& mirrors = groups_[static_cast<std::size_t>(learning_from_)]->mirrors;
        for (std::size_t r = 0; r < mirrors.size(); ++r) {
            part_->learner.bound_resource(r) = mirrors[r];
            if (after_) after_->bound_resource(r) = mirrors[r];
        }
    }

    /// The learner's value of what comes after the unroll, which stands in its buffers, becomes the bootstrap.
    void value_the_end() {
        auto& learner = part_->learner;
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

    std::vector<program<Backend>*> programs() { return {&part_->learner}; }

    void take_weights(actor_thread& self) {
        std::unique_lock lock(weights_mutex_);
        if (self.version == published_version_) return;
        auto edit = self.store->edit();
        std::copy(published_.begin(), published_.end(), edit.flat().begin());
        self.version = published_version_;
        lock.unlock();  // packing, when the edit ends, is the actor's own affair
    }

    void publish() {
        if (others_ && !learns_) return;
        fetch_weights(part_->learner, *agent_->store);
        if (others_) {
            if (started_) permit_more();
            return;
        }
        const std::lock_guard lock(weights_mutex_);
        const auto now = agent_->store->flat();
        std::copy(now.begin(), now.end(), published_.begin());
        published_version_ = updates_;
    }

    // --- the learner, of processes that act apart ---

    int acting_processes() const { return others_->count() - 1; }
    template <class... Parts>
    void post(int to, const unroll_letters::head& head, const Parts&... parts) {
        others_->post(to, unroll_letters::write(head, parts...));
    }

    /// Weights for every process that may have more unrolls under way than it has.
    void permit_more() {
        const std::size_t each = static_cast<std::size_t>(threads_here_ * settings_.asynchronous.queue);
        std::vector<std::size_t> here(permitted_.size(), 0);
        std::size_t all = queue_.size();
        for (const auto* unroll : queue_) ++here[static_cast<std::size_t>(process_of(unroll->group))];
        for (const auto& list : permitted_) all += list.size();
        std::shared_ptr<const std::vector<std::byte>> letter;
        std::size_t letter_permits = 0;
        for (int rank = 1; rank < others_->count(); ++rank) {
            auto& list = permitted_[static_cast<std::size_t>(rank)];
            const std::size_t has = list.size() + here[static_cast<std::size_t>(rank)];
            const std::size_t more = std::min(each - std::min(each, has), room_ - std::min(room_, all));
            if (more == 0) continue;
            if (!letter || letter_permits != more)
                letter = unroll_letters::write({.what = unroll_letters::kind::weights,
                                                .count = static_cast<std::int64_t>(more),
                                                .version = updates_},
                                               agent_->store->flat());
            letter_permits = more;
            others_->post(rank, letter);
            list.insert(list.end(), more, updates_);
            all += more;
        }
    }

    /// Reads one letter; false when there is none.
    bool receive() {
        const auto came = others_->take();
        if (!came) return false;
        unroll_letters::reader letter(*came);
        const auto& head = letter.head();
        switch (head.what) {
            case unroll_letters::kind::unroll: {
                auto& list = permitted_[static_cast<std::size_t>(came->from)];
                const auto known = std::find(list.begin(), list.end(), head.promised);
                require(known != list.end() && !free_.empty(), "process ", came->from, " sent an unroll unasked");
                list.erase(known);
                auto* const unroll = free_.back();
                free_.pop_back();
                unroll->group = static_cast<int>(head.group);
                unroll->version = head.version;
                unroll->episodes.resize(static_cast<std::size_t>(head.count));
                letter.take(std::span(unroll->episodes));
                letter.take(unroll->values.values());
                queue_.push_back(unroll);
                break;
            }
            case unroll_letters::kind::failed:
                if (!failure_) failure_ = std::make_exception_ptr(error(letter.text()));
                break;
            case unroll_letters::kind::stop:
                told_to_stop_ = true;
                break;
            default:
                ++answers_;  // paused, ended
        }
        return true;
    }

    void wait_for_answers() {
        while (answers_ < acting_processes())
            if (!receive()) std::this_thread::sleep_for(pause_between_looks);
    }
    /// The others act no more, all they did has come, and they are about to save.
    void pause_others() {
        answers_ = 0;
        for (int rank = 1; rank < others_->count(); ++rank) post(rank, {.what = unroll_letters::kind::pause});
        wait_for_answers();
    }
    void end_others() {
        answers_ = 0;
        for (int rank = 1; rank < others_->count(); ++rank)
            post(rank, {.what = unroll_letters::kind::end}, last_words_);
        // After an error of its own nobody knows where the others stand; whoever catches it ends them.
        if (std::uncaught_exceptions() == 0 || !last_words_.empty()) wait_for_answers();
    }

    // --- a process that acts apart ---

    void wait_until_nobody_acts() {
        std::unique_lock lock(mutex_);
        paused_ = true;
        changed_.wait(lock, [&] { return acting_ == 0; });
    }
    void end_actors() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        free_or_told_.notify_all();
        threads_.clear();
    }

    /// New weights, and buffers to fill.
    void take_permission(unroll_letters::reader& letter) {
        const auto& head = letter.head();
        {
            const std::lock_guard lock(weights_mutex_);
            letter.take(std::span(published_));
            published_version_ = head.version;
        }
        {
            const std::lock_guard lock(mutex_);
            for (std::int64_t k = 0; k < head.count; ++k) {
                spare_.back()->promised = head.version;
                free_.push_back(spare_.back());
                spare_.pop_back();
            }
        }
        free_or_told_.notify_all();
    }

    /// Posts what is full; false when there was nothing.
    bool deliver() {
        bool any = false;
        for (;; any = true) {
            filled_unroll* unroll = nullptr;
            {
                const std::lock_guard lock(mutex_);
                if (failure_ && !std::exchange(told_failure_, true))
                    post(0, {.what = unroll_letters::kind::failed}, text_of(failure_));
                if (queue_.empty()) return any;
                unroll = queue_.front();
                queue_.pop_front();
            }
            post(0,
                 {.what = unroll_letters::kind::unroll,
                  .count = static_cast<std::int64_t>(unroll->episodes.size()),
                  .version = unroll->version,
                  .group = unroll->group,
                  .promised = unroll->promised},
                 unroll->episodes, unroll->values.values());
            spare_.push_back(unroll);
        }
    }
    static std::string text_of(const std::exception_ptr& failure) {
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& problem) {
            return problem.what();
        } catch (...) {
            return "an actor failed";
        }
    }

    template <class Body>
    void each_group_part(int i, Body body) {
        if constexpr (device_backend<Backend>) part_->learner.executor().wait();  // it may be at a mirror
        auto& g = *groups_[static_cast<std::size_t>(i)];
        const std::string prefix = message("group.", i);
        if (g.recorder) engram::each_part(g.recorder->acting(), prefix, body);
        for (std::size_t r = 0; r < g.mirrors.size(); ++r) {
            std::size_t k = 0;
            for (auto part : g.mirrors[r]->bytes()) body(message(prefix, ".mirror.", r, ".", k++), part);
        }
        if (i == 0 && learns_)
            body("trainer.replays", std::as_writable_bytes(std::span(&part_->learner.replay_count(), 1)));
    }

    /// Unrolls that wait in a file; throws when it belongs to another division into groups.
    std::size_t waiting(const safetensors& file) const {
        const auto of = file.values<std::int64_t>("asynchronous.groups", {2});
        require(of[0] == group_count_, file.source(), ": was written with ", of[0],
                " groups of environments, this run has ", group_count_,
                "; pass the same number of threads, or asynchronous.groups = ", of[0]);
        require(of[1] >= 0, file.source(), ": ", of[1], " unrolls wait in its queue; expected none or more");
        return static_cast<std::size_t>(of[1]);
    }
    void check_unroll(const safetensors& file, const std::string& prefix) const {
        const auto from = file.values<std::int64_t>(prefix + ".from", {2});
        require(from[0] >= 0 && from[0] < group_count_, file.source(), ": ", prefix, " comes from group ", from[0],
                " of ", group_count_);
        (void)file.values<double>(prefix + ".episodes");
        if (!learns_) return;
        part_->inputs.each([&](const auto& b) {
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

    static constexpr std::chrono::microseconds pause_between_looks{100};  // for letters

    const traced_agent<Backend>* agent_;
    acting_settings settings_;
    processes* others_;
    bool learns_, acts_;                 // this process
    int threads_here_, acting_threads_;  // that act: of a process, of all
    std::int64_t updates_ = 0;
    int group_count_, rows_;
    std::unique_ptr<learner_part<Backend>> part_;
    std::unique_ptr<program<Backend>>
        after_;  // one step, looking on; null where the behaviour's value is the bootstrap
    std::optional<gradient_sum<Backend>> held_;  // of the unrolls of an update, where there are several
    std::vector<actor_thread> actors_;
    std::vector<std::unique_ptr<group>> groups_;
    std::size_t room_ = 0;  // buffers, but for those that came with a checkpoint of more actors
    std::vector<std::unique_ptr<filled_unroll>> buffers_;
    int learning_from_ = -1;
    std::int64_t window_unrolls_ = 0;
    bool started_ = false;

    // Of the learner of other processes: of each, the versions that came with the unrolls that it may fill.
    std::vector<std::vector<std::int64_t>> permitted_;
    int answers_ = 0;
    bool told_to_stop_ = false;
    std::string last_words_;             // the sentence that it ends with
    std::vector<filled_unroll*> spare_;  // of a process that acts apart: buffers that may not be filled yet
    bool told_failure_ = false;

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
    std::atomic<std::int64_t> published_version_ = 0;  // read by whoever takes a buffer

    std::vector<std::jthread> threads_;  // last: nothing goes before they are joined
};

}  // namespace engram
