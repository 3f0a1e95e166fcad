#pragma once
// SPDX-License-Identifier: MIT

// Presets: settings by name, applied where the agent has them.
//
//   small   learns on two cores in minutes: 16 x 16 frames, IMPALA's summed loss, Adam with epsilon 1e-4 and clip 40
//   paper   the sizes of the source paper (facts 1.8 and 1.9, its Tables 17 and 18); 72 x 96 frames. The paper names no
//           number of steps and no gradient clipping: those are ours.

#include <cstdint>
#include <string>
#include <vector>

#include <engram/core/error.hpp>

namespace engram {

struct preset_value {
    const char* setting;
    const char* value;
    const char* with = "";  // only for agents that have this setting too
    const char* task = "";  // only for this task
};

struct preset {
    std::string name;
    std::int64_t steps;
    std::vector<preset_value> values;  // later ones win
};

inline const std::vector<preset>& presets() {
    static constexpr const char* mapping = "arbitrary_visuomotor_mapping";
    static constexpr const char* recognition = "continuous_recognition";
    static constexpr const char* rotation = "rotation";
    static const std::vector<preset> all{
        {"small",
         1'500'000,
         {{"encoder.layers", "128,128"},
          {"encoder.channels", ""},
          {"encoder.hidden", "128"},
          {"encoder.output", "128"},
          {"encoder.centre", "true"},
          {"controller.hidden", "64"},
          {"memory.slots", "128"},
          {"memory.key", "64"},
          {"memory.neighbours", "10"},
          // Smooth weights let a gradient reach neighbours that are wrong at first. On MNIST one seed of eight of
          // FF+MEM never found its images with 0.001, none of eight with 0.1 (docs/results/mra.md).
          {"memory.epsilon", "0.1", "", mapping},
          {"auxiliary.steps", "5"},
          {"auxiliary.weight", "0.1", "auxiliary.steps"},
          {"auxiliary.weight", "0.1", "auxiliary.image"},
          {"auxiliary.image", "0.1"},
          {"learner.discount", "0"},
          {"learner.discount", "0.98", "", "t_maze"},
          {"rollout.environments", "32"},
          {"rollout.unroll", "10"},
          {"optimiser.kind", "adam"},
          {"optimiser.learning_rate", "0.0003"},
          {"optimiser.epsilon", "0.0001"},
          {"optimiser.clip", "40"},
          {"task.frame", "small"},
          // Generative models: 14 x 14 digits, 16 x 16 rooms.
          {"encoder.network", "mlp"},
          {"encoder.layers", "128", "learner.latent"},
          {"controller.hidden", "64", "learner.latent"},
          {"learner.latent", "16"},
          {"learner.hidden", "128"},
          {"wiring.features", "128"},
          {"memory.heads", "5"},
          {"memory.read_heads", "5", "learner.latent"},
          {"memory.word", "16", "learner.latent"},
          {"memory.start", "learned"},
          {"memory.slots", "25", "learner.latent"},
          {"memory.slots", "125", "memory.decay"},
          {"optimiser.learning_rate", "0.003", "learner.latent"},
          {"optimiser.epsilon", "0.00000001", "learner.latent"},
          {"optimiser.clip", "5", "learner.latent"},
          {"sequence.batch", "32"}}},
        {"paper",
         100'000'000,
         {{"controller.hidden", "512"},
          {"controller.hidden", "1024", "", recognition},
          {"memory.slots", "1024"},
          {"memory.key", "128"},
          {"memory.neighbours", "10"},
          {"auxiliary.steps", "10"},
          {"auxiliary.weight", "10", "auxiliary.steps"},
          {"auxiliary.weight", "1", "auxiliary.image"},
          {"auxiliary.image", "30", "", mapping},
          {"auxiliary.image", "1.5", "", recognition},
          {"learner.discount", "0.98"},
          {"learner.baseline_cost", "0.5"},
          {"learner.entropy_cost", "0.01"},
          {"learner.entropy_cost", "0.0052", "", mapping},
          {"rollout.environments", "16"},
          {"rollout.unroll", "50"},
          {"optimiser.kind", "adam"},
          {"optimiser.learning_rate", "0.00001"},
          {"optimiser.epsilon", "0.0001"},
          {"task.frame", "paper"},
          // Generative models (facts 4.7, 4.8); the size of the LSTM brings the parameters to those of the paper's table.
          {"encoder.network", "inception"},
          {"encoder.network", "two_pathway", "", rotation},
          {"controller.hidden", "400", "learner.latent"},
          {"learner.latent", "32"},
          {"learner.latent", "256", "", rotation},
          {"learner.hidden", "0"},
          {"memory.input", "held"},
          {"memory.heads", "5"},
          {"memory.read_heads", "5", "learner.latent"},
          {"memory.word", "32", "learner.latent"},
          {"memory.word", "256", "learner.latent", rotation},
          {"memory.slots", "25", "learner.latent"},
          {"memory.slots", "30", "learner.latent", rotation},
          {"memory.slots", "125", "memory.decay"},
          {"memory.slots", "150", "memory.decay", rotation},
          {"optimiser.learning_rate", "0.001", "learner.latent"},
          {"optimiser.epsilon", "0.00000001", "learner.latent"},
          {"sequence.batch", "10"},
          {"task.scheme", "staircase", "", mapping}}},
    };
    return all;
}

/// The preset called `name`; throws with the nearest name when there is none.
inline const preset& find_preset(const std::string& name) {
    std::vector<std::string> names;
    for (const auto& p : presets()) {
        if (p.name == name) return p;
        names.push_back(p.name);
    }
    require_known("preset", name, names);
    return presets().front();
}

}  // namespace engram
