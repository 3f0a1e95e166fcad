#pragma once
// SPDX-License-Identifier: MIT

// Presets of MemUP for reinforcement learning and of its baseline, PPO with an LSTM (facts 3.7 to 3.9).
//
//   small      T-Maze-LNR-100 in a few seconds (docs/results/memup.md); ours
//   paper      the tables of facts 3.8 and 3.9
//   published  what the authors' code does where it differs: 64 sequences a batch, Adam 5e-4, r = 1 with the error of
//              the moving averages for a detector (errata U23)
//
// The setting that stands third in a line is one that only these models have.

#include <string>
#include <vector>

#include <engram/program/suite_presets.hpp>

namespace engram {

inline const char* const of_ppo = "learner.lambda";            // the baseline
inline const char* const of_phases = "learner.policy.lambda";  // MemUP

inline std::vector<preset_value> ppo_values(const char* optimiser_clip) {
    std::vector<preset_value> all;
    for (const char* with : {of_ppo, of_phases})
        all.insert(all.end(), {{"rollout.unroll", "5", with},
                               {"rollout.epochs", "4", with},
                               {"rollout.minibatches", "4", with},
                               {"optimiser.kind", "adam", with},
                               {"optimiser.learning_rate", "0.001", with},
                               {"optimiser.epsilon", "0.00000001", with},
                               {"optimiser.final_fraction", "0", with},
                               {"optimiser.clip", optimiser_clip, with},
                               // What was earned would tell the colour that is to be remembered.
                               {"wiring.last_reward", "false", with}});
    all.insert(all.end(), {{"learner.discount", "0.99", of_ppo},
                           {"learner.discount", "0.995", of_ppo, "two_colors"},
                           {"learner.policy.discount", "0.99", of_phases},
                           {"learner.policy.discount", "0.995", of_phases, "two_colors"},
                           {"learner.detector.discount", "0", of_phases},
                           {"learner.detector.discount", "0.8", of_phases, "two_colors"},
                           {"learner.memory.discount", "0", of_phases},
                           {"learner.memory.discount", "0.8", of_phases, "two_colors"},
                           {"learner.memory.selected", "1", of_phases},
                           {"learner.memory.selected", "3", of_phases, "two_colors"}});
    return all;
}

inline std::vector<preset_value> small_acting_values() {
    auto all = ppo_values("1");
    for (const char* with : {of_ppo, of_phases})
        all.insert(all.end(), {{"rollout.environments", "64", with},
                               {"controller.hidden", "64", with},
                               {"encoder.numbers.layers", "32", with},
                               {"encoder.image.channels", "16,32", with},
                               {"encoder.image.kernels", "4,3", with},
                               {"encoder.image.strides", "2,2", with},
                               {"encoder.image.output", "64", with}});
    all.insert(all.end(), {{"learner.hidden", "64", of_phases},
                           {"learner.detector_hidden", "64", of_phases},
                           {"learner.memory.context", "64", of_phases},
                           {"learner.memory.hidden", "64", of_phases},
                           {"learner.detector.atoms", "50", of_phases},
                           {"phases.detector_steps", "128000", of_phases},
                           {"phases.detector_steps", "400000", of_phases, "two_colors"},
                           {"phases.detector.environments", "64", of_phases},
                           {"phases.detector.batch", "64", of_phases},
                           {"phases.detector.start", "12800", of_phases},
                           {"phases.detector.target_period", "500", of_phases},
                           {"phases.detector.replay.capacity", "128000", of_phases},
                           {"phases.detector.optimiser.learning_rate", "0.001", of_phases},
                           {"phases.memory.steps", "128000", of_phases},
                           {"phases.memory.steps", "1000000", of_phases, "two_colors"},
                           {"phases.memory.batch", "64", of_phases},
                           {"phases.memory.optimiser.learning_rate", "0.001", of_phases}});
    return all;
}

inline std::vector<preset_value> paper_acting_values() {
    auto all = ppo_values("1");
    for (const char* with : {of_ppo, of_phases})
        all.insert(all.end(), {{"rollout.environments", "128", with},
                               {"rollout.environments", "64", with, "two_colors"},
                               {"controller.hidden", "256", with},
                               {"task.length_spread", "9", with}});
    all.insert(all.end(), {{"learner.hidden", "256", of_phases},
                           {"learner.detector_hidden", "256", of_phases},
                           {"learner.detector_hidden", "512", of_phases, "two_colors"},
                           {"phases.detector_steps", "4000000", of_phases},
                           {"phases.detector_steps", "5000000", of_phases, "two_colors"},
                           // 300 batches of 128 an epoch, 100 epochs; 400 of 64, 300 epochs: a rollout is one step.
                           {"phases.memory.steps", "3840000", of_phases},
                           {"phases.memory.steps", "7680000", of_phases, "two_colors"},
                           {"phases.memory.batch", "128", of_phases},
                           {"phases.memory.batch", "64", of_phases, "two_colors"},
                           {"phases.memory.optimiser.learning_rate", "0.00002", of_phases},
                           {"phases.memory.optimiser.learning_rate", "0.0003", of_phases, "two_colors"}});
    return all;
}

inline std::vector<preset_value> published_acting_values() {
    auto all = paper_acting_values();
    all.insert(all.end(), {{"task.length_spread", "10", of_phases},
                           {"encoder.numbers.layers", "64", of_phases},
                           {"phases.memory.batch", "64", of_phases},
                           {"phases.memory.steps", "12800000", of_phases},
                           {"phases.memory.optimiser.learning_rate", "0.0005", of_phases},
                           {"learner.memory.uncertainty", "errors", of_phases}});
    return all;
}

}  // namespace engram
