#pragma once
// SPDX-License-Identifier: MIT

// Supervised learning of a class at every step: cross-entropy of the logits against a target, backpropagated through
// the unroll (BPTT; truncated where states are carried from one unroll to the next).
//
// Trajectory inputs [T, B, 1]: target (class index) and weight (0 leaves a step out). The loss is the mean over all
// rows.

#include <engram/graph/ops/affine.hpp>
#include <engram/graph/ops/loss.hpp>
#include <engram/graph/ops/map.hpp>
#include <engram/model/slots.hpp>

namespace engram {

struct weighted_negative {
    auto operator()(auto x, auto weight) const { return -(x * weight); }
};

struct supervised {
    using role = learner_role;

    struct settings {
        BOOST_HANA_DEFINE_STRUCT(settings);
    };
    template <class Var>
    struct heads {
        Var logits, value, log_policy;
    };

    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>& g, const settings&, const var<Backend>& h,
                                         const task_shape& task) {
        const auto classes = g.declare_linear("classes", h.width, task.actions);
        const auto logits = affine("classes", h, classes);
        // Nothing acts on a value here; the logits stand in its place.
        return {logits, logits, log_softmax("log_classes", logits)};
    }
    template <class Backend>
    static void add_losses(graph<Backend>& g, const settings&, const heads<var<Backend>>& out) {
        const auto target = g.input("target", 1), weight = g.input("weight", 1);
        const auto right = pick("right", out.log_policy, target);
        add_loss("cross_entropy", map("cross_entropy_rows", weighted_negative{}, right, weight), 1, reduction::mean);
    }
};

static_assert(learner_policy<supervised>);

}  // namespace engram
