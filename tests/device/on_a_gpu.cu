// FF on a CUDA device: ten updates, of which all but the first two are replays of captured graphs.

#include "gpu_main.cuh"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/operations/layer_norm.hpp>
#include <engram/train/sequence_update.hpp>
#include <engram/train/training_loop.hpp>

// To nvcc too these are what they are to g++.
static_assert(engram::training_update<engram::sequence_update<engram::cuda<float>>>);
static_assert(engram::internal::trains_parameters<engram::layer_norm_rows, float>);

TEST_CASE("ten updates of FF on a GPU equal those of its emulation") {
    using namespace engram;
    using line = agent<mlp, feed_forward, no_memory, no_auxiliary, vtrace>;
    line::settings s;
    s.encoder.layers = {6, 4};
    device_test::gpu_equals_emulation<line>(s);
}
