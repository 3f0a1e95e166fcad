// SPDX-License-Identifier: MIT
// Several processes that each train on a device, here an emulated one: the same checkpoints for any division of the
// shards. Threads in place of processes (tests/train/processes.cpp has them on the host).

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/train/nccl_links.cuh>  // with the NCCL of tests/fakes

#include "device_run.hpp"
#include "generated_echo.hpp"
#include "same_file.hpp"
#include "small_run.hpp"
#include "threads_as_processes.hpp"

using namespace engram;
using threads_as_processes::as_processes;

namespace {

using device = emulated<float>;
struct outcome {
    safetensors end;
    training_window window;
};

/// What carries the gradient between devices: the host, or links of the emulation, or those of NCCL.
enum class carrier { host, emulation, nccl };

/// What `count` processes make of a run: `begun` takes its settings and gives models and training.
template <class Begin>
outcome trained(Begin begin, int count, int threads, int iterations, carrier by = carrier::host) {
    outcome result;
    as_processes(count, [&](processes& self) {
        if (by == carrier::emulation) self.devices = std::make_unique<emulated_links<float>>(self);
        if (by == carrier::nccl) self.devices = std::make_unique<nccl_links<device>>(self);
        const auto run = begin(loop_settings{3, threads, 10'000, count > 1 ? &self : nullptr});
        for (int i = 0; i < iterations; ++i) run.second->iterate();
        const auto window = run.second->take_window();
        auto end = saved(*run.second);
        if (self.rank() == count - 1) result = {std::move(end), window};  // every process has the whole
    });
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
    for (const auto& [many, threads] : {std::pair{2, 2}, std::pair{4, 1}, std::pair{3, 1}})
        for (const carrier by : {carrier::host, carrier::emulation, carrier::nccl}) {
            const int count = many;  // clang before 16 captures no binding
            CAPTURE(count);
            CAPTURE(static_cast<int>(by));
            const int groups = fake_nccl::groups, broadcasts = fake_nccl::broadcasts;
            const outcome all = trained(begin, count, threads, iterations, by);
            CHECK(same(all.end, alone.end));
            CHECK(all.window.loss == alone.window.loss);
            CHECK(all.window.gradient_norm == alone.window.gradient_norm);
            CHECK(all.window.episodes == alone.window.episodes);
            // Even subtrees: an exchange for the sums and one to collect, with 1, 2, ... partners. Otherwise each
            // process but the first sends its shards up, and all take part in one broadcast.
            const bool even = count != 3;
            const int each = even ? 2 * (count == 4 ? 2 : 1) : 0;
            if (by != carrier::nccl) {
                CHECK(fake_nccl::groups == groups);
            } else if (even) {
                CHECK(fake_nccl::groups == groups + iterations * count * each);
                CHECK(fake_nccl::broadcasts == broadcasts);
            } else {
                CHECK(fake_nccl::groups > groups);
                CHECK(fake_nccl::broadcasts == broadcasts + iterations * count);
            }
        }
}

}  // namespace

TEST_CASE("sequences on the devices of several processes") {
    is_one_run(sequences, 5);
}

TEST_CASE("acting on the devices of several processes") {
    is_one_run(acting, 9);  // past the end of an episode of 50
}

TEST_CASE("what NCCL refuses is one sentence, and its communicators go with the processes") {
    const int destroyed = fake_nccl::destroyed, aborted = fake_nccl::aborted;
    as_processes(1, [](processes& self) {
        self.devices = std::make_unique<nccl_links<device>>(self);
        auto& links = dynamic_cast<device_links<device>&>(*self.devices);
        executor<device> on;
        const std::vector<float> out{1, 2, 3};
        std::vector<float> in(3);
        // To itself, as it is tested on one GPU.
        for (int i = 0; i < 3; ++i)
            on.replay(3, std::vector<std::shared_ptr<void>>{},
                      [&] { links.exchange(on, 0, out.data(), 3, in.data(), 3); });
        CHECK(in == out);
        links.look(true);
    });
    CHECK(fake_nccl::destroyed == destroyed + 1);
    as_processes(1, [](processes& self) {
        self.devices = std::make_unique<nccl_links<device>>(self);
        auto& links = dynamic_cast<device_links<device>&>(*self.devices);
        executor<device> on;
        float out = 1, in = 0;
        fake_nccl::next = ncclSystemError;
        CHECK_THROWS_WITH_AS(links.exchange(on, 0, &out, 1, &in, 1),
                             "devices of 1 processes: ncclGroupEnd failed: an error that a test has asked for; NCCL "
                             "says: nothing else (NCCL_DEBUG=INFO tells more)",
                             error);
    });
    CHECK(fake_nccl::destroyed == destroyed + 1);
    CHECK(fake_nccl::aborted == aborted + 1);
}

TEST_CASE("two processes on one device are noticed by all") {
    for (const bool alike : {false, true})
        as_processes(3, [&](processes& self) {
            const char own = static_cast<char>(alike && self.rank() == 2 ? 0 : self.rank());
            require(one_device_each(self, std::as_bytes(std::span(&own, 1))) == !alike, "process ", self.rank());
        });
}
