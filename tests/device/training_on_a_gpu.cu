// Training that never leaves a CUDA device: the emulation's, which is the host's.

#include "gpu_main.cuh"

#include "training.hpp"

TEST_CASE("training on a GPU is that of its emulation") {
    using namespace training_test;
    are_the_same(trained_on<engram::cuda<float>>(), trained_on<engram::emulated<float>>());
}

TEST_CASE("an agent learns a T-Maze without leaving the GPU") {
    training_test::an_agent_learns<engram::cuda<float>>();
}
