#pragma once
// SPDX-License-Identifier: MIT

// Threads in place of processes, and memory in place of a network.

#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <engram/train/processes.hpp>

namespace threads_as_processes {

using namespace engram;

/// Where threads leave each other bytes: a box for each sender and receiver.
class post_office {
public:
    explicit post_office(int count)
        : count_(count), boxes_(static_cast<std::size_t>(count * count)), letters_(static_cast<std::size_t>(count)) {}
    void put(int from, int to, std::span<const std::byte> what) {
        const std::lock_guard lock(mutex_);
        box(from, to).emplace_back(what.begin(), what.end());
        changed_.notify_all();
    }
    std::vector<std::byte> take(int from, int to) {
        std::unique_lock lock(mutex_);
        auto& b = box(from, to);
        changed_.wait(lock, [&] { return !b.empty(); });
        auto first = std::move(b.front());
        b.erase(b.begin());
        return first;
    }
    int count() const { return count_; }

    void put_letter(int to, processes::letter what) {
        const std::lock_guard lock(mutex_);
        letters_[static_cast<std::size_t>(to)].push_back(std::move(what));
    }
    std::optional<processes::letter> take_letter(int to) {
        const std::lock_guard lock(mutex_);
        auto& own = letters_[static_cast<std::size_t>(to)];
        if (own.empty()) return {};
        auto first = std::move(own.front());
        own.pop_front();
        return first;
    }

private:
    std::vector<std::vector<std::byte>>& box(int from, int to) {
        return boxes_[static_cast<std::size_t>(from * count_ + to)];
    }
    int count_;
    std::vector<std::vector<std::vector<std::byte>>> boxes_;
    std::vector<std::deque<processes::letter>> letters_;  // of each receiver
    std::mutex mutex_;
    std::condition_variable changed_;
};

class one_of_threads final : public processes {
public:
    one_of_threads(post_office& p, int rank) : post_(&p), rank_(rank) {}
    int rank() const override { return rank_; }
    int count() const override { return post_->count(); }
    void exchange(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
        if (!out.empty()) post_->put(rank_, partner, out);
        if (!in.empty()) copy(post_->take(partner, rank_), in);
    }
    void broadcast(std::span<std::byte> what, int root) override {
        if (rank_ != root) return copy(post_->take(root, rank_), what);
        for (int to = 0; to < count(); ++to)
            if (to != root) post_->put(root, to, what);
    }
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
        for (int to = 0; to < count(); ++to) post_->put(rank_, to, mine);
        std::vector<std::vector<std::byte>> all;
        for (int from = 0; from < count(); ++from) all.push_back(post_->take(from, rank_));
        return all;
    }

    void post(int to, std::shared_ptr<const std::vector<std::byte>> what) override {
        post_->put_letter(to, {rank_, *what});
    }
    std::optional<letter> take() override { return post_->take_letter(rank_); }

private:
    static void copy(const std::vector<std::byte>& from, std::span<std::byte> to) {
        require(from.size() == to.size(), "a message of ", from.size(), " bytes, ", to.size(), " were expected");
        std::memcpy(to.data(), from.data(), from.size());
    }
    post_office* post_;
    int rank_;
};

/// body(its processes) in each of `count` threads; the first exception is thrown again.
template <class Body>
void as_processes(int count, Body body) {
    post_office p(count);
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
    for (int rank = 0; rank < count; ++rank)
        threads.emplace_back([&, rank] {
            one_of_threads self(p, rank);
            try {
                body(self);
            } catch (...) {
                failures[static_cast<std::size_t>(rank)] = std::current_exception();
            }
        });
    for (auto& t : threads) t.join();
    for (auto& f : failures)
        if (f) std::rethrow_exception(f);
}

}  // namespace threads_as_processes
