#pragma once
// SPDX-License-Identifier: MIT

// Causal self-attention over an unroll as an operation, and the position of a step in its episode (facts 3.6, ours).
//
// A step sees itself and the earlier steps of its own episode in the unroll; what came before the unroll is not there.
// Each batch row is its own, so the operation may be sharded. It stands outside scans.

#include <engram/kernels/attention.hpp>
#include <engram/operations/episodes.hpp>
#include <engram/operations/points.hpp>

namespace engram {

struct attention_settings {
    int heads = 1;
    bool rotary = false;  // turn queries and keys by their positions
    int block = 256;      // keys met at a time; changes nothing but rounding
};

template <class Backend>
struct attention_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    attention_kernel(const binder<Backend>& b, const attention_settings& s)
        : steps(b.steps()),
          batch(b.batch()),
          heads(s.heads),
          width(b.in(0).width / s.heads),
          q(b.in(0)),
          k(b.in(1)),
          v(b.in(2)),
          reset(b.in(3)),
          d_q(b.d_in(0)),
          d_k(b.d_in(1)),
          d_v(b.d_in(2)),
          y(b.out(0)),
          d_y(b.d_out(0)),
          head({steps, width, s.rotary, s.block}, b.needs_backward()),
          log_sum(static_cast<std::size_t>(steps) * static_cast<std::size_t>(batch * heads)),
          segment(static_cast<std::size_t>(steps)) {}

    void forward(int, int) override {
        for (int b = 0; b < batch; ++b) {
            number_episodes(reset, b, steps, segment.data());
            for (int h = 0; h < heads; ++h)
                head.forward(at(q, b, h), q.step, at(k, b, h), k.step, at(v, b, h), v.step, segment.data(), at(y, b, h),
                             y.step, log_sums(b, h));
        }
    }
    void backward(int, int) override {
        if (!d_y) return;
        for (int b = 0; b < batch; ++b) {
            number_episodes(reset, b, steps, segment.data());
            for (int h = 0; h < heads; ++h)
                head.backward(at(q, b, h), q.step, at(k, b, h), k.step, at(v, b, h), v.step, segment.data(),
                              at(y, b, h), y.step, log_sums(b, h), at(d_y, b, h), d_y.step, at(d_q, b, h), d_q.step,
                              d_q.accumulate, at(d_k, b, h), d_k.step, d_k.accumulate, at(d_v, b, h), d_v.step,
                              d_v.accumulate);
        }
    }

private:
    real* at(const operand<real>& x, int b, int h) const { return x ? x.data + b * x.stride + h * width : nullptr; }
    real* log_sums(int b, int h) { return log_sum.data() + std::ptrdiff_t{b * heads + h} * steps; }

    int steps, batch, heads, width;
    operand<real> q, k, v, reset, d_q, d_k, d_v, y, d_y;
    attention_head<real> head;
    aligned_vector<real> log_sum;
    std::vector<int> segment;
};

/// [T, B, F] from queries, keys and values [T, B, F], each head F / heads columns; `reset` [T, B, 1] marks the first
/// step of an episode, across which nothing is seen.
template <class Backend>
var<Backend> attention(const std::string& name, const var<Backend>& q, const var<Backend>& k, const var<Backend>& v,
                       const var<Backend>& reset, const attention_settings& s) {
    graph<Backend>& g = *q.owner;
    require(q.width == k.width && q.width == v.width, g.full_name(name), ": queries, keys and values have ", q.width,
            ", ", k.width, " and ", v.width, " columns; expected equal widths");
    require(s.heads > 0 && q.width % s.heads == 0, g.full_name(name), ": ", q.width, " columns do not divide into ",
            s.heads, " heads");
    require(g.common_rows({}) == extent::batch, g.full_name(name),
            ": a step of a scan does not see the other steps; attend outside of it");
    auto op = make_operation<attention_kernel>(g, name, {q, k, v, internal::reset_column(name, reset)}, s);
    op->row_wise = false;
    return g.add(std::move(op), {q.width}, extent::sequence)[0];
}

/// The steps of a batch row.
template <class Real>
struct counted_steps {
    operand<Real> reset, out;
    int steps, limit;
    int* alarm;
    ENGRAM_HD void operator()(std::ptrdiff_t b, int) const {
        for (int t = 0, n = 0; t < steps; ++t, ++n) {
            if (begins(reset, t, b)) n = 0;
            if (n >= limit) *alarm = 1;
            out.at(t)[b * out.stride] = static_cast<Real>(n);
        }
    }
};

template <class Backend>
struct episode_step_kernel final : point_kernel<Backend> {
    using real = typename Backend::real;

    episode_step_kernel(const binder<Backend>& b, int limit)
        : point_kernel<Backend>(b),
          row{b.in(0), b.out(0), b.steps(), limit,
              this->alarm(b, message("an episode has more than the ", limit, " steps that have a position"))} {}
    void forward(int, int) override { this->each(this->batch, 1, row); }
    counted_steps<real> row;
};

/// [T, B, 1]: steps since the episode began, or since the unroll did; `limit` or more throws.
template <class Backend>
var<Backend> episode_step(const std::string& name, const var<Backend>& reset, int limit) {
    graph<Backend>& g = *reset.owner;
    require(g.common_rows({}) == extent::batch, g.full_name(name), ": counts steps outside of scans only");
    auto op = make_operation<episode_step_kernel>(g, name, {internal::reset_column(name, reset)}, limit);
    op->row_wise = false;
    return stop_gradient(g.add(std::move(op), {1}, extent::sequence)[0]);
}

}  // namespace engram
