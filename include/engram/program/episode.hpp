#pragma once
// SPDX-License-Identifier: MIT

// One episode of one environment, step by step: what was seen and done, and what the memory read.

#include <optional>
#include <string>
#include <vector>

#include <engram/program/configuration.hpp>
#include <engram/program/pictures.hpp>

namespace engram {

struct recorded_read {
    int when;  // the step whose write was recalled
    float weight;
};

struct recorded_step {
    std::vector<float> observation;
    std::optional<trial_event> event;
    int action = 0;
    float reward = 0;
    std::vector<recorded_read> reads;
};

}  // namespace engram
