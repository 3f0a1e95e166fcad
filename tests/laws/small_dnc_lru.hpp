#pragma once
// Small agents with a DNC's memory and with least-recently-used access.

#include "../model/prepare.hpp"

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/lru_access.hpp>

namespace prepared {

using differentiable = agent<identity, lstm, dnc, no_auxiliary, vtrace>;
using least_recent = differentiable::with<lru_access>;

inline differentiable::settings computer(bool read_before_write, int write_heads, const char* input) {
    auto s = tiny<differentiable>();
    s.memory.slots = 5;
    s.memory.word = 3;
    s.memory.read_heads = 2;
    s.memory.write_heads = write_heads;
    s.memory.read_before_write = read_before_write;
    s.memory.input = {"input", input};
    return s;
}

inline least_recent::settings access(bool read_before_write, const char* gate, const char* content, const char* input) {
    auto s = tiny<least_recent>();
    s.memory.slots = 6;
    s.memory.word = 3;
    s.memory.heads = 2;
    s.memory.read_before_write = read_before_write;
    s.memory.gate = {"gate", gate};
    s.memory.content = {"content", content};
    s.memory.input = {"input", input};
    return s;
}

/// Large enough that slopes of the memory stand out from the loss's rounding.
template <class Backend>
void enlarge_memory_weights(const traced_agent<Backend>& a, double by) {
    philox random(3, 3);
    auto edit = a.store->edit();
    for (std::size_t i = 0; i < a.store->entries().size(); ++i) {
        const auto& e = a.store->entries()[i];
        for (std::ptrdiff_t k = 0; e.name.starts_with("memory.") && k < e.size(); ++k)
            edit.values({static_cast<int>(i)})[k] +=
                static_cast<typename Backend::real>(by * static_cast<double>(random.normal()));
    }
}

}  // namespace prepared
