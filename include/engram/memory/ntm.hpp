#pragma once
// SPDX-License-Identifier: MIT

// The memory of a Neural Turing Machine (facts 4.4).
//
//   [key, strength, gate, three shifts, sharpening] = read map, for each of R read heads
//   [key, erase, add, strength, gate, three shifts, sharpening] = write map, for each of H write heads
//   w = address(cos(key, M), those six numbers, w_{t-1})                  kernels/ntm_address.hpp
//   read   r = sum_i w_i M_i,   context = [r_1, ..., r_R]
//   write  M_i <- M_i * prod_h (1 - w_hi sigma(erase_h)) + sum_h w_hi add_h
//
// Shapes: M [B, N * W], read and write weights [B, R * N] and [B, H * N], context [T, B, R * W]. Cosines are guarded as
// kernels/matrix_memory.hpp says.
//
// An episode begins with a memory of small equal numbers, or of learned ones (`start`), and with all weights on slot 0,
// or with zero weights (`focus`). Facts 4.4 name zero weights; over equal rows these would give equal weights and equal
// rows for ever, so that pair is refused.
//
// `read_before_write` is the order that is printed (errata G15): a step reads M_{t-1}, then writes its content. Without
// it a read writes first, from its cue, and then reads M_t, and `write` does nothing. The heads see all of cue and
// content, or their held part alone (`input`, facts 4.2).

#include <cmath>
#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/memory/interface.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/learnt_row.hpp>
#include <engram/operations/ntm_address.hpp>

namespace engram {

struct ntm {
    using role = memory_role;

    struct settings {
        int slots = 128;                                   // N, rows of the memory
        int word = 20;                                     // W, columns of a slot
        int read_heads = 1;                                // R, reads of a step
        int write_heads = 1;                               // H, writes of a step
        memory_input input = "all";                        // all or held: what the heads see
        bool read_before_write = true;                     // the printed order; false: write, then read
        choice<"constant", "learned"> start = "constant";  // constant or learned: the memory of a new episode
        choice<"first", "none"> focus = "first";           // first (slot 0) or none: the weights of a new episode

        void check() const {
            require(slots > 0, "memory.slots: expected at least one slot, got ", slots);
            require(word > 0, "memory.word: expected at least one column, got ", word);
            require(read_heads > 0, "memory.read_heads: expected at least one head, got ", read_heads);
            require(write_heads > 0, "memory.write_heads: expected at least one head, got ", write_heads);
            require(
                start == "learned" || focus == "first",
                "memory.focus: without a focus a constant start leaves all slots alike for ever; expected first, or "
                "memory.start=learned");
        }
    };
    struct weights {
        linear read, write;
        parameter start;  // [1, N * W], if it is learned
        bool focus;
        int slots;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, memory), (Var, read_weight), (Var, write_weight));
    };

    static int context_width(const settings& s, memory_sizes) { return s.read_heads * s.word; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, memory_sizes z) {
        using real = typename Backend::real;
        const int inputs = interface_width(s.input, z);
        weights w;
        w.focus = s.focus == "first";
        w.slots = s.slots;
        w.read = g.declare_linear("read", inputs, s.read_heads * (s.word + ntm_address_columns));
        w.write = g.declare_linear("write", inputs, s.write_heads * (3 * s.word + ntm_address_columns));
        if (s.start == "learned")
            w.start = g.declare("start", 1, s.slots * s.word,
                                initial::fan_in<real>(1 / std::sqrt(static_cast<double>(s.slots + s.word))));
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s, memory_sizes) {
        const auto weight = [&](const char* name, int heads) {
            return s.focus == "first" ? g.uncleared_state(name, heads * s.slots) : g.state(name, heads * s.slots);
        };
        return {g.uncleared_state("memory", s.slots * s.word), weight("read_weight", s.read_heads),
                weight("write_weight", s.write_heads)};
    }
    template <class Backend>
    static void forget(const weights& w, const var<Backend>& reset, state<var<Backend>>& now) {
        if (w.start.id < 0)
            now.memory = map("start", fill_on_reset{}, reset, now.memory);
        else
            now.memory = map("begin", choose{}, reset, learnt_row("start", reset, w.start), now.memory);
        if (!w.focus) return;
        const auto first = first_slot(reset, w.slots);
        now.read_weight = stand_on("read_focus", first, reset, now.read_weight);
        now.write_weight = stand_on("write_focus", first, reset, now.write_weight);
    }
    template <class Backend>
    static recalled<var<Backend>> read(const settings& s, const weights& w, const std::vector<var<Backend>>& cue,
                                       state<var<Backend>>& now) {
        if (!s.read_before_write) store(s, w, cue, now);
        const auto z = affine("read", interface_inputs(s.input, cue), w.read);
        const int keys = s.read_heads * s.word;
        const auto cosine = cosine_scores("read_cosine", now.memory, z.columns(0, keys), s.word);
        now.read_weight = ntm_address("read_address", cosine, z.columns(keys, z.width - keys), now.read_weight);
        return {{weighted_read("recall", now.read_weight, now.memory, s.word)}, {now.read_weight}, {}};
    }
    template <class Backend>
    static void write(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        if (s.read_before_write) store(s, w, content, now);
    }

private:
    template <class Backend>
    static void store(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        const auto z = affine("write", interface_inputs(s.input, content), w.write);
        const int words = s.write_heads * s.word;
        const auto cosine = cosine_scores("write_cosine", now.memory, z.columns(0, words), s.word);
        now.write_weight =
            ntm_address("write_address", cosine, z.columns(3 * words, z.width - 3 * words), now.write_weight);
        now.memory = erase_add("store", now.memory, now.write_weight, map("erase", squash{}, z.columns(words, words)),
                               z.columns(2 * words, words), s.word);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::ntm::settings, slots, word, read_heads, write_heads, input, read_before_write, start, focus);

static_assert(engram::memory_policy<engram::ntm>);
