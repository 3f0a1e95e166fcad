// Reads of the k-NN memory on a CUDA device.

#include "gpu_main.cuh"

#include "knn.hpp"

using device = engram::cuda<double>;

TEST_CASE("a GPU reads the slots that the host reads, ties to the lower slot") {
    knn_test::reads_equal_the_host<device>();
}

TEST_CASE("slots whose distance is no number come last on a GPU as on the host") {
    knn_test::broken_keys_come_last<device>();
}

TEST_CASE("a memory too large for the scratch of a block is read from the GPU's memory") {
    knn_test::a_large_memory_is_read<device>();
}
