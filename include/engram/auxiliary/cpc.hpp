#pragma once
// SPDX-License-Identifier: MIT

// Contrastive predictive coding as auxiliary loss (facts 1.6, errata M14, M15): h_t must tell x_{t+k} from the other
// encodings of its own trajectory, k = 1..N.
//
//   score s_{t,k,j} = x_j . W_k^T h_t;  loss = weight * sum_{t,k} [ -log p_{t+k} - mean_{j != t+k} log(1 - p_j) ]
//
// The gradient reaches x and h. Predictions stop at episode boundaries inside the unroll. Steps beyond T - 1 have no
// target, so N may exceed the unroll. Cost: N T^2 X multiply-adds a batch row.

#include <engram/model/slots.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/cpc.hpp>
#include <engram/operations/loss.hpp>

namespace engram {

struct cpc {
    using role = auxiliary_role;

    struct settings {
        int steps = 10;      // N, how far ahead
        double weight = 10;  // of the loss
        void check() const {
            require(steps > 0, "auxiliary.steps: expected at least one step to predict, got ", steps);
            require(weight >= 0, "auxiliary.weight: expected a weight of zero or more, got ", weight);
        }
    };

    template <class Encoder, class Backend>
    static void add_losses(graph<Backend>& g, const settings& s, const typename Encoder::settings&,
                           const trajectory<var<Backend>>& seen, const task_shape&) {
        using real = typename Backend::real;
        // No bias: the score is bilinear.
        const linear predict{g.declare("predict.weight", seen.h.width, s.steps * seen.x.width, initial::fan_in<real>()),
                             {}};
        add_loss("loss", cpc_loss("scores", seen.x, affine("predict", seen.h, predict), seen.reset), s.weight);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::cpc::settings, steps, weight);

static_assert(engram::auxiliary_policy<engram::cpc>);
