#pragma once
// SPDX-License-Identifier: MIT

// Feed-forward controller (facts 1.1 step 4, FF variant): h_t = relu([inputs] W + b), H wide.
//
// Its state is its previous output, which a memory's query sees as h_{t-1}; nothing else is carried.

#include <cmath>
#include <vector>

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>

namespace engram {

struct feed_forward {
    using role = controller_role;

    struct settings {
        int hidden = 512;  // H, units
        void check() const {
            require(hidden > 0, "controller.hidden: expected a positive number of units, got ", hidden);
        }
    };
    struct weights {
        linear layer;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, hidden));
    };

    static int width(const settings& s) { return s.hidden; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, int inputs) {
        return {g.declare_linear("layer", inputs, s.hidden, initial::fan_in<typename Backend::real>(std::sqrt(2.0)))};
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s) {
        return {g.state("hidden", s.hidden)};
    }
    template <class Var>
    static Var held(const state<Var>& s) {
        return s.hidden;
    }
    template <class Backend>
    static var<Backend> step(const settings&, const weights& w, const std::vector<var<Backend>>& inputs,
                             state<var<Backend>>& s) {
        s.hidden = map("hidden", rectify{}, affine("layer", inputs, w.layer));
        return s.hidden;
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::feed_forward::settings, hidden);

static_assert(engram::controller_policy<engram::feed_forward>);
