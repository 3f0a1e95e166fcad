#pragma once
// SPDX-License-Identifier: MIT

// Contrastive predictive coding over one row of a batch (facts 1.6, errata M14, M15, M22).
//
//   s_j = x_j . pred_{t,k},  pred_{t,k} = W_k^T h_t,  p = softmax over the candidates j
//   L_{t,k} = -log p_{t+k} - mean_{j != t+k} log(1 - p_j),  log(1 - p_j) = logsumexp_{i != j} s_i - logsumexp_i s_i
//   loss_t = sum_k L_{t,k} over k = 1 .. N
//
// Candidates are x_{k+1} .. x_T (counted from 1) of the same episode as t; (t, k) counts if t + k is one of them.
// Without a negative L = 0. For all j but the largest p_j <= 1/2, so 1 - p_j is safe; for the largest one the sum over
// the others is formed directly, shifted by its own maximum if need be: every score is finite in, finite out.
//
// Shapes: x [T, X], pred [T, N X], segment [T] (number of the episode, equal numbers adjacent), loss [T],
// scores [N, T, T] kept for the gradient. Strides are numbers from time step to time step. Cost: N T^2 X multiply-adds
// forward, twice that backward.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "engram/kernels/rows.hpp"

namespace engram {

/// Numbers that cpc_forward keeps in `scores`.
constexpr std::ptrdiff_t cpc_scores_size(int T, int N) {
    return std::ptrdiff_t(N) * T * T;
}

/// Numbers of scratch that cpc_backward needs.
constexpr std::ptrdiff_t cpc_workspace_size(int T) {
    return std::ptrdiff_t(T) * T;
}

/// The softmax of n scores, held so that neither p nor 1 - p is lost: `top` is the first largest score, `rest` the sum
/// of exp(s_i - s_top) over the others, and exp(s_i - shift) / others is the softmax without `top`.
template <class Real>
struct guarded_softmax {
    using P = pack<Real>;
    int top = 0;
    Real top_score, rest, total, shift, others;

    guarded_softmax(const Real* s, int n) {
        const Real largest = largest_but(s, n, -1);
        while (top < n - 1 && !(s[top] == largest)) ++top;
        top_score = shift = s[top];
        rest = others = sum_of_others(s, n, top_score);
        total = 1 + rest;
        if (n > 1 && rest < std::sqrt(std::numeric_limits<Real>::min())) {
            shift = largest_but(s, n, top);
            others = sum_of_others(s, n, shift);
        }
    }

    /// p of `count` scores.
    P probability(const Real* s, int count) const { return exp(P::load(s, count) - P(top_score)) / P(total); }
    /// Which of the scores i, i + 1, ... of n are negatives other than the largest.
    typename P::mask ordinary(int i, int n, int positive) const {
        const P lane = indices<Real>(i);
        return (lane < P(n)) & (lane != P(positive)) & (lane != P(top));
    }
    Real log_total() const { return std::log1p(rest); }
    /// log(1 - p_top)
    Real log_without_top() const { return shift - top_score + std::log(others) - log_total(); }

private:
    static Real largest_but(const Real* s, int n, int skipped) {
        const P lowest(-std::numeric_limits<Real>::infinity());
        P result = lowest;
        for (int i = 0; i < n; i += P::width) {
            const P lane = indices<Real>(i), score = P::load(s + i, std::min(P::width, n - i));
            result = max(result, select((lane < P(n)) & (lane != P(skipped)), score, lowest));
        }
        Real largest = result[0];
        for (int lane = 1; lane < P::width; ++lane) largest = std::max(largest, result[lane]);
        return largest;
    }
    Real sum_of_others(const Real* s, int n, Real by) const {
        P sum(0);
        for (int i = 0; i < n; i += P::width) {
            const P lane = indices<Real>(i), score = P::load(s + i, std::min(P::width, n - i));
            sum += select((lane < P(n)) & (lane != P(top)), exp(score - P(by)), P(0));
        }
        return sums<1>(&sum)[0];
    }
};

/// Calls body(first, last, begin, end) for each episode: valid steps t in [first, last), candidates in [begin, end).
template <class Body>
void cpc_episodes(const int* segment, int T, int k, Body body) {
    for (int first = 0, end; first < T; first = end) {
        end = first + 1;
        while (end < T && segment[end] == segment[first]) ++end;
        body(first, std::max(first, end - k), std::max(k, first), end);
    }
}

/// loss [T] and the scores, from x [T, X] and pred [T, N X].
template <class Real>
void cpc_forward(const Real* x, std::ptrdiff_t x_stride, const Real* pred, std::ptrdiff_t pred_stride,
                 const int* segment, int T, int X, int N, Real* loss, std::ptrdiff_t loss_stride, Real* scores) {
    using P = pack<Real>;
    for (int t = 0; t < T; ++t) loss[t * loss_stride] = 0;
    for (int k = 1; k <= N; ++k)
        cpc_episodes(segment, T, k, [&](int first, int last, int begin, int end) {
            if (first == last) return;
            const int n = end - begin;
            Real* block = scores + (std::ptrdiff_t(k - 1) * T + first) * T + begin;
            row_products(pred + first * pred_stride + std::ptrdiff_t(k - 1) * X, pred_stride, last - first,
                         x + begin * x_stride, x_stride, n, X, block, T);
            if (n == 1) return;
            for (int t = first; t < last; ++t) {
                const Real* s = block + std::ptrdiff_t(t - first) * T;
                const int positive = t + k - begin;
                const guarded_softmax<Real> softmax(s, n);
                P log_misses(0);
                for (int i = 0; i < n; i += P::width) {
                    const P p = softmax.probability(s + i, std::min(P::width, n - i));
                    log_misses += select(softmax.ordinary(i, n, positive), log(P(1) - p), P(0));
                }
                Real logs = sums<1>(&log_misses)[0];
                if (softmax.top != positive) logs += softmax.log_without_top();
                loss[t * loss_stride] += softmax.log_total() + (softmax.top_score - s[positive]) - logs / Real(n - 1);
            }
        });
}

/// From d_loss [T] and the scores of the forward pass: adds to d_x [T, X], stores d_pred [T, N X].
template <class Real>
void cpc_backward(const Real* x, std::ptrdiff_t x_stride, const Real* pred, std::ptrdiff_t pred_stride,
                  const int* segment, int T, int X, int N, const Real* d_loss, std::ptrdiff_t d_loss_stride,
                  const Real* scores, Real* d_x, std::ptrdiff_t d_x_stride, Real* d_pred, std::ptrdiff_t d_pred_stride,
                  Real* workspace) {
    using P = pack<Real>;
    for (int k = 1; k <= N; ++k)
        cpc_episodes(segment, T, k, [&](int first, int last, int begin, int end) {
            const std::ptrdiff_t offset = std::ptrdiff_t(k - 1) * X;
            const int n = end - begin;
            for (int t = n > 1 ? last : first; t < end; ++t)
                std::fill_n(d_pred + t * d_pred_stride + offset, X, Real(0));
            if (first == last || n <= 1) return;
            for (int t = first; t < last; ++t) {
                const Real* s = scores + (std::ptrdiff_t(k - 1) * T + t) * T + begin;
                Real* d = workspace + std::ptrdiff_t(t - first) * n;
                const int positive = t + k - begin;
                const guarded_softmax<Real> softmax(s, n);
                const int top = softmax.top;
                const Real scale = 1 / Real(n - 1);
                const Real apart = top == positive ? 0 : 1;  // the largest is a negative
                // With E = sum of p_j / (1 - p_j) over the negatives but the largest, and r the softmax without it:
                //   dL/ds_i = p_i (1 + (1 / (1 - p_i) - E + apart) / (n - 1)) - apart r_i / (n - 1)
                // less 1 for the positive; the positive and the largest lack their own 1 / (1 - p_i).
                P all_odds(0);
                for (int i = 0; i < n; i += P::width) {
                    const int count = std::min(P::width, n - i);
                    const P p = softmax.probability(s + i, count);
                    p.store(d + i, count);
                    all_odds += select(softmax.ordinary(i, n, positive), p / (P(1) - p), P(0));
                }
                const Real odds = sums<1>(&all_odds)[0];
                const Real p = d[positive];
                for (int i = 0; i < n; i += P::width) {
                    const int count = std::min(P::width, n - i);
                    const P share = P::load(d + i, count);
                    P g = share * multiply_add(P(1) / (P(1) - share) - P(odds - apart), P(scale), P(1));
                    if (apart != 0)
                        g = multiply_add(exp(P::load(s + i, count) - P(softmax.shift)), P(-scale / softmax.others), g);
                    (g * P(d_loss[t * d_loss_stride])).store(d + i, count);
                }
                const Real r = top == positive ? 0 : std::exp(s[positive] - softmax.shift) / softmax.others;
                const Real miss = top == positive ? softmax.rest / softmax.total : 1 - p;
                d[positive] = d_loss[t * d_loss_stride] * (-miss - p * scale * (odds - apart) - scale * r);
                if (top != positive) d[top] = d_loss[t * d_loss_stride] * (1 - scale * (odds - 1)) / softmax.total;
            }
            weighted_rows<false>(workspace, n, 1, last - first, x + begin * x_stride, x_stride, n,
                                 d_pred + first * d_pred_stride + offset, d_pred_stride, X);
            weighted_rows<true>(workspace, 1, n, n, pred + first * pred_stride + offset, pred_stride, last - first,
                                d_x + begin * d_x_stride, d_x_stride, X);
        });
}

}  // namespace engram
