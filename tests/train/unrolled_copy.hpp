#pragma once
// SPDX-License-Identifier: MIT

// A small model under truncated BPTT and its task, for the tests of training on a device.

#include <memory>

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/stacked_lstm.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>
#include <engram/task/copy_sequences.hpp>

namespace device_run {

using namespace engram;

using truncated = agent<token_embedding, stacked_lstm, no_memory, no_auxiliary, truncated_supervised>;

/// 12 steps in unrolls of 5, 5 and 2.
inline std::shared_ptr<const sequence_source> copying() {
    task_options options;
    options.items = 2;
    options.steps = 12;
    options.markers = "distinct";
    return std::make_shared<const copy_task<false>>(options);
}

inline truncated::settings unrolled() {
    truncated::settings s;
    s.encoder.width = 6;
    s.controller.hidden = 8;
    s.controller.layers = 2;
    s.learner.unroll = 5;
    return s;
}

}  // namespace device_run
