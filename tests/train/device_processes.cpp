// SPDX-License-Identifier: MIT
// Several processes that each train on a device, here an emulated one: the same checkpoints for any division of the
// shards. Threads in place of processes (tests/train/processes.cpp has them on the host).

#include <doctest/doctest.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>

#include "device_run.hpp"
#include "generated_echo.hpp"
#include "same_file.hpp"
#include "small_run.hpp"

using namespace engram;

namespace {

using device = emulated<float>;
using message_bytes = std::vector<std::byte>;

/// What threads have sent each other, by sender and receiver.
struct letter_box {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::pair<int, int>, std::deque<message_bytes>> sent;
};

class thread_process final : public processes {
public:
    thread_process(letter_box& box, int rank, int count) : box_(&box), rank_(rank), count_(count) {}
    int rank() const override { return rank_; }
    int count() const override { return count_; }
    void exchange(int partner, std::span<const std::byte> out, std::span<std::byte> in) override {
        if (!out.empty()) send(partner, out);
        if (!in.empty()) receive(partner, in);
    }
    void broadcast(std::span<std::byte> what, int root) override {
        if (rank_ != root) return receive(root, what);
        for (int to = 0; to < count_; ++to)
            if (to != root) send(to, what);
    }
    std::vector<message_bytes> gather(std::span<const std::byte> mine) override {
        for (int to = 0; to < count_; ++to) send(to, mine);
        std::vector<message_bytes> all;
        for (int from = 0; from < count_; ++from) all.push_back(next(from));
        return all;
    }

private:
    void send(int to, std::span<const std::byte> what) {
        const std::lock_guard lock(box_->mutex);
        box_->sent[{rank_, to}].emplace_back(what.begin(), what.end());
        box_->changed.notify_all();
    }
    message_bytes next(int from) {
        std::unique_lock lock(box_->mutex);
        auto& letters = box_->sent[{from, rank_}];
        box_->changed.wait(lock, [&] { return !letters.empty(); });
        message_bytes first = std::move(letters.front());
        letters.pop_front();
        return first;
    }
    void receive(int from, std::span<std::byte> into) {
        const message_bytes what = next(from);
        require(what.size() == into.size(), "a message of ", what.size(), " bytes, ", into.size(), " were expected");
        std::memcpy(into.data(), what.data(), what.size());
    }
    letter_box* box_;
    int rank_, count_;
};

struct outcome {
    safetensors end;
    training_window window;
};

/// What `count` processes make of a run: `begun` takes its settings and gives models and training.
template <class Begin>
outcome trained(Begin begin, int count, int threads, int iterations) {
    letter_box box;
    outcome result;
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
    std::vector<std::thread> all;
    for (int rank = 0; rank < count; ++rank)
        all.emplace_back([&, rank] {
            thread_process self(box, rank, count);
            try {
                const auto run = begin(loop_settings{3, threads, 10'000, count > 1 ? &self : nullptr});
                for (int i = 0; i < iterations; ++i) run.second->iterate();
                const auto window = run.second->take_window();
                safetensors end;
                run.second->save(end);
                if (rank == count - 1) result = {std::move(end), window};  // every process has the whole
            } catch (...) {
                failures[static_cast<std::size_t>(rank)] = std::current_exception();
            }
        });
    for (auto& t : all) t.join();
    for (auto& f : failures)
        if (f) std::rethrow_exception(f);
    return result;
}

using begun = std::pair<std::shared_ptr<void>, std::unique_ptr<training>>;

begun sequences(const loop_settings& loop) {
    using model_type = device_run::generative<mlp, ntm>;
    auto model = std::make_shared<traced_agent<device>>(
        model_type::trace<device>(device_run::small_settings<model_type>(), shape_of(device_run::task->info()), 1));
    return {model,
            std::make_unique<training_loop<sequence_update<device>>>(
                loop, *model, device_run::task, sequence_settings{.batch = 8, .shards = 4}, optimiser_settings{})};
}

begun acting(const loop_settings& loop) {
    auto model = std::make_shared<traced_agent<device>>(small::trace_smaller<device>(1));
    acting_settings s;
    s.rollout = {.environments = 8, .unroll = 7, .shards = 4};
    s.optimiser.learning_rate = 1e-3;
    return {model, std::make_unique<training_loop<acting_update<device>>>(loop, *model, small::maker(), s)};
}

template <class Begin>
void is_one_run(Begin begin, int iterations) {
    const outcome alone = trained(begin, 1, 1, iterations);
    CHECK_FALSE(same(alone.end, trained(begin, 1, 1, iterations - 1).end));
    // 3 processes do not carry even subtrees; 2 of 2 threads add up their own first.
    for (const auto& [count, threads] : {std::pair{2, 2}, std::pair{4, 1}, std::pair{3, 1}}) {
        CAPTURE(count);
        const outcome all = trained(begin, count, threads, iterations);
        CHECK(same(all.end, alone.end));
        CHECK(all.window.loss == alone.window.loss);
        CHECK(all.window.gradient_norm == alone.window.gradient_norm);
        CHECK(all.window.episodes == alone.window.episodes);
    }
}

}  // namespace

TEST_CASE("sequences on the devices of several processes") {
    is_one_run(sequences, 5);
}

TEST_CASE("acting on the devices of several processes") {
    is_one_run(acting, 9);  // past the end of an episode of 50
}
