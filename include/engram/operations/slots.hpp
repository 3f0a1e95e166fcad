#pragma once
// SPDX-License-Identifier: MIT

// A memory of L slots of W columns that is filled in turn, one row [L * W] of a variable (facts 4.3, errata G28).
//
//   slot_attention   logits [., R * L] (, written [., 1])                 -> weights [., R * L]
//   read_slots       weights [., R * L], memory [., L * W], written       -> [., R * W]
//   write_slot       memory [., L * W], content [., W], written [., 1]    -> memory [., L * W]
//
// `written` counts writes: with it attention covers the slots written so far, and content goes to slot `written` mod L,
// over what is oldest. Nothing is read of a slot that was not written since the count was zero, so such a memory may be
// a state that nobody clears (graph::uncleared_state), and in a time loop it is written where it stands. Weights go by
// slot, or by age: weight 0 is that of the newest write. Gradients go on to all inputs but `written`. For every head
//
//   w_i = s_i / sum_j s_j over the first `valid` slots, 0 elsewhere;  s = softplus(x), or s = exp(x) (softmax)
//
// Without a valid slot all weights are zero. Logits so low that softplus vanishes are weighed by the limit of the
// formula, which is softmax, so that a sum is never zero (errata G3, G4).

#include <engram/operations/matrix_memory.hpp>
#include <engram/operations/ring.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

enum class slot_attention_kind { softplus, softmax };

/// One head's weights over `slots` slots, of which the first `valid` are there; gives the sum of softplus, zero where
/// softmax weighed.
template <class Row, class X, class Y>
ENGRAM_HD auto weigh_slots(Row row, int slots, int valid, slot_attention_kind kind, const X& x, const Y& y) {
    auto sum = x[0] * 0, total = zero_of(sum);
    const auto weigh = [&](auto value) {
        return row.sum(valid, [&](auto i) {
            const auto weight = value(x[i]);
            y.put(i, weight);
            return weight;
        });
    };
    if (kind == slot_attention_kind::softplus) sum = total = weigh([](auto v) { return softplus(v); });
    // Written so that NaN does not pass for a small sum.
    if (kind == slot_attention_kind::softmax || sum < decltype(sum)(1e-30)) {
        const auto top = row.largest(valid, [&](auto i) { return x[i]; });
        sum = weigh([&](auto v) { return exp(v - top); });
        total = 0;
    }
    row.each(valid, [&](auto i) { y.put(i, y[i] / sum); });
    row.each(slots - valid, [&](auto i) { y.put(i + valid, zero_of(x[i])); });
    return total;
}

/// Gives d_x, from the weights w, what comes back to them, and the total that weigh_slots gave.
template <class Row, class Real, class X, class W, class Slope, class To>
ENGRAM_HD void weigh_slots_gradient(Row row, int slots, int valid, Real total, const X& x, const W& w, const Slope& d_w,
                                    const To& d_x) {
    const auto mean = row.sum(valid, [&](auto i) { return w[i] * d_w[i]; });
    const Real scale = 1 / total;
    if (total == 0)
        row.each(valid, [&](auto i) { d_x.put(i, w[i] * (d_w[i] - mean)); });
    else
        row.each(valid, [&](auto i) {
            const auto v = x[i], fade = exp(-abs(v));
            // sigma(x) to its last bits also where it is tiny, because the sum is as tiny there.
            const auto slope = scale * select(v < 0, fade, Real(1)) / (1 + fade);
            d_x.put(i, slope * (d_w[i] - mean));
        });
    row.each(slots - valid, [&](auto i) { d_x.put(i + valid, zero_of(w[i])); });
}

/// A head is a piece of its row.
struct slot_attention_rows {
    struct settings {
        int slots, heads;
        slot_attention_kind kind;
    };
    template <class Real>
    struct operands {
        input_row<Real> x;
        constant_row<Real> written;  // none: all slots are there
        kept_row<Real, 1> total;
        output_row<Real> y;
    };
    static constexpr int pieces(const settings& s, int) { return s.heads; }
    static ENGRAM_HD void forward(auto row, const auto& o, const settings& s) {
        const auto total = weigh_slots(row, s.slots, valid(o, s), s.kind, o.x, o.y);
        row.once([&] { o.total.put(0, total); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, const settings& s) {
        weigh_slots_gradient(row, s.slots, valid(o, s), o.total[0], o.x, o.y, o.y.d, o.x.d);
    }

private:
    static ENGRAM_HD int valid(const auto& o, const settings& s) {
        const int count = o.written ? count_of(o.written[0]) : s.slots;
        return count < s.slots ? count : s.slots;
    }
};

/// Weights of every head over the slots, or with `written` over those written so far.
template <class Backend>
var<Backend> slot_attention(const std::string& name, const var<Backend>& logits, int slots, slot_attention_kind kind,
                            const std::vector<var<Backend>>& written = {}) {
    graph<Backend>& g = *logits.owner;
    require(slots > 0 && logits.width % slots == 0, g.full_name(name), ": ", logits.width,
            " logits do not divide among ", slots, " slots");
    std::vector<var<Backend>> inputs{logits};
    if (!written.empty()) {
        require(written[0].width == 1, g.full_name(name), ": the count of writes must be one column, not ",
                written[0].width);
        inputs.push_back(stop_gradient(written[0]));
    }
    return add_rows<slot_attention_rows>(g, name, inputs, {slots, logits.width / slots, kind}, {logits.width})[0];
}

struct read_slots_rows {
    struct settings {
        int slots;
        bool by_age;
    };
    template <class Real>
    struct operands {
        input_row<Real> weights, memory;
        constant_row<Real> written;
        output_row<Real> y;
    };
    static constexpr int sums(settings s, int) { return s.slots; }

    static ENGRAM_HD void forward(auto row, const auto& o, settings s) {
        const ring_places at = places(o, s);
        const int word = o.memory.width / s.slots;
        for (int head = 0; head * word < o.y.width; ++head) {
            const int w = head * s.slots;
            row.each(word, [&](auto c) {
                // Four sums, since each waits for itself.
                auto a = zero_of(o.memory[c]), b = a, d = a, e = a;
                int i = 0;
                for (; i + 4 <= at.valid; i += 4) {
                    a = a + o.weights[w + i] * o.memory[c + at(i) * word];
                    b = b + o.weights[w + i + 1] * o.memory[c + at(i + 1) * word];
                    d = d + o.weights[w + i + 2] * o.memory[c + at(i + 2) * word];
                    e = e + o.weights[w + i + 3] * o.memory[c + at(i + 3) * word];
                }
                for (; i < at.valid; ++i) a = a + o.weights[w + i] * o.memory[c + at(i) * word];
                o.y.put(c + head * word, (a + b) + (d + e));
            });
        }
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings s) {
        const ring_places at = places(o, s);
        const int word = o.memory.width / s.slots, heads = o.y.width / word;
        if (o.weights.d)
            for (int head = 0; head < heads; ++head) {
                const int w = head * s.slots;
                row.sums(
                    at.valid, word,
                    [&](auto c, auto add) {
                        const auto slope = o.y.d[c + head * word];
                        for (int i = 0; i < at.valid; ++i) add(i, slope * o.memory[c + at(i) * word]);
                    },
                    [&](int i, auto sum) { o.weights.d.put(w + i, sum); });
                row.each(s.slots - at.valid,
                         [&](auto i) { o.weights.d.put(i + (w + at.valid), zero_of(o.weights[i])); });
            }
        if (!o.memory.d) return;
        for (int i = 0; i < at.valid; ++i)
            row.each(word, [&](auto c) {
                auto sum = o.weights[i] * o.y.d[c];
                for (int head = 1; head < heads; ++head)
                    sum = sum + o.weights[head * s.slots + i] * o.y.d[c + head * word];
                o.memory.d.put(c + at(i) * word, sum);
            });
        if (o.memory.d.accumulate) return;
        for (int i = at.valid; i < s.slots; ++i)
            row.each(word, [&](auto c) { o.memory.d.put(c + at(i) * word, zero_of(o.y.d[c])); });
    }

private:
    static ENGRAM_HD ring_places places(const auto& o, settings s) {
        return {s.slots, count_of(o.written[0]), s.by_age};
    }
};

/// What every head's weights find in the slots, by age or by slot.
template <class Backend>
var<Backend> read_slots(const std::string& name, const var<Backend>& weights, const var<Backend>& memory,
                        const var<Backend>& written, int word, bool by_age) {
    graph<Backend>& g = *memory.owner;
    const int slots = memory_slots(g.full_name(name), memory.width, word);
    require(weights.width % slots == 0, g.full_name(name), ": weights of ", weights.width,
            " columns do not divide among the slots of the memory [", slots, ",", word, "]");
    require(written.width == 1, g.full_name(name), ": the count of writes must be one column, not ", written.width);
    return add_rows<read_slots_rows>(g, name, {weights, memory, stop_gradient(written)}, {slots, by_age},
                                     {weights.width / slots * word})[0];
}

struct write_slot_rows {
    using settings = int;  // slots
    static constexpr bool puts_back = true;
    template <class Real>
    struct operands {
        input_row<Real> memory, content;
        constant_row<Real> written;
        output_row<Real> before, y;  // before: of the slot
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings slots) {
        const int first = slot(o, slots), word = o.content.width, rest = first + word;
        row.each(word, [&](auto i) { o.before.put(i, o.memory[i + first]); });
        row.each(word, [&](auto i) { o.y.put(i + first, o.content[i]); });
        if (o.y.data == o.memory.data) return;
        row.each(first, [&](auto i) { o.y.put(i, o.memory[i]); });
        row.each(o.y.width - rest, [&](auto i) { o.y.put(i + rest, o.memory[i + rest]); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings slots) {
        const int first = slot(o, slots), word = o.content.width, rest = first + word;
        if (o.y.data == o.memory.data) {
            row.each(word, [&](auto i) { o.y.put(i + first, o.before[i]); });
            if (!o.y.d) {  // nobody wants the memory, but who gives to the content after this adds to what it stores
                row.each(word, [&](auto i) { o.content.d.put(i, zero_of(o.content[i])); });
                return;
            }
            auto cleared = o.y.d;
            cleared.accumulate = false;
            row.each(word, [&](auto i) {
                o.content.d.put(i, o.y.d[i + first]);
                cleared.put(i + first, zero_of(o.y.d[i]));
            });
            return;
        }
        row.each(first, [&](auto i) { o.memory.d.put(i, o.y.d[i]); });
        row.each(word, [&](auto i) {
            o.content.d.put(i, o.y.d[i + first]);
            o.memory.d.put(i + first, zero_of(o.y.d[i]));
        });
        row.each(o.y.width - rest, [&](auto i) { o.memory.d.put(i + rest, o.y.d[i + rest]); });
    }

private:
    static ENGRAM_HD int slot(const auto& o, settings slots) {
        return count_of(o.written[0]) % slots * o.content.width;
    }
};

/// The memory with slot `written` mod L replaced by `content`.
template <class Backend>
var<Backend> write_slot(const std::string& name, const var<Backend>& memory, const var<Backend>& content,
                        const var<Backend>& written) {
    graph<Backend>& g = *memory.owner;
    const int slots = memory_slots(g.full_name(name), memory.width, content.width);
    require(written.width == 1, g.full_name(name), ": the count of writes must be one column, not ", written.width);
    return add_rows<write_slot_rows>(g, name, {memory, content, stop_gradient(written)}, slots,
                                     {content.width, memory.width})[1];
}

}  // namespace engram
