#pragma once
// SPDX-License-Identifier: MIT

// A read of the FIFO k-NN memory as one block a row (equations: kernels/knn.hpp), and its gradient as another.
//
// Distances to cached keys are measured by the block, or, where slots are many, by a launch ahead of it whose blocks
// have some of them each: a block's processor reads a small part of what a device can. The block takes the K nearest
// slots exactly, ties to the lower slot, copies their contents, gives the copies keys under the current weights, and
// mixes their values. Lanes read keys and weights side by side, so that memory is read in whole lines. Every slot's
// distance is one fixed chain of additions, the same for all: equal keys are equally far, and the slots chosen are the
// host's wherever distances differ by more than rounding.

#include <cstdint>
#include <limits>

#include <engram/device/kernel.hpp>
#include <engram/device/shared_sums.hpp>
#include <engram/kernels/knn.hpp>

namespace engram {

/// A slot and its distance; the nearest is the lower slot among equals.
template <class Real>
struct knn_candidate {
    Real distance, slot;
    ENGRAM_HD bool before(const knn_candidate& other) const {
        return distance < other.distance || (distance == other.distance && slot < other.slot);
    }
};

/// What the reads of one step keep, [B, K, ...] each.
template <class Real>
struct knn_reads {
    Real *content, *keys, *distance;  // [B, K, C], [B, K, D], [B, K]
    int* found;                       // [B]
    int neighbours;
};

namespace internal {

/// |key|^2 - 2 q . key of the slots [first, last) of ring b: their squared distance to the query but for |q|^2.
/// `partial` [shared_sums::share_numbers]; the number of lanes changes no bit.
template <class Real, class Block>
ENGRAM_HD void measure_slots(Block& block, const knn_ring<Real>& rings, const Real* q, int b, int first, int last,
                             Real* partial, Real* distance) {
    constexpr Real infinity = std::numeric_limits<Real>::infinity();
    const int D = rings.key_width;
    const Real* const key = rings.key + (std::ptrdiff_t{b} * rings.slots + first) * D;
    const Real* const norm = rings.norm + std::ptrdiff_t{b} * rings.slots;
    shared_sums<Block::lanes>::add_up(
        block, partial, last - first, D, [=](int i, int c) { return q[c] * key[std::ptrdiff_t{i} * D + c]; },
        [=](int i, Real product) {
            const Real d = norm[first + i] - 2 * product;
            distance[first + i] = d < infinity ? d : infinity;
        });
}

/// Distances [B, N], some slots of a ring a block.
template <class Real>
struct knn_distances {
    static constexpr int lanes = 128, slots = 32;  // of a block
    static constexpr int scratch = shared_sums<lanes>::share_numbers;
    static int blocks(int all) { return (all + slots - 1) / slots; }  // of a ring

    knn_ring<Real> rings;
    step_rows<Real> query;
    Real* distance;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int index) const {
        const int of_ring = (rings.slots + slots - 1) / slots, b = index / of_ring, first = index % of_ring * slots;
        const std::int64_t written = rings.written[b];
        const int valid = written < rings.slots ? static_cast<int>(written) : rings.slots;
        if (first >= valid) return;
        measure_slots(block, rings, query.row(b), b, first, valid - first < slots ? valid : first + slots,
                      block.scratch, distance + std::ptrdiff_t{b} * rings.slots);
    }
};

/// Block b reads ring b.
template <class Real>
struct knn_read_rows {
    static constexpr int lanes = 512, finalists = 16, tile = 5, columns = 4;
    using sums = shared_sums<lanes>;
    /// More slots than this have their distances measured ahead, in memory instead of the block's scratch.
    static constexpr int near_slots = 128;
    static constexpr int all_sums = lanes * tile * columns;  // of a part of W_k each
    static constexpr int partial_numbers = sums::share_numbers > all_sums ? sums::share_numbers : all_sums;
    static int scratch(int slots, int neighbours) {
        return partial_numbers + 2 * lanes + 2 * finalists + neighbours + (slots <= near_slots ? slots : 0);
    }

    knn_ring<Real> rings;
    step_rows<Real> query, weight, when, read;
    knn_reads<Real> to;
    const Real *key_weight, *key_bias;  // [C, D], [D]; null: cached keys serve as they are
    Real* far;                          // [B, N], measured already; or null
    int value_offset;
    Real epsilon;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int b) const {
        const int K = to.neighbours, N = rings.slots;
        const std::int64_t written = rings.written[b];
        const int valid = written < N ? static_cast<int>(written) : N, found = K < valid ? K : valid;
        Real* const chosen = block.scratch + partial_numbers + 2 * lanes + 2 * finalists;
        Real* const distance = far ? far + std::ptrdiff_t{b} * N : chosen + K;
        if (!far) measure_slots(block, rings, query.row(b), b, 0, valid, block.scratch, distance);
        select(block, valid, found, distance, chosen);
        gather(block, b, found, written - 1, chosen);
        if (key_weight && found > 0) recompute(block, b, found);
        mix(block, b, found);
    }

private:
    /// Every lane keeps the nearest of its slots; the one whose slot is taken looks again.
    template <class Block>
    ENGRAM_HD void select(Block& block, int valid, int found, Real* distance, Real* chosen) const {
        using candidate = knn_candidate<Real>;
        auto* const best = reinterpret_cast<candidate*>(block.scratch + partial_numbers);
        auto* const top = best + lanes;
        const auto look = [=](int lane) {
            // A slot that was taken is NaN, which is before nothing.
            candidate mine{std::numeric_limits<Real>::infinity(), Real(valid)};
            for (int i = lane; i < valid; i += lanes) {
                const candidate c{distance[i], Real(i)};
                if (c.before(mine)) mine = c;
            }
            best[lane] = mine;
        };
        block.each(look);
        for (int j = 0; j < found; ++j) {
            block.each([=](int lane) {
                if (lane >= finalists) return;
                candidate mine = best[lane];
                for (int i = lane + finalists; i < lanes; i += finalists)
                    if (best[i].before(mine)) mine = best[i];
                top[lane] = mine;
            });
            candidate nearest = top[0];
            for (int i = 1; i < finalists; ++i)
                if (top[i].before(nearest)) nearest = top[i];
            const int slot = static_cast<int>(nearest.slot);
            block.each([=](int lane) {
                if (slot % lanes != lane) return;
                chosen[j] = Real(slot);
                distance[slot] = std::numeric_limits<Real>::quiet_NaN();
                look(lane);
            });
        }
    }

    template <class Block>
    ENGRAM_HD void gather(Block& block, int b, int found, std::int64_t newest, const Real* chosen) const {
        const int K = to.neighbours, N = rings.slots, C = rings.content_width, D = rings.key_width;
        const std::ptrdiff_t first = std::ptrdiff_t{b} * K, ring = std::ptrdiff_t{b} * N;
        Real *const content = to.content + first * C, *const keys = key_weight ? nullptr : to.keys + first * D;
        const Real *const from = rings.content + ring * C, *const key = rings.key + ring * D;
        block_for(block, C, [=](int c) {
            for (int j = 0; j < K; ++j)
                content[std::ptrdiff_t{j} * C + c] =
                    j < found ? from[static_cast<std::ptrdiff_t>(chosen[j]) * C + c] : Real(0);
        });
        block_for(block, keys ? D : 0, [=](int c) {
            for (int j = 0; j < K; ++j)
                keys[std::ptrdiff_t{j} * D + c] =
                    j < found ? key[static_cast<std::ptrdiff_t>(chosen[j]) * D + c] : Real(0);
        });
        Real* const when_to = when.row(b);
        int* const found_to = to.found + b;
        block_for(block, K, [=](int j) {
            const auto slot = static_cast<std::int64_t>(j < found ? chosen[j] : Real(0));
            when_to[j] = j < found ? static_cast<Real>(newest - (newest - slot) % N) : Real(-1);
            if (j == 0) *found_to = found;
        });
    }

    /// Keys under the current weights: a lane has `tile` neighbours, `columns` columns, and a part of the rows of W_k,
    /// so that it multiplies more often than it reads.
    template <class Block>
    ENGRAM_HD void recompute(Block& block, int b, int found) const {
        const int K = to.neighbours, C = rings.content_width, D = rings.key_width, apart = (D + columns - 1) / columns;
        const int pieces = (found + tile - 1) / tile * apart, parts = lanes / 2 < pieces ? 1 : lanes / pieces;
        const Real *const content = to.content + std::ptrdiff_t{b} * K * C, *const w = key_weight,
                          *const bias = key_bias;
        Real *const keys = to.keys + std::ptrdiff_t{b} * K * D, *const partial = block.scratch;
        block_for(block, pieces * parts, [=](int i) {
            const int part = i / pieces, column = i % pieces % apart, first = i % pieces / apart * tile;
            // Beyond the last neighbour or column the last one is taken once more, and not kept.
            const Real *row[tile], *weight_of[columns];
            Real sum[tile][columns];
            for (int j = 0; j < tile; ++j)
                row[j] = content + std::ptrdiff_t{first + j < found ? first + j : found - 1} * C;
            for (int k = 0; k < columns; ++k) {
                const int mine = column + k * apart < D ? column + k * apart : D - 1;
                weight_of[k] = w + mine;
                for (int j = 0; j < tile; ++j) sum[j][k] = part == 0 ? bias[mine] : Real(0);
            }
            const int last = static_cast<int>(std::int64_t{C} * (part + 1) / parts);
            for (int c = static_cast<int>(std::int64_t{C} * part / parts); c < last; ++c) {
                Real weights[columns];
                for (int k = 0; k < columns; ++k) weights[k] = weight_of[k][std::ptrdiff_t{c} * D];
                for (int j = 0; j < tile; ++j) {
                    const Real x = row[j][c];
                    for (int k = 0; k < columns; ++k) sum[j][k] += x * weights[k];
                }
            }
            Real* const into = parts == 1 ? keys : partial + part * found * D;
            for (int j = 0; j < tile && first + j < found; ++j)
                for (int k = 0; k < columns && column + k * apart < D; ++k)
                    into[(first + j) * D + column + k * apart] = sum[j][k];
        });
        block_for(block, parts > 1 ? found * D : 0, [=](int i) {
            Real sum = partial[i];
            for (int part = 1; part < parts; ++part) sum += partial[part * found * D + i];
            keys[i] = sum;
        });
    }

    /// The values of the neighbours by inverse squared distance.
    template <class Block>
    ENGRAM_HD void mix(Block& block, int b, int found) const {
        const int K = to.neighbours, C = rings.content_width, D = rings.key_width;
        const Real *const q = query.row(b), *const keys = to.keys + std::ptrdiff_t{b} * K * D;
        const Real* const value = to.content + std::ptrdiff_t{b} * K * C + value_offset;
        Real *const distance = to.distance + std::ptrdiff_t{b} * K, *const w = weight.row(b), *const m = read.row(b);
        sums::add_up(
            block, block.scratch, found, D,
            [=](int j, int c) {
                const Real gap = q[c] - keys[std::ptrdiff_t{j} * D + c];
                return gap * gap;
            },
            [=](int j, Real d) { distance[j] = d; });
        const Real e = epsilon;
        block_for(block, 1, [=](int) {
            // Scaled by the nearest, as on the host.
            Real nearest = found > 0 ? distance[0] : Real(0), total = 0;
            for (int j = 1; j < found; ++j) nearest = distance[j] < nearest ? distance[j] : nearest;
            for (int j = 0; j < found; ++j) total += w[j] = (e + nearest) / (e + distance[j]);
            for (int j = 0; j < K; ++j) w[j] = j < found ? w[j] / total : Real(0);
        });
        block_for(block, read.width, [=](int i) {
            Real sum = 0;
            for (int j = 0; j < found; ++j) sum += w[j] * value[std::ptrdiff_t{j} * C + i];
            m[i] = sum;
        });
    }
};

/// Block b gives the gradients of its query and of its neighbours' keys.
template <class Real>
struct knn_read_gradient_rows {
    static constexpr int lanes = 256;
    using sums = shared_sums<lanes>;
    static int scratch(int neighbours) { return sums::share_numbers + neighbours; }

    step_rows<Real> query, weight, d_read, d_query;
    knn_reads<Real> reads;
    Real* d_keys;  // [B, K, D], or null
    int content_width, key_width, value_offset;
    Real epsilon;

    template <class Block>
    ENGRAM_HD void operator()(Block& block, int b) const {
        const int K = reads.neighbours, C = content_width, D = key_width, found = reads.found[b];
        const std::ptrdiff_t first = std::ptrdiff_t{b} * K;
        const Real *const q = query.row(b), *const w = weight.row(b), *const dm = d_read.row(b);
        const Real *const keys = reads.keys + first * D, *const distance = reads.distance + first;
        const Real* const value = reads.content + first * C + value_offset;
        Real* const slope = block.scratch + sums::share_numbers;  // [K]: 2 dL/dd_j
        sums::add_up(
            block, block.scratch, found, d_read.width,
            [=](int j, int i) { return dm[i] * value[std::ptrdiff_t{j} * C + i]; },
            [=](int j, Real d) { slope[j] = d; });
        const Real e = epsilon;
        block_for(block, 1, [=](int) {
            Real mean = 0;
            for (int j = 0; j < found; ++j) mean += w[j] * slope[j];
            for (int j = 0; j < found; ++j) slope[j] = 2 * w[j] * (mean - slope[j]) / (e + distance[j]);
        });
        const step_rows<Real> dq = d_query;
        Real* const dk = d_keys ? d_keys + first * D : nullptr;
        block_for(block, D, [=](int i) {
            Real sum = 0;
            for (int j = 0; j < K; ++j) {
                const Real by = j < found ? slope[j] * (q[i] - keys[std::ptrdiff_t{j} * D + i]) : Real(0);
                sum += by;
                if (dk) dk[std::ptrdiff_t{j} * D + i] = -by;
            }
            if (dq.wanted()) dq.put(b, i, sum);
        });
    }
};

}  // namespace internal

}  // namespace engram
