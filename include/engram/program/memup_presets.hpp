#pragma once
// SPDX-License-Identifier: MIT

// Presets of MemUP and its recurrent baselines on sequences (facts 3.4).
//
//   small      copies of five digits with a query token for each, a small predictor, Adam at 3e-3 that falls to 0;
//              learns to copy over 60 or 120 steps in a minute (docs/results/memup.md)
//   paper      ten digits and one query token; two LSTM layers of 128, dropout 0.1, K = 10, f = r = 20 (100 for
//              T = 5020), batch 128, Adam 2e-4, averages every update
//   published  what the authors' code does where it differs: f = 10, a head of 256, 20 000 updates of the predictor
//              alone, then 1000 of the memory and 1000 of the predictor by turns, averages every 1000 updates
//   tuned      the paper's tasks and sizes, and what made them learn here (ours): f = 5, forget biases of 3, contexts
//              that learn where the targets are, batch 32, Adam at 2e-3 that falls to 0
//
// The setting that stands third in a line is one that only these models have.

#include <string>
#include <vector>

#include <engram/program/suite_presets.hpp>

namespace engram {

inline const char* const of_tokens = "encoder.mlp_layers";      // MemUP and its baselines
inline const char* const of_stacks = "controller.forget_bias";  // those with an LSTM

inline std::vector<preset_value> small_memup_values() {
    return {{"encoder.width", "64", of_tokens},
            {"controller.hidden", "128", of_stacks},
            {"controller.layers", "1", of_stacks},
            {"controller.forget_bias", "3", "learner.context.layers"},
            {"learner.hidden", "128,128", "learner.context.layers"},
            {"learner.rollout", "20", "learner.context.layers"},
            {"learner.every", "5", "learner.context.layers"},
            {"learner.selected", "5", "learner.context.layers"},
            {"learner.unroll", "20", "learner.unroll"},
            {"sequence.batch", "32", of_tokens},
            {"optimiser.kind", "adam", of_tokens},
            {"optimiser.learning_rate", "0.003", of_tokens},
            {"optimiser.epsilon", "0.00000001", of_tokens},
            {"optimiser.final_fraction", "0", of_tokens},
            {"optimiser.clip", "1", of_tokens},
            {"task.items", "5", of_tokens, "copy"},
            {"task.markers", "distinct", of_tokens, "copy"},
            {"task.steps", "60", of_tokens, "copy"},
            {"task.items", "5", of_tokens, "scattered_copy"},
            {"task.markers", "distinct", of_tokens, "scattered_copy"},
            {"task.steps", "60", of_tokens, "scattered_copy"}};
}

inline std::vector<preset_value> paper_memup_values() {
    return {{"encoder.width", "128", of_tokens},
            {"controller.hidden", "128", of_stacks},
            {"controller.layers", "2", of_stacks},
            {"controller.dropout", "0.1", of_stacks},
            {"learner.hidden", "128,128", "learner.context.layers"},
            {"learner.dropout", "0.1", "learner.context.layers"},
            {"learner.rollout", "20", "learner.context.layers"},
            {"learner.every", "20", "learner.context.layers"},
            {"learner.selected", "10", "learner.context.layers"},
            {"learner.decay", "0.97", "learner.context.layers"},
            {"learner.context.layers", "2", "learner.context.layers"},
            {"learner.context.hidden", "128", "learner.context.layers"},
            {"learner.context.dropout", "0.1", "learner.context.layers"},
            {"learner.unroll", "20", "learner.unroll"},
            {"sequence.batch", "128", of_tokens},
            {"optimiser.kind", "adam", of_tokens},
            {"optimiser.learning_rate", "0.0002", of_tokens},
            {"optimiser.epsilon", "0.00000001", of_tokens},
            {"optimiser.clip", "1", of_tokens}};
}

inline std::vector<preset_value> published_memup_values() {
    auto all = paper_memup_values();
    all.insert(all.end(), {{"learner.every", "10", "learner.context.layers"},
                           {"learner.hidden", "256,256", "learner.context.layers"},
                           {"learner.pretrain", "20000", "learner.context.layers"},
                           {"learner.block", "1000", "learner.context.layers"},
                           {"learner.period", "1000", "learner.context.layers"}});
    return all;
}

inline std::vector<preset_value> tuned_memup_values() {
    auto all = paper_memup_values();
    all.insert(all.end(), {{"controller.forget_bias", "3", "learner.context.layers"},
                           {"learner.every", "5", "learner.context.layers"},
                           {"learner.context.forget_bias", "3", "learner.context.layers"},
                           {"learner.context.retraced", "true", "learner.context.layers"},
                           {"sequence.batch", "32", of_tokens},
                           {"optimiser.learning_rate", "0.002", of_tokens},
                           {"optimiser.final_fraction", "0", of_tokens}});
    return all;
}

}  // namespace engram
