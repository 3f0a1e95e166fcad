// SPDX-License-Identifier: MIT
// The laws of every Update (train/training_loop.hpp): what is saved, loaded and goes on has the bits of what went on;
// any number of threads gives the same bits at equal shards; an update with a number that is not finite changes no
// weight.

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <memory>

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/train/truncated_update.hpp>

#include "generated_echo.hpp"
#include "same_file.hpp"
#include "small_phases.hpp"
#include "small_run.hpp"
#include "unrolled_copy.hpp"

namespace {

using namespace engram;
using backend = cpu<float>;

constexpr int shards = 8;

safetensors saved(training& t) {
    safetensors f;
    t.save(f);
    return f;
}
void iterate(training& t, int n) {
    for (int i = 0; i < n; ++i) t.iterate();
}

/// A training and the models it refers to.
struct one_run {
    std::shared_ptr<void> models;
    std::unique_ptr<training> loop;
};

/// make(seed, threads) begins a run. Threads are exchanged in the middle.
template <class Make>
void keeps_the_laws(Make make, int half = 4) {
    const one_run whole = make(1, 1);
    iterate(*whole.loop, 2 * half);
    const auto end = saved(*whole.loop);
    CHECK(whole.loop->updates() > 0);
    for (const auto& [first, second] : {std::pair{1, 4}, std::pair{2, 1}, std::pair{4, 2}}) {
        CAPTURE(first);
        CAPTURE(second);
        const one_run begun = make(1, first), resumed = make(1, second);
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

}  // namespace

TEST_CASE("acting") {
    for (const int epochs : {1, 2})
        keeps_the_laws([=](std::uint64_t seed, int threads) {
            auto model = std::make_shared<traced_agent<backend>>(small::trace());
            acting_settings s;
            s.rollout = {.environments = 16, .unroll = 7, .epochs = epochs, .minibatches = epochs, .shards = shards};
            s.optimiser.learning_rate = 1e-3;
            return one_run{model, std::make_unique<training_loop<acting_update<backend>>>(
                                      loop_settings{seed, threads, 10'000}, *model, small::maker(), s)};
        });
}

TEST_CASE("sequences") {
    using generative = device_run::generative<mlp, ntm>;
    keeps_the_laws([](std::uint64_t seed, int threads) {
        auto model = std::make_shared<traced_agent<backend>>(generative::trace<backend>(
            device_run::small_settings<generative>(), shape_of(device_run::task->info()), 1));
        return one_run{model, std::make_unique<training_loop<sequence_update<backend>>>(
                                  loop_settings{seed, threads, 10'000}, *model, device_run::task,
                                  sequence_settings{.batch = 12, .shards = shards}, optimiser_settings{})};
    });
}

TEST_CASE("unrolls of sequences") {
    using device_run::truncated;
    keeps_the_laws([source = device_run::copying()](std::uint64_t seed, int threads) {
        auto model = std::make_shared<traced_agent<backend>>(
            truncated::trace<backend>(device_run::unrolled(), shape_of(source->info()), 1));
        return one_run{model, std::make_unique<training_loop<truncated_update<backend>>>(
                                  loop_settings{seed, threads, 10'000}, *model, source,
                                  sequence_settings{.batch = 12, .shards = shards}, optimiser_settings{})};
    });
}

TEST_CASE("detector, memory and policy, in phases and all at once") {
    for (const bool joint : {false, true}) {
        small_phases::sizes z{.rows = 32, .shards = shards, .joint = joint};
        z.detector = z.memory = 400, z.policy = 3200;
        const auto make = [z](std::uint64_t seed, int threads) mutable {
            z.seed = seed, z.threads = threads;
            auto run = std::make_shared<small_phases::phase_run<backend>>(z);
            return one_run{run, std::unique_ptr<training>(run->trainer.release())};
        };
        // Ends of one half in each of the phases.
        if (joint)
            keeps_the_laws(make, 10);
        else
            for (const int half : {5, 15, 25}) keeps_the_laws(make, half);
    }
}
