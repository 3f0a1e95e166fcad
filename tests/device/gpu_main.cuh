#pragma once
// The main function of the tests that need a GPU: without one they say so and are skipped.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include <engram/device/cuda.cuh>

#include "compare.hpp"

namespace device_test {

/// The device's kernels in double, on the GPU and emulated, differ by the order of the sums of products alone; what
/// draws normal numbers also by the last bit of some of them, since they are floats (core/philox.hpp). On the host one
/// bit more in half of them leaves 2e-7 to 2e-6 after ten updates.
template <class Agent>
void gpu_equals_emulation(const typename Agent::settings& s, double within = 1e-8) {
    const auto host = after_ten_updates<Agent, emulated<double>>(s, task(), 5, 3);
    const auto device = after_ten_updates<Agent, cuda<double>>(s, task(), 5, 3);
    CHECK(difference(host, device) < within);
}

}  // namespace device_test

int main(int count, char** arguments) {
    std::string why;
    if (!engram::cuda_is_usable(why)) {
        std::printf("skipped: %s\n", why.c_str());
        return 77;
    }
    return doctest::Context(count, arguments).run();
}
