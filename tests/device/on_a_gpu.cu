// Models on a CUDA device against the host: the same numbers after ten updates, of which all but the first two are
// replays of captured graphs. Without a GPU the test says so and is skipped.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include <engram/device/cuda.cuh>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
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
    if constexpr (requires { s.auxiliary.steps; }) s.auxiliary.steps = 2;
    return s;
}

template <class Agent>
void device_equals_host() {
    const auto s = small<Agent>();
    const auto t = device_test::task();
    const auto host = device_test::after_ten_updates<Agent, emulated<double>>(s, t, 5, 3);
    const auto device = device_test::after_ten_updates<Agent, cuda<double>>(s, t, 5, 3);
    CHECK(device_test::difference(host, device) < 1e-8);
}

}  // namespace

TEST_CASE("ten updates of FF on a GPU equal those on the host") {
    device_equals_host<agent<mlp, feed_forward, no_memory, no_auxiliary, vtrace>>();
}

TEST_CASE("ten updates of LSTM+MEM+CPC on a GPU equal those on the host") {
    device_equals_host<agent<mlp, lstm, fifo_knn, cpc, vtrace>>();
}

int main(int count, char** arguments) {
    std::string why;
    if (!cuda_is_usable(why)) {
        std::printf("skipped: %s\n", why.c_str());
        return 77;
    }
    return doctest::Context(count, arguments).run();
}
