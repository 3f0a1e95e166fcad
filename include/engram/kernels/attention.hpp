#pragma once
// SPDX-License-Identifier: MIT

// Causal softmax attention of one head over one row of a batch, by blocks (facts 3.6: the layout is ours).
//
//   s_ti = q_t . k_i / sqrt(d) over the steps i <= t of the episode of t,  p_t = softmax(s_t),  y_t = sum_i p_ti v_i
//   dv_i = sum_t p_ti dy_t,  ds_ti = p_ti (dy_t . v_i - dy_t . y_t),  dq_t = sum_i ds_ti k_i / sqrt(d),  dk_i likewise
//
// No T x T matrix is ever held: the forward pass meets the keys block by block with a running maximum and sum, the
// backward pass forms each block of scores again from log_sum_t = log sum_i exp(s_ti). With `rotary`, q and k are first
// turned by the angle n 10000^(-2f/d) in the plane of their columns (f, f + d/2), n counting the steps of the episode
// within the unroll, so that s_ti knows t - i and nothing else of time.
//
// Blocks start with an episode, and what y_t is made of, in which order, depends on the steps of its episode up to t
// alone: an episode in the middle of an unroll has the bits of a fresh one, and no later step changes one.
//
// Shapes: q, k, v, y [T, d] of one head, with numbers from step to step as strides; segment [T] (number of the episode,
// equal numbers adjacent); log_sum [T]. Cost: 2 d multiply-adds a score forward, 5 d backward, T^2 / 2 scores. Memory:
// 10 T d numbers, padded, and two blocks. No call but the constructor allocates.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "engram/core/aligned.hpp"
#include "engram/core/error.hpp"
#include "engram/kernels/product.hpp"
#include "engram/kernels/rows.hpp"

namespace engram {

/// out[rows, n] (=|+=) a b, where a_ik lies at a + i a_row + k a_term and b [terms, n] has rows that may be read up to
/// the next multiple of a pack. Every element is one chain over the terms.
template <class Real>
void dense_product(const Real* a, std::ptrdiff_t a_row, std::ptrdiff_t a_term, int rows, const Real* b,
                   std::ptrdiff_t b_stride, int terms, Real* out, std::ptrdiff_t out_stride, int n, bool accumulate) {
    constexpr int width = pack<Real>::width, panel = product_tile_vectors * width;
    for (int column = 0; column < n; column += panel) {
        const int columns = std::min(panel, n - column);
        const auto tiles = [&](auto vectors) __attribute__((always_inline)) {
            for_row_tiles(
                0, rows, [&](int row, auto tile_rows) __attribute__((always_inline)) {
                    product_tile<Real, tile_rows(), vectors()> tile;
                    Real* to = out + row * out_stride + column;
                    tile.start(nullptr, to, out_stride, accumulate, columns);
                    tile.add(a + row * a_row, a_row, a_term, b + column, b_stride, terms);
                    tile.finish(to, out_stride, columns);
                });
        };
        if (columns > width)
            tiles(std::integral_constant<int, product_tile_vectors>{});
        else
            tiles(std::integral_constant<int, 1>{});
    }
}

/// Sizes of one head: T steps of d numbers, keys met `block` at a time (by as many queries, or 64 of them).
struct attention_shape {
    int steps, width;
    bool rotary = false;
    int block = 256;
};

/// One head of attention with its scratch memory; serves the rows of a batch and the heads one after another.
template <class Real>
class attention_head {
public:
    using P = pack<Real>;

    attention_head(const attention_shape& s, bool gradients)
        : shape_(s),
          wide_(padded(s.width)),
          key_stride_(odd_lines(s.steps)),
          score_stride_(padded(s.block)),
          queries_at_once_(std::min(s.block, 64)) {
        require(s.steps > 0 && s.width > 0 && s.block > 0, "attention: ", s.steps, " steps of ", s.width,
                " numbers in blocks of ", s.block, " leave nothing to attend to");
        require(!s.rotary || s.width % 2 == 0, "attention: rotary positions turn pairs of columns, ", s.width,
                " do not make pairs");
        const auto rows = static_cast<std::size_t>(wide_ * s.steps);
        const auto turned = static_cast<std::size_t>(key_stride_ * s.width);
        const auto block = static_cast<std::size_t>(queries_at_once_);
        for (auto* x : {&queries_, &keys_, &values_}) x->resize(rows);
        keys_across_.resize(turned);
        scores_.resize(block * static_cast<std::size_t>(score_stride_));
        sums_.resize(block * static_cast<std::size_t>(wide_));
        top_.resize(block);
        total_.resize(block);
        if (gradients) {
            for (auto* x : {&d_out_, &d_queries_, &d_keys_, &d_values_}) x->resize(rows);
            values_across_.resize(turned);
            slopes_.resize(scores_.size());
            dots_.resize(static_cast<std::size_t>(s.steps));
        }
        if (s.rotary) {
            const int half = s.width / 2;
            for (auto* x : {&cosine_, &sine_}) x->resize(static_cast<std::size_t>(s.steps * half));
            for (int n = 0; n < s.steps; ++n)
                for (int f = 0; f < half; ++f) {
                    const double angle = n * std::pow(10000.0, -2.0 * f / s.width);
                    cosine_[static_cast<std::size_t>(n * half + f)] = static_cast<Real>(std::cos(angle));
                    sine_[static_cast<std::size_t>(n * half + f)] = static_cast<Real>(std::sin(angle));
                }
        }
    }

    /// Bytes of scratch memory: linear in T.
    std::size_t memory() const {
        std::size_t count = 0;
        for (const auto* x : {&queries_, &keys_, &values_, &keys_across_, &values_across_, &scores_, &slopes_, &sums_,
                              &top_, &total_, &d_out_, &d_queries_, &d_keys_, &d_values_, &dots_, &cosine_, &sine_})
            count += x->size();
        return count * sizeof(Real);
    }

    /// y and log_sum.
    void forward(const Real* q, std::ptrdiff_t q_step, const Real* k, std::ptrdiff_t k_step, const Real* v,
                 std::ptrdiff_t v_step, const int* segment, Real* y, std::ptrdiff_t y_step, Real* log_sum) {
        load(q, q_step, k, k_step, v, v_step, segment);
        each_block(segment, [&](int first, int begin, int rows) {
            std::fill(sums_.begin(), sums_.end(), Real(0));
            std::fill(top_.begin(), top_.end(), -std::numeric_limits<Real>::infinity());
            std::fill(total_.begin(), total_.end(), Real(0));
            for (int at = first; at < begin + rows; at += shape_.block) {
                const int count = std::min(shape_.block, begin + rows - at);
                score(begin, rows, at, count);
                for (int r = 0; r < rows; ++r) soften(r, std::clamp(begin + r - at + 1, 0, count), count);
                dense_product(scores_.data(), score_stride_, 1, rows, row(values_, at), wide_, count, sums_.data(),
                              wide_, shape_.width, true);
            }
            for (int r = 0; r < rows; ++r) {
                const auto i = static_cast<std::size_t>(r);
                const Real* from = sums_.data() + r * wide_;
                Real* to = y + (begin + r) * y_step;
                for (int f = 0; f < shape_.width; ++f) to[f] = from[f] / total_[i];
                log_sum[begin + r] = top_[i] + std::log(total_[i]);
            }
        });
    }

    /// From y and log_sum of the forward pass and d_y: stores d_q, d_k, d_v or adds to them; a null one is left out.
    void backward(const Real* q, std::ptrdiff_t q_step, const Real* k, std::ptrdiff_t k_step, const Real* v,
                  std::ptrdiff_t v_step, const int* segment, const Real* y, std::ptrdiff_t y_step, const Real* log_sum,
                  const Real* d_y, std::ptrdiff_t d_y_step, Real* d_q, std::ptrdiff_t d_q_step, bool add_q, Real* d_k,
                  std::ptrdiff_t d_k_step, bool add_k, Real* d_v, std::ptrdiff_t d_v_step, bool add_v) {
        load(q, q_step, k, k_step, v, v_step, segment);
        across(values_.data(), values_across_.data());
        gather(d_y, d_y_step, d_out_.data());
        for (auto* x : {&d_queries_, &d_keys_, &d_values_}) std::fill(x->begin(), x->end(), Real(0));
        for (int t = 0; t < shape_.steps; ++t)
            dots_[static_cast<std::size_t>(t)] = dot(d_y + t * d_y_step, y + t * y_step, shape_.width);
        each_block(segment, [&](int first, int begin, int rows) {
            for (int at = first; at < begin + rows; at += shape_.block) {
                const int count = std::min(shape_.block, begin + rows - at);
                score(begin, rows, at, count);
                dense_product(row(d_out_, begin), wide_, 1, rows, values_across_.data() + at, key_stride_, shape_.width,
                              slopes_.data(), score_stride_, count, false);
                for (int r = 0; r < rows; ++r)
                    differentiate(r, std::clamp(begin + r - at + 1, 0, count), count, log_sum[begin + r],
                                  dots_[static_cast<std::size_t>(begin + r)]);
                dense_product(scores_.data(), 1, score_stride_, count, row(d_out_, begin), wide_, rows,
                              row(d_values_, at), wide_, shape_.width, true);
                dense_product(slopes_.data(), 1, score_stride_, count, row(queries_, begin), wide_, rows,
                              row(d_keys_, at), wide_, shape_.width, true);
                dense_product(slopes_.data(), score_stride_, 1, rows, row(keys_, at), wide_, count,
                              row(d_queries_, begin), wide_, shape_.width, true);
            }
        });
        turn(d_queries_, d_queries_.data(), wide_, segment, scale(), -1);
        turn(d_keys_, d_keys_.data(), wide_, segment, 1, -1);
        scatter(d_queries_.data(), d_q, d_q_step, add_q);
        scatter(d_keys_.data(), d_k, d_k_step, add_k);
        scatter(d_values_.data(), d_v, d_v_step, add_v);
    }

private:
    static std::ptrdiff_t padded(int n) { return (n + P::width - 1) / P::width * P::width; }
    // Rows of keys lie an odd number of cache lines apart, or they would push each other out of the cache.
    static std::ptrdiff_t odd_lines(int n) {
        constexpr std::ptrdiff_t line = 64 / static_cast<int>(sizeof(Real));
        return ((n + 2 * P::width + line - 1) / line | 1) * line;
    }
    Real scale() const { return static_cast<Real>(1 / std::sqrt(static_cast<double>(shape_.width))); }
    template <class Rows>
    auto* row(Rows& of, int t) {
        return of.data() + t * wide_;
    }

    /// body(first step of the episode, first query, queries)
    template <class Body>
    void each_block(const int* segment, Body body) const {
        for (int first = 0, end; first < shape_.steps; first = end) {
            end = first + 1;
            while (end < shape_.steps && segment[end] == segment[first]) ++end;
            for (int begin = first; begin < end; begin += queries_at_once_)
                body(first, begin, std::min(queries_at_once_, end - begin));
        }
    }

    void gather(const Real* x, std::ptrdiff_t step, Real* to) const {
        for (int t = 0; t < shape_.steps; ++t) std::copy_n(x + t * step, shape_.width, to + t * wide_);
    }
    void across(const Real* dense, Real* to) const {
        for (int t = 0; t < shape_.steps; ++t)
            for (int f = 0; f < shape_.width; ++f) to[f * key_stride_ + t] = dense[t * wide_ + f];
    }
    void scatter(const Real* from, Real* to, std::ptrdiff_t step, bool add) const {
        if (!to) return;
        for (int t = 0; t < shape_.steps; ++t)
            for (int f = 0; f < shape_.width; ++f) {
                Real& x = to[t * step + f];
                x = add ? x + from[t * wide_ + f] : from[t * wide_ + f];
            }
    }
    void load(const Real* q, std::ptrdiff_t q_step, const Real* k, std::ptrdiff_t k_step, const Real* v,
              std::ptrdiff_t v_step, const int* segment) {
        turn(queries_, q, q_step, segment, scale(), 1);
        turn(keys_, k, k_step, segment, 1, 1);
        across(keys_.data(), keys_across_.data());
        gather(v, v_step, values_.data());
    }
    /// Rows of x, turned forwards or backwards by their positions, times a number.
    void turn(aligned_vector<Real>& to, const Real* x, std::ptrdiff_t step, const int* segment, Real by,
              Real direction) {
        const int half = shape_.width / 2;
        for (int t = 0, first = 0; t < shape_.steps; ++t) {
            if (t > 0 && segment[t] != segment[t - 1]) first = t;
            const Real* from = x + t * step;
            Real* place = row(to, t);
            if (!shape_.rotary) {
                for (int f = 0; f < shape_.width; ++f) place[f] = by * from[f];
                continue;
            }
            const Real *c = cosine_.data() + (t - first) * half, *s = sine_.data() + (t - first) * half;
            for (int f = 0; f < half; ++f) {
                const Real left = from[f], right = from[f + half], across = direction * s[f];
                place[f] = by * (left * c[f] - right * across);
                place[f + half] = by * (left * across + right * c[f]);
            }
        }
    }

    /// Scores of `rows` queries from `begin` on against `count` keys from `at` on.
    void score(int begin, int rows, int at, int count) {
        dense_product(row(queries_, begin), wide_, 1, rows, keys_across_.data() + at, key_stride_, shape_.width,
                      scores_.data(), score_stride_, count, false);
    }
    /// Row r of scores becomes exp(s - top) over its first n keys and zero beyond, with top the largest score so far;
    /// what was summed under another top follows it.
    void soften(int r, int n, int count) {
        Real* s = scores_.data() + r * score_stride_;
        Real& top = top_[static_cast<std::size_t>(r)];
        Real& total = total_[static_cast<std::size_t>(r)];
        // Masks only where the last pack of keys is not full.
        const int whole = n / P::width * P::width;
        const P lowest(-std::numeric_limits<Real>::infinity());
        P largest(top);
        for (int i = 0; i < whole; i += P::width) largest = max(largest, P::load(s + i));
        if (whole < n) largest = max(largest, select(indices<Real>(whole) < P(n), P::load(s + whole), lowest));
        Real lanes[P::width];
        largest.store(lanes);
        for (int half = P::width / 2; half > 0; half /= 2)
            for (int i = 0; i < half; ++i) lanes[i] = max(lanes[i], lanes[i + half]);
        const Real next = lanes[0];
        if (!(next == top)) {
            const Real kept = top == lowest[0] ? Real(0) : std::exp(top - next);
            Real* sum = sums_.data() + r * wide_;
            for (int f = 0; f < shape_.width; ++f) sum[f] *= kept;
            total *= kept;
            top = next;
        }
        P sum(0);
        int i = 0;
        for (; i < whole; i += P::width) {
            const P p = exp(P::load(s + i) - P(top));
            p.store(s + i);
            sum += p;
        }
        for (; i < count; i += P::width) {
            const P p = select(indices<Real>(i) < P(n), exp(P::load(s + i) - P(top)), P(0));
            p.store(s + i);
            sum += p;
        }
        total += sums<1>(&sum)[0];
    }
    /// Row r of scores becomes p over its first n keys, row r of slopes p (slope - dot); zero beyond.
    void differentiate(int r, int n, int count, Real log_sum, Real dot) {
        Real *s = scores_.data() + r * score_stride_, *d = slopes_.data() + r * score_stride_;
        int i = 0;
        for (; i + P::width <= n; i += P::width) {
            const P p = exp(P::load(s + i) - P(log_sum));
            p.store(s + i);
            (p * (P::load(d + i) - P(dot))).store(d + i);
        }
        for (; i < count; i += P::width) {
            const auto met = indices<Real>(i) < P(n);
            const P p = select(met, exp(P::load(s + i) - P(log_sum)), P(0));
            p.store(s + i);
            select(met, p * (P::load(d + i) - P(dot)), P(0)).store(d + i);
        }
    }

    attention_shape shape_;
    std::ptrdiff_t wide_, key_stride_, score_stride_;
    int queries_at_once_;
    aligned_vector<Real> queries_, keys_, values_, d_out_, d_queries_, d_keys_, d_values_;  // [T, d], rows padded
    aligned_vector<Real> keys_across_, values_across_;                                      // [d, T]
    aligned_vector<Real> scores_, slopes_;                                                  // [block, block]
    aligned_vector<Real> sums_, top_, total_;                                               // of a block of queries
    aligned_vector<Real> dots_, cosine_, sine_;
};

}  // namespace engram
