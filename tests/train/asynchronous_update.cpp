// Asynchronous training: what the learner replays, lag, pauses, failures, and that it learns.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "asynchronous_run.hpp"
#include "same_file.hpp"

using namespace asynchronous_run;

namespace {

acting_settings settings(double rate = 1e-3, int queue = 2) {
    acting_settings s;
    s.rollout = {.environments = 6, .unroll = 7};
    s.optimiser.learning_rate = rate;
    s.asynchronous.queue = queue;
    return s;
}

void wait_for(const training_loop<asynchronous_update<backend>>& t, std::size_t unrolls) {
    for (int i = 0; i < 5000 && t->queued() < unrolls; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(t->queued() == unrolls);
}

// Environments that take as many steps as they are allowed to, and then wait, or throw.
struct gate {
    std::mutex mutex;
    std::condition_variable opened;
    int steps = 0;
    bool broken = false;
    void allow(int more) {
        const std::lock_guard lock(mutex);
        steps += more;
        opened.notify_all();
    }
    /// Takes the leave for one step; throws when there is none and will be none.
    void pass() {
        std::unique_lock lock(mutex);
        opened.wait(lock, [this] { return steps > 0 || broken; });
        if (steps == 0) fail("the gate is broken");
        --steps;
    }
    void give_way() {
        const std::lock_guard lock(mutex);
        broken = true;
        opened.notify_all();
    }
};
environment_maker gated_maker(gate& g) {
    return [&g, make = maker()](int count, int first) -> std::unique_ptr<batch_environment> {
        return std::make_unique<watched>(make(count, first), [&g] { g.pass(); });
    };
}
constexpr int unroll_steps = 7 * 3;  // of one group: two groups of three rows

}  // namespace

TEST_CASE("with a learning rate of zero it sees what synchronous training sees, and ratios are exactly one") {
    auto a = trace(), b = trace();
    const auto first = weights(a);
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, maker(), settings(0));
    training_loop<acting_update<backend>> reference({3, 2, 10000}, b, maker(), settings(0));
    REQUIRE(t->groups() == 2);
    int different = 0, off = 0;
    double lag = 0;
    t->start();
    wait_for(t, 2);
    for (int i = 0; i < 20; ++i) {  // 70 steps a group: past the end of an episode
        if (i % 2 == 0) reference.iterate();
        t.iterate();
        REQUIRE(t->group_learnt_from() == i % 2);  // one actor takes its groups in turn
        auto& shard = reference->shard(i % 2).learner;
        for (const char* name : {"observation", "last_action", "last_reward", "reset", "action", "reward", "continues",
                                 "bootstrap", "behaviour_log_probability", "memory.stored"})
            different += copy(shard.input(name)) != copy(t->learner().input(name));
        for (const auto& name : shard.state_names())
            different += copy(shard.state(name)) != copy(t->learner().state(name));
        off += ratios_off(t);
        const auto window = t.take_window();
        lag = std::max(lag, window.largest_lag);
    }
    CHECK(different == 0);
    CHECK(off == 0);
    CHECK(lag > 0);
    CHECK(lag <= 2);  // one actor thread: at most the number of buffers
    CHECK(weights(a) == first);
    CHECK(t.steps() == 20 * 21);
    CHECK(t.updates() == 20);
}

TEST_CASE("ratios are exactly one at lag zero, and not with the lag of a learner that learns") {
    auto a = trace();
    gate g;
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, gated_maker(g), settings(1e-2, 2));
    g.allow(2 * unroll_steps);
    t->start();
    wait_for(t, 2);  // both acted before the first update
    t.iterate();
    CHECK(t.take_window().largest_lag == 0);
    CHECK(ratios_off(t) == 0);
    t.iterate();
    CHECK(t.take_window().largest_lag == 1);
    CHECK(ratios_off(t) > 0);
    g.give_way();
}

TEST_CASE("lag is the number of updates since the unroll was begun") {
    gate g;
    auto a = trace();
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, gated_maker(g), settings(1e-3, 3));
    g.allow(3 * unroll_steps);
    t->start();
    wait_for(t, 3);  // all three acted before the first update
    t.iterate();
    CHECK(t.take_window().lag == 0);
    t.iterate();
    t.iterate();
    const auto window = t.take_window();
    CHECK(window.lag == 1.5);
    CHECK(window.largest_lag == 2);
    g.give_way();  // the fourth unroll waits in the gate
}

// The rate is zero; the weights are changed by hand between acting and learning.
TEST_CASE("an unroll ends in the learner's value of what comes next, not in that of the weights that acted") {
    auto a = trace(1, 16, 0.9), b = trace(1, 16, 0.9);
    gate g;
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, gated_maker(g), settings(0));
    training_loop<acting_update<backend>> reference({3, 2, 10000}, b, maker(), settings(0));
    reference.iterate();
    const auto old = copy(reference->shard(0).learner.input("bootstrap"));
    g.allow(2 * unroll_steps);
    t->start();
    wait_for(t, 2);
    {
        philox random(1, 1);
        auto edit = a.store->edit();
        for (auto& w : edit.flat()) w += 0.1f * random.normal();
    }
    t.iterate();
    const auto bootstrap = copy(t->learner().input("bootstrap"));
    program<backend> longer(*a.g, a.store, {.steps = 8, .batch = 3, .replay = true}, {a.value});
    const auto take_steps = [&](int to, int count) {
        for (const char* name : {"observation", "last_action", "last_reward", "reset", "memory.stored"}) {
            const auto from = t->learner().input(name);
            const auto width = from.size() / 7;
            std::copy_n(from.begin(), width * static_cast<std::size_t>(count),
                        longer.input(name).begin() + static_cast<std::ptrdiff_t>(width) * to);
        }
    };
    take_steps(0, 7);
    g.allow(4 * unroll_steps);
    t.iterate();
    t.iterate();  // the same group again: its first step is what followed
    REQUIRE(t->group_learnt_from() == 0);
    take_steps(7, 1);
    longer.forward();
    const auto value = longer.output(a.value);
    for (int row = 0; row < 3; ++row) {
        const float given = bootstrap[static_cast<std::size_t>(row)];
        CHECK(given == doctest::Approx(value.at(7)[row * value.stride]).epsilon(1e-5));
        CHECK(std::abs(given - old[static_cast<std::size_t>(row)]) > 1e-3);
    }
    // The losses are those of this bootstrap.
    auto& learner = t->learner();
    const double loss = learner.loss();
    const auto again = copy(learner.input("bootstrap"));
    learner.refresh("bootstrap");
    CHECK(learner.loss() == loss);
    for (auto& v : learner.input("bootstrap")) v += 1;
    learner.refresh("bootstrap");
    CHECK(learner.loss() != loss);
    std::copy(again.begin(), again.end(), learner.input("bootstrap").begin());
    learner.refresh("bootstrap");
    CHECK(learner.loss() == loss);
    CHECK_THROWS_WITH_AS(learner.refresh("observation"), doctest::Contains("in a scan"), engram::error);
    g.give_way();
}

// Both groups act with the first weights, so that the first update is the synchronous one.
TEST_CASE("a whole update learns from the rows of all groups, as synchronous training does") {
    auto a = trace(), b = trace();
    gate g;
    auto s = settings(1e-2);
    s.asynchronous.whole = true;
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, gated_maker(g), s);
    training_loop<acting_update<backend>> reference({3, 2, 10000}, b, maker(), settings(1e-2));
    const auto first = weights(a);
    g.allow(2 * unroll_steps);
    t->start();
    wait_for(t, 2);
    t.iterate();
    reference.iterate();
    CHECK(t.updates() == 1);
    CHECK(t.steps() == 7 * 6);
    CHECK(t.steps() == reference.steps());
    const auto one = t.take_window(), other = reference.take_window();
    CHECK(one.loss == doctest::Approx(other.loss).epsilon(1e-6));
    CHECK(one.gradient_norm == doctest::Approx(other.gradient_norm).epsilon(1e-6));
    REQUIRE(one.losses.size() == other.losses.size());
    for (std::size_t i = 0; i < one.losses.size(); ++i)
        CHECK(one.losses[i].second == doctest::Approx(other.losses[i].second).epsilon(1e-6));
    CHECK(one.lag == 0);
    const auto now = weights(a);
    CHECK(now == weights(b));  // gradients are added in the same order
    CHECK(now != first);
    g.give_way();
}

// It ends: a destructor that waited for ever would meet CTest's time limit.
TEST_CASE("it ends while actors wait for a buffer, for the first iterate, and in the middle of an unroll") {
    auto a = trace();
    { training_loop<asynchronous_update<backend>> never_started({3, 3, 10000}, a, maker(), settings()); }
    {
        training_loop<asynchronous_update<backend>> t({3, 3, 10000}, a, maker(), settings());
        t->start();
        wait_for(t, 4);  // two actors, two buffers each, all full
    }
    {
        training_loop<asynchronous_update<backend>> t({3, 3, 10000}, a, maker(), settings());
        t->start();
    }
}

TEST_CASE("what an actor throws is thrown by iterate, again and again") {
    gate g;
    g.allow(2 * unroll_steps + 5);
    auto a = trace();
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, gated_maker(g), settings());
    t->start();
    wait_for(t, 2);
    t.iterate();
    t.iterate();
    std::thread later([&g] { g.give_way(); });  // iterate() waits for the third unroll by then, or soon
    CHECK_THROWS_WITH_AS(t.iterate(), "the gate is broken", engram::error);
    CHECK_THROWS_WITH_AS(t.iterate(), "the gate is broken", engram::error);
    later.join();
    CHECK(t.updates() == 2);
    // Its group stands within an unroll, so there is nothing to go on from.
    safetensors file;
    CHECK_THROWS_WITH_AS(t.save(file), "the gate is broken", engram::error);
}

TEST_CASE("weights that are not numbers stop it and stay as they were") {
    auto a = trace();
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, maker(), settings());
    a.store->edit().values(a.store->find("learner.value.weight"))[0] = std::numeric_limits<float>::quiet_NaN();
    const auto before = weights(a);
    CHECK_THROWS_WITH_AS(t.iterate(), doctest::Contains("the loss is"), engram::error);
    CHECK_THROWS_WITH_AS(t.iterate(), doctest::Contains("first non-finite value: learner.value"), engram::error);
    const auto after = weights(a);
    CHECK(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)) == 0);
}

TEST_CASE("a checkpoint taken while actors run holds all of it, and a loaded run goes on") {
    auto a = trace(1), b = trace(2), c = trace(1, 24);
    training_loop<asynchronous_update<backend>> t({3, 3, 10000}, a, maker(), settings()),
        resumed({4, 3, 10000}, b, maker(), settings());
    for (int i = 0; i < 20; ++i) t.iterate();
    const auto file = saved(t);
    CHECK(file.values<std::int64_t>("trainer.counters")[1] == 20);
    for (int i = 0; i < 3; ++i) resumed.iterate();  // it may be running when it loads
    resumed.load(file);
    CHECK(resumed.updates() == 20);
    CHECK(resumed.steps() == t.steps());
    CHECK(weights(a) == weights(b));

    // Loaded and saved before anything acts: the same file.
    auto d = trace(5);
    training_loop<asynchronous_update<backend>> still({5, 3, 10000}, d, maker(), settings());
    still.load(file);
    const auto again = saved(still);
    CHECK(again.tensors.size() == file.tensors.size());
    int different = 0;
    for (const auto& [name, tensor] : file.tensors) different += again.at(name).data != tensor.data;
    CHECK(different == 0);

    for (int i = 0; i < 10; ++i) resumed.iterate();
    CHECK(resumed.updates() == 30);
    CHECK(resumed.take_window().largest_lag <= 30);

    training_loop<asynchronous_update<backend>> larger({3, 3, 10000}, c, maker(), settings());
    const auto before = weights(c);
    CHECK_THROWS_WITH_AS(larger.load(file), doctest::Contains("expected ["), engram::error);
    CHECK(weights(c) == before);
    CHECK(larger.updates() == 0);
    auto other = trace();
    training_loop<asynchronous_update<backend>> two({3, 2, 10000}, other, maker(), settings());
    CHECK_THROWS_WITH_AS(two.load(file), doctest::Contains("was written with 6 groups of environments, this run has 2"),
                         engram::error);
    auto synchronous = file;
    synchronous.metadata["training_mode"] = "synchronous";
    CHECK_THROWS_WITH_AS(larger.load(synchronous), doctest::Contains("this run is asynchronous"), engram::error);
}

TEST_CASE("a frozen run that is resumed replays what the actors had queued, mirrors included") {
    auto a = trace(), b = trace(9);
    training_loop<asynchronous_update<backend>> t({3, 2, 10000}, a, maker(), settings(0)),
        resumed({4, 2, 10000}, b, maker(), settings(0));
    for (int i = 0; i < 7; ++i) t.iterate();
    wait_for(t, 2);
    const auto file = saved(t);
    resumed.load(file);
    CHECK(resumed->queued() >= 2);
    int off = 0;
    for (int i = 0; i < 15; ++i) {
        resumed.iterate();
        off += ratios_off(resumed);
    }
    CHECK(off == 0);
}

TEST_CASE("settings that cannot be divided are refused") {
    auto a = trace();
    auto s = settings();
    s.asynchronous.groups = 4;
    CHECK_THROWS_WITH_AS((training_loop<asynchronous_update<backend>>({3, 2, 100}, a, maker(), s)),
                         doctest::Contains("do not divide into 4 equal groups"), engram::error);
    CHECK_THROWS_WITH_AS((training_loop<asynchronous_update<backend>>({3, 9, 100}, a, maker(), settings())),
                         doctest::Contains("got 9"), engram::error);
    CHECK(training_loop<asynchronous_update<backend>>({3, 5, 100}, a, maker(), settings())->groups() ==
          6);  // four actors: at least four groups
}

TEST_CASE("it learns") {
#if defined(__SANITIZE_THREAD__)
    const std::int64_t steps = 3000;
#else
    const std::int64_t steps = 400000;
#endif
    auto a = trace();
    acting_settings s;
    s.rollout = {.environments = 32, .unroll = 10};
    s.optimiser.learning_rate = 3e-3;
    training_loop<asynchronous_update<backend>> t({3, 2, steps}, a, maker(), s);
    std::vector<double> episodes;
    const auto mean = [&](auto first, auto last) { return std::accumulate(first, last, 0.0) / double(last - first); };
    double lag = 0, start = 0, end = 0;
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
    CHECK(lag <= 2);
#if !defined(__SANITIZE_THREAD__)
    MESSAGE("mean episode reward: first 100 ", start, ", last 200 ", end, " after ", t.steps(), " steps, largest lag ",
            lag);
    // Random actions earn 12.5 of 50, means of 100 episodes with a deviation of 0.3. How the actors' steps fall between
    // the updates is the scheduler's, so the number of steps that it takes is not fixed: 40 runs on an idle and a busy
    // machine stood above start + 5 by 60,000 steps in all but one, which stood at 17.7.
    CHECK(end > start + 5);
#endif
}
