// LSTM+MEM+CPC on a CUDA device: ten updates, of which all but the first two are replays of captured graphs.

#include "gpu_main.cuh"

#include <engram/auxiliary/cpc.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

TEST_CASE("ten updates of LSTM+MEM+CPC on a GPU equal those of its emulation") {
    using namespace engram;
    using line = agent<mlp, lstm, fifo_knn, cpc, vtrace>;
    line::settings s;
    s.encoder.layers = {6, 4};
    s.controller.hidden = 5;
    s.memory.slots = 4;
    s.memory.key = 3;
    s.memory.neighbours = 3;
    s.memory.epsilon = 0.1;
    s.auxiliary.steps = 2;
    device_test::gpu_equals_emulation<line>(s);
}
