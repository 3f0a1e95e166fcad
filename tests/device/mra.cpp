// The Memory Recall Agent on a device: ResNet, LSTM, k-NN memory, CPC, V-trace (catalogue line mra).

#include <engram/auxiliary/cpc.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>

#include "compare.hpp"

using namespace engram;

namespace {

using mra = agent<impala_resnet, lstm, fifo_knn, cpc, vtrace>;

mra::settings small() {
    mra::settings s;
    s.encoder.channels = {2, 3};
    s.encoder.blocks = 1;
    s.encoder.hidden = {6};
    s.encoder.output = 5;
    s.controller.hidden = 5;
    s.memory.slots = 4;
    s.memory.key = 3;
    s.memory.neighbours = 3;
    s.memory.tied_start = false;
    s.memory.epsilon = 0.1;
    s.auxiliary.steps = 2;
    return s;
}

}  // namespace

TEST_CASE("ten updates of the Memory Recall Agent on a device equal those on the host") {
    auto s = small();
    device_test::device_equals_host<mra>(s);
    s.memory.values = "all";
    device_test::device_equals_host<mra>(s);
}
