// SPDX-License-Identifier: MIT
// Several processes that each train on a device, here an emulated one: the same checkpoints for any division of the
// shards. Threads in place of processes (tests/train/processes.cpp has them on the host).

#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>

#include "device_run.hpp"
#include "generated_echo.hpp"
#include "same_file.hpp"
#include "small_run.hpp"
#include "threads_as_processes.hpp"

using namespace engram;

namespace {

using device = emulated<float>;

struct outcome {
    safetensors end;
    training_window window;
};

/// What `count` processes make of a run: `begun` takes its settings and gives models and training.
template <class Begin>
outcome trained(Begin begin, int count, int threads, int iterations) {
    outcome result;
    threads_as_processes::as_processes(count, [&](processes& self) {
        const auto run = begin(loop_settings{3, threads, 10'000, count > 1 ? &self : nullptr});
        for (int i = 0; i < iterations; ++i) run.second->iterate();
        const auto window = run.second->take_window();
        safetensors end;
        run.second->save(end);
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
