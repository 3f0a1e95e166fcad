#pragma once
// SPDX-License-Identifier: MIT

// Attention of R heads over L slots, and the slots' writing, as an introspection network does it (facts 4.3, errata G3,
// G4, G28). For every head
//
//   w_i = s_i / sum_j s_j over the first `valid` slots, 0 elsewhere;  s = softplus(x), or s = exp(x) (softmax)
//
// x, w [R, L], dense. Without a valid slot all weights are zero. Logits so low that softplus vanishes are weighed by
// the limit of the formula, which is softmax, so that a sum is never zero. O(R L), no allocation.

#include <algorithm>
#include <cstddef>

#include "engram/kernels/rows.hpp"

namespace engram {

enum class slot_attention_kind { softplus, softmax };

/// weight [R, L]; keeps in total [R] the sums of softplus, zero where a head was weighed by softmax.
template <class Real>
void slot_attention(const Real* x, int L, int R, int valid, slot_attention_kind kind, Real* weight, Real* total) {
    using P = pack<Real>;
    for (int r = 0; r < R; ++r, x += L, weight += L) {
        total[r] = 0;
        std::fill(weight + valid, weight + L, Real(0));
        if (valid == 0) continue;
        const auto weigh = [&](auto value) {
            P sum(0);
            for (int i = 0; i < valid; i += P::width) {
                const int count = std::min(valid - i, P::width);
                value(P::load(x + i, count)).store(weight + i, count);
                sum += P::load(weight + i, count);  // read back: lanes beyond the row hold arbitrary numbers
            }
            return sums<1>(&sum)[0];
        };
        Real sum = 0;
        if (kind == slot_attention_kind::softplus) sum = total[r] = weigh([](P v) { return softplus(v); });
        // Written so that NaN does not pass for a small sum.
        if (kind == slot_attention_kind::softmax || sum < Real(1e-30)) {
            const P top(*std::max_element(x, x + valid));
            total[r] = 0;
            sum = weigh([&](P v) { return exp(v - top); });
        }
        for (int i = 0; i < valid; ++i) weight[i] /= sum;
    }
}

/// From d_weight [R, L]: stores d_x [R, L].
template <class Real>
void slot_attention_gradient(const Real* x, int L, int R, int valid, const Real* weight, const Real* total,
                             const Real* d_weight, Real* d_x) {
    using P = pack<Real>;
    for (int r = 0; r < R; ++r, x += L, weight += L, d_weight += L, d_x += L) {
        std::fill(d_x + valid, d_x + L, Real(0));
        const P mean(dot(weight, d_weight, valid));
        const bool softmax = total[r] == Real(0);
        const P scale(softmax ? Real(0) : 1 / total[r]);
        for (int i = 0; i < valid; i += P::width) {
            const int count = std::min(valid - i, P::width);
            const P v = P::load(x + i, count), fade = exp(-abs(v));
            // sigma(x) to its last bits also where it is tiny, because the sum is as tiny there.
            const P slope = softmax ? P::load(weight + i, count) : scale * select(v < P(0), fade, P(1)) / (P(1) + fade);
            (slope * (P::load(d_weight + i, count) - mean)).store(d_x + i, count);
        }
    }
}

}  // namespace engram
