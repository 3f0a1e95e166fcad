// Generative models with a memory on a CUDA device: ten updates, of which all but the first two are replays of captured
// graphs.

#include "gpu_main.cuh"

#include <engram/memory/dnc.hpp>
#include <engram/memory/introspection.hpp>

#include "generative.hpp"

namespace {

template <class Memory>
void gpu_equals_emulation() {
    device_test::gpu_equals_emulation<device_test::generative<Memory>>(device_test::small<Memory>());
}

}  // namespace

TEST_CASE("ten updates of a generative model with a DNC's memory on a GPU equal those of its emulation") {
    gpu_equals_emulation<engram::dnc>();
}

TEST_CASE("ten updates of a generative model with an introspection network on a GPU equal those of its emulation") {
    gpu_equals_emulation<engram::introspection>();
}
