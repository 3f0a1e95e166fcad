#pragma once
// SPDX-License-Identifier: MIT

// The memory of a Differentiable Neural Computer (facts 4.6, errata G15).
//
//   [keys, strengths, modes] = read map, for R read heads; modes: 2 H + 1 numbers a head
//   [keys, add, erase, free gates, allocation and write gates, strengths] = write map, for H write heads, R free gates
//   c = softmax(softplus(strength) cos(key, M))                            content weights of a head
//   u_t   = [1 - (1 - u_{t-1}) prod_h (1 - w_{h,t-1})] prod_r (1 - free_r v_{r,t-1})       w: write, v: read weights
//   w_h   = gate_h (g_h a_h + (1 - g_h) c_h),  a_h = allocation by u_t after the heads before it
//   M_t   = M_{t-1} * prod_h (1 - w_h erase_h) + sum_h w_h add_h
//   L_h   = link of head h: kernels/dnc_link.hpp;  p_h <- (1 - sum w_h) p_h + w_h
//   v_r   = sum_h (mode_bh L_h^T v_{r,t-1} + mode_fh L_h v_{r,t-1}) + mode_c c_r,  r = v_r M;  modes: softmax
//   context = [r_1, ..., r_R]
//
// Shapes: M [B, N * W], u [B, N], v [B, R * N], w and p [B, H * N], L_h [B, N, N], context [T, B, R * W]. All is zero
// when an episode begins. Modes are in the order backward (H), forward (H), content. Cosines are guarded as
// kernels/matrix_memory.hpp says, allocation as kernels/dnc_allocate.hpp says.
//
// `read_before_write` is the order that is printed (errata G15): the read of step t sees M_{t-1} and L_{t-1}, its write
// follows in `write`. Without it a read writes first, from its cue, and then reads M_t and L_t as a published DNC does,
// and `write` does nothing. Everything else is the same: v_{t-1} and w_{t-1} are those of the step before in both
// orders. A link and its precedence take up a write when the next read needs them, so in the printed order their state
// lacks the last write, which is still in `write_weight`.
//
// As in the published code the write weights that usage counts are constants for the gradient; `usage_gradient` lets
// it through. Links are resources and no states (operations/dnc.hpp): a learner goes on from its own links, so in
// asynchronous training these follow the learner's weights and not the actor's.

#include <string>
#include <vector>

#include <engram/memory/interface.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/content_weights.hpp>
#include <engram/operations/dnc.hpp>
#include <engram/operations/heads.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

struct dnc {
    using role = memory_role;

    struct settings {
        int slots = 16;                 // N, rows of the memory
        int word = 16;                  // W, columns of a slot
        int read_heads = 4;             // R, reads of a step
        int write_heads = 1;            // H, writes of a step
        memory_input input = "all";     // all or held: what the heads see
        bool read_before_write = true;  // the printed order; false: write, then read
        bool usage_gradient = false;    // through the write weights that usage counts
        double strength_offset = 0;     // added to the strengths before their softplus

        void check() const {
            require(slots > 0, "memory.slots: expected at least one slot, got ", slots);
            require(word > 0, "memory.word: expected at least one column, got ", word);
            require(read_heads > 0, "memory.read_heads: expected at least one head, got ", read_heads);
            require(write_heads > 0, "memory.write_heads: expected at least one head, got ", write_heads);
        }
    };
    struct weights {
        linear read, write;
        std::vector<dnc_link> links;  // one a write head
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, memory), (Var, usage), (Var, read_weight), (Var, write_weight),
                                 (Var, precedence));
        Var last_read{};  // what `read` found in read_weight; of one step, not carried
    };

    static int context_width(const settings& s, memory_sizes) { return s.read_heads * s.word; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, memory_sizes z) {
        const int inputs = interface_width(s.input, z);
        weights w;
        w.read = g.declare_linear("read", inputs, s.read_heads * (s.word + 1 + modes(s)));
        w.write = g.declare_linear("write", inputs, 3 * s.write_heads * (s.word + 1) + s.read_heads);
        for (int h = 0; h < s.write_heads; ++h) w.links.push_back(add_dnc_link(g, message("link.", h), s.slots));
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s, memory_sizes) {
        return {g.state("memory", s.slots * s.word), g.state("usage", s.slots),
                g.state("read_weight", s.read_heads * s.slots), g.state("write_weight", s.write_heads * s.slots),
                g.state("precedence", s.write_heads * s.slots)};
    }
    template <class Var>
    static void forget(const weights& w, const Var& reset, state<Var>&) {
        for (const dnc_link& link : w.links) link_forget(link, reset);
    }
    template <class Backend>
    static recalled<var<Backend>> read(const settings& s, const weights& w, const std::vector<var<Backend>>& cue,
                                       state<var<Backend>>& now) {
        using variables = std::vector<var<Backend>>;
        if (!s.read_before_write) store(s, w, cue, now);
        const int N = s.slots, R = s.read_heads, H = s.write_heads, keys = R * s.word;
        const auto z = affine("read", interface_inputs(s.input, cue), w.read);
        const auto cosine = cosine_scores("read_cosine", now.memory, z.columns(0, keys), s.word);

        const auto written = sum_columns("written", now.write_weight, N).spread(N);
        const auto precedence = map("precedence", update_precedence{}, written, now.precedence, now.write_weight);
        variables forward, ways;
        for (int h = 0; h < H; ++h) {
            const auto moved =
                temporal_link(message("link.", h), w.links[static_cast<std::size_t>(h)],
                              now.write_weight.columns(h * N, N), now.precedence.columns(h * N, N), now.read_weight);
            ways.push_back(moved.backward);
            forward.push_back(moved.forward);
        }
        now.precedence = precedence;
        ways.insert(ways.end(), forward.begin(), forward.end());
        ways.push_back(content_weights("read_content", cosine, z.columns(keys, R), s.strength_offset));
        const auto mode = softmax("read_mode", z.columns(keys + R, R * modes(s)), modes(s));
        now.last_read = std::exchange(now.read_weight, mixture("read_weight", mode, ways, N));
        return {{weighted_read("recall", now.read_weight, now.memory, s.word)}, {now.read_weight}, {}};
    }
    template <class Backend>
    static void write(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        if (s.read_before_write) store(s, w, content, now);
    }

    // Public: nvcc takes no functor whose name is private.
    // Weights may be a rounding error above one; usage stays in [0, 1].
    struct count_write {
        constexpr auto operator()(auto usage, auto written) const { return min(usage + (1 - usage) * written, 1); }
    };
    struct count_allocation {
        constexpr auto operator()(auto usage, auto by_allocation, auto gate, auto allocation) const {
            return usage + (1 - usage) * (by_allocation * gate * allocation);  // at most one: allocation is below it
        }
    };
    struct count_free {
        constexpr auto operator()(auto usage, auto free, auto read) const { return usage * max(1 - free * read, 0); }
    };
    struct choose_slots {
        constexpr auto operator()(auto by_allocation, auto gate, auto allocation, auto content) const {
            return gate * (by_allocation * allocation + (1 - by_allocation) * content);
        }
    };
    struct update_precedence {
        constexpr auto operator()(auto sum, auto before, auto written) const { return (1 - sum) * before + written; }
    };

private:
    static int modes(const settings& s) { return 2 * s.write_heads + 1; }
    template <class Backend>
    static void store(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        const int N = s.slots, R = s.read_heads, H = s.write_heads, words = H * s.word;
        const auto z = affine("write", interface_inputs(s.input, content), w.write);
        const auto gates = map("gates", squash{}, z.columns(2 * words, words + R + 2 * H));
        const auto erase = gates.columns(0, words), frees = gates.columns(words, R),
                   allocates = gates.columns(words + R, H), writes = gates.columns(words + R + H, H);
        const auto strength = z.columns(3 * words + R + 2 * H, H);
        const auto cosine = cosine_scores("write_cosine", now.memory, z.columns(0, words), s.word);
        const auto read = now.last_read.owner ? now.last_read : now.read_weight;

        const auto counted = s.usage_gradient ? now.write_weight : stop_gradient(now.write_weight);
        auto usage = fold_heads("usage.written", count_write{}, H, now.usage, counted);
        now.usage = usage = fold_heads("usage", count_free{}, R, usage, frees, read);

        const auto content_weight = content_weights("write_content", cosine, strength, s.strength_offset);
        std::vector<var<Backend>> written;
        for (int h = 0; h < H; ++h) {
            const auto by_allocation = allocates.columns(h, 1), gate = writes.columns(h, 1);
            const auto allocation = dnc_allocate("allocation", usage);
            written.push_back(
                map("write_weight", choose_slots{}, by_allocation, gate, allocation, content_weight.columns(h * N, N)));
            if (h + 1 < H) usage = map("usage.allocated", count_allocation{}, usage, by_allocation, gate, allocation);
        }
        now.write_weight = joined_heads("write_weight", written);
        now.memory = erase_add("store", now.memory, now.write_weight, erase, z.columns(words, words), s.word);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::dnc::settings, slots, word, read_heads, write_heads, input, read_before_write, usage_gradient,
               strength_offset);

static_assert(engram::memory_policy<engram::dnc>);
