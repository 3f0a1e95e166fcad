#pragma once
// SPDX-License-Identifier: MIT

// The null memory: nothing is stored, nothing recalled.

#include <engram/model/slots.hpp>

namespace engram {

struct no_memory {
    using role = memory_role;

    struct settings {
        BOOST_HANA_DEFINE_STRUCT(settings);
    };
    struct weights {};
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state);
    };

    static int context_width(const settings&, memory_sizes) { return 0; }
    template <class Backend>
    static weights declare(graph<Backend>&, const settings&, memory_sizes) {
        return {};
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>&, const settings&, memory_sizes) {
        return {};
    }
    template <class Var>
    static void forget(const weights&, const Var&, state<Var>&) {}
    template <class Var>
    static recalled<Var> read(const settings&, const weights&, const std::vector<Var>&, state<Var>&) {
        return {};
    }
    template <class Var>
    static void write(const settings&, const weights&, const std::vector<Var>&, state<Var>&) {}
};

static_assert(memory_policy<no_memory>);

}  // namespace engram
