#pragma once
// SPDX-License-Identifier: MIT

// Presets of MemUP and its recurrent baselines on sequences (facts 3.4).
//
//   small      copies of five digits with a query token for each, a small predictor, Adam at 3e-3 that falls to 0;
//              learns to copy over 60 or 120 steps in a minute (docs/results/memup.md); pixels at 1e-3, f = r, K = 1
//   paper      ten digits and one query token; two LSTM layers of 128, dropout 0.1, K = 10, f = r = 20 (100 for
//              T = 5020), batch 128, Adam 2e-4, averages every update
//   published  what the authors' code does where it differs: f = 10, a head of 256 that sees e_k too, 20 000 updates of
//              the predictor alone, then by turns 1000 of the memory, whose loss counts a tenth, and 1000 of the
//              predictor on the last ten steps; averages every 1000 updates. An update is a rollout that has a target
//              (ours)
//   tuned      the paper's tasks and sizes, and what made them learn here (ours): f = 5, forget biases of 3, contexts
//              that learn where the targets are, batch 32, Adam at 2e-3 that falls to 0
//
// In all of them a model of tokens has a controller of 128, whichever it is.

#include <engram/program/preset_table.hpp>

namespace engram {

/// MemUP and its baselines.
inline const one_of of_targets{"supervised", "truncated_supervised", "memup"};

/// Comes last: no other line is for the width of a model of tokens.
inline preset_table tokens_preset() {
    preset_table all;
    return all.of({.encoder = "token_embedding",
                   .controller = {"feed_forward", "lstm", "stacked_lstm", "srnn", "transformer"},
                   .learner = of_targets},
                  {{"controller.hidden", "128"}});
}

inline preset_table small_memup_preset() {
    preset_table all;
    all.of({.encoder = "token_embedding", .learner = of_targets}, {{"encoder.width", "64"}})
        .of({.learner = of_targets}, {{"sequence.batch", "32"},
                                      {"optimiser.kind", "adam"},
                                      {"optimiser.learning_rate", "0.003"},
                                      {"optimiser.epsilon", "0.00000001"},
                                      {"optimiser.final_fraction", "0"},
                                      {"optimiser.clip", "1"}})
        .of({.learner = of_targets, .task = {"copy", "scattered_copy"}},
            {{"task.items", "5"}, {"task.markers", "distinct"}, {"task.steps", "60"}})
        .of({.learner = of_targets, .task = {"copy", "scattered_copy", "add"}}, {{"steps", "4000000"}})
        .of({.learner = of_targets, .task = "permuted_mnist"}, {{"steps", "20000000"}})
        .of({.controller = "stacked_lstm", .learner = "memup"}, {{"controller.forget_bias", "3"}})
        .of({.learner = "memup"}, {{"learner.hidden", "128,128"},
                                   {"learner.rollout", "20"},
                                   {"learner.every", "5"},
                                   {"learner.selected", "5"}})
        .of({.learner = "memup", .task = "permuted_mnist"},
            {{"optimiser.learning_rate", "0.001"}, {"learner.every", "20"}, {"learner.selected", "1"}})
        .of({.learner = "truncated_supervised"}, {{"learner.unroll", "20"}});
    return all;
}

inline preset_table paper_memup_preset() {
    preset_table all;
    all.of({.encoder = "token_embedding", .learner = of_targets}, {{"encoder.width", "128"}})
        .of({.learner = of_targets}, {{"steps", "100000000"},
                                      {"sequence.batch", "128"},
                                      {"optimiser.kind", "adam"},
                                      {"optimiser.learning_rate", "0.0002"},
                                      {"optimiser.epsilon", "0.00000001"},
                                      {"optimiser.clip", "1"}})
        .of({.controller = "stacked_lstm", .learner = of_targets},
            {{"controller.layers", "2"}, {"controller.dropout", "0.1"}})
        .of({.learner = "memup"}, {{"learner.hidden", "128,128"},
                                   {"learner.dropout", "0.1"},
                                   {"learner.rollout", "20"},
                                   {"learner.every", "20"},
                                   {"learner.selected", "10"},
                                   {"learner.decay", "0.97"},
                                   {"learner.context.layers", "2"},
                                   {"learner.context.hidden", "128"},
                                   {"learner.context.dropout", "0.1"}})
        .of({.learner = "truncated_supervised"}, {{"learner.unroll", "20"}})
        .of({.learner = "memup", .task = {"copy", "scattered_copy"}, .steps = 5020},
            {{"learner.rollout", "100"}, {"learner.every", "100"}})
        .of({.learner = "truncated_supervised", .task = {"copy", "scattered_copy"}, .steps = 5020},
            {{"learner.unroll", "100"}});
    return all;
}

inline preset_table published_memup_preset() {
    preset_table all = paper_memup_preset();
    return all.of({.learner = "memup"}, {{"learner.every", "10"},
                                         {"learner.hidden", "256,256"},
                                         {"learner.pretrain", "20000"},
                                         {"learner.block", "1000"},
                                         {"learner.period", "1000"},
                                         {"learner.context.and_step", "true"},
                                         {"learner.chosen_weight", "0.1"},
                                         {"learner.last", "10"}});
}

inline preset_table tuned_memup_preset() {
    preset_table all = paper_memup_preset();
    return all
        .of({.learner = of_targets}, {{"steps", "12800000"},
                                      {"sequence.batch", "32"},
                                      {"optimiser.learning_rate", "0.002"},
                                      {"optimiser.final_fraction", "0"}})
        .of({.controller = "stacked_lstm", .learner = "memup"}, {{"controller.forget_bias", "3"}})
        .of({.learner = "memup"},
            {{"learner.every", "5"}, {"learner.context.forget_bias", "3"}, {"learner.context.retraced", "true"}});
}

}  // namespace engram
