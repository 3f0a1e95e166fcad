#pragma once
// Small agents and the checks that every policy is put through.

#include <doctest/doctest.h>

#include <engram/graph/check_gradients.hpp>
#include <engram/model/laws.hpp>

namespace prepared {

using namespace engram;

inline task_shape task() {
    return {{4, 4, 1}, 3};
}

/// Sizes at which a gradient check takes a second at most.
template <class Agent>
typename Agent::settings tiny() {
    typename Agent::settings s;
    if constexpr (requires { s.controller.hidden; }) s.controller.hidden = 5;
    if constexpr (requires { s.encoder.layers; }) s.encoder.layers = {6, 4};
    if constexpr (requires { s.encoder.kernels; }) {
        s.encoder.channels = {2, 3};
        s.encoder.kernels = {3, 2};
        s.encoder.strides = {2, 2};
        s.encoder.output = 5;
    } else if constexpr (requires { s.encoder.blocks; }) {
        s.encoder.channels = {2, 3};
        s.encoder.blocks = 1;
        s.encoder.hidden = {6};
        s.encoder.output = 5;
    }
    if constexpr (requires {
                      s.memory.slots;
                      s.memory.neighbours;
                  }) {
        s.memory.slots = 4;
        s.memory.key = 3;
        s.memory.neighbours = 3;
        s.memory.tied_start = false;
        s.memory.epsilon = 0.1;
    }
    if constexpr (requires {
                      s.memory.slots;
                      requires !requires {
                          s.memory.neighbours;
                      };
                  })
        s.memory.slots = 5;
    if constexpr (requires { s.memory.word; }) s.memory.word = 3;
    if constexpr (requires { s.memory.heads; }) s.memory.heads = 2;
    if constexpr (requires { s.memory.read_heads; }) s.memory.read_heads = 2;
    if constexpr (requires { s.memory.write_heads; }) s.memory.write_heads = 2;
    if constexpr (requires { s.memory.hidden; }) s.memory.hidden = 3;
    if constexpr (requires { s.auxiliary.steps; }) s.auxiliary.steps = 2;
    if constexpr (requires { s.learner.latent; }) {
        s.learner.latent = 3;
        s.learner.hidden = 4;
        s.wiring.features = 5;
    }
    return s;
}

/// Moves every weight a little: zero biases behind dead units leave a ReLU exactly at its corner.
template <class Backend>
void unsettle(const traced_agent<Backend>& a, double by = 0.1) {
    philox random(2, 2);
    auto edit = a.store->edit();
    for (auto& w : edit.flat()) w += static_cast<typename Backend::real>(by * static_cast<double>(random.normal()));
}

template <class Agent, class Backend>
traced_agent<Backend> traced(typename Agent::settings s = tiny<Agent>(), task_shape t = task()) {
    auto a = Agent::template trace<Backend>(s, t, 5);
    unsettle(a);
    return a;
}

/// The laws of model/laws.hpp, bit by bit; tests/laws/in_float.cpp asks for them in float.
template <class Agent, class Backend = cpu<double>>
void keeps_the_laws(typename Agent::settings s = tiny<Agent>(), task_shape t = task()) {
    const auto a = traced<Agent, Backend>(s, t);
    for (const std::uint64_t seed : {1u, 2u}) {
        std::string all;
        for (const auto& sentence : broken_laws(a, seed)) all += sentence + "; ";
        CHECK(all == "");
    }
}

/// backward() of the whole update against central differences in double, to 1e-6 relative: the five-point stencil keeps
/// 1e-7 here. `seed` chooses numbers at which no ReLU stands within a difference of its corner (there, differences
/// are wrong by tenths and shrink with the width; backward does not move).
template <class Agent>
void differentiates(typename Agent::settings s = tiny<Agent>(), task_shape t = task(), int least = 100,
                    std::uint64_t seed = 4, const std::function<bool(const std::string&)>& only = {}) {
    const auto a = Agent::template trace<cpu<double>>(s, t, 5);
    const auto report = check_gradients(a, seed, only);
    INFO(report.where);
    CHECK(report.worst < 1e-6);
    CHECK(report.compared > least);
    CHECK(report.same_bits_twice);
}

}  // namespace prepared
