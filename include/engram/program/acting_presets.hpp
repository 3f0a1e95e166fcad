#pragma once
// SPDX-License-Identifier: MIT

// Presets of MemUP for reinforcement learning and of its baseline, PPO with an LSTM (facts 3.7 to 3.9).
//
//   small      T-Maze-LNR-100 in a few seconds (docs/results/memup.md); ours
//   paper      the tables of facts 3.8 and 3.9, with numbers of their own for corridors of 1000 (task.length)
//   published  what the authors' code does where it differs: 64 sequences a batch, Adam 5e-4, r = 1 with the error of
//              the moving averages for a detector, the step itself among the targets, the last reward into the memory,
//              no update of it where the loss is below 2e-5, a policy of two layers on m_t alone (errata U23, U24)

#include <array>
#include <cstdint>
#include <string>

#include <engram/program/preset_table.hpp>

namespace engram {

inline const one_of of_ppo{"ppo", "memup_ppo"};

/// One column of the tables of facts 3.8 and 3.9. A batch of the memory's phase is one rollout of a step in each row.
struct published_phases {
    const char* task;
    int length;  // of the corridor; 0: all others
    std::int64_t detector_steps;
    const char *detector_hidden, *detector_discount;
    int memory_batch, batches_an_epoch, epochs;
    const char *memory_rate, *selected, *memory_discount;
    const char *environments, *policy_discount;
    std::int64_t policy_steps;

    std::int64_t memory_steps() const { return std::int64_t{memory_batch} * batches_an_epoch * epochs; }
};

inline constexpr std::array<published_phases, 3> all_published_phases{{
    {"t_maze", 0, 4'000'000, "256", "0", 128, 300, 100, "0.00002", "1", "0", "128", "0.99", 50'000'000},
    {"t_maze", 1000, 4'000'000, "256", "0", 128, 300, 1000, "0.00002", "1", "0", "128", "0.99", 600'000'000},
    {"two_colors", 0, 5'000'000, "512", "0.8", 64, 400, 300, "0.0003", "3", "0.8", "64", "0.995", 100'000'000},
}};

/// What small and paper agree on.
inline preset_table ppo_preset() {
    preset_table all;
    all.of({.learner = of_ppo}, {{"rollout.unroll", "5"},
                                 {"rollout.epochs", "4"},
                                 {"rollout.minibatches", "4"},
                                 {"optimiser.kind", "adam"},
                                 {"optimiser.learning_rate", "0.001"},
                                 {"optimiser.epsilon", "0.00000001"},
                                 {"optimiser.final_fraction", "0"},
                                 {"optimiser.clip", "1"}})
        // What was earned would tell the colour that is to be remembered.
        .of({.learner = "ppo"}, {{"learner.discount", "0.99"}, {"wiring.last_reward", "false"}})
        .of({.learner = "ppo", .task = "two_colors"}, {{"learner.discount", "0.995"}})
        .of({.learner = "memup_ppo"}, {{"learner.policy.discount", "0.99"},
                                       {"learner.detector.discount", "0"},
                                       {"learner.memory.discount", "0"},
                                       {"learner.memory.selected", "1"}})
        .of({.learner = "memup_ppo", .task = "two_colors"}, {{"learner.policy.discount", "0.995"},
                                                             {"learner.detector.discount", "0.8"},
                                                             {"learner.memory.discount", "0.8"},
                                                             {"learner.memory.selected", "3"}});
    return all;
}

inline preset_table small_acting_preset() {
    preset_table all = ppo_preset();
    return all.of({.learner = of_ppo}, {{"rollout.environments", "64"}})
        .of({.encoder = "numbers_or_image"}, {{"encoder.numbers.layers", "32"},
                                              {"encoder.image.channels", "16,32"},
                                              {"encoder.image.kernels", "4,3"},
                                              {"encoder.image.strides", "2,2"},
                                              {"encoder.image.output", "64"}})
        .of({.learner = "memup_ppo"}, {{"learner.hidden", "64"},
                                       {"learner.detector_hidden", "64"},
                                       {"learner.memory.context", "64"},
                                       {"learner.memory.hidden", "64"},
                                       {"learner.detector.atoms", "50"},
                                       {"phases.detector_steps", "128000"},
                                       {"phases.detector.environments", "64"},
                                       {"phases.detector.batch", "64"},
                                       {"phases.detector.start", "12800"},
                                       {"phases.detector.target_period", "32000"},
                                       {"phases.detector.replay.capacity", "128000"},
                                       {"phases.detector.optimiser.learning_rate", "0.001"},
                                       {"phases.memory.steps", "128000"},
                                       {"phases.memory.batch", "64"},
                                       {"phases.memory.optimiser.learning_rate", "0.001"}})
        .of({.learner = "memup_ppo", .task = "two_colors"},
            {{"phases.detector_steps", "400000"}, {"phases.memory.steps", "1000000"}});
}

inline preset_table paper_acting_preset() {
    preset_table all = ppo_preset();
    all.of({.learner = of_ppo}, {{"rollout.environments", "128"}, {"task.length_spread", "9"}})
        .of({.controller = {"lstm", "feed_forward"}, .learner = of_ppo}, {{"controller.hidden", "256"}})
        .of({.learner = "memup_ppo"}, {{"learner.hidden", "256"},
                                       {"learner.detector_hidden", "256"},
                                       {"learner.detector.atoms", "200"},
                                       {"learner.memory.rollout", "1"},
                                       {"learner.memory.every", "1"},
                                       {"learner.memory.current_weight", "0"},
                                       {"learner.memory.context", "256"},
                                       {"learner.memory.hidden", "512"},
                                       {"phases.detector_steps", "4000000"},
                                       {"phases.detector.environments", "4"},
                                       {"phases.detector.batch", "512"},
                                       {"phases.detector.start", "50000"},
                                       {"phases.detector.target_period", "10000"},
                                       {"phases.detector.replay.capacity", "1000000"},
                                       {"phases.detector.optimiser.learning_rate", "0.00005"},
                                       {"phases.detector.optimiser.epsilon", "0.00001953125"},  // 0.01 over the batch
                                       {"phases.memory.steps", "3840000"},
                                       {"phases.memory.batch", "128"},
                                       {"phases.memory.optimiser.learning_rate", "0.00002"}});
    for (const auto& c : all_published_phases) {
        const std::int64_t before = c.detector_steps + c.memory_steps();
        all.of({.learner = of_ppo, .task = c.task, .length = c.length}, {{"rollout.environments", c.environments}})
            .of({.learner = "ppo", .task = c.task, .length = c.length},
                {{"steps", std::to_string(c.policy_steps)}, {"learner.discount", c.policy_discount}})
            .of({.learner = "memup_ppo", .task = c.task, .length = c.length},
                {{"steps", std::to_string(before + c.policy_steps)},  // of all phases
                 {"learner.policy.discount", c.policy_discount},
                 {"learner.detector.discount", c.detector_discount},
                 {"learner.detector_hidden", c.detector_hidden},
                 {"learner.memory.discount", c.memory_discount},
                 {"learner.memory.selected", c.selected},
                 {"phases.detector_steps", std::to_string(c.detector_steps)},
                 {"phases.memory.steps", std::to_string(c.memory_steps())},
                 {"phases.memory.batch", std::to_string(c.memory_batch)},
                 {"phases.memory.optimiser.learning_rate", c.memory_rate}});
    }
    return all;
}

inline preset_table published_acting_preset() {
    preset_table all = paper_acting_preset();
    return all.of({.learner = of_ppo}, {{"steps", "100000000"}})
        .of({.learner = "memup_ppo"}, {{"task.length_spread", "10"},
                                       {"learner.memory.uncertainty", "errors"},
                                       {"learner.memory.current_weight", "1"},
                                       {"learner.layers", "2"},
                                       {"wiring.last_reward", "true"},
                                       {"wiring.memory_alone", "true"},
                                       {"phases.memory.least_loss", "0.00002"},
                                       {"phases.memory.batch", "64"},
                                       {"phases.memory.steps", "12800000"},
                                       {"phases.memory.optimiser.learning_rate", "0.0005"}})
        .of({.encoder = "numbers_or_image", .learner = "memup_ppo"}, {{"encoder.numbers.layers", "64"}});
}

}  // namespace engram
