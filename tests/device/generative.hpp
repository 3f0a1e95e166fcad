#pragma once
// A generative temporal model with one memory, of the sizes of these tests.

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/variational.hpp>

#include "compare.hpp"

namespace device_test {

template <class Memory>
using generative = agent<mlp, lstm, Memory, no_auxiliary, variational>;

template <class Memory>
typename generative<Memory>::settings small() {
    typename generative<Memory>::settings s;
    s.encoder.layers = {6, 4};
    s.controller.hidden = 5;
    s.learner.latent = 3;
    s.learner.hidden = 4;
    s.wiring.features = 5;
    if constexpr (requires { s.memory.slots; }) s.memory.slots = 5;
    if constexpr (requires { s.memory.word; }) s.memory.word = 3;
    if constexpr (requires { s.memory.heads; }) s.memory.heads = 2;
    if constexpr (requires { s.memory.read_heads; }) s.memory.read_heads = 2;
    if constexpr (requires { s.memory.write_heads; }) s.memory.write_heads = 2;
    if constexpr (requires { s.memory.hidden; }) s.memory.hidden = 3;
    return s;
}

template <class Memory>
void generative_device_equals_host() {
    device_equals_host<generative<Memory>>(small<Memory>());
}

}  // namespace device_test
