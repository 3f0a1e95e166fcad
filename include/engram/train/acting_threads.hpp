#pragma once
// SPDX-License-Identifier: MIT

// Threads that fill unrolls with what they do, each in groups of environments of its own, in turn, with the newest
// weights that are published (train/asynchronous_update.hpp).

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <engram/graph/parameters.hpp>
#include <engram/train/acting_update.hpp>
#include <engram/train/unroll.hpp>
#include <engram/train/unroll_queue.hpp>

namespace engram {

/// How rows divide into groups of equally many, because all are learnt from with one plan, and groups among threads.
struct acting_groups {
    int count;                 // groups
    int rows;                  // of a group
    int threads, all_threads;  // that act: of a process, of all
    bool apart;                // those who act are processes 1, 2, ..., and process 0 learns

    /// The process whose thread acts in a group; threads of all processes take groups in turn.
    int process_of(int group) const { return apart ? 1 + group % all_threads / threads : 0; }
    /// That thread.
    int thread_of(int group) const { return group % all_threads % threads; }
};

/// `threads` of a process act, in `processes` of them; with none, in the one that learns.
inline acting_groups divide_into_groups(const acting_settings& s, int threads, int processes) {
    const int rows = s.rollout.environments, wanted = s.asynchronous.groups;
    const int actors = processes > 0 ? processes * threads : std::max(1, threads - 1);
    s.asynchronous.check();
    if (processes > 0)
        require(threads > 0 && actors <= rows, processes, " processes act, with ", threads,
                " threads each; expected 1 to ", rows, " threads (rollout.environments)");
    else
        require(threads > 0 && actors <= rows, "threads: expected 1 to ", rows + 1,
                " (one more than environments), got ", threads);
    const auto of = [&](int groups) {
        return acting_groups{groups, rows / groups, processes > 0 ? threads : actors, actors, processes > 0};
    };
    if (wanted > 0) {
        require(wanted >= actors && rows % wanted == 0, "asynchronous.groups: ", rows, " environments on ", actors,
                " acting threads do not divide into ", wanted, " equal groups of at least one a thread");
        return of(wanted);
    }
    for (const int least : {2 * actors, actors})
        for (int n = least; n <= rows; ++n)
            if (rows % n == 0) return of(n);
    return of(rows);
}

/// The weights that act. Any thread may call.
template <class Real>
class published_weights {
public:
    explicit published_weights(std::span<const Real> first) : values_(first.begin(), first.end()) {}

    /// `write(values)` fills in those of `version`.
    template <class Write>
    void publish(std::int64_t version, Write write) {
        const std::lock_guard lock(mutex_);
        write(std::span(values_));
        version_ = version;
    }
    /// Into a store that holds `version`, -1 for none.
    void take(parameters<Real>& to, std::int64_t& version) {
        std::unique_lock lock(mutex_);
        if (version == version_) return;
        auto edit = to.edit();
        std::copy(values_.begin(), values_.end(), edit.flat().begin());
        version = version_;
        lock.unlock();  // packing, when the edit ends, is the actor's own affair
    }

private:
    std::mutex mutex_;
    std::vector<Real> values_;
    std::int64_t version_ = 0;
};

template <class Backend>
class acting_threads {
public:
    using real = typename Backend::real;

    acting_threads(unroll_queue<real>& queue, published_weights<real>& weights) : queue_(&queue), weights_(&weights) {}
    acting_threads(const acting_threads&) = delete;
    acting_threads& operator=(const acting_threads&) = delete;
    ~acting_threads() { end(); }

    /// The groups of the process `rank`; unrolls have the layout of `inputs`. Begins nothing yet.
    void add_groups(const acting_groups& groups, int rank, const traced_agent<Backend>& agent,
                    const environment_maker& make, std::uint64_t seed, const unroll_blocks<real>& inputs) {
        groups_.resize(static_cast<std::size_t>(groups.count));
        for (int i = 0; i < groups.threads; ++i)
            actors_.push_back({std::make_shared<parameters<real>>(*agent.store), -1, {}});
        for (int i = 0; i < groups.count; ++i) {
            if (groups.process_of(i) != rank) continue;
            auto& who = actors_[static_cast<std::size_t>(groups.thread_of(i))];
            who.groups.push_back(i);
            const int first = i * groups.rows;
            groups_[static_cast<std::size_t>(i)] = std::make_unique<recording_actor<Backend>>(
                agent, who.store, make(groups.rows, first), seed, first, inputs);
        }
    }
    void start() {
        for (auto& a : actors_) threads_.emplace_back([this, &a] { run(a); });
    }
    void end() {
        queue_->end();
        threads_.clear();
    }

    /// Those that act here, with their groups.
    template <class Body>
    void each(Body body) {
        for (std::size_t i = 0; i < groups_.size(); ++i)
            if (groups_[i]) body(static_cast<int>(i), groups_[i]->acting());
    }
    /// The weights of an actor may be those of another run that had as many updates.
    void forget_weights() {
        for (auto& a : actors_) a.version = -1;
    }

private:
    /// What one thread owns: the copy of the weights that all its groups act with.
    struct actor_thread {
        std::shared_ptr<parameters<real>> store;
        std::int64_t version;
        std::vector<int> groups;
    };

    void run(actor_thread& self) {
        for (std::size_t turn = 0;; turn = (turn + 1) % self.groups.size()) {
            auto* const unroll = queue_->wait_for_free();
            if (!unroll) return;
            try {
                weights_->take(*self.store, self.version);
                unroll->group = self.groups[turn];
                unroll->version = self.version;
                auto& recorder = *groups_[static_cast<std::size_t>(unroll->group)];
                recorder.record(unroll->values.blocks());
                unroll->episodes.clear();
                std::swap(unroll->episodes, recorder.acting().finished());
                queue_->put(unroll);
            } catch (...) {
                queue_->fail(std::current_exception(), unroll);
                return;
            }
        }
    }

    unroll_queue<real>* queue_;
    published_weights<real>* weights_;
    std::vector<actor_thread> actors_;
    std::vector<std::unique_ptr<recording_actor<Backend>>> groups_;  // null where another process acts
    std::vector<std::jthread> threads_;                              // last: nothing goes before they are joined
};

}  // namespace engram
