#pragma once
// SPDX-License-Identifier: MIT

// A hybrid memory (ours): the last L writes of an episode, read by a learnt mixture of up to four reads.
//
//   age       w = s / sum s,  s = softplus(or exp) of a small network of e, one logit for every age or slot
//   content   w = softmax over the slots of softplus(beta) cos(kappa, v),  kappa and beta linear in e
//   nearest   the K slots whose cached key is nearest to q, linear in [x, h]: w_j = 1 / (epsilon + |q - k_j|^2)
//             normalised, k_j = W_k [x_j, h_j] + b_k recomputed (memory/fifo_knn.hpp)
//   after     w_i = what was followed at the last step in the slot written just before i, zero at first:
//             followed = sum_m rho_m w_m over age, content and after,  rho = softmax(linear of e)
//   context   r = sum_m pi_m r_m,  pi = softmax(linear of e);  with the gate r * sigma(linear of e)
//
// e is the cue, [x, h] or h alone; v what is stored of [x, h]. Reads are mixed and not weights, so that the nearest
// stay K. Reads that `reads` leaves out cost nothing, and one alone has no pi; an empty memory gives zero. Alone,
// `nearest` is fifo_knn with its numbers, `age` introspection, `content` the addressing by content of NTM and LRU
// access (docs/decisions/0028); `after` is the step forward along DNC's links, which a ring has for nothing: by age, a
// slot's successor stands at the next step where the slot stood. What NTM and DNC erase and move to is not here.
//
// Slots are filled in turn and then overwritten in turn; weights are by age, or by slot (`order`).
//
// Shapes: M [B, L * V] for all but `nearest`, context [T, B, R * V], pi [T, B, R * reads], followed [B, R * L].
// Gradients go back through the writes of the unroll unless `store_gradient` is off; to `nearest` its contents are
// constants always. Without the gate, and without those gradients, it learnt less than its parts (docs/decisions/0033).

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/memory/interface.hpp>
#include <engram/memory/introspection.hpp>
#include <engram/memory/lru_access.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/heads.hpp>
#include <engram/operations/knn.hpp>
#include <engram/operations/slots.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

struct hybrid {
    using role = memory_role;

    struct settings {
        std::string reads = "age,content,nearest";  // which of age, content, nearest and after
        int slots = 64;                             // L, writes that are kept
        int heads = 1;                              // R, reads of a step, each with a mixture of its own
        memory_input input = "all";                 // all or held: what reads are made of
        memory_values values = "held";              // held, observed or all: what of a write is read
        bool store_gradient = true;                 // age and content: goes back through the writes of the unroll
        bool gate = true;                           // columns of the context are let through by e
        int hidden = 64;                            // age: units behind e; 0: a linear map
        choice<"age", "position"> order = "age";    // age: age or position, what a logit belongs to
        bool masked = true;                         // age: slots that were never written are left out
        choice<"softplus", "softmax"> attention = "softplus";  // age: softplus or softmax
        bool bounded = false;                                  // content: tanh of what is looked for
        choice<"each", "joint"> cosine = "each";       // content: each or joint, norms guarded one by one or together
        choice<"learnt", "one"> sharpness = "learnt";  // content: learnt or one
        int neighbours = 10;                           // nearest: K, slots that a read mixes
        int key = 64;                                  // nearest: columns of keys and queries
        double epsilon = 1e-3;                         // nearest: added to squared distances
        bool jumpy = true;                             // nearest: keys are recomputed, so that they learn
        bool tied_start = true;                        // nearest: queries start as keys, blind to h

        bool has(const char* read) const { return place(read) < static_cast<int>(chosen().size()); }
        /// Reads that weigh every slot.
        int dense() const { return static_cast<int>(chosen().size()) - has("nearest"); }
        int place(const char* read) const {
            const auto all = chosen();
            return static_cast<int>(std::find(all.begin(), all.end(), read) - all.begin());
        }
        std::vector<std::string> chosen() const {
            std::vector<std::string> all{""};
            for (const char c : reads)
                if (c == ',')
                    all.emplace_back();
                else
                    all.back() += c;
            return all;
        }
        void check() const {
            require(!reads.empty(), "memory.reads: expected one or more of age, content, nearest and after, got none");
            const auto all = chosen();
            for (const auto& read : all) {
                require_known("read in memory.reads", read,
                              std::vector<std::string>{"age", "content", "nearest", "after"});
                require(std::count(all.begin(), all.end(), read) == 1, "memory.reads: ", read, " stands there twice");
            }
            require(!has("after") || dense() > 1,
                    "memory.reads: after follows what age or content have found, and neither is there");
            require(!has("after") || (order == "age" && masked),
                    "memory.reads: after needs memory.order=age and memory.masked=true");
            require(slots > 0, "memory.slots: expected at least one slot, got ", slots);
            require(heads > 0, "memory.heads: expected at least one head, got ", heads);
            require(hidden >= 0, "memory.hidden: expected a number of units, or 0 for a linear layer, got ", hidden);
            require(neighbours > 0, "memory.neighbours: expected at least one neighbour, got ", neighbours);
            require(key > 0, "memory.key: expected at least one column, got ", key);
            require(epsilon > 0, "memory.epsilon: expected a positive number, got ", epsilon);
        }
    };
    struct weights {
        linear hidden, logits;      // age
        linear content, strength;   // content
        linear key;                 // nearest
        std::vector<linear> query;  // of each head
        knn_memory ring;            // none without `nearest`
        linear follow;              // after
        linear mixture, gate;
        memory_columns value;  // in [x, h]
    };
    /// What all but `nearest` read, how many writes there were (as in introspection), and which slots `after` follows,
    /// by their age at the next step; nothing without those reads.
    template <class Var>
    struct state {
        BOOST_HANA_DEFINE_STRUCT(state, (std::vector<Var>, store), (std::vector<Var>, written),
                                 (std::vector<Var>, followed));
    };

    static int context_width(const settings& s, memory_sizes z) { return s.heads * value_columns(s.values, z).width; }
    /// Writes after which the first one is lost.
    static int capacity(const settings& s) { return s.slots; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, memory_sizes z) {
        using real = typename Backend::real;
        const int inputs = interface_width(s.input, z), both = z.observed + z.held;
        weights w;
        w.value = value_columns(s.values, z);
        if (s.has("age")) {
            if (s.hidden > 0)
                w.hidden = g.declare_linear("hidden", inputs, s.hidden, initial::fan_in<real>(std::sqrt(2.0)));
            w.logits = g.declare_linear("logits", s.hidden > 0 ? s.hidden : inputs, s.heads * s.slots);
        }
        if (s.has("content")) {
            w.content = g.declare_linear("content", inputs, s.heads * w.value.width);
            if (s.sharpness == "learnt") w.strength = g.declare_linear("strength", inputs, s.heads);
        }
        if (s.has("nearest")) {
            const auto first = s.tied_start ? initial::fan_in_rows<real>(z.observed) : initial::fan_in<real>();
            w.key = g.declare_linear("key", both, s.key, first);
            for (int r = 0; r < s.heads; ++r)
                w.query.push_back(g.declare_linear(r == 0 ? "query" : message("query.", r), both, s.key,
                                                   s.tied_start ? initial::copy_of(g.store(), w.key.weight) : first));
            w.ring = add_knn_memory(g, "ring", s.slots, both, s.key);
        }
        if (s.has("after")) w.follow = g.declare_linear("follow", inputs, s.heads * s.dense());
        const int reads = static_cast<int>(s.chosen().size());
        if (reads > 1) w.mixture = g.declare_linear("mixture", inputs, s.heads * reads);
        if (s.gate) w.gate = g.declare_linear("gate", inputs, s.heads * w.value.width);
        return w;
    }
    template <class Backend>
    static state<var<Backend>> begin(graph<Backend>& g, const settings& s, memory_sizes z) {
        if (s.dense() == 0) return {};
        state<var<Backend>> all{
            {g.uncleared_state("ring", s.slots * value_columns(s.values, z).width)}, {g.state("written", 1)}, {}};
        if (s.has("after")) all.followed = {g.state("followed", s.heads * s.slots)};
        return all;
    }
    /// What is read of every slot is all zeros, which a reset has made it already.
    template <class Backend>
    static void forget(const weights& w, const var<Backend>& reset, state<var<Backend>>&) {
        if (w.ring.slots > 0) knn_forget(w.ring, reset);
    }

    template <class Backend>
    static recalled<var<Backend>> read(const settings& s, const weights& w, const std::vector<var<Backend>>& cue,
                                       state<var<Backend>>& now) {
        const auto e = interface_inputs(s.input, cue);
        std::vector<var<Backend>> reads, weight, near, when;
        for (const auto& which : s.chosen())
            if (which == "nearest") {
                std::vector<var<Backend>> heads;
                for (const auto& query : w.query) {
                    const auto r = knn_read(affine("query", cue, query), w.key, nearest(s, w));
                    heads.push_back(r.value);
                    near.push_back(r.weight);
                    when.push_back(r.when);
                }
                reads.push_back(joined_heads("nearest", heads));
            } else {
                weight.push_back(which == "age"       ? by_age(s, w, e, now)
                                 : which == "content" ? by_content(s, w, e, now)
                                                      : now.followed[0]);
                reads.push_back(
                    read_slots(which, weight.back(), values(s, now), now.written[0], w.value.width, s.order == "age"));
            }
        if (s.has("after"))
            now.followed = {
                mixture("followed", softmax("rho", affine("follow", e, w.follow), s.dense()), weight, s.slots)};
        recalled<var<Backend>> found{{reads[0]}, weight, {}};
        if (reads.size() > 1) {
            const int count = static_cast<int>(reads.size());
            const auto pi = softmax("pi", affine("mixture", e, w.mixture), count);
            found.context = {mixture("mixed", pi, reads, w.value.width)};
            // For whoever looks on: what `nearest` has of the whole, or slots where it is not there.
            const auto at = s.place("nearest");
            for (std::size_t r = 0; r < near.size(); ++r)
                near[r] = map("share", take_share{}, near[r], pi.columns(static_cast<int>(r) * count + at, 1));
            if (near.empty()) found.weight = {mixture("weight", pi, weight, s.slots)};
        }
        if (!near.empty()) {
            found.weight = {joined_heads("nearest.weight", near)};
            found.when = {joined_heads("nearest.when", when)};
        }
        if (s.gate)
            found.context[0] = map("gated", introspection::let_through{}, found.context[0], affine("gate", e, w.gate));
        return found;
    }
    /// The written row is recorded: a learner replays what the behaviour policy stored.
    template <class Backend>
    static void write(const settings& s, const weights& w, const std::vector<var<Backend>>& content,
                      state<var<Backend>>& now) {
        const bool ring = w.ring.slots > 0;
        var<Backend> stored;
        if (ring || !s.store_gradient) stored = record("stored", content);
        if (ring) knn_write(w.ring, stored, affine("key", stored, w.key));
        if (now.store.empty()) return;
        const auto v = !s.store_gradient   ? stored.columns(w.value.first, w.value.width)
                       : s.values == "all" ? concatenate("value", content)
                                           : content[s.values == "held" ? 1 : 0];
        now.store = {write_slot("store", now.store[0], v, now.written[0])};
        now.written = {map("written", introspection::count_up{2.0 * s.slots}, now.written[0])};
    }

    // Public: nvcc takes no functor whose name is private.
    struct sharpen {
        constexpr auto operator()(auto cosine, auto strength) const { return softplus(strength) * cosine; }
    };
    struct take_share {
        constexpr auto operator()(auto weight, auto share) const { return weight * share; }
    };

private:
    template <class Var>
    static Var values(const settings& s, const state<Var>& now) {
        return s.store_gradient ? now.store[0] : stop_gradient(now.store[0]);
    }
    static knn_read_settings nearest(const settings& s, const weights& w) {
        knn_read_settings how;
        how.memory = w.ring;
        how.neighbours = s.neighbours;
        how.epsilon = s.epsilon;
        how.jumpy = s.jumpy;
        how.value_offset = w.value.first;
        how.value_width = w.value.width;
        return how;
    }
    template <class Backend>
    static var<Backend> by_age(const settings& s, const weights& w, const std::vector<var<Backend>>& e,
                               const state<var<Backend>>& now) {
        const auto logits =
            s.hidden > 0 ? affine("logits", map("hidden.relu", rectify{}, affine("hidden", e, w.hidden)), w.logits)
                         : affine("logits", e, w.logits);
        const auto kind = s.attention == "softplus" ? slot_attention_kind::softplus : slot_attention_kind::softmax;
        return slot_attention("age.weight", logits, s.slots, kind,
                              s.masked ? now.written : std::vector<var<Backend>>{});
    }
    template <class Backend>
    static var<Backend> by_content(const settings& s, const weights& w, const std::vector<var<Backend>>& e,
                                   const state<var<Backend>>& now) {
        auto kappa = affine("content", e, w.content);
        if (s.bounded) kappa = map("bounded", lru_access::bounded{}, kappa);
        const bool by_age = s.order == "age";
        auto score = s.cosine == "each"
                         ? cosine_scores("cosine", values(s, now), kappa, w.value.width, now.written, by_age)
                         : joint_cosine_scores("cosine", values(s, now), kappa, w.value.width, now.written, by_age);
        if (s.sharpness == "learnt")
            score = map("sharpen", sharpen{}, score, affine("strength", e, w.strength).spread(s.slots));
        return slot_attention("content.weight", score, s.slots, slot_attention_kind::softmax, now.written);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::hybrid::settings, reads, slots, heads, input, values, store_gradient, gate, hidden, order,
               masked, attention, bounded, cosine, sharpness, neighbours, key, epsilon, jumpy, tied_start);

static_assert(engram::memory_policy<engram::hybrid>);
