#pragma once
// SPDX-License-Identifier: MIT

// What a FIFO episodic memory holds (equations: knn.hpp).

#include <algorithm>
#include <cstdint>

#include "engram/version.hpp"

namespace engram {

/// The compact copy of a ring's float keys (knn_compact.hpp): bytes and three bounds for every slot. Null: there is
/// none.
struct knn_compact {
    std::uint32_t* words = nullptr;
};

/// One environment's ring of `slots` rows: content [N, C] = [p | v], key [N, D], norm [N] = |key|^2, and the number of
/// writes since the last reset. Keys of float may have a compact copy, which `knn_write` keeps; whoever writes keys in
/// another way calls `rebuild_compact`.
template <class Real>
struct knn_ring {
    Real* content;
    Real* key;
    Real* norm;
    std::int64_t* written;
    int slots, content_width, key_width;
    knn_compact compact{};
};

/// Slots that hold something: min(written, slots).
template <class Real>
int knn_valid(const knn_ring<Real>& ring) {
    return static_cast<int>(std::min<std::int64_t>(*ring.written, ring.slots));
}

/// Forgets everything.
template <class Real>
void knn_reset(knn_ring<Real>& ring) {
    *ring.written = 0;
}

}  // namespace engram
