#pragma once
// SPDX-License-Identifier: MIT

// Attention to a memory of slots that is filled in turn, on a device: a block a row and head (equations:
// kernels/introspection.hpp).

#include <engram/device/kernel.hpp>
#include <engram/graph/ops/fifo_slots.hpp>

namespace engram {

template <class Real>
struct slot_weights {
    static constexpr int lanes = 32;
    device_rows<Real> in, written, out;
    Real* total;  // [rows, R]: the sum of softplus, zero where softmax served
    int slots, heads;
    bool softmax;

    ENGRAM_HD int valid(std::ptrdiff_t row) const {
        if (!written.wanted()) return slots;
        const Real count = *written.row(row);  // count_of: what is no count is none
        if (!(count >= Real(0) && count < Real(1 << 24))) return 0;
        return static_cast<int>(count) < slots ? static_cast<int>(count) : slots;
    }
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int row = index / heads, head = index % heads, n = valid(row);
        const Real* const x = in.row(row) + head * slots;
        Real* const w = out.row(row) + head * slots;
        Real* const kept = total + index;
        const int all = slots;
        Real sum = 0;
        if (!softmax && n > 0) sum = block_sum(block, n, [=](int i) { return w[i] = softplus(x[i]); });
        const Real of_softplus = sum;
        // Written so that NaN does not pass for a small sum.
        const bool limit = n > 0 && (softmax || sum < Real(1e-30));
        if (limit) {
            const Real top = block_max(block, n, [=](int i) { return x[i]; });
            sum = block_sum(block, n, [=](int i) { return w[i] = exp(x[i] - top); });
        }
        const Real divisor = sum;
        block_for(block, all, [=](int i) { w[i] = i < n ? w[i] / divisor : Real(0); });
        block_for(block, 1, [=](int) { *kept = limit ? Real(0) : of_softplus; });
    }
};

template <class Real>
struct slot_weights_gradient {
    static constexpr int lanes = 32;
    slot_weights<Real> forward;
    device_rows<Real> d_out, d_in;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int row = index / forward.heads, first = index % forward.heads * forward.slots, n = forward.valid(row);
        const Real *const x = forward.in.row(row) + first, *const w = forward.out.row(row) + first,
                          *const dw = d_out.row(row) + first;
        const Real mean = block_sum(block, n, [=](int i) { return w[i] * dw[i]; });
        const Real total = forward.total[index];
        const device_rows<Real> dx = d_in;
        block_for(block, forward.slots, [=](int i) {
            if (i >= n) return dx.take(row, first + i, Real(0));
            const Real fade = exp(x[i] < 0 ? x[i] : -x[i]);
            const Real slope = total == 0 ? w[i] : (x[i] < 0 ? fade : Real(1)) / (1 + fade) / total;
            dx.take(row, first + i, slope * (dw[i] - mean));
        });
    }
};

template <device_backend Backend>
struct slot_attention_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    slot_attention_kernel(const binder<Backend>& b, const slot_attention_shape& s)
        : device_kernel<Backend>(b), shape(s), in(b.in(0)), d_in(b.d_in(0)), out(b.out(0)), d_out(b.d_out(0)) {
        if (s.masked) written = b.in(1);
        const int steps = out.step ? b.steps() : 1;
        totals = numbers(static_cast<std::size_t>(steps * b.batch() * s.heads));
    }
    void forward(int t, int steps) override {
        this->launch_blocks(steps, shape.heads, slot_weights<real>::lanes, weights(t));
    }
    void backward(int t, int steps) override {
        if (d_in && d_out)
            this->launch_blocks(steps, shape.heads, slot_weights<real>::lanes,
                                slot_weights_gradient<real>{weights(t), {d_out, t}, {d_in, t}});
    }

private:
    using numbers = typename executor<Backend>::buffer;

    slot_weights<real> weights(int t) {
        return {{in, t},
                {written, t},
                {out, t},
                totals.data() + std::ptrdiff_t{t} * this->batch * shape.heads,
                shape.slots,
                shape.heads,
                shape.kind == slot_attention_kind::softmax};
    }

    slot_attention_shape shape;
    operand<real> in, d_in, written, out, d_out;
    numbers totals;
};

}  // namespace engram
