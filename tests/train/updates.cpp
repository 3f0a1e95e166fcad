// SPDX-License-Identifier: MIT
// The laws of every Update (train/training_loop.hpp): what is saved, loaded and goes on has the bits of what went on;
// any number of threads gives the same bits at equal shards; an update with a number that is not finite changes no
// weight.

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <limits>

#include <engram/core/subnormals.hpp>

#include "every_update.hpp"
#include "same_file.hpp"

using namespace every_update;

namespace {

/// make(loop) begins a run. Threads are exchanged in the middle.
template <class Make>
void keeps_the_laws(Make make, int half = 4) {
    const auto with = [&](int threads) { return make(loop_settings{1, threads, 10'000}); };
    const one_run whole = with(1);
    iterate(*whole.loop, 2 * half);
    const auto end = saved(*whole.loop);
    CHECK(whole.loop->updates() > 0);
    for (const auto& threads : {std::pair{1, 4}, std::pair{2, 1}, std::pair{4, 2}}) {
        const int first = threads.first, second = threads.second;  // clang before 16 captures no binding
        CAPTURE(first);
        CAPTURE(second);
        const one_run begun = with(first), resumed = with(second);
        iterate(*begun.loop, half);
        const auto file = saved(*begun.loop);
        iterate(*resumed.loop, 1);  // what it did before leaves no trace
        resumed.loop->load(file);
        CHECK(same(saved(*resumed.loop), file));
        iterate(*resumed.loop, half);
        CHECK(resumed.loop->steps() == whole.loop->steps());
        CHECK(same(saved(*resumed.loop), end));
    }
    // Every weight of a checkpoint becomes no number.
    auto broken = end;
    const std::string moment = "optimiser.first.";
    for (const auto& [name, t] : end.tensors) {
        if (!name.starts_with(moment)) continue;
        auto& bytes = broken.tensors.at(name.substr(moment.size())).data;
        const float nan = std::numeric_limits<float>::quiet_NaN();
        for (std::size_t i = 0; i < bytes.size(); i += sizeof nan) std::memcpy(&bytes[i], &nan, sizeof nan);
    }
    whole.loop->load(broken);
    const auto updates = whole.loop->updates();
    CHECK_THROWS_WITH_AS(iterate(*whole.loop, 1), doctest::Contains("stopped"), error);
    CHECK(whole.loop->updates() == updates);
    const auto after = saved(*whole.loop);
    for (const auto& [name, t] : end.tensors) {
        if (!name.starts_with(moment)) continue;
        CHECK(after.at(name).data == end.at(name).data);
        CHECK(after.at(name.substr(moment.size())).data == broken.at(name.substr(moment.size())).data);
    }
}

/// Counts the shards for which subnormal numbers are zero.
struct watched_update : acting_update<backend> {
    using acting_update<backend>::acting_update;
    void iterate(training_context<backend>& by) {
        by.each_shard(every_update::shards, [&](int) { zero += zero_subnormals::here() ? 1 : 0; });
        acting_update<backend>::iterate(by);
    }
    std::atomic<int> zero = 0;
};

}  // namespace

TEST_CASE("subnormal numbers are zero in an iteration, for all its threads, and what they were after it") {
    const auto agent = small::trace();
    acting_settings s;
    s.rollout = {.environments = 16, .unroll = 7, .shards = every_update::shards};
    for (const int threads : {1, 4}) {
        training_loop<watched_update> loop({1, threads, 10'000}, agent, small::maker(), s);
        for (const bool outside : {false, true}) {
            const zero_subnormals callers(outside);
            loop->zero = 0;
            loop.iterate();
            CHECK(loop->zero == (zero_subnormals::available() ? every_update::shards : 0));
            CHECK(zero_subnormals::here() == (outside && zero_subnormals::available()));
        }
    }
}

TEST_CASE("acting") {
    for (const int epochs : {1, 2}) keeps_the_laws([=](const loop_settings& loop) { return acting(loop, epochs); });
}

TEST_CASE("acting, held near the behaviour's policy") {
    keeps_the_laws(held_near);
}

TEST_CASE("sequences") {
    keeps_the_laws(sequences);
}

TEST_CASE("unrolls of sequences") {
    keeps_the_laws(unrolls);
}

// Ends of one half in each of the phases.
TEST_CASE("detector, memory and policy, in phases") {
    for (const int half : {5, 15, 25})
        keeps_the_laws([](const loop_settings& loop) { return phases(loop, false); }, half);
}

TEST_CASE("detector, memory and policy, all at once") {
    keeps_the_laws([](const loop_settings& loop) { return phases(loop, true); }, 10);
}
