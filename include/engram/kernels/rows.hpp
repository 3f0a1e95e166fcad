#pragma once
// SPDX-License-Identifier: MIT

// Dot products and sums over raw rows of numbers, several rows at a time.
//
// g++ may not reorder floating-point sums, so it leaves a plain dot product scalar. Here every sum has one stated
// order: partial sums per lane, then a balanced tree over the lanes. It depends on the length of a row alone, never on
// how many rows are handled at once, so equal rows give equal bits.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engram/core/pack.hpp"

// Wrapped by hand: clang-format 14 mangles template lambdas.
// clang-format off

namespace engram {

/// The indices first, first + 1, ..., one in each lane.
template <class Real>
ENGRAM_SIMD pack<Real> indices(int first) {
#if defined(__CUDACC__)
    // nvcc 13 has an internal error at a vector of constants that come from a pack of arguments.
    typename pack<Real>::native result{};
    for (int i = 0; i < pack<Real>::width; ++i) result[i] = static_cast<Real>(first + i);
    return pack<Real>(result);
#else
    return [&]<int... I>(std::integer_sequence<int, I...>) {
        return pack<Real>(typename pack<Real>::native{static_cast<Real>(I)...}) + pack<Real>(first);
    }(std::make_integer_sequence<int, pack<Real>::width>{});
#endif
}

/// Sums of neighbours: (a0 + a1, a2 + a3, ..., b0 + b1, ...).
template <class Real>
ENGRAM_SIMD pack<Real> pair_sums(pack<Real> a, pack<Real> b) {
#if defined(__CUDACC__)
    // nvcc 13 has an internal error at a shuffle whose lanes are a pack of arguments; the bits are the same.
    typename pack<Real>::native result;
    for (int i = 0; i < pack<Real>::width / 2; ++i) {
        result[i] = a.lanes[2 * i] + a.lanes[2 * i + 1];
        result[pack<Real>::width / 2 + i] = b.lanes[2 * i] + b.lanes[2 * i + 1];
    }
    return pack<Real>(result);
#else
    return [&]<int... I>(std::integer_sequence<int, I...>) {
        return pack<Real>(__builtin_shufflevector(a.lanes, b.lanes, (2 * I)...) +
                          __builtin_shufflevector(a.lanes, b.lanes, (2 * I + 1)...));
    }(std::make_integer_sequence<int, pack<Real>::width>{});
#endif
}

/// The sum of each of `Count` packs (a power of two, at most the width) in lanes 0 .. Count - 1. A recursion and not a
/// loop: g++ would leave the packs in memory, also in the loop that fills them.
template <int Count, int Lanes, class Real>
ENGRAM_SIMD pack<Real> tree_sums(const pack<Real>* packs) {
    if constexpr (Lanes == Count && Count == 1) {
        return packs[0];
    } else if constexpr (Lanes > Count) {
        const pack<Real> half = tree_sums<Count, Lanes / 2>(packs);
        return pair_sums(half, half);
    } else {
        return pair_sums(tree_sums<Count / 2, Lanes / 2>(packs), tree_sums<Count / 2, Lanes / 2>(packs + Count / 2));
    }
}
/// The sums of several packs, one a lane.
template <int Count, class Real>
ENGRAM_SIMD pack<Real> sums(const pack<Real>* packs) {
    return tree_sums<Count, pack<Real>::width>(packs);
}

/// sum_i a_i b_i over n numbers.
template <class Real>
Real dot(const Real* a, const Real* b, int n) {
    using P = pack<Real>;
    P sum(0);
    int i = 0;
    for (; i + P::width <= n; i += P::width) sum = multiply_add(P::load(a + i), P::load(b + i), sum);
    if (i < n) sum = multiply_add(P::load(a + i, n - i), P::load(b + i, n - i), sum);
    return sums<1>(&sum)[0];
}

/// sum_i (a_i - b_i)^2 over n numbers.
template <class Real>
Real squared_distance(const Real* a, const Real* b, int n) {
    using P = pack<Real>;
    P sum(0);
    int i = 0;
    const auto add = [&](P difference) __attribute__((always_inline)) { sum = multiply_add(difference, difference, sum); };
    for (; i + P::width <= n; i += P::width) add(P::load(a + i) - P::load(b + i));
    if (i < n) add(P::load(a + i, n - i) - P::load(b + i, n - i));
    return sums<1>(&sum)[0];
}

/// y += scale * x over n numbers.
template <class Real>
void add_scaled(Real* __restrict y, Real scale, const Real* __restrict x, int n) {
    using P = pack<Real>;
    for (int i = 0; i < n; i += P::width) {
        const int count = n - i < P::width ? n - i : P::width;
        multiply_add(P(scale), P::load(x + i, count), P::load(y + i, count)).store(y + i, count);
    }
}

/// Dot products of `a` with `Rows` rows (a power of two, at most the width) of n numbers that follow each other, in
/// lanes 0 .. Rows - 1, each with the bits that `dot` gives it; rows from `count` on repeat the last one. The processor
/// is asked early for what lies Ahead rows behind each, of which no byte need exist.
template <int Rows, int Ahead = 0, class Real>
ENGRAM_SIMD pack<Real> dots(const Real* a, const Real* rows, int count, int n) {
    using P = pack<Real>;
    // Two rows at a time: more chains than the multiplier needs only scatter the reads.
    constexpr int group = Rows < 2 ? Rows : 2, line = 64, lines = (2 * group * pack_bytes + line - 1) / line;
    P sum[Rows];
    for (int first = 0; first < Rows; first += group)
        [&]<int... I, int... L>(std::integer_sequence<int, I...>, std::integer_sequence<int, L...>) {
            P part[group] = {((void)I, P(0))...};
            const Real* const row[group] = {
                rows + std::ptrdiff_t(first + I < count ? first + I : count - 1) * n...};
            // In the order of addresses, which is what the processor's own look-ahead understands.
            auto ask = reinterpret_cast<std::uintptr_t>(rows);
            ask += sizeof(Real) * std::size_t(first + Ahead) * std::size_t(n);
            int i = 0;
            for (; i + 2 * P::width <= n; i += 2 * P::width) {
                if constexpr (Ahead > 0) {
                    (__builtin_prefetch(reinterpret_cast<const void*>(ask + L * line)), ...);
                    ask += lines * line;
                }
                const P x = P::load(a + i), y = P::load(a + i + P::width);
                ((part[I] = multiply_add(x, P::load(row[I] + i), part[I])), ...);
                ((part[I] = multiply_add(y, P::load(row[I] + i + P::width), part[I])), ...);
            }
            for (; i < n; i += P::width) {
                const int left = n - i < P::width ? n - i : P::width;
                const P x = P::load(a + i, left);
                ((part[I] = multiply_add(x, P::load(row[I] + i, left), part[I])), ...);
            }
            ((sum[first + I] = part[I]), ...);
        }(std::make_integer_sequence<int, group>{}, std::make_integer_sequence<int, lines>{});
    return sums<Rows>(sum);
}

/// out_i = |row_i|^2 for `count` rows of n numbers that follow each other, each with the bits of `dot`.
template <class Real>
[[gnu::noinline]] void squares(const Real* rows, int count, int n, Real* out) {
    using P = pack<Real>;
    // A pack of rows at a time, so that one tree of pair sums finishes them all.
    for (int first = 0; first < count; first += P::width)
        [&]<int... I>(std::integer_sequence<int, I...>) {
            P sum[P::width] = {((void)I, P(0))...};
            const Real* const row[P::width] = {
                rows + std::ptrdiff_t(first + I < count ? first + I : count - 1) * n...};
            const auto add = [](P x, P& to) __attribute__((always_inline)) { to = multiply_add(x, x, to); };
            int i = 0;
            for (; i + P::width <= n; i += P::width) (add(P::load(row[I] + i), sum[I]), ...);
            if (i < n) (add(P::load(row[I] + i, n - i), sum[I]), ...);
            const P total = sums<P::width>(sum);
            if (first + P::width <= count)
                total.store(out + first);
            else
                total.store(out + first, count - first);
        }(std::make_integer_sequence<int, P::width>{});
}

/// out_ij = a_i . b_j for `rows` rows a and `columns` rows b of n numbers, each with the bits that `dot` gives it.
/// Strides are numbers from row to row. Not inlined: too large, and with constant sizes g++ warns of tiles never taken.
template <class Real>
[[gnu::noinline]] void row_products(const Real* a, std::ptrdiff_t a_stride, int rows, const Real* b,
                                    std::ptrdiff_t b_stride, int columns, int n, Real* out, std::ptrdiff_t out_stride) {
    using P = pack<Real>;
    if (rows == 1 && b_stride == n) {  // a tile would compute its other rows for nothing
        for (int j = 0; j < columns; j += P::width) {
            const int count = columns - j < P::width ? columns - j : P::width;
            const Real* const from = b + j * b_stride;
            if (count > 4 || P::width < 4)
                dots<P::width>(a, from, count, n).store(out + j, count);
            else
                dots<std::min(4, P::width)>(a, from, count, n).store(out + j, count);
        }
        return;
    }
    // A tile has as many sums as a pack has lanes, so that one tree of pair sums finishes them all.
    constexpr int A = P::width >= 8 ? 4 : 2, B = P::width / A;
    for (int i = 0; i < rows; i += A)
        for (int j = 0; j < columns; j += B)
            [&]<int... I, int... J, int... S>(std::integer_sequence<int, I...>, std::integer_sequence<int, J...>,
                                              std::integer_sequence<int, S...>) {
                // Rows beyond the edge repeat the last one.
                const Real* const left[A] = {a + (i + I < rows ? i + I : rows - 1) * a_stride...};
                const Real* const right[B] = {b + (j + J < columns ? j + J : columns - 1) * b_stride...};
                P sum[A * B] = {((void)S, P(0))...};
                int at = 0;
                for (; at + P::width <= n; at += P::width) {
                    const P x[A] = {P::load(left[I] + at)...}, y[B] = {P::load(right[J] + at)...};
                    ((sum[S] = multiply_add(x[S / B], y[S % B], sum[S])), ...);
                }
                if (at < n) {
                    const P x[A] = {P::load(left[I] + at, n - at)...}, y[B] = {P::load(right[J] + at, n - at)...};
                    ((sum[S] = multiply_add(x[S / B], y[S % B], sum[S])), ...);
                }
                const P total = sums<A * B>(sum);
                Real* place = out + i * out_stride + j;
                if (i + A <= rows && j + B <= columns) {
                    for (int r = 0; r < A; ++r)
                        std::memcpy(place + r * out_stride, reinterpret_cast<const Real*>(&total) + r * B,
                                    B * sizeof(Real));
                    return;
                }
                for (int s = 0; s < A * B; ++s)
                    if (i + s / B < rows && j + s % B < columns) place[s / B * out_stride + s % B] = total[s];
            }(std::make_integer_sequence<int, A>{}, std::make_integer_sequence<int, B>{},
              std::make_integer_sequence<int, A * B>{});
}

/// out_i = sum_r a_ir b_r (stored, or added to what is there) for `rows` rows of n numbers and `terms` rows b, where
/// a_ir lies at a + i a_row + r a_term. Terms are summed in the order of r.
template <bool Add, class Real>
[[gnu::noinline]] void weighted_rows(const Real* a, std::ptrdiff_t a_row, std::ptrdiff_t a_term, int rows,
                                     const Real* b, std::ptrdiff_t b_stride, int terms, Real* out,
                                     std::ptrdiff_t out_stride, int n) {
    using P = pack<Real>;
    // Register tile: Rows x Packs sums. A tail of the columns is one pack, partly filled.
    const auto tile = [&]<int Rows, int Packs>(std::integral_constant<int, Rows>, std::integral_constant<int, Packs>,
                                               int i, int at, int count) {
        [&]<int... I, int... C, int... S>(std::integer_sequence<int, I...>, std::integer_sequence<int, C...>,
                                          std::integer_sequence<int, S...>) {
            const auto load = [&](const Real* p) { return Packs == 1 ? P::load(p, count) : P::load(p); };
            const auto place = [&](int s) { return out + (i + s / Packs) * out_stride + at + s % Packs * P::width; };
            P sum[Rows * Packs] = {(Add ? load(place(S)) : P(0))...};
            const Real* weight = a + i * a_row;
            const Real* row = b + at;
            for (int r = 0; r < terms; ++r, weight += a_term, row += b_stride) {
                const P x[Rows] = {P(weight[I * a_row])...}, y[Packs] = {load(row + C * P::width)...};
                ((sum[S] = multiply_add(x[S / Packs], y[S % Packs], sum[S])), ...);
            }
            if constexpr (Packs == 1)
                (sum[S].store(place(S), count), ...);
            else
                (sum[S].store(place(S)), ...);
        }(std::make_integer_sequence<int, Rows>{}, std::make_integer_sequence<int, Packs>{},
          std::make_integer_sequence<int, Rows * Packs>{});
    };
    constexpr int packs = pack_bytes == 64 ? 4 : 2;
    constexpr std::integral_constant<int, packs> wide;
    constexpr std::integral_constant<int, 4> four;
    constexpr std::integral_constant<int, 1> one;
    for (int at = 0; at < n;) {
        const int left = n - at, columns = left >= packs * P::width ? packs * P::width : std::min(left, P::width);
        int i = 0;
        if (columns == packs * P::width) {
            for (; i + 4 <= rows; i += 4) tile(four, wide, i, at, columns);
            for (; i < rows; ++i) tile(one, wide, i, at, columns);
        } else {
            for (; i + 4 <= rows; i += 4) tile(four, one, i, at, columns);
            for (; i < rows; ++i) tile(one, one, i, at, columns);
        }
        at += columns;
    }
}

}  // namespace engram

// clang-format on
