// Every other task of the suite on a CUDA device.

#include "gpu_main.cuh"

#include "suite.hpp"

TEST_CASE("the suite on a GPU walks as on the host") {
    device_test::suite_walks_as_on_the_host<engram::cuda<float>>(2e-3f, 0.01);
}
