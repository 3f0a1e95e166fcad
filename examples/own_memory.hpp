#pragma once
// SPDX-License-Identifier: MIT

// A memory of one's own, outside the library: the last N writes, read by soft attention.
//
//   k_t = W x_t + b;   a_i = softmax_i(sharpness cos(k_i, k_t)) over the slots that hold something;   m_t = sum_i a_i
//   v_i then slot (t mod N) <- (k_t, v = h_t)
//
// Shapes: keys [B, N * D] and values [B, N * H] are carried states, m [T, B, H]. Unlike the library's k-NN memory
// nothing is constant: the gradient reaches what was written earlier in the unroll. One map addresses writes and reads,
// so that two looks at one image meet before anything is learnt. Everything is made of public operations, which is all
// the derivative that it needs; resets are the agent's business, because all that changes lies in `state`.

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/model/agent.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/learnt_row.hpp>
#include <engram/operations/matrix_memory.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>

namespace own {

// [functors]
/// Empty slots get a score far below any cosine.
struct score {
    float sharpness;
    auto operator()(auto cosine, auto used) const { return select(used > 0.5, sharpness * cosine, -100); }
};
struct mark {
    auto operator()(auto used, auto here) const { return max(used, here); }
};
struct advance {
    float slots;
    auto operator()(auto next) const { return select(next + 1.5 > slots, 0, next + 1); }
};
// [functors]

struct attention_memory {
    // [settings]
    using role = engram::memory_role;

    struct settings {
        int length = 64;
        int address = 32;
        double sharpness = 20;
        void check() const {
            engram::require(length > 0, "memory.length: expected at least one slot, got ", length);
            engram::require(address > 0, "memory.address: expected at least one column, got ", address);
            engram::require(sharpness > 0, "memory.sharpness: expected a positive number, got ", sharpness);
        }
    };
    // [settings]
    // [state]
    struct weights {
        engram::linear address;
        int value;
    };
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (Var, keys), (Var, values), (Var, used), (Var, next));
    };
    // [state]

    // [begin]
    static int context_width(const settings&, engram::memory_sizes z) { return z.held; }

    template <class Backend>
    static weights declare(engram::graph<Backend>& g, const settings& s, engram::memory_sizes z) {
        return {g.declare_linear("address", z.observed, s.address), z.held};
    }
    template <class Backend>
    static state<engram::var<Backend>> begin(engram::graph<Backend>& g, const settings& s, engram::memory_sizes z) {
        return {g.state("keys", s.length * s.address), g.state("values", s.length * z.held), g.state("used", s.length),
                g.state("next", 1)};
    }
    template <class Var>
    static void forget(const weights&, const Var&, state<Var>&) {}
    // [begin]

    // [read]
    /// cue = {x, h of the step before}.
    template <class Backend>
    static engram::recalled<engram::var<Backend>> read(const settings& s, const weights& w,
                                                       const std::vector<engram::var<Backend>>& cue,
                                                       state<engram::var<Backend>>& now) {
        const auto query = engram::affine("query", cue[0], w.address);
        const auto cosine = engram::cosine_scores("cosine", now.keys, query, s.address);
        const auto scores = engram::map("score", score{static_cast<float>(s.sharpness)}, cosine, now.used);
        const auto attention = engram::softmax("attention", scores);
        return {{engram::weighted_read("recalled", attention, now.values, w.value)}, {}, {}};
    }
    // [read]
    // [write]
    /// content = {x, h}.
    template <class Backend>
    static void write(const settings& s, const weights& w, const std::vector<engram::var<Backend>>& content,
                      state<engram::var<Backend>>& now) {
        const auto key = engram::affine("key", content[0], w.address), value = content[1];
        const auto here = engram::one_hot("here", now.next, s.length);
        now.keys = engram::erase_add("keys", now.keys, here, engram::map("old_key", engram::always_one{}, key), key,
                                     s.address);
        now.values = engram::erase_add("values", now.values, here,
                                       engram::map("old_value", engram::always_one{}, value), value, w.value);
        now.used = engram::map("used", mark{}, now.used, here);
        now.next = engram::map("next", advance{static_cast<float>(s.length)}, now.next);
    }
    // [write]
};

// [model]
using model = engram::agent<engram::mlp, engram::feed_forward, attention_memory, engram::no_auxiliary, engram::vtrace>;
// [model]

}  // namespace own

// [claim]
ENGRAM_REFLECT(own::attention_memory::settings, length, address, sharpness);

static_assert(engram::memory_policy<own::attention_memory>);
// [claim]
