#pragma once
// SPDX-License-Identifier: MIT

// FIFO episodic memory read through its K nearest neighbours (facts 1.3 and 1.4, errata M17, M18, M19).
//
//   write    slot = written mod N;  content = [p | v], key = W_k [p | v] + b_k as it was then (cached)
//   select   the K valid slots with the smallest |key - q|^2 on cached keys; ties go to the lower slot
//   read     d_j = |q - k_j|^2,  u_j = 1 / (epsilon + d_j),  w_j = u_j / sum u,  m = sum_j w_j v_j
//   gradient dw_j / dd_l = w_j (w_l - [j = l]) / (epsilon + d_l);  contents are constants, the choice of slots too
//
// The read takes the keys of the chosen slots, recomputed by the caller (jumpy backpropagation) or gathered from the
// cache. Selection costs N D multiply-adds at about the speed of memory and allocates nothing. A large ring with a
// compact copy of its keys is looked at twice: a quarter of the bytes say which slots may be among the nearest, and
// those alone get their distance, so that slots and order are the same ones.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engram/kernels/knn_compact.hpp"
#include "engram/kernels/knn_ring.hpp"
#include "engram/kernels/rows.hpp"

namespace engram {

/// Overwrites the oldest slot with content [C] and key [D]; returns the slot.
template <class Real>
int knn_write(const knn_ring<Real>& ring, const Real* content, const Real* key) {
    const int slot = static_cast<int>((*ring.written)++ % ring.slots);
    std::copy_n(content, ring.content_width, ring.content + std::ptrdiff_t(slot) * ring.content_width);
    std::copy_n(key, ring.key_width, ring.key + std::ptrdiff_t(slot) * ring.key_width);
    ring.norm[slot] = dot(key, key, ring.key_width);
    if constexpr (std::is_same_v<Real, float>)
        if (ring.compact.words) {
            // Slot 0 is the centre of all.
            if (slot == 0)
                rebuild_compact(ring);
            else
                knn_compact_write(ring, slot);
        }
    return slot;
}

/// norm - 2 product. Numbers that are not below infinity (NaN too) become infinity.
template <class Real>
ENGRAM_SIMD pack<Real> knn_distance(pack<Real> norm, pack<Real> product) {
    const pack<Real> infinity(std::numeric_limits<Real>::infinity()), d = norm - pack<Real>(2) * product;
    return select(d < infinity, d, infinity);
}

/// norm_i - 2 q . key_i for the first `valid` slots: the squared distance but for |q|^2, which orders nothing.
template <class Real>
void knn_distances(const knn_ring<Real>& ring, const Real* query, int valid, Real* distance) {
    using P = pack<Real>;
    for (int first = 0; first < valid; first += P::width) {
        const int count = std::min(P::width, valid - first);
        // Keys come from beyond the second-level cache: those of the next block are asked for. Where the last block is
        // not full it repeats a row, so that every slot is computed by the same instructions.
        const P product =
            dots<P::width, P::width>(query, ring.key + std::ptrdiff_t(first) * ring.key_width, count, ring.key_width);
        knn_distance(P::load(ring.norm + first, count), product).store(distance + first, count);
    }
}

/// The same numbers, bit for bit, for `count` slots in any order: an int each, or a Real that holds one.
template <class Real, class Slot>
void knn_distances_of(const knn_ring<Real>& ring, const Real* query, const Slot* slot, int count, Real* distance) {
    using P = pack<Real>;
    constexpr std::ptrdiff_t line = 64 / sizeof(Real);
    const auto key = [&](int i) { return ring.key + static_cast<std::ptrdiff_t>(slot[i]) * ring.key_width; };
    for (int first = 0; first < count; first += P::width) {
        const int here = std::min(P::width, count - first);
        // All at once, since they come from anywhere.
        for (int i = 0; i < here; ++i)
            for (std::ptrdiff_t d = 0; d < ring.key_width; d += line) __builtin_prefetch(key(first + i) + d);
        Real norm[P::width], product[P::width];
        for (int i = 0; i < here; ++i) {
            norm[i] = ring.norm[static_cast<std::ptrdiff_t>(slot[first + i])];
            product[i] = dot(query, key(first + i), ring.key_width);
        }
        knn_distance(P::load(norm, here), P::load(product, here)).store(distance + first, here);
    }
}

/// Writes the slots of the k smallest of distance [n] to slot, smallest first, ties to the lower slot; returns
/// min(k, n). Infinite distances come last, in the order of their slots.
template <class Real>
int k_smallest(const Real* distance, int n, int k, int* slot) {
    using P = pack<Real>;
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
    k = std::min(k, n);
    if (k <= 0) return 0;
    int found = 0;
    Real worst = infinity;
    // Strictly below the worst kept so far while scanning upwards: an equal distance in a higher slot never displaces.
    const auto offer = [&](int i) {
        const Real d = distance[i];
        if (!(d < worst)) return;
        int at = found < k ? found++ : k - 1;
        for (; at > 0 && d < distance[slot[at - 1]]; --at) slot[at] = slot[at - 1];
        slot[at] = i;
        if (found == k) worst = distance[slot[k - 1]];
    };
    constexpr int block = 4 * P::width;
    int i = 0;
    for (; i < n && found < k; ++i) offer(i);
    for (; i + block <= n; i += block) {
        auto below = P::load(distance + i) < P(worst);
        for (int part = 1; part < 4; ++part) below = below | (P::load(distance + i + part * P::width) < P(worst));
        if (any(below))
            for (int j = i; j < i + block; ++j) offer(j);
    }
    for (; i < n; ++i) offer(i);
    const int finite = found;
    for (int j = 0; j < n && found < k; ++j)
        if (std::find(slot, slot + finite, j) == slot + finite) slot[found++] = j;
    return k;
}

/// What a search found, and how many distances it computed for it.
struct knn_found {
    int count, looked;
};

/// The k nearest of the first `valid` slots by two looks at a ring with a compact copy, as `knn_select` gives them, or
/// nothing where too many slots remain to be looked at or distances are not finite. 1 <= k <= knn_columns,
/// 4 knn_columns <= valid < 2^24, D <= knn_compact_widest. slot [k], scratch [slots].
template <byte_instruction By = best_byte_instruction>
knn_found two_pass_search(const knn_ring<float>& ring, const float* query, int valid, int k, int* slot,
                          float* scratch) {
    const knn_first_look<By> look(ring, query);
    if (!look.possible) return {};
    // An infinite bound leaves all, which are too many: distances of more than one in eight in any order take as long
    // as those of all in theirs (measured). Where that is to be expected of a sample, no more is looked at.
    constexpr int some = 2 * knn_columns, block = knn_compact_block;
    const int most = std::max(some, valid / 8), middle = valid / (2 * block) * block;
    look.below(0, block, scratch);
    look.below(middle, middle + block, scratch);
    if (look.near(0, middle, scratch) > 3 * block * most / valid) return {};
    look.below(block, middle, scratch);
    look.below(middle + block, valid, scratch);
    // Whatever slots these are, the k nearest of all are no farther than the k-th of them.
    int likely[some] = {};
    float distance[some];
    const float most_likely = k_at_most(scratch, valid, k);
    const int looked = indices_at_most(scratch, valid, most_likely, some, likely);
    knn_distances_of(ring, query, likely, looked, distance);
    k_smallest(distance, looked, k, slot);
    const float farthest = distance[slot[k - 1]], bound = look.bound(farthest);
    if (looked < some && bound <= most_likely) {
        for (int j = 0; j < k; ++j) slot[j] = likely[slot[j]];
        return {k, looked};
    }
    const int candidates = indices_at_most(scratch, valid, bound, most, scratch);
    if (candidates < k || candidates == most) return {0, looked};  // fewer: norms of minus infinity
    knn_distances_of(ring, query, scratch, candidates, scratch + most);
    k_smallest(scratch + most, candidates, k, slot);
    for (int j = 0; j < k; ++j) slot[j] = static_cast<int>(scratch[slot[j]]);
    return {k, looked + candidates};
}

/// Whether two looks at a ring are worth it, as measured: from 64 KB of keys, where the second look costs little beside
/// the first, on processors that sum products of bytes by instructions of their own.
constexpr bool knn_compact_pays(int valid, int key_width, int k) {
    return key_width >= 32 && key_width <= knn_compact_widest && k <= knn_columns && valid >= 4 * knn_columns &&
           valid < 1 << 24 && best_byte_instruction != byte_instruction::one &&
           std::int64_t(valid) * key_width >= 1 << 14;
}

/// The k valid slots nearest to query [D] on cached keys, nearest first, ties to the lower slot. Returns how many:
/// min(k, valid), whatever the numbers. scratch [slots].
template <class Real>
int knn_select(const knn_ring<Real>& ring, const Real* query, int k, int* slot, Real* scratch) {
    const int valid = knn_valid(ring);
    if constexpr (std::is_same_v<Real, float>)
        if (k > 0 && ring.compact.words && knn_compact_pays(valid, ring.key_width, k))
            if (const auto found = two_pass_search(ring, query, valid, k, slot, scratch); found.count > 0)
                return found.count;
    knn_distances(ring, query, valid, scratch);
    return k_smallest(scratch, valid, k, slot);
}

/// m [V] = sum_j w_j v_j over `found` neighbours with keys [found, D] and contents [found, C], v_j = content_j +
/// value_offset. Keeps distance [found] and weight [found] for the gradient. No neighbour: m = 0. With `rows`,
/// neighbour j is row rows[j] of keys and contents.
template <class Real>
void knn_read(const Real* query, const Real* keys, int key_width, const Real* content, int content_width,
              int value_offset, int value_width, int found, Real epsilon, Real* distance, Real* weight, Real* read,
              const int* rows = nullptr) {
    const auto row = [rows](int j) { return std::ptrdiff_t(rows ? rows[j] : j); };
    std::fill_n(read, value_width, Real(0));
    if (found <= 0) return;
    for (int j = 0; j < found; ++j) distance[j] = squared_distance(query, keys + row(j) * key_width, key_width);
    // Scaled by the nearest: u lies in (0, 1], so that neither tiny nor huge distances overflow or vanish.
    const Real nearest = epsilon + *std::min_element(distance, distance + found);
    Real total = 0;
    for (int j = 0; j < found; ++j) total += weight[j] = nearest / (epsilon + distance[j]);
    for (int j = 0; j < found; ++j) {
        weight[j] /= total;
        add_scaled(read, weight[j], content + row(j) * content_width + value_offset, value_width);
    }
}

/// From d_read [V]: adds to d_query [D], stores d_keys [found, D] (null: keys are constants), or with `rows` adds to
/// d_keys there, since several reads may share a row. The rest is as `knn_read` took and left it.
template <class Real>
void knn_read_gradient(const Real* query, const Real* keys, int key_width, const Real* content, int content_width,
                       int value_offset, int value_width, int found, Real epsilon, const Real* distance,
                       const Real* weight, const Real* d_read, Real* d_query, Real* d_keys, const int* rows = nullptr) {
    const auto row = [rows](int j) { return std::ptrdiff_t(rows ? rows[j] : j); };
    const auto d_weight = [&](int j) {
        return dot(d_read, content + row(j) * content_width + value_offset, value_width);
    };
    Real mean = 0;
    for (int j = 0; j < found; ++j) mean += weight[j] * d_weight(j);
    for (int j = 0; j < found; ++j) {
        const Real d_distance = weight[j] * (mean - d_weight(j)) / (epsilon + distance[j]);
        const Real* __restrict key = keys + row(j) * key_width;
        const Real twice = 2 * d_distance;
        for (int i = 0; i < key_width; ++i) d_query[i] += twice * (query[i] - key[i]);
        if (!d_keys) continue;
        Real* __restrict d_key = d_keys + row(j) * key_width;
        if (rows)
            for (int i = 0; i < key_width; ++i) d_key[i] += twice * (key[i] - query[i]);
        else
            for (int i = 0; i < key_width; ++i) d_key[i] = twice * (key[i] - query[i]);
    }
}

}  // namespace engram
