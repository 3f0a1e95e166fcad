#pragma once
// SPDX-License-Identifier: MIT

// The models that updates.cu measures, and how long an update of them takes on the host: that part is compiled by the
// host's compiler, since nvcc does not take the vector code of cpu<Real>.

#include <chrono>

#include <engram/auxiliary/cpc.hpp>
#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/impala_resnet.hpp>
#include <engram/encoder/mlp.hpp>
#include <engram/learner/vtrace.hpp>
#include <engram/memory/fifo_knn.hpp>
#include <engram/memory/no_memory.hpp>
#include <engram/model/agent.hpp>

namespace updates {

inline constexpr int T = 50, B = 16;

using plain = engram::agent<engram::mlp, engram::lstm, engram::no_memory, engram::no_auxiliary, engram::vtrace>;
using remembering = engram::agent<engram::mlp, engram::lstm, engram::fifo_knn, engram::cpc, engram::vtrace>;
using seeing = engram::agent<engram::impala_resnet, engram::lstm, engram::fifo_knn, engram::cpc, engram::vtrace>;

using clock_type = std::chrono::steady_clock;
inline double milliseconds_since(clock_type::time_point start) {
    return std::chrono::duration<double, std::milli>(clock_type::now() - start).count();
}

/// Milliseconds of the fastest of three updates by one host thread.
template <class Agent>
double on_the_host(const engram::task_shape& task);

}  // namespace updates
