// Training that never leaves a CUDA device.

#include "gpu_main.cuh"

#include "training.hpp"

TEST_CASE("training on a GPU is the host's training") {
    training_test::training_is_the_hosts<engram::cuda<float>>();
}

TEST_CASE("an agent learns a T-Maze without leaving the GPU") {
    training_test::an_agent_learns<engram::cuda<float>>();
}
