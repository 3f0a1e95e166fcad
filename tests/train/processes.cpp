// SPDX-License-Identifier: MIT
// Several processes train as one: the same checkpoints and windows for any division of shards, here with threads in
// place of processes and memory in place of a network (tests/program/processes.sh has real ones).

#include <doctest/doctest.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "every_update.hpp"
#include "same_file.hpp"

using namespace every_update;

namespace {

/// Where threads leave each other bytes: a box for each sender and receiver.
class post {
public:
    explicit post(int count) : count_(count), boxes_(static_cast<std::size_t>(count * count)) {}
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

private:
    std::vector<std::vector<std::byte>>& box(int from, int to) {
        return boxes_[static_cast<std::size_t>(from * count_ + to)];
    }
    int count_;
    std::vector<std::vector<std::vector<std::byte>>> boxes_;
    std::mutex mutex_;
    std::condition_variable changed_;
};

class one_of_threads final : public processes {
public:
    one_of_threads(post& p, int rank) : post_(&p), rank_(rank) {}
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

private:
    static void copy(const std::vector<std::byte>& from, std::span<std::byte> to) {
        require(from.size() == to.size(), "a message of ", from.size(), " bytes, ", to.size(), " were expected");
        std::memcpy(to.data(), from.data(), from.size());
    }
    post* post_;
    int rank_;
};

/// body(its processes) in each of `count` threads; the first exception is thrown again.
template <class Body>
void as_processes(int count, Body body) {
    post p(count);
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

struct outcome {
    safetensors middle, end;
    training_window window;
};

/// What `count` processes of `threads` threads make of a run: begun from a checkpoint, if there is one.
template <class Make>
outcome trained(Make make, int count, int threads, int half, const safetensors* from = nullptr) {
    outcome result;
    as_processes(count, [&](processes& self) {
        const one_run run = make(loop_settings{1, threads, 10'000, count > 1 ? &self : nullptr});
        outcome own;
        if (from)
            run.loop->load(*from);
        else
            iterate(*run.loop, half);
        (void)run.loop->take_window();
        own.middle = saved(*run.loop);
        iterate(*run.loop, half);
        own.window = run.loop->take_window();
        own.end = saved(*run.loop);
        if (self.rank() == count - 1) result = std::move(own);  // every process has the whole
    });
    return result;
}

template <class Make>
void is_one_run(Make make, int half = 3) {
    const outcome alone = trained(make, 1, 1, half);
    CHECK_FALSE(same(alone.middle, alone.end));
    for (const auto& [count, threads] : {std::pair{2, 4}, std::pair{4, 1}, std::pair{8, 1}, std::pair{3, 2}}) {
        CAPTURE(count);
        const outcome all = trained(make, count, threads, half);
        CHECK(same(all.middle, alone.middle));
        CHECK(same(all.end, alone.end));
        CHECK(all.window.loss == alone.window.loss);
        CHECK(all.window.gradient_norm == alone.window.gradient_norm);
        // Those of other phases are no numbers.
        REQUIRE(all.window.losses.size() == alone.window.losses.size());
        for (std::size_t k = 0; k < all.window.losses.size(); ++k)
            CHECK(doctest::toString(all.window.losses[k].second) == doctest::toString(alone.window.losses[k].second));
        CHECK(all.window.episodes == alone.window.episodes);
        CHECK(all.window.divergence == alone.window.divergence);
        CHECK(all.window.log_likelihood == alone.window.log_likelihood);
        // What some processes have saved, others take up.
        CHECK(same(trained(make, 8 / count + 1, 1, half, &all.middle).end, alone.end));
    }
}

}  // namespace

TEST_CASE("acting") {
    // 56 steps: past the end of an episode of 50.
    for (const int epochs : {1, 2}) is_one_run([=](const loop_settings& loop) { return acting(loop, epochs); }, 8);
}

TEST_CASE("sequences") {
    is_one_run(sequences);
}

TEST_CASE("unrolls of sequences") {
    is_one_run(unrolls);
}

TEST_CASE("detector, memory and policy") {
    for (const int half : {5, 15, 25}) is_one_run([](const loop_settings& loop) { return phases(loop, false); }, half);
}

TEST_CASE("what is not divided is refused, and what is not finite is said alike by all") {
    const auto model = small::trace();
    acting_settings s;
    s.rollout = {.environments = 6, .unroll = 7};
    as_processes(3, [&](processes& self) {
        const auto begin = [&](int wanted) {
            auto own = s;
            own.rollout.shards = wanted;
            return std::make_unique<training_loop<acting_update<backend>>>(loop_settings{1, 1, 0, &self}, model,
                                                                           small::maker(), own);
        };
        std::string said;
        try {
            begin(2);
        } catch (const error& e) {
            said = e.what();
        }
        require(said == "3 processes, but the run has 2 shards (rollout.shards); expected at most as many", said);
    });
    for (const int broken : {0, 2}) {
        std::vector<std::string> said(3);
        as_processes(3, [&](processes& self) {
            const auto own = small::trace();
            training_loop<acting_update<backend>> loop({1, 1, 0, &self}, own, small::maker(), s);
            if (self.rank() == broken) {
                const auto entry = (*own.store)[own.store->find("learner.value.weight")];
                own.store->edit().flat()[static_cast<std::size_t>(entry.offset)] = std::nanf("");
            }
            try {
                loop.iterate();
            } catch (const error& e) {
                said[static_cast<std::size_t>(self.rank())] = e.what();
            }
        });
        CHECK(said[0].find("first non-finite value: learner.value") != std::string::npos);
        CHECK(said[1] == said[0]);
        CHECK(said[2] == said[0]);
    }
}
