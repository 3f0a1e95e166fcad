#pragma once
// SPDX-License-Identifier: MIT

// Contrastive predictive coding on a device (equations, and why it is guarded: kernels/cpc_scores.hpp).
//
// The scores of all pairs of steps are one batched product for each k, then a block a step (t, b) adds up its losses
// over k; backward the same block turns scores into their gradients, of which two batched products for each k make
// those of the inputs. Scores between episodes are computed and left out.

#include <engram/device/kernel.hpp>
#include <engram/operations/cpc.hpp>

namespace engram {

/// What the blocks of a CPC loss share; scores are [B, N, T, T], their gradients take their place.
template <class Real>
struct cpc_rows {
    operand<Real> reset, loss;  // loss: or its gradient
    Real* scores;
    int steps, batch, predictions;
    static constexpr int lanes = 32;

    /// Steps [first, end) of the episode of step t.
    struct episode {
        int first, end;
    };
    ENGRAM_HD episode around(int t, int b) const {
        episode e{episode_start(reset, t, b), t + 1};
        while (e.end < steps && !begins(reset, e.end, b)) ++e.end;
        return e;
    }
    ENGRAM_HD Real* row(int t, int b, int k) const {
        return scores + ((std::ptrdiff_t{b} * predictions + k - 1) * steps + t) * steps;
    }
    ENGRAM_HD Real* number(int t, int b) const { return loss.at(t) + b * loss.stride; }
};

/// The softmax of n scores s, with neither p nor 1 - p lost, as guarded_softmax has it for one row on the host.
template <class Real>
struct block_softmax {
    int top;
    Real top_score, rest, total, shift, others;

    template <class Block>
    ENGRAM_HD block_softmax(Block& block, const Real* s, int n) {
        const Real largest = block_max(block, n, [=](int i) { return s[i]; });
        const Real first = -block_max(block, n, [=](int i) { return s[i] == largest ? Real(-i) : Real(-n); });
        top = first < Real(n - 1) ? static_cast<int>(first) : n - 1;
        const int but = top;
        top_score = shift = s[top];
        rest = others = sum_but(block, s, n, but, top_score);
        total = 1 + rest;
        if (n > 1 && rest < sqrt(std::numeric_limits<Real>::min())) {
            shift =
                block_max(block, n, [=](int i) { return i == but ? -std::numeric_limits<Real>::infinity() : s[i]; });
            others = sum_but(block, s, n, but, shift);
        }
    }
    ENGRAM_HD Real probability(Real score) const { return exp(score - top_score) / total; }
    ENGRAM_HD Real log_total() const { return std::log1p(rest); }
    ENGRAM_HD Real log_without_top() const { return shift - top_score + log(others) - log_total(); }

private:
    template <class Block>
    static ENGRAM_HD Real sum_but(Block& block, const Real* s, int n, int but, Real by) {
        return block_sum(block, n, [=](int i) { return i == but ? Real(0) : exp(s[i] - by); });
    }
};

namespace internal {

template <class Real>
struct cpc_losses {
    static constexpr int lanes = cpc_rows<Real>::lanes;
    cpc_rows<Real> all;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int t = index / all.batch, b = index % all.batch;
        const auto episode = all.around(t, b);
        Real sum = 0;
        for (int k = 1; k <= all.predictions && t + k < episode.end; ++k) {
            const int begin = k > episode.first ? k : episode.first, n = episode.end - begin, positive = t + k - begin;
            if (n == 1) continue;
            const Real* const s = all.row(t, b, k) + begin;
            const block_softmax<Real> softmax(block, s, n);
            Real logs = block_sum(block, n, [=](int i) {
                return i == positive || i == softmax.top ? Real(0) : log(1 - softmax.probability(s[i]));
            });
            if (softmax.top != positive) logs += softmax.log_without_top();
            sum += softmax.log_total() + (softmax.top_score - s[positive]) - logs / Real(n - 1);
        }
        Real* const to = all.number(t, b);
        block_for(block, 1, [=](int) { *to = sum; });
    }
};

template <class Real>
struct cpc_slopes {
    static constexpr int lanes = cpc_rows<Real>::lanes;
    cpc_rows<Real> all;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int t = index / all.batch, b = index % all.batch, T = all.steps;
        const auto episode = all.around(t, b);
        const Real weight = *all.number(t, b);
        for (int k = 1; k <= all.predictions; ++k) {
            const int begin = k > episode.first ? k : episode.first, n = episode.end - begin, positive = t + k - begin;
            Real* const whole = all.row(t, b, k);
            const bool counts = t + k < episode.end && n > 1;
            block_for(block, T, [=](int i) {
                if (!counts || i < begin || i >= begin + n) whole[i] = 0;
            });
            if (!counts) continue;
            Real* const s = whole + begin;
            const block_softmax<Real> softmax(block, s, n);
            // As on the host (cpc_backward): the largest score and the positive have slopes of their own.
            const int top = softmax.top;
            const Real scale = 1 / Real(n - 1), apart = top == positive ? Real(0) : Real(1);
            const Real odds = block_sum(block, n, [=](int i) {
                const Real p = softmax.probability(s[i]);
                return i == positive || i == top ? Real(0) : p / (1 - p);
            });
            block_for(block, n, [=](int i) {
                const Real p = softmax.probability(s[i]);
                const Real r = apart != 0 ? exp(s[i] - softmax.shift) / softmax.others : Real(0);
                Real slope;
                if (i == positive)
                    slope = -(top == positive ? softmax.rest / softmax.total : 1 - p) - p * scale * (odds - apart) -
                            scale * r;
                else if (i == top)
                    slope = (1 - scale * (odds - 1)) / softmax.total;
                else
                    slope = p * (1 + (1 / (1 - p) - (odds - apart)) * scale) - scale * r;
                s[i] = weight * slope;
            });
        }
    }
};

}  // namespace internal

template <device_backend Backend>
struct cpc_kernel<Backend> final : device_kernel<Backend> {
    using real = typename Backend::real;

    cpc_kernel(const binder<Backend>& b, int N)
        : device_kernel<Backend>(b),
          predictions(N),
          x(b.in(0)),
          dx(b.d_in(0)),
          pred(b.in(1)),
          d_pred(b.d_in(1)),
          reset(b.in(2)),
          loss(b.out(0)),
          d_loss(b.d_out(0)),
          scores(static_cast<std::size_t>(b.batch() * cpc_scores_size(b.steps(), N))) {}

    void forward(int, int) override {
        const int T = this->all_steps;
        for (int k = 0; k < predictions; ++k)
            this->on->products(this->name, this->batch, {pred.data + k * x.width, pred.step}, pred.stride,
                               {x.data, x.step, true}, x.stride, false, block_of(k), T, apart(), T, T, x.width);
        this->launch_blocks(T, 1, lanes, internal::cpc_losses<real>{shared(loss)});
    }
    void backward(int, int) override {
        const int T = this->all_steps;
        this->launch_blocks(T, 1, lanes, internal::cpc_slopes<real>{shared(d_loss)});
        for (int k = 0; k < predictions; ++k) {
            const std::ptrdiff_t column = std::ptrdiff_t{k} * x.width;
            if (d_pred)
                this->on->products(this->name, this->batch, {block_of(k), T}, apart(), {x.data, x.step}, x.stride,
                                   d_pred.accumulate, d_pred.data + column, d_pred.step, d_pred.stride, T, x.width, T);
            if (dx)
                this->on->products(this->name, this->batch, {block_of(k), T, true}, apart(),
                                   {pred.data + column, pred.step}, pred.stride, dx.accumulate || k > 0, dx.data,
                                   dx.step, dx.stride, T, x.width, T);
        }
    }

private:
    static constexpr int lanes = cpc_rows<real>::lanes;

    std::ptrdiff_t apart() const { return cpc_scores_size(this->all_steps, predictions); }
    real* block_of(int k) { return scores.data() + cpc_scores_size(this->all_steps, k); }
    cpc_rows<real> shared(const operand<real>& numbers) {
        return {reset, numbers, scores.data(), this->all_steps, this->batch, predictions};
    }

    int predictions;
    operand<real> x, dx, pred, d_pred, reset, loss, d_loss;
    typename executor<Backend>::buffer scores;
};

}  // namespace engram
