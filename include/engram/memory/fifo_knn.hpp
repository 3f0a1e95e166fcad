#pragma once
// SPDX-License-Identifier: MIT

// The episodic memory of the Memory Recall Agent: a FIFO ring read by k nearest neighbours (facts 1.3, 1.4).
//
//   q = W_q [x_t, h_{t-1}] + b_q;  the K slots whose cached key is nearest to q;  k_j = W_k [p_j, v_j] + b_k
//   recomputed; d_j = |q - k_j|^2,  w_j = 1 / (epsilon + d_j) normalised,  m_t = sum_j w_j v_j;  then p <- x_t, v <-
//   h_t (constants)
//
// Shapes: q and k [T, B, key], v as wide as `values` says, m [T, B, V]; the ring [B, N, X + H] is no state that has a
// gradient.
//
// Jumpy backpropagation reaches W_k through the recomputed keys; without it (`fifo_knn_no_jumpy`) the cached keys are
// used and W_k stays as it was drawn. Ties go to the lower slot; with fewer than K entries all are used, with none m =
// 0.
//
// Keys and queries start equal, with zeros on the h and v rows: two encodings of one image are near each other before
// anything is learnt. From independent starts retrieval stays at chance (docs/results/mra.md). `tied_start` turns it
// off.
//
// What is mixed is v, as in the paper, or with `values` p, or both (ours): a state holds what was seen only once it has
// learnt to, and no gradient through a read tells it so (docs/decisions/0052).

#include <engram/memory/interface.hpp>
#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/knn.hpp>

namespace engram {

struct fifo_knn_settings {
    int slots = 1024;               // N, writes that are kept
    int neighbours = 10;            // K, slots that a read mixes
    int key = 128;                  // columns of keys and queries
    memory_values values = "held";  // held, observed or all: what of a write is read
    double epsilon = 1e-3;          // added to squared distances: the larger, the more alike all K weigh
    bool tied_start = true;         // W_q starts as W_k, blind to h

    void check() const {
        require(slots > 0, "memory.slots: expected at least one slot, got ", slots);
        require(neighbours > 0, "memory.neighbours: expected at least one neighbour, got ", neighbours);
        require(key > 0, "memory.key: expected at least one column, got ", key);
        require(epsilon > 0, "memory.epsilon: expected a positive number, got ", epsilon);
    }
};

template <bool Jumpy>
struct basic_fifo_knn {
    using role = memory_role;
    using settings = fifo_knn_settings;
    static constexpr const char* name = Jumpy ? "fifo_knn" : "fifo_knn_no_jumpy";

    struct weights {
        linear query, key;
        knn_memory ring;
        memory_columns value;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state);
    };

    static int context_width(const settings& s, memory_sizes z) { return value_columns(s.values, z).width; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, memory_sizes z) {
        using real = typename Backend::real;
        const int columns = z.observed + z.held;
        weights w;
        const auto first = s.tied_start ? initial::fan_in_rows<real>(z.observed) : initial::fan_in<real>();
        w.key = g.declare_linear("key", columns, s.key, first);
        w.query =
            g.declare_linear("query", columns, s.key, s.tied_start ? initial::copy_of(g.store(), w.key.weight) : first);
        w.ring = add_knn_memory(g, "ring", s.slots, columns, s.key);
        w.value = value_columns(s.values, z);
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>&, const settings&, memory_sizes) {
        return {};
    }
    template <class Var>
    static void forget(const weights& w, const Var& reset, state<Var>&) {
        knn_forget(w.ring, reset);
    }
    template <class Var>
    static recalled<Var> read(const settings& s, const weights& w, const std::vector<Var>& cue, state<Var>&) {
        knn_read_settings how;
        how.memory = w.ring;
        how.neighbours = s.neighbours;
        how.epsilon = s.epsilon;
        how.jumpy = Jumpy;
        how.value_offset = w.value.first;
        how.value_width = w.value.width;
        const auto r = knn_read(affine("query", cue, w.query), w.key, how);
        return {{r.value}, {r.weight}, {r.when}};
    }
    /// The written row is recorded: a learner replays what the behaviour policy stored.
    template <class Var>
    static void write(const settings&, const weights& w, const std::vector<Var>& content, state<Var>&) {
        const Var stored = record("stored", content);
        knn_write(w.ring, stored, affine("key", stored, w.key));
    }
};

using fifo_knn = basic_fifo_knn<true>;
using fifo_knn_no_jumpy = basic_fifo_knn<false>;

}  // namespace engram

ENGRAM_REFLECT(engram::fifo_knn_settings, slots, neighbours, key, values, epsilon, tied_start);

static_assert(engram::memory_policy<engram::fifo_knn> && engram::memory_policy<engram::fifo_knn_no_jumpy>);
