#pragma once
// SPDX-License-Identifier: MIT

// Least-recently-used access, the memory of memory-augmented networks (facts 4.5, errata G15, G26): as many reads as
// writes, each write to what was read last or to what was used least.
//
//   k = tanh(key map),  v_r = softmax_n(k_r . M_n / sqrt(|k_r|^2 |M_n|^2 + 1e-6)),  context = [v_1 M, ..., v_R M]
//   z_r = one at the r-th least used slot by u_{t-1}, ties by slot                 a constant for the gradient
//   w_r = sigma(alpha_r) v_{r,t-1} + (1 - sigma(alpha_r)) z_r
//   M_t = M_{t-1} with the R least used slots cleared, + sum_r w_r a_r
//   u_t = decay u_{t-1} + sum_r v_{r,t} + sum_r w_{r,t}
//
// Shapes: M [B, N * W], u [B, N], v and w [B, R * N], context [T, B, R * W]. An episode begins with M = 1e-6 and all of
// v and u on slot 0. The paper marks all entries not above the R-th smallest usage; with ties that are more than R,
// here the R first. alpha is a linear map a head (`gate` linear) or one learned number a head (parameter); a = tanh(a
// map of its own) (`content` own) or the key of what is written, by the same map as that of the cue (key, as in the
// paper).
//
// `read_before_write` is the order that is printed (errata G15): the read of step t sees M_{t-1}, its write follows in
// `write`. Without it a read writes first, from its cue, and then reads M_t, and `write` does nothing. v_{t-1} and
// u_{t-1} are those of the step before in both orders. The heads see all of cue and content, or their held part alone
// (`input`, facts 4.2).

#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/memory/interface.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/heads.hpp>
#include <engram/operations/least_used.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

struct lru_access {
    using role = memory_role;

    struct settings {
        int slots = 125;                                // N, rows of the memory
        int word = 16;                                  // W, columns of a slot
        int heads = 5;                                  // R, reads and as many writes
        double decay = 0.95;                            // of usage, a step
        memory_input input = "all";                     // all or held: what the heads see
        bool read_before_write = true;                  // the printed order; false: write, then read
        choice<"linear", "parameter"> gate = "linear";  // linear or parameter
        choice<"own", "key"> content = "own";           // own or key

        void check() const {
            require(slots > 0, "memory.slots: expected at least one slot, got ", slots);
            require(word > 0, "memory.word: expected at least one column, got ", word);
            require(heads > 0, "memory.heads: expected at least one head, got ", heads);
            require(heads <= slots, "memory.heads: ", heads, " heads write to ", heads,
                    " different slots, but memory.slots is ", slots);
            require(decay >= 0 && decay <= 1, "memory.decay: expected a number from 0 to 1, got ", decay);
        }
    };
    struct weights {
        linear key, content;  // content: only if it has a map of its own
        linear gate;          // a linear map, or a weight [1, R] without a bias
        int slots;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, memory), (Var, usage), (Var, read_weight), (Var, write_weight));
        Var last_read{};  // what `read` found in read_weight; of one step, not carried
    };

    static int context_width(const settings& s, memory_sizes) { return s.heads * s.word; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, memory_sizes z) {
        const int inputs = interface_width(s.input, z);
        weights w;
        w.slots = s.slots;
        w.key = g.declare_linear("key", inputs, s.heads * s.word);
        if (s.content == "own") w.content = g.declare_linear("content", inputs, s.heads * s.word);
        if (s.gate == "linear")
            w.gate = g.declare_linear("gate", inputs, s.heads);
        else
            w.gate.weight = g.declare("gate", 1, s.heads, initial::zero<typename Backend::real>());
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s, memory_sizes) {
        return {g.uncleared_state("memory", s.slots * s.word), g.uncleared_state("usage", s.slots),
                g.uncleared_state("read_weight", s.heads * s.slots), g.state("write_weight", s.heads * s.slots)};
    }
    template <class Backend>
    static void forget(const weights& w, const var<Backend>& reset, state<var<Backend>>& now) {
        const auto first = first_slot(reset, w.slots);
        now.memory = map("start", fill_on_reset{}, reset, now.memory);
        now.usage = map("first_usage", choose{}, reset, first, now.usage);
        now.read_weight = stand_on("first_read", first, reset, now.read_weight);
    }
    template <class Backend>
    static recalled<var<Backend>> read(const settings& s, const weights& w, const std::vector<var<Backend>>& cue,
                                       state<var<Backend>>& now) {
        if (!s.read_before_write) store(s, w, cue, now);
        const auto key = map("read_key", bounded{}, affine("key", interface_inputs(s.input, cue), w.key));
        const auto cosine = joint_cosine_scores("cosine", now.memory, key, s.word);
        now.last_read = std::exchange(now.read_weight, softmax("read_weight", cosine, s.slots));
        if (!s.read_before_write) count(s, now);
        return {{weighted_read("recall", now.read_weight, now.memory, s.word)}, {now.read_weight}, {}};
    }
    template <class Backend>
    static void write(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        if (!s.read_before_write) return;
        store(s, w, content, now);
        count(s, now);
    }

    // Public: nvcc takes no functor whose name is private.
    struct bounded {
        constexpr auto operator()(auto x) const { return tanh(x); }
    };
    struct always_zero {
        constexpr auto operator()(auto x) const { return select(x > 0, 0, 0); }
    };
    struct choose_slots {
        constexpr auto operator()(auto gate, auto read, auto least) const {
            const auto again = logistic(gate);
            return again * read + (1 - again) * least;
        }
    };
    struct age {
        double decay;
        constexpr auto operator()(auto usage) const { return decay * usage; }
    };
    struct count_use {
        constexpr auto operator()(auto usage, auto read, auto written) const { return usage + read + written; }
    };

private:
    template <class Backend>
    static void store(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        const auto in = interface_inputs(s.input, content);
        const auto alpha = s.gate == "linear"
                               ? affine("gate", in, w.gate)
                               : embed("gate", map("gate_row", always_zero{}, in[0].columns(0, 1)), w.gate.weight);
        const auto add = map("content", bounded{},
                             s.content == "own" ? affine("own", in, w.content) : affine("content_key", in, w.key));
        const auto read = now.last_read.owner ? now.last_read : now.read_weight;
        const auto least = least_used("least_used", now.usage, s.heads);
        now.write_weight = map("write_weight", choose_slots{}, alpha.spread(s.slots), read, least);
        now.memory = clear_and_add("store", now.memory, least, now.write_weight, add, s.word);
    }
    /// Usage ranks slots and nothing else, so it needs no gradient.
    template <class Backend>
    static void count(const settings& s, state<var<Backend>>& now) {
        now.usage = fold_heads("usage", count_use{}, s.heads, map("aged", age{s.decay}, stop_gradient(now.usage)),
                               stop_gradient(now.read_weight), stop_gradient(now.write_weight));
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::lru_access::settings, slots, word, heads, decay, input, read_before_write, gate, content);

static_assert(engram::memory_policy<engram::lru_access>);
