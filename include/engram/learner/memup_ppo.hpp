#pragma once
// SPDX-License-Identifier: MIT

// MemUP for reinforcement learning (facts 3.8, 3.9; errata U13, U14, U24, U29 to U31), in three phases:
//
//   1  detector  QR-DQN of random play: [E(o_t), a_{t-1}] -> FC -> A x N atoms; s_t, the entropy of what was done
//   2  memory    m_t = g([E(o_t), a_{t-1}], m_{t-1}) and q(y_k | m_i, x_k), x_k = FC [E(o_k), a_k], by MemUP on random
//                play: y_k is the discounted return, K targets by s_k; squared error
//   3  policy    PPO on [m_t, E'(o_t), a_{t-1}] -> FC, the memory frozen
//
// What the authors' code does otherwise (errata U23, U24) is a setting each: the memory sees the last reward, the
// policy sees m_t alone behind two layers, an update of the memory whose loss is small is left out.
//
// E of the detector, of memory and predictor (shared), and of the policy are three parameter sets of the agent's
// encoder; g is the agent's controller. model/remembering.hpp traces a phase, train/memup_phases.hpp runs them.

#include <string>
#include <vector>

#include <engram/core/choice.hpp>
#include <engram/learner/ppo.hpp>
#include <engram/learner/quantile_regression.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/model/remembering.hpp>

namespace engram {

struct memup_ppo {
    using role = learner_role;
    using wiring = acts_on_memory;
    static constexpr bool has_phases = true;

    /// Of the second phase; defaults are those of the authors' T-Maze, of facts 3.9 and of learning by errors.
    struct memory_settings {
        int rollout = 1;   // r, steps
        int every = 1;     // f, steps between predictions
        int selected = 1;  // K, targets of a prediction
        // of the detector; or of the moving averages, without phase 1
        choice<"quantiles", "errors"> uncertainty = "quantiles";
        double current_weight = 1;  // of predicting the step itself
        double discount = 0;        // of the returns that are predicted
        double decay = 0.995;       // of the moving averages
        int period = 1;             // updates between two steps of theirs
        int context = 256;          // units of x_k
        int hidden = 512;           // units behind [m_i, x_k]
        void check() const {
            require(rollout > 0, "learner.memory.rollout: expected at least one step, got ", rollout);
            require(every > 0 && every <= rollout, "learner.memory.every: predictions every ", every,
                    " steps, but a rollout has ", rollout, "; expected 1 to ", rollout);
            require(selected > 0, "learner.memory.selected: expected at least one target of a prediction, got ",
                    selected);
            require(current_weight >= 0, "learner.memory.current_weight: expected zero or more, got ", current_weight);
            require(discount >= 0 && discount <= 1, "learner.memory.discount: expected a number in 0..1, got ",
                    discount);
            require(decay >= 0 && decay < 1, "learner.memory.decay: expected a number in [0, 1), got ", decay);
            require(period > 0, "learner.memory.period: expected at least one update, got ", period);
            require(context > 0 && hidden > 0, "learner.memory: expected positive widths, got ", context, " and ",
                    hidden);
        }
    };
    struct settings {
        int hidden = 256;           // units of a layer of the policy
        int layers = 1;             // of the policy, before its heads
        int detector_hidden = 512;  // units of the detector's layer
        ppo::settings policy;
        memory_settings memory;
        quantile_regression::settings detector;
        void check() const {
            require(hidden > 0 && detector_hidden > 0, "learner: expected positive widths, got ", hidden, " and ",
                    detector_hidden);
            require(layers > 0, "learner.layers: expected at least one, got ", layers);
            policy.check(), memory.check(), detector.check();
        }
    };

    template <class Var>
    using heads = ppo::heads<Var>;
    template <class Backend>
    static heads<var<Backend>> add_heads(graph<Backend>& g, const settings& s, const var<Backend>& h,
                                         const task_shape& task) {
        return ppo::add_heads(g, s.policy, h, task);
    }
    template <class Backend>
    static void add_losses(graph<Backend>& g, const settings& s, const heads<var<Backend>>& out) {
        ppo::add_losses(g, s.policy, out);
    }

    /// The detector's atoms and what it says of the action that is taken, in a graph of its own.
    template <class Backend>
    struct detection {
        var<Backend> atoms, uncertainty;
        quantile_regression::heads<var<Backend>> heads;
    };
    template <class Backend>
    static detection<Backend> detect(graph<Backend>& g, const settings& s, const var<Backend>& h,
                                     const task_shape& task) {
        const auto made = quantile_regression::add_heads(g, s.detector, h, task);
        return {made.atoms, quantile_regression::add_losses(g, s.detector, made), made};
    }

    static prediction_schedule schedule(const settings& s) {
        s.check();
        const auto& m = s.memory;
        return {m.rollout, m.every, m.selected, target_selector::top, m.current_weight, m.decay, m.period};
    }
    /// What memory and predictor say of the return: [m_i, x_k] -> FC -> 1 number.
    template <class Backend>
    static var<Backend> predict(graph<Backend>& g, const settings& s, const var<Backend>& memory,
                                const var<Backend>& seen, const var<Backend>& action) {
        const auto context = relu_layer<Backend>("context", {seen, action}, s.memory.context);
        const auto hidden = relu_layer<Backend>("hidden", {memory, context}, s.memory.hidden);
        return affine("answer", hidden, g.declare_linear("answer", s.memory.hidden, 1));
    }
    template <class Backend>
    static var<Backend> row_loss(graph<Backend>& g, const settings&, const var<Backend>& answer) {
        return answer_loss(g, "numbers", answer);
    }
    template <class Backend>
    static void add_row_losses(graph<Backend>& g, const var<Backend>& row_loss) {
        add_loss("prediction", map("prediction_rows", times{}, row_loss, g.input("weight", 1)));
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::memup_ppo::memory_settings, rollout, every, selected, uncertainty, current_weight, discount,
               decay, period, context, hidden);
ENGRAM_REFLECT(engram::memup_ppo::settings, hidden, layers, detector_hidden, policy, memory, detector);

static_assert(engram::learner_policy<engram::memup_ppo>);
