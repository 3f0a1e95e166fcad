#pragma once
// SPDX-License-Identifier: MIT

// The products of product.hpp with both factors rounded to bfloat16 and sums in float:
//
//   y = b + r(x) r(W),  dW = r(x)^T r(dy),  r the nearest number of eight significant bits
//
// On processors with AVX-512 BF16 one instruction does twice the multiply-adds of a float's. It adds two products at a
// time, so factors lie in pairs along what is summed over, each pair a word (core/bfloat16.hpp), and an odd last one
// has a zero beside it. An element differs from the float product's by at most 2^-7 (1 + 2^-9) times the sum of |x| |w|
// and the rounding of a float's sum.
//
// As there every element is ONE chain in a fixed order (bias or old y, then pair by pair), so a row has the same bits
// alone, in a batch or in a shard. Products of several addends are calls that accumulate: a float that is stored and
// loaded again keeps the chain. The instruction takes subnormal numbers for zero and rounds each of its two additions;
// elsewhere two fused multiply-adds do its work, with other last bits. A NaN that arithmetic has made stays one.
//
// Row-major, strides and overlapping rows as in product.hpp. No call allocates.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engram/core/bfloat16.hpp"
#include "engram/kernels/product.hpp"

namespace engram {

/// Weights [k, n] in panels whose row q holds rows 2 q and 2 q + 1: packed_weights of (k + 1) / 2 rows of words.
using paired_weights = packed_weights<std::uint32_t>;

/// `count` numbers from `low`, each with the one from `high` beside it, or with zero where there is none, as words.
template <class Count>
ENGRAM_SIMD void pair_rows(const float* low, const float* high, Count count, std::uint32_t* to) {
    constexpr int width = bfloat16_pairs::words;
    for (int j = 0; j < count; j += width) {
        const int there = std::min<int>(width, count - j);
        const auto load = [&](const float* from) __attribute__((always_inline)) {
            return there == width ? pack<float>::load(from + j) : pack<float>::load(from + j, there);
        };
        const auto pairs = bfloat16_pairs::nearest(load(low), high ? load(high) : pack<float>(0));
        std::memcpy(to + j, &pairs.bits, sizeof(std::uint32_t) * std::size_t(there));
    }
}

/// Neighbours of a row of k numbers as (k + 1) / 2 words.
inline void pair_neighbours(const float* row, int k, std::uint32_t* to) {
    for (int q = 0; q < k / 2; ++q) to[q] = bfloat16_pairs::word(row[2 * q], row[2 * q + 1]);
    if (k % 2 != 0) to[k / 2] = bfloat16_pairs::word(row[k - 1], 0);
}

/// Makes `packed` of row-major w[k][n].
inline void pack_pairs(const float* w, int stride, int k, int n, paired_weights& packed, panel_range part = {}) {
    if (packed.rows() != (k + 1) / 2 || packed.columns() != n) packed.resize((k + 1) / 2, n);
    packed.pack_from(
        [=](int q, int column) {
            const float* low = w + std::ptrdiff_t(2 * q) * stride + column;
            return bfloat16_pairs::word(*low, 2 * q + 1 < k ? low[stride] : 0);
        },
        part);
}

/// Makes `packed` of row-major w[n][k]: it then holds its transpose.
inline void pack_pairs_transposed(const float* w, int stride, int k, int n, paired_weights& packed,
                                  panel_range part = {}) {
    if (packed.rows() != (k + 1) / 2 || packed.columns() != n) packed.resize((k + 1) / 2, n);
    packed.pack_transposed_from(
        [=](int q, int column, auto columns, std::uint32_t* to) {
            const float* from = w + std::ptrdiff_t(column) * stride + 2 * q;
            const bool whole = 2 * q + 1 < k;
            float low[columns()], high[columns()];
            for (int j = 0; j < columns(); ++j, from += stride) {
                low[j] = from[0];
                high[j] = whole ? from[1] : 0;
            }
            pair_rows(low, high, columns, to);
        },
        part);
}

/// Rows that multiply_pairs rounds at a time: they stay in the second-level cache while all panels pass over them.
inline int paired_block(int pairs) {
    constexpr int cached = 64 * 1024;
    return std::max(2, cached / std::max(pairs, 1) / product_tile_rows) * product_tile_rows;
}

/// Words of the scratch memory of multiply_pairs for x [m, k].
inline std::ptrdiff_t paired_workspace(int k, int m) {
    const int pairs = (k + 1) / 2;
    return std::ptrdiff_t(std::min(m, paired_block(pairs))) * pairs;
}

/// y[m, n] = (accumulate ? y : bias or 0) + x[m, k] W[k, n]; workspace: paired_workspace(k, m) words.
template <bool = bfloat16_products>
void multiply_pairs(const float* x, std::ptrdiff_t x_stride, int k, const paired_weights& w, const float* bias,
                    bool accumulate, float* y, std::ptrdiff_t y_stride, int m, std::uint32_t* workspace) {
    const int pairs = (k + 1) / 2, block = paired_block(pairs);
    for (int first = 0; first < m; first += block) {
        const int rows_here = std::min(block, m - first);
        for (int row = 0; row < rows_here; ++row)
            pair_neighbours(x + (first + row) * x_stride, k, workspace + std::ptrdiff_t(row) * pairs);
        for (int p = 0; p < w.panels(); ++p) {
            const int column = p * w.panel, columns = std::min(w.panel, w.columns() - column);
            const auto tiles = [&](auto vectors) __attribute__((always_inline)) {
                for_row_tiles(
                    0, rows_here, [&](int row, auto rows) __attribute__((always_inline)) {
                        product_tile<float, rows(), vectors()> tile;
                        float* to = y + (first + row) * y_stride + column;
                        tile.start(bias ? bias + column : nullptr, to, y_stride, accumulate, columns);
                        tile.template add<bfloat16_pairs>(workspace + std::ptrdiff_t(row) * pairs, pairs, 1,
                                                          w.panel_row(p, 0), vectors() * w.width, pairs);
                        tile.finish(to, y_stride, columns);
                    });
            };
            if (columns > w.width)
                tiles(std::integral_constant<int, product_tile_vectors>{});
            else
                tiles(std::integral_constant<int, 1>{});
        }
    }
}

/// Rows of x and dy that multiply_transposed_pairs takes at a time: they are half as long as those of floats.
inline constexpr int transposed_paired_block = 2 * transposed_block;

/// Words of the scratch memory of multiply_transposed_pairs.
inline std::ptrdiff_t transposed_paired_workspace(int k, int m) {
    return std::ptrdiff_t((std::min(m, transposed_paired_block) + 1) / 2) * (k + paired_weights::panel);
}

/// dw[k, n] (=|+=) sum over m of x[m, k] dy[m, n], rows in pairs, one chain over m; workspace:
/// transposed_paired_workspace(k, m) words.
template <bool = bfloat16_products>
void multiply_transposed_pairs(const float* x, std::ptrdiff_t x_stride, int k, const float* dy,
                               std::ptrdiff_t dy_stride, int n, int m, float* dw, std::ptrdiff_t dw_stride,
                               bool accumulate, std::uint32_t* workspace) {
    constexpr int width = paired_weights::width, panel = paired_weights::panel;
    if (m <= 0 && !accumulate)
        for (int i = 0; i < k; ++i) std::fill_n(dw + i * dw_stride, n, 0.0f);
    for (int first = 0; first < m; first += transposed_paired_block) {
        const int rows = std::min(transposed_paired_block, m - first), pairs = (rows + 1) / 2;
        const bool add = accumulate || first > 0;
        const auto gather = [&](const float* from, std::ptrdiff_t stride, auto count, std::uint32_t* to, int step) {
            from += first * stride;
            for (int q = 0; q < pairs; ++q, from += 2 * stride, to += step)
                pair_rows(from, 2 * q + 1 < rows ? from + stride : nullptr, count, to);
        };
        for_row_tiles(0, k, [&](int row, auto tile_rows) {
            gather(x + row, x_stride, tile_rows, workspace + std::ptrdiff_t(row) * pairs, tile_rows());
        });
        std::uint32_t* const dy_panel = workspace + std::ptrdiff_t(k) * pairs;
        for (int column = 0; column < n; column += panel) {
            const int columns = std::min(panel, n - column);
            const auto tiles = [&](auto vectors) __attribute__((always_inline)) {
                constexpr int span = vectors() * width;
                if (columns == span)
                    gather(dy + column, dy_stride, std::integral_constant<int, span>{}, dy_panel, span);
                else
                    gather(dy + column, dy_stride, columns, dy_panel, span);
                for_row_tiles(
                    0, k, [&](int row, auto tile_rows) __attribute__((always_inline)) {
                        product_tile<float, tile_rows(), vectors()> tile;
                        float* to = dw + row * dw_stride + column;
                        tile.start(nullptr, to, dw_stride, add, columns);
                        tile.template add<bfloat16_pairs>(workspace + std::ptrdiff_t(row) * pairs, 1, tile_rows(),
                                                          dy_panel, span, pairs);
                        tile.finish(to, dw_stride, columns);
                    });
            };
            if (columns > width)
                tiles(std::integral_constant<int, product_tile_vectors>{});
            else
                tiles(std::integral_constant<int, 1>{});
        }
    }
}

}  // namespace engram
