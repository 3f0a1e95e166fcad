// Environments on a CUDA device: the host's episodes to the bit, its frames but for rounding (at an edge it flips a
// pixel).

#include "gpu_main.cuh"

#include "environments.hpp"

TEST_CASE("environments on a GPU walk as on the host") {
    device_test::environments_walk_as_on_the_host<engram::cuda<float>>(2e-3f, 0.01);
}
