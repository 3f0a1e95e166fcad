// The hybrid memory on a device: its three reads, mixed by two heads.

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/hybrid.hpp>

#include "compare.hpp"

using namespace engram;

TEST_CASE("ten updates of an LSTM with a hybrid memory on a device equal those on the host") {
    using line = agent<mlp, lstm, hybrid, no_auxiliary, vtrace>;
    line::settings s;
    s.encoder.layers = {6, 4};
    s.controller.hidden = 5;
    s.memory.slots = 4;
    s.memory.heads = 2;
    s.memory.hidden = 3;
    s.memory.key = 3;
    s.memory.neighbours = 3;
    s.memory.epsilon = 0.1;
    s.memory.reads = "age,content,nearest,after";
    device_test::device_equals_host<line>(s);
    s.memory.reads = "age,content,nearest";
    s.memory.order = "position";
    s.memory.gate = false;
    s.memory.store_gradient = false;
    device_test::device_equals_host<line>(s);
}
