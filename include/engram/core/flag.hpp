#pragma once
// SPDX-License-Identifier: MIT

// A flag is a number that is 0 or 1 and lies among other numbers: an episode begins, a slot is freed.

#include <engram/core/device.hpp>

namespace engram {

/// Whether a flag is one: of a number, or of each lane of a pack.
ENGRAM_HD constexpr auto is_set(const auto& flag) {
    return flag > 0.5f;
}

}  // namespace engram
