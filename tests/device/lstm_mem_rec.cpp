// LSTM+MEM+REC without jumpy backpropagation on a device.

#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

#include "compare.hpp"

using namespace engram;

TEST_CASE("ten updates of LSTM+MEM+REC without jumpy backpropagation on a device equal those on the host") {
    using line = agent<mlp, lstm, fifo_knn_no_jumpy, reconstruction, vtrace>;
    line::settings s;
    s.encoder.layers = {6, 4};
    s.controller.hidden = 5;
    s.memory.slots = 4;
    s.memory.key = 3;
    s.memory.neighbours = 3;
    s.memory.epsilon = 0.1;
    device_test::device_equals_host<line>(s);
}
