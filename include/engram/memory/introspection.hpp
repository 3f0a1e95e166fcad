#pragma once
// SPDX-License-Identifier: MIT

// The introspection network's memory: a FIFO of what was observed, read by attention from the held part of the cue
// alone (facts 4.2, 4.3, errata G2, G3, G4, G16, G28).
//
//   u = relu(hidden map of h)                 one hidden layer, shared by the heads; none if `hidden` is 0
//   s_r = softplus(logits_r(u)),  w_r = s_r / sum s_r over L slots,  phi_r = w_r M
//   Psi_r = phi_r * sigma(gate_r(h)),         context = [Psi_1, ..., Psi_R]
//   write: the oldest of L slots gives way to the observed part of the content, with its gradient
//
// Shapes: h [T, B, held], M [B, L * observed], w [T, B, R * L], context [T, B, R * observed]. Slots that were not
// written give zero, and count in the sum as printed; `masked` leaves them out. An empty memory gives Psi = 0.
//
// Slots are filled in turn and then overwritten in turn. `order` says what a logit belongs to: "age" (0 is the newest
// write) or "position" (a slot, the literal reading of G28).

#include <cmath>
#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/slots.hpp>

namespace engram {

struct introspection {
    using role = memory_role;
    /// The context stands for h_t in prior, posterior and decoder (errata G16).
    static constexpr bool replaces_held = true;

    struct settings {
        int slots = 25;                                        // L, writes that are kept
        int heads = 5;                                         // R, reads of a step
        int hidden = 64;                                       // units behind h; 0: a linear map
        choice<"age", "position"> order = "age";               // age or position
        bool masked = false;                                   // slots that were never written are left out
        choice<"softplus", "softmax"> attention = "softplus";  // softplus or softmax

        void check() const {
            require(slots > 0, "memory.slots: expected at least one slot, got ", slots);
            require(heads > 0, "memory.heads: expected at least one head, got ", heads);
            require(hidden >= 0, "memory.hidden: expected a number of units, or 0 for a linear layer, got ", hidden);
        }
    };
    struct weights {
        linear hidden, logits, gate;
    };
    /// `written` counts the writes of the episode; from 2 L - 1 it falls back to L, which stays exact in float.
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, ring), (Var, written));
    };

    static int context_width(const settings& s, memory_sizes z) { return s.heads * z.observed; }
    /// Writes after which the first one is lost.
    static int capacity(const settings& s) { return s.slots; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, memory_sizes z) {
        using real = typename Backend::real;
        weights w;
        if (s.hidden > 0)
            w.hidden = g.declare_linear("hidden", z.held, s.hidden, initial::fan_in<real>(std::sqrt(2.0)));
        w.logits = g.declare_linear("logits", s.hidden > 0 ? s.hidden : z.held, s.heads * s.slots);
        w.gate = g.declare_linear("gate", z.held, s.heads * z.observed);
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s, memory_sizes z) {
        return {g.uncleared_state("ring", s.slots * z.observed), g.state("written", 1)};
    }
    /// A memory is empty when nothing was written, which a reset has made of it already.
    template <class Var>
    static void forget(const weights&, const Var&, state<Var>&) {}

    template <class Backend>
    static recalled<var<Backend>> read(const settings& s, const weights& w, const std::vector<var<Backend>>& cue,
                                       state<var<Backend>>& now) {
        const auto h = cue[1];
        const auto u = s.hidden > 0 ? map("hidden.relu", rectify{}, affine("hidden", h, w.hidden)) : h;
        std::vector<var<Backend>> written;
        if (s.masked) written.push_back(now.written);
        const auto weight = slot_attention(
            "attention", affine("logits", u, w.logits), s.slots,
            s.attention == "softplus" ? slot_attention_kind::softplus : slot_attention_kind::softmax, written);
        const auto phi = read_slots("recall", weight, now.ring, now.written, cue[0].width, s.order == "age");
        return {{map("gated", let_through{}, phi, affine("gate", h, w.gate))}, {weight}, {}};
    }
    template <class Backend>
    static void write(const settings& s, const weights&, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        now.ring = write_slot("store", now.ring, content[0], now.written);
        now.written = map("written", count_up{2.0 * s.slots}, now.written);
    }

    // Public: nvcc takes no functor whose name is private.
    struct let_through {
        constexpr auto operator()(auto phi, auto gate) const { return phi * logistic(gate); }
    };
    struct count_up {
        double turn;
        constexpr auto operator()(auto n) const { return select(n + 1 < turn, n + 1, 0.5 * turn); }
    };
};

}  // namespace engram

ENGRAM_REFLECT(engram::introspection::settings, slots, heads, hidden, order, masked, attention);

static_assert(engram::memory_policy<engram::introspection>);
