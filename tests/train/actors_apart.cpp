// SPDX-License-Identifier: MIT
// Asynchronous training whose actors are other processes, here threads in place of processes and memory in place of a
// network (tests/program/actors_apart.sh has real ones): what the learner replays, how far it lags, that a checkpoint
// holds all of it and is taken up by any division, how it ends, and that it learns.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <numeric>
#include <thread>

#include "asynchronous_run.hpp"
#include "same_file.hpp"
#include "threads_as_processes.hpp"

using namespace asynchronous_run;
using threads_as_processes::as_processes;

namespace {

using apart = training_loop<asynchronous_update<backend>>;

acting_settings settings(double rate = 1e-3) {
    acting_settings s;
    s.rollout = {.environments = 8, .unroll = 7};
    s.optimiser.learning_rate = rate;
    s.asynchronous.groups = 4;
    return s;
}

/// What a process does that acts for another one; returns its parts of the checkpoints.
int act_to_the_end(training& t) {
    REQUIRE(t.role() == process_role::acts);
    int checkpoints = 0;
    for (;;) {
        const process_call call = t.serve();
        if (call == process_call::over) return checkpoints;
        if (call != process_call::checkpoint) continue;
        (void)saved(t);
        ++checkpoints;
    }
}

/// learn(loop, agent) in the first of `count` processes, whose others act with `threads` threads each.
template <class Learn>
void with_actors(int count, int threads, const acting_settings& s, Learn learn, const safetensors* from = nullptr,
                 environment_maker make = maker()) {
    as_processes(count, [&](processes& self) {
        const auto model = trace(self.rank() == 0 ? 1 : 9);  // weights come from the learner
        apart loop({3, threads, 10'000'000, &self}, model, make, s);
        if (from) loop.load(*from);
        if (self.rank() == 0) {
            REQUIRE(loop.role() == process_role::learns);
            learn(loop, model);
        } else {
            (void)act_to_the_end(loop);
        }
    });
}

}  // namespace

TEST_CASE("with a learning rate of zero it replays what was done elsewhere, and ratios are exactly one") {
    for (const auto& [many, threads] : {std::pair{2, 1}, std::pair{3, 1}, std::pair{3, 2}, std::pair{5, 1}}) {
        const int count = many;  // clang before 16 captures no binding
        CAPTURE(count);
        int off = 0;
        std::vector<int> learnt(4, 0);
        with_actors(count, threads, settings(0), [&](apart& t, const auto&) {
            for (int i = 0; i < 60; ++i) {  // past the end of an episode of 50 in every group
                t.iterate();
                off += ratios_off(t);
                ++learnt[static_cast<std::size_t>(t->group_learnt_from())];
            }
            CHECK(t.updates() == 60);
            CHECK(t.steps() == 60 * 7 * 2);
            CHECK(t.take_window().episodes.size() > 0);
        });
        CHECK(off == 0);
        // With a thread a process the bound on the lag, 16 at most, leaves no group out.
        if (threads == 1)
            for (const int n : learnt) CHECK(n >= 2);
    }
}

TEST_CASE("a learner that learns is followed by weights, and waits for an actor that would lag too far behind") {
    for (const bool whole : {false, true}) {
        auto s = settings(1e-2);
        s.asynchronous.whole = whole;
        // Eight unrolls may be under way: so many updates learn from them, at most, and the bound is twice that.
        const int all = whole ? 3 : 8;
        std::atomic<int> updates = 0;
        const auto make = [&, plain = maker()](int count, int first) -> std::unique_ptr<batch_environment> {
            const int wanted = first == 2 ? all + 1 : 0;  // of updates, before the second group takes a step
            return std::make_unique<watched>(plain(count, first), [&updates, wanted] {
                for (int i = 0; i < 60'000 && updates < wanted; ++i)
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
            });
        };
        double largest = 0;
        int off = 0;
        with_actors(
            5, 1, s,
            [&](apart& t, const auto&) {
                CHECK(t->longest_lag() == 2 * all);
                for (; updates < 80; ++updates) {
                    t.iterate();
                    off += ratios_off(t);
                    // The second group's first unroll, of the first weights, is learnt from where the others may not
                    // go on without it.
                    largest = std::max(largest, t.take_window().largest_lag);
                    if (updates == all) CHECK(largest <= all);
                }
            },
            nullptr, make);
        CHECK(off > 0);
        CHECK(largest >= all + 1);
        CHECK(largest <= 2 * all);
    }
}

TEST_CASE("a whole update learns from more groups than may be under way") {
    auto s = settings(0);
    s.asynchronous.whole = true;
    int off = 0;
    with_actors(2, 1, s, [&](apart& t, const auto&) {
        for (int i = 0; i < 10; ++i) {
            t.iterate();
            off += ratios_off(t);
        }
        CHECK(t.updates() == 10);
        CHECK(t.steps() == 10 * 7 * 8);
        CHECK(t.take_window().largest_lag <= static_cast<double>(t->longest_lag()));
    });
    CHECK(off == 0);
}

TEST_CASE("no checkpoint is made of an unroll that an actor broke off") {
    std::string said;
    std::atomic<int> left = 2 * 2 * 7 + 5;  // it breaks in the third unroll, begun after the first update
    const auto make = [&, plain = maker()](int count, int first) -> std::unique_ptr<batch_environment> {
        return std::make_unique<watched>(plain(count, first), [&left] { require(--left > 0, "the floor gave way"); });
    };
    as_processes(2, [&](processes& self) {
        const auto model = trace();
        try {
            apart loop({3, 1, 10'000'000, &self}, model, make, settings());
            if (self.rank() > 0) return (void)act_to_the_end(loop);
            loop.iterate();
            while (left > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
            try {
                (void)saved(loop);
            } catch (const error& problem) {
                said = problem.what();
            }
        } catch (const agreed_error&) {
        }
    });
    CHECK(said == "the floor gave way");
}

TEST_CASE("a checkpoint holds the parts of all, and one process, or another number, takes it up") {
    safetensors first, again, later;
    with_actors(3, 1, settings(0), [&](apart& t, const auto&) {
        for (int i = 0; i < 20; ++i) t.iterate();
        first = saved(t);
        for (int i = 0; i < 5; ++i) t.iterate();  // the others go on behind it
        later = saved(t);
    });
    CHECK(first.values<std::int64_t>("trainer.counters")[1] == 20);
    CHECK(later.values<std::int64_t>("trainer.counters")[1] == 25);
    CHECK(first.values<std::int64_t>("asynchronous.groups")[0] == 4);

    // Loaded and saved before anything acts: the same file.
    as_processes(5, [&](processes& self) {
        const auto model = trace(5);
        apart loop({3, 1, 10'000'000, &self}, model, maker(), settings(0));
        loop.load(first);
        auto own = saved(loop);
        if (self.rank() == 0) again = std::move(own);
        if (self.rank() > 0) (void)act_to_the_end(loop);
    });
    CHECK(same(again, first));

    // What goes on replays what had been done, mirrors included.
    for (const int count : {2, 3, 5}) {
        int off = 0;
        with_actors(
            count, 1, settings(0),
            [&](apart& t, const auto&) {
                CHECK(t.updates() == 20);
                for (int i = 0; i < 30; ++i) {
                    t.iterate();
                    off += ratios_off(t);
                }
                CHECK(t.updates() == 50);
            },
            &first);
        CHECK(off == 0);
    }
    // More unrolls wait than fit into the queue of fewer actors.
    safetensors many;
    with_actors(5, 1, settings(0), [&](apart& t, const auto&) {
        for (int i = 0; i < 20; ++i) t.iterate();
        // On busy cores this thread is the faster one: it lets the others fill the queue.
        for (int i = 0; i < 2000; ++i) {
            many = saved(t);
            if (many.values<std::int64_t>("asynchronous.groups")[1] > 2) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    REQUIRE(many.values<std::int64_t>("asynchronous.groups")[1] > 2);
    with_actors(
        2, 1, settings(0),
        [&](apart& t, const auto&) {
            int several = 0;
            for (int i = 0; i < 30; ++i) {
                t.iterate();
                several += ratios_off(t);
            }
            CHECK(several == 0);
            CHECK(t->longest_lag() == 4);
        },
        &many);
    auto model = trace(7);
    apart alone({3, 3, 10'000'000}, model, maker(), settings(0));
    alone.load(first);
    CHECK(same(saved(alone), first));
    int off = 0;
    for (int i = 0; i < 30; ++i) {
        alone.iterate();
        off += ratios_off(alone);
    }
    CHECK(off == 0);
}

TEST_CASE("what goes wrong in an acting process, or in the learner, all of them say") {
    std::vector<std::string> said(3);
    const auto all = [&](const environment_maker& make, float broken) {
        as_processes(3, [&](processes& self) {
            const auto model = trace();
            try {
                apart loop({3, 1, 10'000'000, &self}, model, make, settings());
                if (self.rank() > 0) return (void)act_to_the_end(loop);
                for (int i = 0; i < 1000; ++i) {
                    if (i == 3) model.store->edit().flat()[0] += broken;
                    loop.iterate();
                }
            } catch (const agreed_error& problem) {
                said[static_cast<std::size_t>(self.rank())] = problem.what();
            }
        });
    };
    std::atomic<int> left = 200;
    all(
        [&, plain = maker()](int count, int first) -> std::unique_ptr<batch_environment> {
            return std::make_unique<watched>(plain(count, first),
                                             [&left] { require(--left > 0, "the floor gave way"); });
        },
        0);
    for (const auto& text : said) CHECK(text == "the floor gave way");
    all(maker(), std::numeric_limits<float>::quiet_NaN());
    CHECK(said[0].find("training stopped") != std::string::npos);
    CHECK(said[1] == said[0]);
    CHECK(said[2] == said[0]);
}

TEST_CASE("a process that was told to stop tells the one that learns") {
    as_processes(3, [&](processes& self) {
        const auto model = trace();
        apart loop({3, 1, 10'000'000, &self}, model, maker(), settings());
        if (self.rank() == 2) loop.tell_to_stop();
        if (self.rank() > 0) return (void)act_to_the_end(loop);
        int updates = 0;
        for (; !loop.told_to_stop() && updates < 100'000; ++updates) loop.iterate();
        CHECK(updates < 100'000);
    });
}

TEST_CASE("more threads that act than environments are refused by all") {
    as_processes(3, [&](processes& self) {
        const auto model = trace();
        std::string text;
        try {
            apart loop({3, 5, 100, &self}, model, maker(), settings());
        } catch (const error& problem) {
            text = problem.what();
        }
        require(text == "2 processes act, with 5 threads each; expected 1 to 8 threads (rollout.environments)", text);
    });
}

TEST_CASE("it learns as one process does") {
#if defined(__SANITIZE_THREAD__)
    const std::int64_t steps = 3000;
#else
    const std::int64_t steps = 400000;
#endif
    acting_settings s;
    s.rollout = {.environments = 32, .unroll = 10};
    s.optimiser.learning_rate = 3e-3;
    std::vector<double> episodes;
    const auto mean = [&](auto first, auto last) { return std::accumulate(first, last, 0.0) / double(last - first); };
    double start = 0, end = 0, lag = 0;
    std::int64_t taken = 0, bound = 0;
    with_actors(3, 1, s, [&](apart& t, const auto&) {
        bound = t->longest_lag();
        while (t.steps() < steps) {
            t.iterate();
            const auto w = t.take_window();
            episodes.insert(episodes.end(), w.episodes.begin(), w.episodes.end());
            lag = std::max(lag, w.largest_lag);
            if (episodes.size() < 1000) continue;
            start = mean(episodes.begin(), episodes.begin() + 100);
            end = mean(episodes.end() - 200, episodes.end());
            if (end > start + 5) break;
        }
        taken = t.steps();
    });
    CHECK(lag <= static_cast<double>(bound));
#if !defined(__SANITIZE_THREAD__)
    MESSAGE("mean episode reward: first 100 ", start, ", last 200 ", end, " after ", taken, " steps, largest lag ",
            lag);
    CHECK(end > start + 5);  // as in asynchronous_update.cpp
#endif
}
