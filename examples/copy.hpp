// SPDX-License-Identifier: MIT
#pragma once

// The classic test of an external memory: read up to 20 patterns of 8 bits, then write them down (task bit_copy). The
// same five slots as everywhere, with a supervised learner:
//
//   build/bin/engram-ntm_copy train --task bit_copy --steps 3000000
//   build/bin/engram-dnc_copy train --task bit_copy --steps 6000000

#include <engram/auxiliary/no_auxiliary.hpp>
#include <engram/controller/lstm.hpp>
#include <engram/encoder/identity.hpp>
#include <engram/learner/supervised.hpp>
#include <engram/memory/dnc.hpp>
#include <engram/memory/ntm.hpp>
#include <engram/model/agent.hpp>

namespace copying {

using ntm_copy = engram::agent<engram::identity, engram::lstm, engram::ntm, engram::no_auxiliary, engram::supervised>;
using dnc_copy = ntm_copy::with<engram::dnc>;

}  // namespace copying
