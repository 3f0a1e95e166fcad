#pragma once
// SPDX-License-Identifier: MIT

// Supervised learning at every step: a loss of the answers against targets, backpropagated through the unroll (BPTT);
// `truncated_supervised` cuts sequences into unrolls of its own length and carries states between them without their
// gradient (train/truncated_update.hpp).
//
//   classes   cross-entropy of the logits, target the index of a class [T, B, 1]
//   bits      the same of independent bits, target [T, B, targets]; a row costs their sum
//   numbers   squared error, target [T, B, targets]; a row costs their sum
//
// Input weight [T, B, 1]: 0 leaves a step out. The loss is the mean over all rows.

#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/model/predicting.hpp>
#include <engram/operations/affine.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/map.hpp>
#include <engram/operations/pick.hpp>
#include <engram/operations/softmax.hpp>

namespace engram {

struct weighted_negative {
    constexpr auto operator()(auto x, auto weight) const { return -(x * weight); }
};

/// log p of a bit (0 or 1) under this logit.
struct log_of_bit {
    constexpr auto operator()(auto logit, auto bit) const { return bit * logit - softplus(logit); }
};

struct negated {
    constexpr auto operator()(auto x) const { return -x; }
};
struct squared_error {
    constexpr auto operator()(auto x, auto target) const { return (x - target) * (x - target); }
};

/// What a target is: what the task says, or one of three kinds.
using target_kinds = choice<"task", "classes", "bits", "numbers">;

/// What a target is: as the setting says, or as the task does.
inline target_kinds target_kind(target_kinds setting, const task_shape& task) {
    if (setting != "task") return setting;
    if (task.numbers) return "numbers";
    if (task.targets > 0 && task.classes == 0) return "bits";
    return "classes";
}

/// Columns of the answer; those of a class index are the task's classes, or an agent's actions.
inline int answer_width(target_kinds setting, const task_shape& task) {
    const target_kinds kind = target_kind(setting, task);
    const int columns = kind != "classes" ? task.targets : task.classes > 0 ? task.classes : task.actions;
    require(columns > 0, "learner.targets: the task has no target that is ", kind.word(),
            "; learn a task that has targets");
    return columns;
}

/// What each row costs against the input "target" [T, B, 1].
template <class Backend>
var<Backend> answer_loss(graph<Backend>& g, target_kinds kind, const var<Backend>& answer) {
    const auto target = g.input("target", kind == "classes" ? 1 : answer.width);
    if (kind == "numbers") return sum_columns("wrong", map("wrong.numbers", squared_error{}, answer, target));
    if (kind == "classes") return map("wrong", negated{}, pick("right", log_softmax("log_classes", answer), target));
    return map("wrong", negated{}, sum_columns("right", map("right.bits", log_of_bit{}, answer, target)));
}

struct supervised {
    using role = learner_role;
    static constexpr bool learns_sequences = true;

    struct settings {
        target_kinds targets = "task";  // task (as it says), classes, bits or numbers
    };
    template <class Var>
    struct heads {
        Var logits, value, log_policy;
        target_kinds kind;  // of the targets
    };

    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>& g, const settings& s, const var<Backend>& h,
                                         const task_shape& task) {
        const target_kinds kind = target_kind(s.targets, task);
        const std::string name(kind.word());
        const auto answer = affine(name, h, g.declare_linear(name, h.width, answer_width(s.targets, task)));
        // Nothing acts on a value here; the answer stands in its place.
        if (kind != "classes") return {answer, answer, answer, kind};
        return {answer, answer, log_softmax("log_classes", answer), kind};
    }
    template <class Backend>
    static void add_losses(graph<Backend>& g, const settings&, const heads<var<Backend>>& out) {
        const auto target = g.input("target", out.kind == "classes" ? 1 : out.logits.width);
        const auto weight = g.input("weight", 1);
        if (out.kind == "numbers") {
            const auto wrong = sum_columns("wrong", map("wrong.numbers", squared_error{}, out.logits, target));
            add_loss("squared_error", map("squared_error_rows", times{}, wrong, weight), 1, reduction::mean);
            return;
        }
        const auto right = out.kind == "classes"
                               ? pick("right", out.log_policy, target)
                               : sum_columns("right", map("right.bits", log_of_bit{}, out.logits, target));
        add_loss("cross_entropy", map("cross_entropy_rows", weighted_negative{}, right, weight), 1, reduction::mean);
    }
};

/// Truncated BPTT: the same, cut into unrolls.
struct truncated_supervised : supervised {
    using wiring = carries_states;
    struct settings : supervised::settings {
        int unroll = 20;  // steps
        void check() const { require(unroll > 0, "learner.unroll: expected at least one step, got ", unroll); }
    };
};

}  // namespace engram

ENGRAM_REFLECT(engram::supervised::settings, targets);
ENGRAM_REFLECT(engram::truncated_supervised::settings, targets, unroll);

static_assert(engram::learner_policy<engram::supervised> && engram::learner_policy<engram::truncated_supervised>);
