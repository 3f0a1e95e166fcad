#pragma once
// SPDX-License-Identifier: MIT

// A pool of threads that runs f(0), ..., f(n - 1), one call a thread, and waits for all of them.
//
// The caller runs f(0) itself. An exception of any call is thrown again by run(), the one with the lowest index first.
// All calls take subnormal numbers for zero if the caller does (core/subnormals.hpp): the same bits on any thread.

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <engram/core/subnormals.hpp>
#include <engram/version.hpp>

namespace engram {

class thread_pool {
public:
    explicit thread_pool(int threads) : failures_(static_cast<std::size_t>(threads > 0 ? threads : 1)) {
        for (int i = 1; i < threads; ++i) threads_.emplace_back([this, i] { work(i); });
    }
    thread_pool(const thread_pool&) = delete;
    thread_pool& operator=(const thread_pool&) = delete;
    ~thread_pool() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        start_.notify_all();
        for (auto& t : threads_) t.join();
    }

    int size() const { return static_cast<int>(failures_.size()); }

    void run(const std::function<void(int)>& f) {
        if (threads_.empty()) return f(0);
        {
            const std::lock_guard lock(mutex_);
            job_ = &f;
            zero_ = zero_subnormals::here();
            left_ = static_cast<int>(threads_.size());
            ++generation_;
        }
        start_.notify_all();
        attempt(f, 0);
        std::unique_lock lock(mutex_);
        done_.wait(lock, [this] { return left_ == 0; });
        std::exception_ptr first;
        for (auto& failure : failures_) {
            if (failure && !first) first = failure;
            failure = nullptr;
        }
        if (first) std::rethrow_exception(first);
    }

private:
    void attempt(const std::function<void(int)>& f, int i) {
        try {
            f(i);
        } catch (...) {
            failures_[static_cast<std::size_t>(i)] = std::current_exception();
        }
    }
    void work(int i) {
        for (long seen = 0;;) {
            std::unique_lock lock(mutex_);
            start_.wait(lock, [&] { return ending_ || generation_ != seen; });
            if (ending_) return;
            seen = generation_;
            const auto& f = *job_;
            const zero_subnormals as_the_caller(zero_);
            lock.unlock();
            attempt(f, i);
            lock.lock();
            if (--left_ == 0) done_.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable start_, done_;
    const std::function<void(int)>* job_ = nullptr;
    int left_ = 0;
    long generation_ = 0;
    bool ending_ = false, zero_ = false;
    std::vector<std::exception_ptr> failures_;
    std::vector<std::thread> threads_;
};

}  // namespace engram
