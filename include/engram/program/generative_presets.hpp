#pragma once
// SPDX-License-Identifier: MIT

// What the presets give generative temporal models (facts 4.7, 4.8), and copying bits with an NTM or a DNC.
//
//   paper   its sizes. The width of the LSTM is not printed: it is the multiple of 8 that brings the parameters nearest
//           to Table 1 (`describe --preset paper` shows both). Slots of the introspection network by write position
//           (facts 4.3)
//   small   ours: 14 x 14 digits, 16 x 16 rooms, a minute on a core (docs/results/gtmm.md); slots by age

#include <engram/program/preset_table.hpp>

namespace engram {

/// Memories of words, whose heads see what `memory.input` says.
inline const one_of word_memories{"ntm", "lru_access", "dnc"};

/// What every preset gives a generative model: five heads, and as many slots as a sequence has steps, five times that
/// for least-recently-used access (facts 4.8).
inline preset_table generative_preset() {
    preset_table all;
    all.of({.learner = "variational"}, {{"optimiser.epsilon", "0.00000001"}})
        .of({.memory = {"introspection", "lru_access", "hybrid"}, .learner = "variational"}, {{"memory.heads", "5"}})
        .of({.memory = {"ntm", "dnc"}, .learner = "variational"}, {{"memory.read_heads", "5"}})
        .of({.memory = {"introspection", "ntm", "dnc", "fifo_knn", "fifo_knn_no_jumpy", "hybrid"},
             .learner = "variational"},
            {{"memory.slots", "T"}})
        // What the papers' memories of these models store, latents, read by what h alone makes, and DNC's step forward
        // (docs/decisions/0033, 0035).
        .of({.memory = "hybrid", .learner = "variational"},
            {{"memory.values", "observed"}, {"memory.input", "held"}, {"memory.reads", "age,content,nearest,after"}})
        .of({.memory = "lru_access", .learner = "variational"}, {{"memory.slots", "5T"}});
    return all;
}

inline preset_table small_generative_preset() {
    preset_table all;
    all.of({}, {{"sequence.batch", "16"}})
        .of({.task = {"parity_recall"}}, {{"steps", "1000000"}})
        .of({.task = {"one_shot_recall", "mnist_map"}}, {{"steps", "2000000"}})
        .of({.task = {"dynamic_dependency", "similarity_cued_recall"}}, {{"steps", "4000000"}})
        .of({.encoder = "gtmm_vision"}, {{"encoder.network", "mlp"}, {"encoder.layers", "128"}})
        .of({.encoder = "mlp", .learner = "variational"}, {{"encoder.layers", "128"}})
        .of({.learner = "variational"}, {{"learner.latent", "16"},
                                         {"learner.hidden", "128"},
                                         {"wiring.features", "128"},
                                         {"optimiser.learning_rate", "0.003"},
                                         {"optimiser.clip", "5"}})
        .of({.memory = word_memories, .learner = "variational"}, {{"memory.word", "16"}})
        // Room for a latent and the one before it: what is found by its neighbour must lie beside it.
        .of({.memory = word_memories, .learner = "variational", .task = "similarity_cued_recall"},
            {{"memory.word", "32"}})
        .of({.memory = "hybrid", .learner = "variational", .task = "similarity_cued_recall"},
            {{"memory.values", "all"}})
        .of({.memory = "ntm"}, {{"memory.start", "learned"}});
    return all;
}

inline preset_table paper_generative_preset() {
    preset_table all;
    all.of({}, {{"sequence.batch", "10"}})
        .of({.encoder = "gtmm_vision"}, {{"encoder.network", "inception"}})
        .of({.encoder = "gtmm_vision", .task = "rotation"}, {{"encoder.network", "two_pathway"}})
        .of({.learner = "variational"},
            {{"learner.latent", "32"}, {"learner.hidden", "0"}, {"optimiser.learning_rate", "0.001"}})
        // Five reads of 256 numbers: linear maps of them would alone exceed the paper's total.
        .of({.learner = "variational", .task = "rotation"}, {{"learner.latent", "256"}, {"learner.hidden", "128"}})
        .of({.memory = word_memories, .learner = "variational"}, {{"memory.input", "held"}, {"memory.word", "32"}})
        .of({.memory = word_memories, .learner = "variational", .task = "rotation"}, {{"memory.word", "256"}})
        .of({.memory = "introspection", .learner = "variational"}, {{"memory.order", "position"}})
        .of({.controller = "lstm", .learner = "variational"}, {{"controller.hidden", "208"}})
        .of({.controller = "lstm", .memory = "introspection", .learner = "variational"}, {{"controller.hidden", "440"}})
        .of({.controller = "lstm", .learner = "variational", .task = "rotation"}, {{"controller.hidden", "528"}})
        .of({.controller = "lstm", .memory = "introspection", .learner = "variational", .task = "rotation"},
            {{"controller.hidden", "296"}})
        .of({.controller = "lstm", .memory = {"ntm", "dnc"}, .learner = "variational", .task = "rotation"},
            {{"controller.hidden", "216"}})
        .of({.controller = "lstm", .memory = "lru_access", .learner = "variational", .task = "rotation"},
            {{"controller.hidden", "200"}});
    return all;
}

/// Copying bits; small alone has values for it.
inline preset_table copying_preset() {
    const one_of supervised{"supervised", "truncated_supervised", "memup"}, bit_copy{"bit_copy"};
    preset_table all;
    all.of({.learner = supervised, .task = bit_copy}, {{"steps", "3000000"},
                                                       {"learner.targets", "bits"},
                                                       {"sequence.batch", "16"},
                                                       {"optimiser.learning_rate", "0.003"},
                                                       {"optimiser.epsilon", "0.00000001"},
                                                       {"optimiser.clip", "1"},
                                                       // At a constant rate Adam's second moments shrink with the
                                                       // gradients until one step throws a solved task away.
                                                       {"optimiser.final_fraction", "0"}})
        .of({.controller = {"lstm", "feed_forward"}, .learner = supervised, .task = bit_copy},
            {{"controller.hidden", "100"}})
        .of({.memory = word_memories, .learner = supervised, .task = bit_copy},
            {{"memory.slots", "32"}, {"memory.word", "20"}})
        .of({.memory = {"ntm", "dnc"}, .learner = supervised, .task = bit_copy}, {{"memory.read_heads", "1"}})
        // The DNC learns more surely small and in its own order, the NTM larger (docs/results/copy.md).
        .of({.controller = {"lstm", "feed_forward"}, .memory = "dnc", .learner = supervised, .task = bit_copy},
            {{"controller.hidden", "64"}})
        .of({.memory = "dnc", .learner = supervised, .task = bit_copy},
            {{"memory.word", "16"}, {"memory.read_before_write", "false"}});
    return all;
}

}  // namespace engram
