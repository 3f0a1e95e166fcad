#pragma once
// SPDX-License-Identifier: MIT

// How long and with which optimisers the phases before the policy are trained (facts 3.8, 3.9); defaults are the
// paper's for T-Maze-100.

#include <cstdint>

#include <engram/core/error.hpp>
#include <engram/train/optimiser.hpp>

namespace engram {

struct replay_settings {
    std::int64_t capacity = 1'000'000;  // transitions of all environments together
    void check() const { require(capacity > 0, "replay.capacity: expected at least one transition, got ", capacity); }
};

/// Of the phase that trains the detector.
struct detector_settings {
    int environments = 4;                 // B, that take a step between two updates
    int batch = 512;                      // transitions of an update
    std::int64_t start = 50'000;          // transitions before the first update
    std::int64_t target_period = 10'000;  // steps of all environments between two copies to the target network
    replay_settings replay;
    optimiser_settings optimiser{.learning_rate = 5e-5, .clip = 0};
    void check() const {
        require(environments > 0, "detector.environments: expected at least one, got ", environments);
        require(batch > 0, "detector.batch: expected at least one transition, got ", batch);
        require(start >= 0 && target_period > 0, "detector: expected a start of zero or more and a positive period");
    }
};

/// Of the phase that trains the memory.
struct memory_phase_settings {
    std::int64_t steps = 50'000'000;  // time steps over all rows
    int batch = 128;                  // sequences of an update
    double least_loss = 0;            // an update whose loss is below it is left out (errata U23)
    optimiser_settings optimiser{.learning_rate = 2e-5, .epsilon = 1e-8, .clip = 1};
    void check() const {
        require(steps >= 0, "phases.memory.steps: expected zero or more, got ", steps);
        require(batch > 0, "phases.memory.batch: expected at least one sequence, got ", batch);
        require(least_loss >= 0, "phases.memory.least_loss: expected zero or more, got ", least_loss);
    }
};

struct phase_settings {
    bool joint = false;  // detector and memory learn while the policy acts, for all steps of the run
    std::int64_t detector_steps = 4'000'000;  // of random play; not used by a memory that learns from errors
    detector_settings detector;
    memory_phase_settings memory;
    void check() const {
        require(detector_steps >= 0, "phases.detector_steps: expected zero or more, got ", detector_steps);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::replay_settings, capacity);
ENGRAM_REFLECT(engram::detector_settings, environments, batch, start, target_period, replay, optimiser);
ENGRAM_REFLECT(engram::memory_phase_settings, steps, batch, least_loss, optimiser);
ENGRAM_REFLECT(engram::phase_settings, joint, detector_steps, detector, memory);
