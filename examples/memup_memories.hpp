// SPDX-License-Identifier: MIT
#pragma once

// MemUP with other memories in place of its LSTM: a feed-forward controller that reads and writes a k-NN memory, an NTM
// or a DNC, trained to predict far steps (docs/results/memup.md has the table):
//
//   build/bin/engram-memup_dnc train --task copy --task.steps 120 --steps 4000000

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/feed_forward.hpp>
#include <engram/encoder/token_embedding.hpp>
#include <engram/learner/memup.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/model/agent.hpp>

namespace far_memories {

using memup_knn =
    engram::agent<engram::token_embedding, engram::feed_forward, engram::fifo_knn, engram::no_auxiliary, engram::memup>;
using memup_ntm = memup_knn::with<engram::ntm>;
using memup_dnc = memup_knn::with<engram::dnc>;

}  // namespace far_memories
