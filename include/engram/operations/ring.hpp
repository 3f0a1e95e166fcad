#pragma once
// SPDX-License-Identifier: MIT

// Places in a ring: a memory of L slots that is filled in turn and then overwritten in turn, of which a count of writes
// says what is there (operations/slots.hpp).

#include <engram/core/device.hpp>

namespace engram {

/// Writes so far; what is no count (NaN, a negative number) is none, so that no such state can lead outside a memory.
template <class Real>
ENGRAM_HD int count_of(Real written) {
    return written >= Real(0) && written < Real(1 << 24) ? static_cast<int>(written) : 0;
}

/// The slots of a ring by the age of what they hold, or by themselves. The first `valid` of either were written.
struct ring_places {
    int valid, slots;
    int newest = -1;  // the slot of the last write; none: by slot

    ENGRAM_HD ring_places(int all, int count, bool by_age) : valid(count < all ? count : all), slots(all) {
        if (by_age) newest = (count + all - 1) % all;
    }
    /// The slot of age i, and the age of slot i.
    ENGRAM_HD int operator()(int i) const {
        if (newest < 0) return i;
        return i <= newest ? newest - i : newest - i + slots;
    }
};

}  // namespace engram
