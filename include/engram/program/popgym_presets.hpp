#pragma once
// SPDX-License-Identifier: MIT

// Presets of POPGym's environments (docs/results/popgym.md).
//
//   small   3 M steps on one core in half a minute (feed-forward: ten seconds); ours. No cost on entropy: an episode's
//           rewards sum to 1 at most, and with 0.01 policies stayed as random as that lets them
//   paper   the sizes and the learner of its authors' runs where ours has a place for them: 15 M steps in batches of 64
//           environments and 1024 steps, 30 passes of 8 minibatches, clip 0.3, lambda 1, Adam 5e-5, 256 units, a DNC of
//           16 x 16 with four heads; a normalised layer before the second, two layers before either head. Their value
//           loss has no half in front, and the last action is seen as a part of the observation alone

#include <engram/program/preset_table.hpp>
#include <engram/program/suite_presets.hpp>

namespace engram {

inline const one_of popgym_tasks{"popgym_repeat_first",
                                 "popgym_repeat_previous",
                                 "popgym_autoencode",
                                 "popgym_count_recall",
                                 "popgym_higher_lower",
                                 "popgym_concentration",
                                 "popgym_battleship",
                                 "popgym_mine_sweeper",
                                 "popgym_multiarmed_bandit",
                                 "popgym_stateless_cart_pole",
                                 "popgym_noisy_stateless_cart_pole",
                                 "popgym_stateless_pendulum",
                                 "popgym_noisy_stateless_pendulum",
                                 "popgym_labyrinth_escape",
                                 "popgym_labyrinth_explore"};

inline preset_table small_popgym_preset() {
    preset_table all;
    return all.of({.task = popgym_tasks}, {{"steps", "3000000"}})
        .of({.encoder = "numbers_or_image", .task = popgym_tasks}, {{"encoder.numbers.layers", "128"}})
        .of({.learner = "ppo", .task = popgym_tasks}, {{"learner.entropy_cost", "0"}, {"rollout.unroll", "64"}})
        .of({.memory = "dnc", .task = popgym_tasks}, {{"memory.slots", "16"}});
}

inline preset_table paper_popgym_preset() {
    preset_table all;
    return all.of({.task = popgym_tasks}, {{"steps", "15000000"}})
        .of({.encoder = "numbers_or_image", .task = popgym_tasks},
            {{"encoder.numbers.layers", "128,128"}, {"encoder.numbers.normalise", "true"}})
        .of({.learner = "ppo", .task = popgym_tasks}, {{"wiring.last_action_reward", "false"},
                                                       {"learner.head_layers", "128,128"},
                                                       {"learner.discount", "0.99"},
                                                       {"learner.lambda", "1"},
                                                       {"learner.clip", "0.3"},
                                                       {"learner.value_cost", "2"},
                                                       {"learner.entropy_cost", "0"},
                                                       {"learner.standardise", "true"},
                                                       {"rollout.environments", "64"},
                                                       {"rollout.unroll", "1024"},
                                                       {"rollout.minibatches", "8"},
                                                       {"rollout.epochs", "30"},
                                                       {"optimiser.learning_rate", "0.00005"},
                                                       {"optimiser.final_fraction", "1"},
                                                       {"optimiser.clip", "0"}})
        .of({.memory = knn_memories, .task = popgym_tasks}, {{"memory.slots", "1024"}})
        // The published runs are of the paper's rules, not of the package's (popgym.md 1.1).
        .of({.task = {"popgym_count_recall", "popgym_mine_sweeper"}}, {{"task.rules", "paper"}})
        .of({.memory = "dnc", .task = popgym_tasks},
            {{"memory.slots", "16"}, {"memory.word", "16"}, {"memory.read_heads", "4"}});
}

}  // namespace engram
