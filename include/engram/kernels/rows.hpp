#pragma once
// SPDX-License-Identifier: MIT

// Dot products and sums over raw rows of numbers, several rows at a time.
//
// g++ may not reorder floating-point sums, so it leaves a plain dot product scalar. Here every sum has one stated order:
// partial sums per lane, then a balanced tree over the lanes. It depends on the length of a row alone, never on how many
// rows are handled at once, so equal rows give equal bits.

#include <cstddef>
#include <utility>

#include "engram/core/pack.hpp"

namespace engram {

/// Whether any lane is true.
template <class Real>
ENGRAM_HD bool any(pack_mask<Real> mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask.bits, (__m512i)mask.bits) != 0;
#elif defined(__AVX__)
    return !_mm256_testz_si256((__m256i)mask.bits, (__m256i)mask.bits);
#else
    bool result = false;
    for (int i = 0; i < pack<Real>::width; ++i) result |= mask[i];
    return result;
#endif
}

/// Sums of neighbours: (a0 + a1, a2 + a3, ..., b0 + b1, ...).
template <class Real>
ENGRAM_HD pack<Real> pair_sums(pack<Real> a, pack<Real> b) {
    return [&]<int... I>(std::integer_sequence<int, I...>) {
        return pack<Real>(__builtin_shufflevector(a.lanes, b.lanes, (2 * I)...) +
                          __builtin_shufflevector(a.lanes, b.lanes, (2 * I + 1)...));
    }(std::make_integer_sequence<int, pack<Real>::width>{});
}

/// The sum of each of `Count` packs (a power of two, at most the width) in lanes 0 .. Count - 1.
template <int Count, class Real>
ENGRAM_HD pack<Real> sums(const pack<Real>* packs) {
    if constexpr (Count == 1) {
        pack<Real> a = packs[0];
        for (int n = pack<Real>::width; n > 1; n /= 2) a = pair_sums(a, a);
        return a;
    } else {
        pack<Real> level[Count];
        for (int i = 0; i < Count; ++i) level[i] = packs[i];
        for (int n = Count; n > 1; n /= 2)
            for (int i = 0; i < n / 2; ++i) level[i] = pair_sums(level[2 * i], level[2 * i + 1]);
        for (int n = pack<Real>::width / Count; n > 1; n /= 2) level[0] = pair_sums(level[0], level[0]);
        return level[0];
    }
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
    for (; i + P::width <= n; i += P::width) sum += square(P::load(a + i) - P::load(b + i));
    if (i < n) sum += square(P::load(a + i, n - i) - P::load(b + i, n - i));
    return sums<1>(&sum)[0];
}

/// y += scale * x over n numbers.
template <class Real>
void add_scaled(Real* __restrict y, Real scale, const Real* __restrict x, int n) {
    for (int i = 0; i < n; ++i) y[i] += scale * x[i];
}

/// Dot products of `a` with `Rows` rows of n numbers (a power of two, at most the width), in lanes 0 .. Rows - 1, each
/// with the bits that `dot` gives it.
template <int Rows, class Real>
ENGRAM_HD pack<Real> dots(const Real* a, const Real* const* rows, int n) {
    using P = pack<Real>;
    // Few rows at a time: more chains than the multiplier needs only scatter the reads.
    constexpr int group = Rows < 4 ? Rows : 4;
    P sum[Rows];
    for (int first = 0; first < Rows; first += group)
        [&]<int... I>(std::integer_sequence<int, I...>) {
            P part[group] = {((void)I, P(0))...};
            const Real* const row[group] = {rows[first + I]...};
            int i = 0;
            for (; i + P::width <= n; i += P::width) {
                const P x = P::load(a + i);
                ((part[I] = multiply_add(x, P::load(row[I] + i), part[I])), ...);
            }
            if (i < n) {
                const P x = P::load(a + i, n - i);
                ((part[I] = multiply_add(x, P::load(row[I] + i, n - i), part[I])), ...);
            }
            ((sum[first + I] = part[I]), ...);
        }(std::make_integer_sequence<int, group>{});
    return sums<Rows>(sum);
}

}  // namespace engram
