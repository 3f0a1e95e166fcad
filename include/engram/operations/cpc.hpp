#pragma once
// SPDX-License-Identifier: MIT

// Contrastive predictive coding over an unroll as an operation (facts 1.6, errata M14, M15).
//
// Each batch row is scored by itself (negatives come from the same trajectory), so the operation may be sharded.

#include <engram/graph/simple_operation.hpp>
#include <engram/kernels/cpc_scores.hpp>
#include <engram/operations/episodes.hpp>

namespace engram {

template <class Backend>
struct cpc_kernel final : kernel<Backend> {
    using real = typename Backend::real;

    cpc_kernel(const binder<Backend>& b, int N)
        : steps(b.steps()),
          batch(b.batch()),
          predictions(N),
          x(b.in(0)),
          dx(b.d_in(0)),
          pred(b.in(1)),
          d_pred(b.d_in(1)),
          reset(b.in(2)),
          loss(b.out(0)),
          d_loss(b.d_out(0)),
          segment(static_cast<std::size_t>(b.batch() * b.steps())),
          scores(static_cast<std::size_t>(cpc_scores_size(b.steps(), N)) * static_cast<std::size_t>(b.batch())),
          workspace(static_cast<std::size_t>(cpc_workspace_size(b.steps()))),
          unwanted_x(static_cast<std::size_t>(b.steps() * x.width)),
          unwanted_pred(static_cast<std::size_t>(b.steps() * pred.width)) {}

    void forward(int, int) override {
        for (int b = 0; b < batch; ++b) {
            number_episodes(reset, b, steps, segments(b));
            cpc_forward(x.data + b * x.stride, x.step, pred.data + b * pred.stride, pred.step, segments(b), steps,
                        x.width, predictions, loss.data + b * loss.stride, loss.step, score(b));
        }
    }
    void backward(int, int) override {
        for (int b = 0; b < batch; ++b) {
            // The kernel adds to d_x and stores d_pred.
            const bool own_x = static_cast<bool>(dx), own_pred = d_pred && !d_pred.accumulate;
            if (own_x && !dx.accumulate)
                for (int t = 0; t < steps; ++t) std::fill_n(dx.at(t) + b * dx.stride, x.width, real(0));
            cpc_backward(x.data + b * x.stride, x.step, pred.data + b * pred.stride, pred.step, segments(b), steps,
                         x.width, predictions, d_loss.data + b * d_loss.stride, d_loss.step, score(b),
                         own_x ? dx.data + b * dx.stride : unwanted_x.data(), own_x ? dx.step : x.width,
                         own_pred ? d_pred.data + b * d_pred.stride : unwanted_pred.data(),
                         own_pred ? d_pred.step : pred.width, workspace.data());
            if (d_pred && !own_pred)
                for (int t = 0; t < steps; ++t)
                    for (int f = 0; f < pred.width; ++f)
                        (d_pred.at(t) + b * d_pred.stride)[f] +=
                            unwanted_pred[static_cast<std::size_t>(t * pred.width + f)];
        }
    }

private:
    int* segments(int b) { return segment.data() + b * steps; }
    real* score(int b) { return scores.data() + cpc_scores_size(steps, predictions) * b; }

    int steps, batch, predictions;
    operand<real> x, dx, pred, d_pred, reset, loss, d_loss;
    std::vector<int> segment;
    aligned_vector<real> scores, workspace, unwanted_x, unwanted_pred;
};

/// Loss [T, B, 1] of predicting x [T, B, X] up to N steps ahead by predictions [T, B, N * X]; `reset` [T, B, 1] marks
/// the first step of an episode, across which nothing is predicted.
template <class Backend>
var<Backend> cpc_loss(const std::string& name, const var<Backend>& x, const var<Backend>& predictions,
                      const var<Backend>& reset) {
    graph<Backend>& g = *x.owner;
    require(predictions.width % x.width == 0, g.full_name(name), ": predictions have ", predictions.width,
            " columns, which is no multiple of the ", x.width, " that are predicted");
    auto op = make_operation<cpc_kernel>(g, name, {x, predictions, internal::reset_column(name, reset)},
                                         predictions.width / x.width);
    op->row_wise = false;
    return g.add(std::move(op), {1}, extent::sequence)[0];
}

}  // namespace engram
