#pragma once
// SPDX-License-Identifier: MIT

// Where a head of a Neural Turing Machine points, on a device: a block a row and head (equations:
// kernels/ntm_address.hpp).

#include <engram/device/kernel.hpp>
#include <engram/operations/ntm_address.hpp>

namespace engram {

/// The numbers that steer a head, behind their activations.
template <class Real>
struct ntm_steering {
    Real strength, gate, keep, shift[3], sharpening;

    ENGRAM_HD explicit ntm_steering(const Real* raw)
        : strength(softplus(raw[0])),
          gate(logistic(raw[1])),
          keep(logistic(-raw[1])),
          shift{},
          sharpening(1 + softplus(raw[5])) {
        const Real best = max(raw[2], max(raw[3], raw[4]));
        Real total = 0;
        for (int o = 0; o < 3; ++o) total += shift[o] = exp(raw[2 + o] - best);
        for (Real& s : shift) s /= total;
    }
};

/// What the blocks of a row and head see of it.
template <class Real>
struct ntm_rows {
    static constexpr int lanes = 32;
    step_rows<Real> cosine, raw, previous, out;
    Real *content, *shifted, *top;  // [rows, R, N], [rows, R, N], [rows, R]; top < 0: the gate was taken for closed
    int slots, heads;
};

/// Between content and the weights of before, at slot i around the ring.
template <class Real>
ENGRAM_HD Real gated(Real gate, Real keep, const Real* content, const Real* previous, int i, int N) {
    const int at = i < 0 ? i + N : i >= N ? i - N : i;
    return gate * content[at] + keep * previous[at];
}

namespace internal {

template <class Real>
struct ntm_point {
    static constexpr int lanes = ntm_rows<Real>::lanes;
    ntm_rows<Real> all;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int N = all.slots, row = index / all.heads, head = index % all.heads;
        const Real *const x = all.cosine.row(row) + head * N, *const before = all.previous.row(row) + head * N;
        const ntm_steering<Real> steer(all.raw.row(row) + head * ntm_address_columns);
        Real *const content = all.content + std::ptrdiff_t{index} * N, *const v =
                                                                           all.shifted + std::ptrdiff_t{index} * N;
        Real* const weight = all.out.row(row) + head * N;
        const Real best = block_max(block, N, [=](int i) { return x[i]; });
        const Real total = block_sum(block, N, [=](int i) { return content[i] = exp(steer.strength * (x[i] - best)); });
        block_for(block, N, [=](int i) { content[i] /= total; });
        const auto move = [=](Real gate, Real keep, int i) {
            return steer.shift[0] * gated(gate, keep, content, before, i + 1, N) +
                   steer.shift[1] * gated(gate, keep, content, before, i, N) +
                   steer.shift[2] * gated(gate, keep, content, before, i - 1, N);
        };
        Real top = block_max(block, N, [=](int i) { return v[i] = move(steer.gate, steer.keep, i); });
        const bool closed = top < Real(1e-30);  // there the head takes the limit: content alone
        if (closed) top = block_max(block, N, [=](int i) { return v[i] = move(Real(1), Real(0), i); });
        const Real highest = top;
        const Real sum =
            block_sum(block, N, [=](int i) { return weight[i] = exp(steer.sharpening * log(v[i] / highest)); });
        block_for(block, N, [=](int i) { weight[i] /= sum; });
        Real* const kept = all.top + index;
        block_for(block, 1, [=](int) { *kept = closed ? -highest : highest; });
    }
};

template <class Real>
struct ntm_point_gradient {
    static constexpr int lanes = ntm_rows<Real>::lanes;
    ntm_rows<Real> all;
    step_rows<Real> d_out, d_cosine, d_raw, d_previous;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int N = all.slots, row = index / all.heads, head = index % all.heads, first = head * N;
        const Real *const x = all.cosine.row(row) + first, *const before = all.previous.row(row) + first;
        const Real *const raw = all.raw.row(row) + head * ntm_address_columns, *const w = all.out.row(row) + first;
        const Real *const content = all.content + std::ptrdiff_t{index} * N,
                          *const v = all.shifted + std::ptrdiff_t{index} * N, *const dw = d_out.row(row) + first;
        const ntm_steering<Real> steer(raw);
        const bool closed = all.top[index] < 0;
        const Real top = closed ? -all.top[index] : all.top[index], gate = closed ? Real(1) : steer.gate,
                   keep = closed ? Real(0) : steer.keep;
        Real *const dv = block.scratch + lanes, *const du = dv + N;

        const Real mean = block_sum(block, N, [=](int i) { return w[i] * dw[i]; });
        const Real all_shifted = block_sum(block, N, [=](int i) { return v[i]; });
        // w / v where v is zero: its limit is zero, but without any sharpening what it is elsewhere.
        const Real at_zero = steer.sharpening > Real(1) ? Real(0) : 1 / all_shifted;
        const Real d_sharpening = block_sum(block, N, [=](int i) {
            const Real slope = dw[i] - mean;
            dv[i] = steer.sharpening * (v[i] > 0 ? w[i] / v[i] : at_zero) * slope;
            return v[i] > 0 ? w[i] * slope * log(v[i] / top) : Real(0);
        });
        Real d_shift[3], d_mean = 0;
        for (int o = 0; o < 3; ++o) {
            d_shift[o] =
                block_sum(block, N, [=](int i) { return dv[i] * gated(gate, keep, content, before, i + 1 - o, N); });
            d_mean += d_shift[o] * steer.shift[o];
        }
        block_for(block, N, [=](int i) {
            du[i] = steer.shift[0] * dv[(i + N - 1) % N] + steer.shift[1] * dv[i] + steer.shift[2] * dv[(i + 1) % N];
        });
        const Real d_gate = block_sum(block, N, [=](int i) { return du[i] * (content[i] - before[i]); });
        const Real inner = block_sum(block, N, [=](int i) { return du[i] * content[i]; });
        const Real d_strength = block_sum(block, N, [=](int i) { return gate * content[i] * (du[i] - inner) * x[i]; });
        const step_rows<Real> to_cosine = d_cosine, to_previous = d_previous, to_raw = d_raw;
        block_for(block, N, [=](int i) {
            if (to_cosine.wanted()) to_cosine.put(row, first + i, steer.strength * gate * content[i] * (du[i] - inner));
            if (to_previous.wanted()) to_previous.put(row, first + i, keep * du[i]);
        });
        if (!to_raw.wanted()) return;
        const Real shifts[3] = {steer.shift[0] * (d_shift[0] - d_mean), steer.shift[1] * (d_shift[1] - d_mean),
                                steer.shift[2] * (d_shift[2] - d_mean)};
        block_for(block, 1, [=](int) {
            const int at = head * ntm_address_columns;
            to_raw.put(row, at, d_strength * logistic(raw[0]));
            to_raw.put(row, at + 1, d_gate * gate * keep);
            for (int o = 0; o < 3; ++o) to_raw.put(row, at + 2 + o, shifts[o]);
            to_raw.put(row, at + 5, d_sharpening * logistic(raw[5]));
        });
    }
};

}  // namespace internal

template <device_backend Backend>
struct ntm_address_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    ntm_address_kernel(const binder<Backend>& b, const ntm_address_shape& s)
        : device_kernel<Backend>(b), shape(s), out(b.out(0)), d_out(b.d_out(0)) {
        for (std::size_t i = 0; i < 3; ++i) {
            in[i] = b.in(i);
            d_in[i] = b.d_in(i);
        }
        const auto heads = static_cast<std::size_t>((out.step ? b.steps() : 1) * b.batch() * s.heads);
        content = numbers(heads * static_cast<std::size_t>(s.slots));
        shifted = numbers(heads * static_cast<std::size_t>(s.slots));
        top = numbers(heads);
    }
    void forward(int t, int steps) override {
        this->launch_blocks(steps, shape.heads, ntm_rows<real>::lanes, internal::ntm_point<real>{rows(t)});
    }
    void backward(int t, int steps) override {
        if (d_out)
            this->launch_blocks(
                steps, shape.heads, ntm_rows<real>::lanes + 2 * shape.slots,
                internal::ntm_point_gradient<real>{rows(t), {d_out, t}, {d_in[0], t}, {d_in[1], t}, {d_in[2], t}});
    }

private:
    using numbers = typename executor<Backend>::buffer;

    ntm_rows<real> rows(int t) {
        const std::ptrdiff_t head = std::ptrdiff_t{t} * this->batch * shape.heads;
        return {{in[0], t},
                {in[1], t},
                {in[2], t},
                {out, t},
                content.data() + head * shape.slots,
                shifted.data() + head * shape.slots,
                top.data() + head,
                shape.slots,
                shape.heads};
    }
    ntm_address_shape shape;
    operand<real> in[3], d_in[3], out, d_out;
    numbers content, shifted, top;
};

}  // namespace engram
