#pragma once
// SPDX-License-Identifier: MIT

// A memory of L slots of W columns that is filled in turn, one row [L * W] of a variable (facts 4.3, errata G28).
//
//   slot_attention   logits [., R * L] (, written [., 1])               -> weights [., R * L]
//   write_slot       memory [., L * W], content [., W], written [., 1]  -> memory [., L * W]
//
// `written` counts writes: with it attention covers the slots written so far, and content goes to slot `written` mod L,
// over what is oldest. Gradients go on to all inputs but `written`. For every head
//
//   w_i = s_i / sum_j s_j over the first `valid` slots, 0 elsewhere;  s = softplus(x), or s = exp(x) (softmax)
//
// Without a valid slot all weights are zero. Logits so low that softplus vanishes are weighed by the limit of the
// formula, which is softmax, so that a sum is never zero (errata G3, G4).

#include <engram/operations/matrix_memory.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

enum class slot_attention_kind { softplus, softmax };

/// Writes so far; what is no count (NaN, a negative number) is none, so that no such state can lead outside a memory.
template <class Real>
ENGRAM_HD int count_of(Real written) {
    return written >= Real(0) && written < Real(1 << 24) ? static_cast<int>(written) : 0;
}

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

struct write_slot_rows {
    using settings = int;  // slots
    template <class Real>
    struct operands {
        input_row<Real> memory, content;
        constant_row<Real> written;
        output_row<Real> y;
    };
    static ENGRAM_HD void forward(auto row, const auto& o, settings slots) {
        const int first = slot(o, slots), word = o.content.width, rest = first + word;
        row.each(first, [&](auto i) { o.y.put(i, o.memory[i]); });
        row.each(word, [&](auto i) { o.y.put(i + first, o.content[i]); });
        row.each(o.y.width - rest, [&](auto i) { o.y.put(i + rest, o.memory[i + rest]); });
    }
    static ENGRAM_HD void backward(auto row, const auto& o, settings slots) {
        const int first = slot(o, slots), word = o.content.width, rest = first + word;
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
    return add_rows<write_slot_rows>(g, name, {memory, content, stop_gradient(written)}, slots, {memory.width})[0];
}

}  // namespace engram
