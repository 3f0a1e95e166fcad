#pragma once
// SPDX-License-Identifier: MIT

// Where a head of a Neural Turing Machine points: by content, then by location (facts 4.4). One head, N slots, indices
// modulo N:
//
//   raw -> beta = softplus, g = sigma, s = softmax over the offsets -1, 0, +1, gamma = 1 + softplus
//   content    c_i = exp(beta cos_i) / sum_j exp(beta cos_j)
//   gate       u_i = g c_i + (1 - g) previous_i
//   shift      v_i = s_-1 u_{i+1} + s_0 u_i + s_+1 u_{i-1}
//   sharpen    w_i = v_i^gamma / sum_j v_j^gamma
//
// Shapes: cosine, previous, content, shifted, weight [R, N], raw [R, 6] in the order of the first line, all dense.
//
// Always a distribution. Powers are taken of v / max v in logarithms, so the largest is one and no gamma makes the sum
// vanish; the 1e-16 that the facts add to the sum would be lost in rounding beside it. v itself vanishes only where a
// closed gate keeps weights that were zero; there the head takes the limit of a closing gate, which is content alone.
//
// All cost O(R N) with two exponentials and one logarithm a slot, and allocate nothing.

#include <algorithm>
#include <cstddef>

#include "engram/kernels/rows.hpp"

namespace engram {

/// Numbers that steer a head: strength, gate, three shifts, sharpening.
inline constexpr int ntm_address_columns = 6;

/// Numbers of scratch that a head of N slots needs.
constexpr int ntm_address_scratch(int N) {
    return 2 * (N + 2);
}

/// One head: its parameters behind their activations, which the gradient needs again, and what it does.
template <class Real>
struct ntm_head {
    Real strength, gate, keep, shift[3], sharpening;
    Real top;  // max v

    /// weight [N]; keeps content and shifted [N] for the gradient.
    void point(const Real* cosine, const Real* raw, const Real* previous, int N, Real* weight, Real* content,
               Real* shifted, Real* scratch) {
        strength = softplus(raw[0]);
        gate = logistic(raw[1]);
        keep = logistic(-raw[1]);
        const Real total = exponentials(raw + 2, Real(1), 3, shift);
        for (Real& s : shift) s /= total;
        sharpening = 1 + softplus(raw[5]);

        const lanes scale(1 / exponentials(cosine, strength, N, content));
        in_packs(N, [&](int i, int count) { put(scale * get(content + i, count), content + i, count); });
        shift_gated(content, previous, N, shifted, scratch);
        if (top < Real(1e-30)) {
            gate = 1;
            keep = 0;
            shift_gated(content, previous, N, shifted, scratch);
        }
        lanes sum(0);
        in_packs(N, [&](int i, int count) {
            // The logarithm of zero is minus infinity, whose exponential is zero.
            put(exp(lanes(sharpening) * log(get(shifted + i, count) / lanes(top))), weight + i, count);
            sum += get(weight + i, count);
        });
        const lanes normal(1 / sums<1>(&sum)[0]);
        in_packs(N, [&](int i, int count) { put(normal * get(weight + i, count), weight + i, count); });
    }

    /// From d_weight [N]: stores d_cosine [N], d_raw [6] and d_previous [N].
    void gradient(const Real* cosine, const Real* raw, const Real* previous, int N, const Real* weight,
                  const Real* content, const Real* shifted, const Real* d_weight, Real* d_cosine, Real* d_raw,
                  Real* d_previous, Real* scratch) const {
        Real *u = scratch, *dv = scratch + N + 2;
        gate_ring(content, previous, N, u);
        const lanes mean(dot(weight, d_weight, N)), at_zero(slope_at_zero(shifted, N));
        lanes d_sharpening(0);
        in_packs(N, [&](int i, int count) {
            const lanes v = get(shifted + i, count), w = get(weight + i, count);
            const lanes slope = get(d_weight + i, count) - mean;
            const auto positive = v > lanes(0);
            d_sharpening = multiply_add(w * slope, select(positive, log(v / lanes(top)), lanes(0)), d_sharpening);
            put(lanes(sharpening) * select(positive, w / v, at_zero) * slope, dv + 1 + i, count);
        });
        close_ring(dv, N);

        Real d_shift[3], d_mean = 0;
        for (int o = 0; o < 3; ++o) {
            d_shift[o] = dot(dv + 1, u + 2 - o, N);
            d_mean += d_shift[o] * shift[o];
        }
        // From here on du stands where u did.
        lanes d_gate(0), inner(0), d_strength(0);
        in_packs(N, [&](int i, int count) {
            const lanes du = shift_sum(get(dv + i, count), get(dv + i + 1, count), get(dv + i + 2, count));
            const lanes c = get(content + i, count);
            d_gate = multiply_add(du, c - get(previous + i, count), d_gate);
            inner = multiply_add(du, c, inner);
            put(du, u + i, count);
            put(lanes(keep) * du, d_previous + i, count);
        });
        const lanes middle(sums<1>(&inner)[0]);
        in_packs(N, [&](int i, int count) {
            const lanes dx = lanes(gate) * get(content + i, count) * (get(u + i, count) - middle);
            d_strength = multiply_add(dx, get(cosine + i, count), d_strength);
            put(lanes(strength) * dx, d_cosine + i, count);
        });
        d_raw[0] = sums<1>(&d_strength)[0] * logistic(raw[0]);
        d_raw[1] = sums<1>(&d_gate)[0] * gate * keep;
        for (int o = 0; o < 3; ++o) d_raw[2 + o] = shift[o] * (d_shift[o] - d_mean);
        d_raw[5] = sums<1>(&d_sharpening)[0] * logistic(raw[5]);
    }

private:
    using lanes = pack<Real>;

    template <class Body>
    static void in_packs(int n, Body&& body) {
        for (int i = 0; i < n; i += lanes::width) body(i, std::min(n - i, lanes::width));
    }
    // Whole packs do not take the slow way of a target without masks.
    static lanes get(const Real* from, int count) {
        return count == lanes::width ? lanes::load(from) : lanes::load(from, count);
    }
    static void put(lanes x, Real* to, int count) { count == lanes::width ? x.store(to) : x.store(to, count); }

    /// The largest of n numbers; NaN if one is.
    static Real largest(const Real* x, int n) {
        lanes best(x[0]);
        in_packs(n, [&](int i, int count) {
            best = max(best, select(indices<Real>(0) < lanes(count), get(x + i, count), lanes(x[0])));
        });
        Real all[lanes::width];
        best.store(all);
        for (int k = 1; k < lanes::width; ++k) all[0] = max(all[0], all[k]);
        return all[0];
    }
    /// e_i = exp(beta (x_i - max x)); returns their sum.
    static Real exponentials(const Real* x, Real beta, int n, Real* e) {
        const lanes best(largest(x, n));
        lanes sum(0);
        in_packs(n, [&](int i, int count) {
            put(exp(lanes(beta) * (get(x + i, count) - best)), e + i, count);
            sum += get(e + i, count);  // read back: lanes beyond the row are ones of zero's exponential
        });
        return sums<1>(&sum)[0];
    }
    /// Numbers x[1] to x[n] get their neighbours around the ring.
    static void close_ring(Real* x, int n) {
        x[0] = x[n];
        x[n + 1] = x[1];
    }
    lanes shift_sum(lanes left, lanes stay, lanes right) const {
        return multiply_add(lanes(shift[0]), left, multiply_add(lanes(shift[1]), stay, lanes(shift[2]) * right));
    }
    void gate_ring(const Real* content, const Real* previous, int N, Real* u) const {
        in_packs(N, [&](int i, int count) {
            put(multiply_add(lanes(gate), get(content + i, count), lanes(keep) * get(previous + i, count)), u + 1 + i,
                count);
        });
        close_ring(u, N);
    }
    void shift_gated(const Real* content, const Real* previous, int N, Real* shifted, Real* u) {
        gate_ring(content, previous, N, u);
        in_packs(N, [&](int i, int count) {
            put(shift_sum(get(u + i + 2, count), get(u + i + 1, count), get(u + i, count)), shifted + i, count);
        });
        top = largest(shifted, N);
    }
    /// w_i / v_i where v_i = 0: its limit is zero, but without any sharpening what it is elsewhere.
    Real slope_at_zero(const Real* shifted, int N) const {
        if (sharpening > Real(1)) return 0;
        lanes sum(0);
        in_packs(N, [&](int i, int count) { sum += get(shifted + i, count); });
        return 1 / sums<1>(&sum)[0];
    }
};

/// weight [R, N]; keeps content and shifted [R, N] and the heads [R] for the gradient. `scratch` has
/// ntm_address_scratch(N) numbers.
template <class Real>
void ntm_address(const Real* cosine, const Real* raw, const Real* previous, int N, int R, Real* weight, Real* content,
                 Real* shifted, ntm_head<Real>* heads, Real* scratch) {
    for (std::ptrdiff_t r = 0, at = 0; r < R; ++r, at += N)
        heads[r].point(cosine + at, raw + r * ntm_address_columns, previous + at, N, weight + at, content + at,
                       shifted + at, scratch);
}

/// From d_weight [R, N]: stores d_cosine [R, N], d_raw [R, 6] and d_previous [R, N].
template <class Real>
void ntm_address_gradient(const Real* cosine, const Real* raw, const Real* previous, int N, int R, const Real* weight,
                          const Real* content, const Real* shifted, const ntm_head<Real>* heads, const Real* d_weight,
                          Real* d_cosine, Real* d_raw, Real* d_previous, Real* scratch) {
    for (std::ptrdiff_t r = 0, at = 0; r < R; ++r, at += N)
        heads[r].gradient(cosine + at, raw + r * ntm_address_columns, previous + at, N, weight + at, content + at,
                          shifted + at, d_weight + at, d_cosine + at, d_raw + r * ntm_address_columns, d_previous + at,
                          scratch);
}

}  // namespace engram
