#pragma once
// SPDX-License-Identifier: MIT

// Acting in other processes than learning (docs/decisions/0024): what the first one, which learns, and the others say
// to each other, for the queues of unrolls that either has (train/asynchronous_update.hpp).
//
// The learner lets a process act by `weights`: how many more unrolls may be under way, and its newest weights where the
// process lacks them. It is sent `unroll`s. `pause` asks for all that are finished and is answered by `paused`; when all
// have answered, `save` lets them save. `end` is answered by `ended`. A process that cannot act on says so by `failed`,
// one that was interrupted by `stop`. Threads that act find free buffers and new weights where they do in one process;
// the thread that calls serve() carries both.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <engram/core/error.hpp>
#include <engram/train/acting_threads.hpp>
#include <engram/train/processes.hpp>
#include <engram/train/unroll_letters.hpp>
#include <engram/train/unroll_queue.hpp>

namespace engram {

inline constexpr std::chrono::microseconds pause_between_looks{100};  // for letters

/// In the process that learns: the others, as far as it knows.
template <class Real>
class actors_apart {
public:
    /// Each of them may have `each` unrolls under way, or waiting here.
    actors_apart(processes& others, unroll_queue<Real>& queue, const acting_groups& groups, std::size_t each)
        : others_(&others),
          queue_(&queue),
          groups_(groups),
          each_(each),
          permitted_(static_cast<std::size_t>(others.count())),
          version_sent_(permitted_.size(), -1) {}

    /// For every process that may have more unrolls under way than it has: leave to begin them, with these weights.
    void permit(std::span<const Real> weights, std::int64_t version) {
        std::vector<std::size_t> has(permitted_.size(), 0);
        queue_->each_full(
            [&](const auto& unroll) { ++has[static_cast<std::size_t>(groups_.process_of(unroll.group))]; });
        std::size_t all = 0;
        for (std::size_t rank = 0; rank < has.size(); ++rank) all += has[rank] += permitted_[rank].size();
        std::map<std::pair<std::size_t, bool>, std::shared_ptr<const std::vector<std::byte>>> letters;
        for (std::size_t rank = 1; rank < has.size(); ++rank) {
            const std::size_t more =
                std::min(each_ - std::min(each_, has[rank]), queue_->room() - std::min(queue_->room(), all));
            if (more == 0) continue;
            const bool knows = std::exchange(version_sent_[rank], version) == version;
            auto& letter = letters[{more, knows}];
            if (!letter)
                letter = unroll_letters::write({.what = unroll_letters::kind::weights,
                                                .count = static_cast<std::int64_t>(more),
                                                .version = version},
                                               knows ? std::span<const Real>() : weights);
            others_->post(static_cast<int>(rank), letter);
            permitted_[rank].insert(permitted_[rank].end(), more, version);
            all += more;
        }
    }

    /// The next unroll to learn from after so many updates; throws what an actor threw.
    filled_unroll<Real>* wait_for_next(std::int64_t updates) {
        while (receive()) {
        }
        for (;;) {
            if (auto* found = queue_->next(updates, oldest_permitted())) return found;
            if (!receive()) std::this_thread::sleep_for(pause_between_looks);
        }
    }

    /// They act no more, all they did has come, and they are about to save. Throws what an actor threw.
    void pause() {
        post_to_all({.what = unroll_letters::kind::pause}, std::string());
        wait_for_answers();
        queue_->throw_failure();  // before anybody saves
        post_to_all({.what = unroll_letters::kind::save}, std::string());
    }
    /// They go, with the sentence that the learner ends with.
    void end(const std::string& last_words) {
        post_to_all({.what = unroll_letters::kind::end}, last_words);
        // After an error of its own nobody knows where the others stand; whoever catches it ends them.
        if (std::uncaught_exceptions() == 0 || !last_words.empty()) wait_for_answers();
    }
    bool told_to_stop() const { return told_to_stop_; }

private:
    std::int64_t oldest_permitted() const {
        auto oldest = unroll_queue<Real>::nothing_under_way;
        for (const auto& list : permitted_)
            for (const auto version : list) oldest = std::min(oldest, version);
        return oldest;
    }

    /// Reads one letter; false when there is none.
    bool receive() {
        const auto came = others_->take();
        if (!came) return false;
        unroll_letters::reader letter(*came);
        switch (letter.head().what) {
            case unroll_letters::kind::unroll:
                take_unroll(came->from, letter);
                break;
            case unroll_letters::kind::failed:
                queue_->fail(std::make_exception_ptr(error(letter.text())));
                break;
            case unroll_letters::kind::stop:
                told_to_stop_ = true;
                break;
            default:
                ++answers_;  // paused, ended
        }
        return true;
    }
    void take_unroll(int from, unroll_letters::reader& letter) {
        const auto& head = letter.head();
        auto& list = permitted_[static_cast<std::size_t>(from)];
        const auto known = std::find(list.begin(), list.end(), head.promised);
        auto* const unroll = known == list.end() ? nullptr : queue_->take_free();
        require(unroll != nullptr, "process ", from, " sent an unroll unasked");
        list.erase(known);
        unroll->group = static_cast<int>(head.group);
        unroll->version = head.version;
        unroll->episodes.resize(static_cast<std::size_t>(head.count));
        letter.take(std::span(unroll->episodes));
        letter.take(unroll->values.values());
        queue_->put(unroll);
    }

    void post_to_all(const unroll_letters::head& head, const std::string& text) {
        answers_ = 0;
        for (int rank = 1; rank < others_->count(); ++rank) others_->post(rank, unroll_letters::write(head, text));
    }
    void wait_for_answers() {
        while (answers_ < others_->count() - 1)
            if (!receive()) std::this_thread::sleep_for(pause_between_looks);
    }

    processes* others_;
    unroll_queue<Real>* queue_;
    acting_groups groups_;
    std::size_t each_;
    std::vector<std::vector<std::int64_t>> permitted_;  // of each process: the versions that came with permissions
    std::vector<std::int64_t> version_sent_;            // to each process: of the weights that it has
    int answers_ = 0;
    bool told_to_stop_ = false;
};

/// In a process that acts: the one that learns.
template <class Real>
class learner_apart {
public:
    /// Takes all buffers; a permission makes one free.
    learner_apart(processes& others, unroll_queue<Real>& queue, published_weights<Real>& weights)
        : others_(&others), queue_(&queue), weights_(&weights) {
        while (auto* buffer = queue.take_free()) spare_.push_back(buffer);
    }

    /// Carries what the threads fill to the learner, and its weights back, for a tenth of a second or until it is
    /// called. `end` ends the threads. Throws what the learner ended with.
    template <class End>
    process_call serve(End end) {
        using clock = std::chrono::steady_clock;
        for (const auto until = clock::now() + std::chrono::milliseconds(100); clock::now() < until;) {
            bool idle = !deliver();
            while (const auto came = others_->take()) {
                idle = false;
                unroll_letters::reader letter(*came);
                switch (letter.head().what) {
                    case unroll_letters::kind::weights:
                        take_permission(letter);
                        break;
                    case unroll_letters::kind::pause:
                        queue_->pause();
                        (void)deliver();
                        post({.what = unroll_letters::kind::paused});
                        break;
                    case unroll_letters::kind::save:
                        return process_call::checkpoint;
                    case unroll_letters::kind::end:
                        end();
                        post({.what = unroll_letters::kind::ended});
                        if (const auto why = letter.text(); !why.empty()) throw agreed_error(why);
                        return process_call::over;
                    default:
                        break;
                }
            }
            if (idle) queue_->wait_for_full(pause_between_looks);
        }
        return process_call::none;
    }
    void tell_to_stop() { post({.what = unroll_letters::kind::stop}); }

private:
    template <class... Parts>
    void post(const unroll_letters::head& head, const Parts&... parts) {
        others_->post(0, unroll_letters::write(head, parts...));
    }

    /// Buffers to fill, and the weights to do it with where they are new.
    void take_permission(unroll_letters::reader& letter) {
        const auto& head = letter.head();
        if (!letter.at_end()) weights_->publish(head.version, [&](auto to) { letter.take(to); });
        require(head.count >= 0 && static_cast<std::size_t>(head.count) <= spare_.size(), "process 0 asks for ",
                head.count, " unrolls, but ", spare_.size(), " buffers are empty");
        for (std::int64_t k = 0; k < head.count; ++k) {
            queue_->set_free(spare_.back(), head.version);
            spare_.pop_back();
        }
    }

    /// Posts what is full; false when there was nothing.
    bool deliver() {
        if (const auto failure = queue_->failure(); failure && !std::exchange(told_failure_, true))
            post({.what = unroll_letters::kind::failed}, text_of(failure));
        bool any = false;
        while (auto* const unroll = queue_->take_full()) {
            post({.what = unroll_letters::kind::unroll,
                  .count = static_cast<std::int64_t>(unroll->episodes.size()),
                  .version = unroll->version,
                  .group = unroll->group,
                  .promised = unroll->promised},
                 unroll->episodes, unroll->values.values());
            spare_.push_back(unroll);
            any = true;
        }
        return any;
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

    processes* others_;
    unroll_queue<Real>* queue_;
    published_weights<Real>* weights_;
    std::vector<filled_unroll<Real>*> spare_;  // empty, and not permitted yet
    bool told_failure_ = false;
};

}  // namespace engram
