#pragma once
// SPDX-License-Identifier: MIT

// MemUP (facts 3.1, 3.2; errata U7 to U11, U20 to U22, U31): the memory learns to predict the steps that are hard to
// predict, however far they are.
//
//   every f-th step i of a rollout of r steps, and its last one: the K most uncertain steps k >= i with a target
//   L = mean over pairs (i, k) of -log q(y_k | m_i, x_k)  +  w  mean over steps i of -log q(y_i | m_i, x_i)
//
// with squared errors in place of -log q for targets that are numbers. The gradient reaches the predictor and r steps
// of the memory. Uncertainties are what the moving averages of both networks, slow += (1 - decay) (fast - slow) every
// `period` updates, lose at each step of a new sequence. The second term (ours; the authors alternate with epochs of
// it) teaches the predictor what is certain anyway. The head on [e_k, m_i] is layers with ReLU, dropout behind the last
// (the paper's form, U21); with `context.layers` it sees [c_k, m_i], c an LSTM of the predictor's own, and [e_k, c_k,
// m_i] with `context.and_step` (the authors' code; its dropout before the last ReLU is the same as behind it). Contexts
// of chosen steps come from the moving averages and carry no gradient; that of the current steps trains the LSTM.
//
// Inputs of the pairs: memory [P, B, M], observation [P, B, .] or context [P, B, C], target and weight [P, B, 1]
// (weights add up to the means above). train/memup_update.hpp runs it.

#include <string>
#include <vector>

#include <engram/controller/stacked_lstm.hpp>
#include <engram/core/choice.hpp>
#include <engram/encoder/layers.hpp>
#include <engram/graph/scan.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/model/predicting.hpp>
#include <engram/operations/dropout.hpp>
#include <engram/operations/loss.hpp>
#include <engram/operations/receive_gradient.hpp>
#include <engram/operations/relu_layer.hpp>

namespace engram {

/// The predictor's own LSTM (facts 3.4); with no layers it sees the target step alone.
struct context_settings {
    int layers = 0;          // of the LSTM; 0: no context
    int hidden = 128;        // units of a layer
    double forget_bias = 1;  // where b starts for its gate f
    double dropout = 0;      // between layers
    bool and_step = false;   // the head sees the target step's e_k beside its context (the authors' code, errata U21)
    bool retraced = false;  // chosen steps' contexts learn too, a block of r steps a rollout (train/memup_contexts.hpp)
    void check() const {
        require(layers >= 0, "learner.context.layers: expected zero or more, got ", layers);
        require(layers > 0 || !and_step, "learner.context.and_step: there is no context; set learner.context.layers");
        require(layers > 0 || !retraced, "learner.context.retraced: there is no context; set learner.context.layers");
        if (layers > 0) stacked_lstm::settings{hidden, layers, forget_bias, dropout}.check();
    }
};

struct memup {
    using role = learner_role;
    using wiring = predicts_targets;
    static constexpr bool learns_sequences = true;

    struct settings {
        target_kinds targets = "task";  // task (as it says), classes, bits or numbers
        int rollout = 20;               // r, steps
        int every = 20;                 // f, steps between predictions
        int selected = 10;              // K, targets of a prediction
        // top (K most uncertain), current or top_and_current
        choice<"top", "current", "top_and_current"> selection = "top";
        double current_weight = 1;          // w
        double chosen_weight = 1;           // of the chosen targets' loss
        double decay = 0.97;                // of the moving averages
        int period = 1;                     // updates between two steps of theirs
        std::vector<int> hidden{128, 128};  // widths of the predictor's layers
        double dropout = 0;                 // behind the last of them
        context_settings context;
        int pretrain = 0;  // updates of the predictor alone before all others
        int block = 0;     // updates of the memory alone, then of the predictor alone, and so on; 0: both at once
        int last = 0;      // in the predictor's turns, the last steps of a sequence alone have a target; 0: all
        void check() const {
            require(rollout > 0, "learner.rollout: expected at least one step, got ", rollout);
            require(every > 0 && every <= rollout, "learner.every: predictions every ", every,
                    " steps, but a rollout has ", rollout, "; expected 1 to ", rollout);
            require(chosen_weight > 0, "learner.chosen_weight: expected a positive number, got ", chosen_weight);
            require(last >= 0, "learner.last: expected zero (all) or more steps, got ", last);
            require(selected > 0, "learner.selected: expected at least one target of a prediction, got ", selected);
            require(current_weight >= 0, "learner.current_weight: expected zero or more, got ", current_weight);
            require(decay >= 0 && decay < 1, "learner.decay: expected a number in [0, 1), got ", decay);
            require(period > 0, "learner.period: expected at least one update, got ", period);
            for (const int n : hidden) require(n > 0, "learner.hidden: expected positive widths, got ", n);
            require(dropout >= 0 && dropout < 1, "learner.dropout: expected a number in [0, 1), got ", dropout);
            context.check();
            require(pretrain >= 0 && block >= 0, "learner.pretrain, learner.block: expected zero or more updates, got ",
                    pretrain, " and ", block);
            require(current_weight > 0 || (pretrain == 0 && block == 0),
                    "learner.current_weight: the predictor alone learns current steps; expected more than 0");
        }
    };
    template <class Var>
    struct heads {
        Var logits, value, log_policy;
    };

    static prediction_schedule schedule(const settings& s) {
        s.check();
        return {s.rollout,
                s.every,
                s.selected,
                s.selection == "top"       ? target_selector::top
                : s.selection == "current" ? target_selector::current
                                           : target_selector::top_and_current,
                s.current_weight,
                s.decay,
                s.period,
                s.pretrain,
                s.block,
                s.context.retraced,
                s.chosen_weight,
                s.last};
    }

    /// The memory is the head: what is minimised hangs on it from outside.
    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>&, const settings&, const var<Backend>& h, const task_shape&) {
        return {h, h, h};
    }
    template <class Backend>
    static void add_losses(graph<Backend>&, const settings&, const heads<var<Backend>>& out) {
        receive_gradient("memory_gradient", out.logits);
    }

    static bool has_context(const settings& s) { return s.context.layers > 0; }
    /// c [T, B, C] of e [T, B, .].
    template <class Backend>
    static var<Backend> context(graph<Backend>& g, const settings& s, const var<Backend>& e,
                                const var<Backend>& reset) {
        const auto scope = g.scope("context");
        const stacked_lstm::settings c{s.context.hidden, s.context.layers, s.context.forget_bias, s.context.dropout};
        const auto w = stacked_lstm::declare(g, c, e.width);
        return scan(g, stacked_lstm::begin(g, c), [&](auto& now) {
            reset_rows(now, reset);
            return stacked_lstm::step(c, w, {e}, now);
        });
    }

    /// Logits (numbers for targets that are numbers) of the head on the inputs side by side.
    template <class Backend>
    static var<Backend> predict(graph<Backend>& g, const settings& s, std::vector<var<Backend>> inputs,
                                const task_shape& task) {
        for (std::size_t i = 0; i < s.hidden.size(); ++i)
            inputs = {relu_layer(message("hidden.", i), inputs, s.hidden[i])};
        if (inputs.size() == 1) inputs[0] = dropout("dropout", inputs[0], s.dropout);
        return affine("answer", inputs, g.declare_linear("answer", columns_of(inputs), answer_width(s.targets, task)));
    }
    template <class Backend>
    static var<Backend> row_loss(graph<Backend>& g, const settings& s, const var<Backend>& logits,
                                 const task_shape& task) {
        return answer_loss(g, target_kind(s.targets, task), logits);
    }
    template <class Backend>
    static void add_row_losses(graph<Backend>& g, const var<Backend>& row_loss) {
        add_loss("prediction", map("prediction_rows", times{}, row_loss, g.input("weight", 1)));
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::context_settings, layers, hidden, forget_bias, dropout, and_step, retraced);
ENGRAM_REFLECT(engram::memup::settings, targets, rollout, every, selected, selection, current_weight, chosen_weight,
               decay, period, hidden, dropout, context, pretrain, block, last);

static_assert(engram::learner_policy<engram::memup>);
