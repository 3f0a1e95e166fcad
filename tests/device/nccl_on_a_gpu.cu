// NCCL on one GPU, which is a world of one process: numbers to itself, captured and replayed with kernels around them,
// and the updates of an optimiser with links and without. tests/train/device_processes.cpp has more processes, and an
// NCCL between threads.

#include "gpu_main.cuh"

#include <numeric>

#include <engram/encoder/mlp.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/train/nccl_links.cuh>
#include <engram/train/sequence_update.hpp>
#include <engram/train/training_loop.hpp>

#include "../train/generated_echo.hpp"
#include "../train/same_file.hpp"

using namespace engram;
using device = cuda<float>;

namespace {

class one_process final : public processes {
public:
    int rank() const override { return 0; }
    int count() const override { return 1; }
    void exchange(int, std::span<const std::byte>, std::span<std::byte>) override { fail("there is nobody else"); }
    void broadcast(std::span<std::byte>, int) override {}
    std::vector<std::vector<std::byte>> gather(std::span<const std::byte> mine) override {
        return {{mine.begin(), mine.end()}};
    }
    void keep_watch(bool) override { ++looks; }
    int looks = 0;
};

safetensors trained(processes* others) {
    using model_type = device_run::generative<mlp, ntm>;
    const auto model =
        model_type::trace<device>(device_run::small_settings<model_type>(), shape_of(device_run::task->info()), 1);
    training_loop<sequence_update<device>> run({3, 1, 10'000, others}, model, device_run::task,
                                               sequence_settings{.batch = 8, .shards = 2}, optimiser_settings{});
    for (int i = 0; i < 6; ++i) run.iterate();
    safetensors end;
    run.save(end);
    return end;
}

}  // namespace

TEST_CASE("numbers to itself, captured and replayed between kernels") {
    one_process alone;
    nccl_links<device> links(alone);
    {
        executor<device> on;
        on.watch([&](bool begins) { links.look(begins); });
        constexpr int n = 100'000;
        std::vector<float> numbers(n);
        std::iota(numbers.begin(), numbers.end(), 0.0f);
        executor<device>::buffer values(n), room(n);
        on.upload(numbers.data(), values.data(), n);
        // Every time the values double: they come back, and are added.
        for (int i = 0; i < 4; ++i)
            on.replay(3, std::vector<std::shared_ptr<void>>{}, [&] {
                links.exchange(on, 0, values.data(), n, room.data(), n);
                on.launch("sum", n, add_number<float>{values.data(), room.data()});
                links.broadcast(on, values.data(), n, 0);
            });
        std::vector<float> got(n);
        on.download(values.data(), got.data(), n);
        bool all = true;
        for (int i = 0; i < n; ++i) all = all && got[static_cast<std::size_t>(i)] == 16.0f * static_cast<float>(i);
        CHECK(all);
    }
    links.look(true);
    CHECK(alone.looks > 0);
}

TEST_CASE("an optimiser with links has the bits of one without") {
    one_process linked;
    linked.devices = std::make_unique<nccl_links<device>>(linked);
    CHECK(same(trained(&linked), trained(nullptr)));
}
