#pragma once
// SPDX-License-Identifier: MIT

// A memory of L slots of W columns that is filled in turn, one row [L * W] of a variable (facts 4.3, errata G28).
//
//   slot_attention   logits [., R * L] (, written [., 1])               -> weights [., R * L]
//   write_slot       memory [., L * W], content [., W], written [., 1]  -> memory [., L * W]
//
// `written` counts writes: with it attention covers the slots written so far, and content goes to slot `written` mod L,
// over what is oldest. Equations of attention: kernels/introspection.hpp. Gradients go on to all inputs but `written`.

#include <engram/graph/ops/matrix_memory.hpp>
#include <engram/kernels/introspection.hpp>
#include <engram/operations/row_operation.hpp>

namespace engram {

/// Writes so far; what is no count (NaN, a negative number) is none, so that no such state can lead outside a memory.
template <class Real>
ENGRAM_HD int count_of(Real written) {
    return written >= Real(0) && written < Real(1 << 24) ? static_cast<int>(written) : 0;
}

struct slot_attention_shape {
    int slots, heads;
    slot_attention_kind kind;
    bool masked;
};

template <class Backend>
struct slot_attention_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    slot_attention_kernel(const binder<Backend>& b, const slot_attention_shape& s)
        : shape(s), batch(b.batch()), in(b.in(0)), out(b.out(0)), d_out(b.d_out(0)) {
        if (s.masked) written = b.in(1);
        keep = b.needs_backward();
        const int rows = keep ? (out.step ? b.steps() : 1) * batch : 1;
        totals.resize(static_cast<std::size_t>(rows * s.heads));
        if (keep) d_in = {b.d_in(0), in.width, false};
    }
    void forward(int t, int steps) override {
        for (int r = 0; r < steps * batch; ++r)
            slot_attention(in.at(t) + r * in.stride, shape.slots, shape.heads, valid(t, r), shape.kind,
                           out.at(t) + r * out.stride, total(t, r));
    }
    void backward(int t, int steps) override {
        if (!d_out) return;
        for (int r = 0; r < steps * batch; ++r) {
            slot_attention_gradient(in.at(t) + r * in.stride, shape.slots, shape.heads, valid(t, r),
                                    out.at(t) + r * out.stride, total(t, r), d_out.at(t) + r * d_out.stride,
                                    d_in.begin(t, r));
            d_in.end(t, r);
        }
    }

private:
    int valid(int t, int r) const {
        if (!shape.masked) return shape.slots;
        return std::min(count_of(written.at(t)[r * written.stride]), shape.slots);
    }
    real* total(int t, int r) { return totals.data() + (keep ? (std::ptrdiff_t{t} * batch + r) * shape.heads : 0); }

    slot_attention_shape shape;
    int batch;
    operand<real> in, written, out, d_out;
    bool keep;
    gradient_row<real> d_in;
    aligned_vector<real> totals;
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
    const slot_attention_shape shape{slots, logits.width / slots, kind, !written.empty()};
    auto op = make_operation<slot_attention_kernel>(g, name, inputs, shape);
    const extent rows = g.common_rows(op->inputs);
    return g.add(std::move(op), {logits.width}, rows)[0];
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
