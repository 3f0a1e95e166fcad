// The recurrences of today on a device: those of complex numbers, matrices and rings. What else they are made of is
// maps of plain arithmetic, one body for all backends.

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/fast_and_forgetful.hpp>
#include <engram/controller/gated_delta_net.hpp>
#include <engram/controller/gtrxl.hpp>
#include <engram/controller/mlstm.hpp>
#include <engram/controller/s5.hpp>
#include <engram/controller/stable_hadamard.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/no_memory.hpp>

#include "compare.hpp"

using namespace engram;

namespace {

template <class Controller>
void equals(const typename Controller::settings& of) {
    using line = agent<mlp, Controller, no_memory, no_auxiliary, vtrace>;
    typename line::settings s;
    s.encoder.layers = {6};
    s.controller = of;
    device_test::device_equals_host<line>(s);
}

}  // namespace

TEST_CASE("ten updates of each recurrence on a device equal those on the host") {
    equals<s5>({.hidden = 5, .layers = 1, .states = 3});
    equals<fast_and_forgetful>({.hidden = 5, .traces = 3, .phases = 2, .longest = 16});
    equals<stable_hadamard>({.hidden = 5, .size = 3, .rows = 7});
    equals<mlstm>({.hidden = 5, .layers = 1, .heads = 2, .key = 3, .inner = 4});
    equals<gated_delta_net>({.hidden = 5, .layers = 1, .heads = 2, .key = 3, .value = 2});
    equals<gtrxl>({.hidden = 8, .layers = 1, .heads = 2, .inner = 3, .window = 3});
}
