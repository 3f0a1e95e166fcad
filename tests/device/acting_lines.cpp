// The other acting lines of the catalogue on a device: no memory, no jumpy backpropagation, reconstruction, PPO.

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/auxiliary/reconstruction.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>

#include "compare.hpp"

using namespace engram;

namespace {

template <class Agent>
typename Agent::settings small() {
    typename Agent::settings s;
    s.encoder.layers = {6, 4};
    if constexpr (requires { s.controller.hidden; }) s.controller.hidden = 5;
    if constexpr (requires { s.memory.slots; }) {
        s.memory.slots = 4;
        s.memory.key = 3;
        s.memory.neighbours = 3;
        s.memory.epsilon = 0.1;
    }
    return s;
}

}  // namespace

TEST_CASE("LSTM+MEM+REC without jumpy backpropagation on a device equals the host") {
    using line = agent<mlp, lstm, fifo_knn_no_jumpy, reconstruction, vtrace>;
    device_test::device_equals_host<line>(small<line>());
}

TEST_CASE("FF with the PPO learner on a device equals the host, in float too") {
    using line = agent<mlp, feed_forward, no_memory, no_auxiliary, ppo>;
    device_test::device_equals_host<line>(small<line>());
    device_test::device_equals_host_in_float<line>(small<line>());
}
