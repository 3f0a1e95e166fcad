#pragma once
// SPDX-License-Identifier: MIT

// What a sequence task is: a generator of whole sequences, in the layout of a model's inputs.
//
// A sequence is a pure function of (seed, level, index) through Philox: any thread draws any row of any batch, and a
// resumed run goes on with the sequences that it would have seen. Drawing allocates nothing that outlives the call.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/task/environment.hpp"

namespace engram {

/// A sequence task and its sizes; the level trained on comes first.
struct sequence_info {
    std::string name{};
    int steps = 0;                    // T
    observation_shape observation{};  // of one frame
    int actions = 0;                  // columns of the conditioning input, which is given and not modelled; 0: none
    int targets = 0;                  // columns of the supervised target; 0: none
    int recall = -1;                  // first step that memory can help with; -1: no such step
    std::vector<std::string> levels{"train", "holdout_interpolate"};
    int tokens = 0;   // a frame is the index of one of so many tokens; 0: numbers
    int classes = 0;  // a target is the index of one of so many classes; 0: bits or numbers
    bool numbers = false;
    std::vector<std::string> asked_levels{};  // scored where they are named, and no part of a run's summary

    std::vector<std::string> known_levels() const {
        auto all = levels;
        all.insert(all.end(), asked_levels.begin(), asked_levels.end());
        return all;
    }
};

/// Where one sequence goes: step t of an input of F columns begins at `data + t * rows * F`, for a batch [T, B, F] of
/// B = `rows` sequences. A null pointer leaves that input out.
struct sequence_place {
    float* observation = nullptr;  // [T, B, observation.size()] in [0, 1], or an index of info().tokens
    float* condition = nullptr;    // [T, B, actions]
    float* target = nullptr;       // [T, B, targets]
    float* weight = nullptr;       // [T, B, 1]: 0 leaves a step out of the supervised loss
    int* origin = nullptr;         // [T]: the earlier step whose frame this one repeats, -1: a frame not shown before
    int* label = nullptr;          // [T]: class of what is shown, -1 where there is none
    std::ptrdiff_t rows = 1;       // B
    int* query = nullptr;          // [T]: 1 where the answer is judged, 0 elsewhere; tasks that judge all steps with a
                                   // weight leave it alone
};

/// A sequence task with its data, immutable and shared by all threads.
class sequence_source {
public:
    virtual ~sequence_source() = default;
    virtual const sequence_info& info() const = 0;
    /// Writes the `index`-th sequence of a level.
    virtual void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
                      const sequence_place& to) const = 0;
    /// Steps of the `index`-th sequence; what is written behind them is of no account.
    virtual int length(const std::string& /*level*/, std::uint64_t /*seed*/, std::uint64_t /*index*/) const {
        return info().steps;
    }
};

}  // namespace engram
