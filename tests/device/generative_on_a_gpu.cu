// Generative models with a memory on a CUDA device: ten updates, of which all but the first two are replays of captured
// graphs.

#include "gpu_main.cuh"

#include <engram/memory/dnc.hpp>
#include <engram/memory/introspection.hpp>

#include "../graph/ops/heads.hpp"
#include "generative.hpp"

namespace {

template <class Memory>
void gpu_equals_emulation() {
    device_test::gpu_equals_emulation<device_test::generative<Memory>>(device_test::small<Memory>(), 1e-6);
}

}  // namespace

TEST_CASE("ten updates of a generative model with a DNC's memory on a GPU equal those of its emulation") {
    gpu_equals_emulation<engram::dnc>();
}

TEST_CASE("ten updates of a generative model with an introspection network on a GPU equal those of its emulation") {
    gpu_equals_emulation<engram::introspection>();
}

TEST_CASE("heads side by side on a GPU equal those of its emulation") {
    for (const auto& [N, H, K] : {std::array{3, 2, 3}, std::array{33, 1, 2}, std::array{2, 3, 11}})
        CHECK(device_test::difference(heads_test::numbers_of<engram::emulated<double>>(N, H, K),
                                      heads_test::numbers_of<engram::cuda<double>>(N, H, K)) < 1e-12);
}
