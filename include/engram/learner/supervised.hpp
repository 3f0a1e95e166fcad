#pragma once
// SPDX-License-Identifier: MIT

// Supervised learning at every step: cross-entropy of the logits against a target, backpropagated through the unroll
// (BPTT; truncated where states are carried from one unroll to the next).
//
// Trajectory inputs: target, a class index [T, B, 1] or independent bits [T, B, targets], and weight [T, B, 1] (0
// leaves a step out). The loss is the mean over all rows; a row of bits costs their sum.

#include <string>
#include <vector>

#include <engram/graph/ops/affine.hpp>
#include <engram/graph/ops/loss.hpp>
#include <engram/graph/ops/map.hpp>
#include <engram/model/slots.hpp>

namespace engram {

struct weighted_negative {
    auto operator()(auto x, auto weight) const { return -(x * weight); }
};

/// log p of a bit (0 or 1) under this logit.
struct log_of_bit {
    auto operator()(auto logit, auto bit) const { return bit * logit - softplus(logit); }
};

struct supervised {
    using role = learner_role;
    static constexpr bool learns_sequences = true;

    struct settings {
        std::string targets = "classes";  // or bits
        void check() const { require_known("targets", targets, std::vector<std::string>{"classes", "bits"}); }
    };
    template <class Var>
    struct heads {
        Var logits, value, log_policy;
    };

    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>& g, const settings& s, const var<Backend>& h,
                                         const task_shape& task) {
        if (s.targets == "bits") {
            require(task.targets > 0, "learner.targets is bits, but the task has none");
            const auto bits = affine("bits", h, g.declare_linear("bits", h.width, task.targets));
            return {bits, bits, bits};
        }
        const auto classes = g.declare_linear("classes", h.width, task.actions);
        const auto logits = affine("classes", h, classes);
        // Nothing acts on a value here; the logits stand in its place.
        return {logits, logits, log_softmax("log_classes", logits)};
    }
    template <class Backend>
    static void add_losses(graph<Backend>& g, const settings& s, const heads<var<Backend>>& out) {
        const bool bits = s.targets == "bits";
        const auto target = g.input("target", bits ? out.logits.width : 1), weight = g.input("weight", 1);
        if (bits) {
            const auto right = sum_columns("right", map("right.bits", log_of_bit{}, out.logits, target));
            add_loss("cross_entropy", map("cross_entropy_rows", weighted_negative{}, right, weight), 1,
                     reduction::mean);
            return;
        }
        const auto right = pick("right", out.log_policy, target);
        add_loss("cross_entropy", map("cross_entropy_rows", weighted_negative{}, right, weight), 1, reduction::mean);
    }
};

}  // namespace engram

BOOST_HANA_ADAPT_STRUCT(engram::supervised::settings, targets);

static_assert(engram::learner_policy<engram::supervised>);
