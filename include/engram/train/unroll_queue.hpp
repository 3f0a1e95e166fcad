#pragma once
// SPDX-License-Identifier: MIT

// Unrolls on their way from those that act to the one that learns (train/asynchronous_update.hpp).
//
// Actors wait for a buffer before they act, not after, so that they act with weights as new as can be. Of the unrolls
// that wait, the one that acted with the oldest weights comes first, and the learner waits for those still under way
// where they would fall behind: no lag is more than twice the updates that learn from all buffers.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/io/safetensors.hpp>
#include <engram/train/unroll.hpp>

namespace engram {

/// What a group did for T steps, and with which weights.
template <class Real>
struct filled_unroll {
    explicit filled_unroll(const unroll_blocks<Real>& layout) : values(layout) {}
    unroll_buffer<Real> values;
    int group = 0;
    std::int64_t version = 0;      // updates of the weights that acted
    std::vector<double> episodes;  // rewards of those that ended
    bool under_way = false;        // a thread of this process fills it
    std::int64_t promised = 0;     // it was, or will be, begun with this version of the weights or a newer one
};

/// Buffers that go round: free, being filled, full. Any thread may call.
template <class Real>
class unroll_queue {
public:
    static constexpr auto nothing_under_way = std::numeric_limits<std::int64_t>::max();

    /// `room` buffers, all of them free; an update learns from `of_update` unrolls.
    unroll_queue(const unroll_blocks<Real>& layout, std::size_t room, std::size_t of_update)
        : room_(room), of_update_(of_update) {
        for (std::size_t i = 0; i < room; ++i) free_.push_back(add(layout));
    }

    // --- for threads that act

    /// A buffer to fill, waiting for one; null when nothing is left to do.
    filled_unroll<Real>* wait_for_free() {
        std::unique_lock lock(mutex_);
        const auto over = [this] { return ending_ || failure_; };
        free_or_told_.wait(lock, [&] { return over() || (!paused_ && !free_.empty()); });
        if (over()) return nullptr;
        auto* const taken = pop_free();
        taken->under_way = true;
        return taken;
    }
    void put(filled_unroll<Real>* filled) {
        {
            const std::lock_guard lock(mutex_);
            filled->under_way = false;
            full_.push_back(filled);
        }
        changed_.notify_one();
    }
    /// Nobody goes on after this, and the learner throws it.
    void fail(const std::exception_ptr& why, filled_unroll<Real>* abandoned = nullptr) {
        {
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = why;
            if (abandoned) abandoned->under_way = false;
        }
        changed_.notify_one();
        free_or_told_.notify_all();
    }

    // --- for the thread that learns

    /// The next to learn from after so many updates; null as long as there is none, or as one under way, or begun
    /// elsewhere with weights of version `elsewhere`, would lag too far behind if it came later. Throws what an actor
    /// threw.
    filled_unroll<Real>* next(std::int64_t updates, std::int64_t elsewhere = nothing_under_way) {
        const std::lock_guard lock(mutex_);
        if (failure_) std::rethrow_exception(failure_);
        return ripe(updates, elsewhere);
    }
    filled_unroll<Real>* wait_for_next(std::int64_t updates) {
        std::unique_lock lock(mutex_);
        filled_unroll<Real>* found = nullptr;
        changed_.wait(lock, [&] { return failure_ || (found = ripe(updates, nothing_under_way)); });
        if (failure_) std::rethrow_exception(failure_);
        return found;
    }
    /// It was learnt from. What came with a checkpoint of more actors goes.
    void give_back(filled_unroll<Real>* learnt) {
        {
            const std::lock_guard lock(mutex_);
            if (buffers_.size() > room_)
                std::erase_if(buffers_, [&](const auto& b) { return b.get() == learnt; });
            else {
                learnt->promised = published_;
                free_.push_back(learnt);
            }
        }
        free_or_told_.notify_one();
    }
    /// Who takes a buffer from now on acts with these weights or newer ones.
    void published(std::int64_t version) {
        const std::lock_guard lock(mutex_);
        published_ = version;
        for (auto* unroll : free_) unroll->promised = version;
    }
    /// No unroll is learnt from more updates after the weights that it acted with.
    std::int64_t longest_lag() const { return 2 * updates_of(buffers_.size()); }

    // --- for the thread that carries unrolls between processes

    filled_unroll<Real>* take_free() {
        const std::lock_guard lock(mutex_);
        return free_.empty() ? nullptr : pop_free();
    }
    void set_free(filled_unroll<Real>* empty, std::int64_t promised) {
        {
            const std::lock_guard lock(mutex_);
            empty->promised = promised;
            free_.push_back(empty);
        }
        free_or_told_.notify_one();
    }
    /// The one that has waited longest.
    filled_unroll<Real>* take_full() {
        const std::lock_guard lock(mutex_);
        if (full_.empty()) return nullptr;
        auto* const first = full_.front();
        full_.pop_front();
        return first;
    }
    void wait_for_full(std::chrono::microseconds longest) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, longest, [this] { return !full_.empty(); });
    }
    std::exception_ptr failure() const {
        const std::lock_guard lock(mutex_);
        return failure_;
    }
    void throw_failure() const {
        if (const auto why = failure()) std::rethrow_exception(why);
    }

    // --- for all

    std::size_t room() const { return room_; }
    /// Unrolls that wait for the learner.
    std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return full_.size();
    }
    template <class Body>
    void each_full(Body body) const {
        const std::lock_guard lock(mutex_);
        for (const auto* unroll : full_) body(*unroll);
    }
    /// No thread is in an unroll from here to resume().
    void pause() {
        std::unique_lock lock(mutex_);
        paused_ = true;
        changed_.wait(lock, [this] {
            return std::none_of(buffers_.begin(), buffers_.end(), [](const auto& b) { return b->under_way; });
        });
    }
    void resume() {
        {
            const std::lock_guard lock(mutex_);
            paused_ = false;
        }
        free_or_told_.notify_all();
    }
    /// Who waits for a buffer gets none.
    void end() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        free_or_told_.notify_all();
    }

    // --- checkpoints, while it is paused

    void save(safetensors& file) const {
        std::size_t at = 0;
        for (const auto* unroll : full_) {
            const std::string prefix = message("queue.", at++);
            file.add(prefix + ".from", {2}, std::vector<std::int64_t>{unroll->group, unroll->version});
            file.add(prefix + ".episodes", {static_cast<std::int64_t>(unroll->episodes.size())}, unroll->episodes);
            unroll->values.blocks().each([&](const auto& b) {
                file.add<Real>(message(prefix, ".", b.name), {static_cast<std::int64_t>(b.data.size())},
                               std::span<const Real>(b.data));
            });
        }
    }
    /// Throws when the `count` unrolls of a file are not of these `groups`, or, with `contents`, not of this layout.
    void check(const safetensors& file, std::size_t count, int groups, bool contents) const {
        for (std::size_t k = 0; k < count; ++k) {
            const std::string prefix = message("queue.", k);
            const auto from = file.values<std::int64_t>(prefix + ".from", {2});
            require(from[0] >= 0 && from[0] < groups, file.source(), ": ", prefix, " comes from group ", from[0],
                    " of ", groups);
            (void)file.values<double>(prefix + ".episodes");
            if (!contents) continue;
            buffers_.front()->values.blocks().each([&](const auto& b) {
                (void)file.values<Real>(message(prefix, ".", b.name), {static_cast<std::int64_t>(b.data.size())});
            });
        }
    }
    /// More may wait than fill now: the run was one of more actors.
    void load(const safetensors& file, std::size_t count) {
        full_.clear();
        free_.clear();
        while (buffers_.size() < count) (void)add(buffers_.front()->values.blocks());
        for (std::size_t k = 0; k < buffers_.size(); ++k) {
            if (k >= count) {
                free_.push_back(buffers_[k].get());
                continue;
            }
            load(file, message("queue.", k), *buffers_[k]);
            full_.push_back(buffers_[k].get());
        }
    }

private:
    filled_unroll<Real>* add(const unroll_blocks<Real>& layout) {
        return buffers_.emplace_back(std::make_unique<filled_unroll<Real>>(layout)).get();
    }
    filled_unroll<Real>* pop_free() {
        auto* const last = free_.back();
        free_.pop_back();
        return last;
    }
    /// The updates that learn from so many unrolls, wherever in one they begin.
    std::int64_t updates_of(std::size_t unrolls) const {
        return static_cast<std::int64_t>((unrolls + 2 * (of_update_ - 1)) / of_update_);
    }
    filled_unroll<Real>* ripe(std::int64_t updates, std::int64_t elsewhere) {
        const auto first = std::min_element(full_.begin(), full_.end(),
                                            [](const auto* a, const auto* b) { return a->version < b->version; });
        if (first == full_.end()) return nullptr;
        auto oldest = elsewhere;
        for (const auto& b : buffers_)
            if (b->under_way) oldest = std::min(oldest, b->promised);
        if ((*first)->version > oldest && updates + updates_of(buffers_.size()) - oldest > longest_lag())
            return nullptr;
        auto* const found = *first;
        full_.erase(first);
        return found;
    }
    static void load(const safetensors& file, const std::string& prefix, filled_unroll<Real>& to) {
        const auto from = file.values<std::int64_t>(prefix + ".from");
        to.group = static_cast<int>(from[0]);
        to.version = from[1];
        const auto episodes = file.values<double>(prefix + ".episodes");
        to.episodes.assign(episodes.begin(), episodes.end());
        to.values.blocks().each([&](const auto& b) {
            const auto values = file.values<Real>(message(prefix, ".", b.name));
            std::copy(values.begin(), values.end(), b.data.begin());
        });
    }

    std::size_t room_;  // buffers, but for those that came with a checkpoint of more actors
    std::size_t of_update_;
    mutable std::mutex mutex_;  // guards all below
    std::vector<std::unique_ptr<filled_unroll<Real>>> buffers_;
    std::vector<filled_unroll<Real>*> free_;
    std::deque<filled_unroll<Real>*> full_;  // oldest first
    std::int64_t published_ = 0;
    bool paused_ = false, ending_ = false;
    std::exception_ptr failure_;
    std::condition_variable free_or_told_;  // for actors: a buffer came free, the pause or the run ends
    std::condition_variable changed_;       // for the learner: an unroll was queued, an actor stopped
};

}  // namespace engram
