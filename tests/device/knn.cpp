// Reads of the k-NN memory by the emulation, in any order of threads.

#include "knn.hpp"

#include <engram/graph/check_gradients.hpp>

using namespace knn_test;
using device = engram::emulated<double>;

TEST_CASE("a device reads the slots that the host reads, ties to the lower slot") {
    reads_equal_the_host<device>();
}

TEST_CASE("slots whose distance is no number come last on a device as on the host") {
    broken_keys_come_last<device>();
}

TEST_CASE("a memory too large for the scratch of a block is read from the device's memory") {
    a_large_memory_is_read<device>();
}

TEST_CASE("the gradient of a read on a device") {
    const sizes z{3, 4, 6, 3, 2, true};
    traced<emulated<double>> m(z);
    const auto report = check_gradients<emulated<double>>(m.g, m.store, {.steps = 9, .batch = z.B},
                                                          [&](auto& p) { fill(p, z, numbers::any); });
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > 10);
}
