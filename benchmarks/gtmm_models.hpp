#pragma once
// SPDX-License-Identifier: MIT

// The models of benchmark-gtmm_step and of its counterpart on a GPU: the five generative temporal models at the paper's
// sizes, and a DNC on bits.

#include <algorithm>
#include <string>

#include <engram/catalogue.hpp>
#include <engram/core/philox.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/graph/program.hpp>
#include <engram/learner/supervised.hpp>

namespace gtmm {

/// Sequences of the generative models.
inline constexpr int T = 25, B = 10;
inline engram::task_shape frames() {
    return {{28, 28, 1}, 0};
}

/// Sizes of the paper preset.
template <class Model>
typename Model::settings paper() {
    typename Model::settings s;
    s.encoder.network = "inception";
    s.controller.hidden = 208;
    s.learner.latent = 32;
    s.learner.hidden = 0;
    if constexpr (requires { s.memory.slots; }) s.memory.slots = 25;
    if constexpr (requires { s.memory.decay; }) s.memory.slots = 125;
    if constexpr (requires { s.memory.order; }) s.controller.hidden = 440;
    if constexpr (requires { s.memory.input; }) s.memory.input = "held";
    if constexpr (requires { s.memory.word; }) s.memory.word = 32;
    if constexpr (requires { s.memory.heads; }) s.memory.heads = 5;
    if constexpr (requires { s.memory.read_heads; }) s.memory.read_heads = 5;
    if constexpr (requires { s.memory.start; }) s.memory.start = "learned";
    return s;
}

template <class Memory>
using bits_with = engram::agent<engram::identity, engram::lstm, Memory, engram::no_auxiliary, engram::supervised>;
using bits_dnc = bits_with<engram::dnc>;

/// 16 x 16 memory, 4 read heads, LSTM 64; it sees ten columns of bits and says eight.
inline bits_dnc::settings small_dnc() {
    bits_dnc::settings s;
    s.controller.hidden = 64;
    s.memory.slots = 16;
    s.memory.word = 16;
    s.memory.read_heads = 4;
    s.learner.targets = "bits";
    return s;
}
inline engram::task_shape bits() {
    return {{1, 10, 1}, 0, 8};
}

/// Random numbers in every input; episodes begin at step 0.
template <class Backend>
void fill(engram::program<Backend>& p, const engram::graph<Backend>& g, std::uint64_t seed) {
    engram::philox random(seed, 3);
    for (const auto& v : g.values())
        if (p.has_input(v.name))
            for (auto& x : p.input(v.name)) x = v.name == "reset" ? 0.0f : random.uniform();
    if (p.has_input("reset")) std::fill_n(p.input("reset").begin(), p.options().batch, 1.0f);
}

}  // namespace gtmm
