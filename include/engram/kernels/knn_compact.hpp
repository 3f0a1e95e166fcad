#pragma once
// SPDX-License-Identifier: MIT

// The first look of a k-NN search at half the bytes: keys as bfloat16, and for every slot a number that is not above
// its distance, however the floats are rounded (ours).
//
// Keys and query are taken from a centre c, the key in slot 0, so that keys which lie close together far from zero
// lose no more than others: with x = q - c and y = k - c,
//
//   |k|^2 - 2 q.k = d + |y|^2 - 2 x.y,   d = |c|^2 - 2 q.c,
//   x.y <= x'.y' + |x| |y - y'| + |x - x'| |y'|      (Cauchy and Schwarz), where x', y' are rounded to bfloat16.
//
// The rest is for float. A sum of D products passes a term through D / width + log2(width) + 6 roundings at most; with
// g = 2^-23 times that, twice what rounding to nearest can do, it is wrong by g |a| |b|. So today's distance is wrong
// by g |k| (|k| + 2 |q|), where |q| <= |x| + |c|, and the bound by 4 g |x| |y| and (2 g + 2^-20) |y|^2. Under every
// root stands F = (D + 4) 2^-100: g F is more than sums can lose to numbers below 2^-126 that become zero, and sqrt(F)
// more than such numbers. Lengths from 2^60 on are refused, so that nothing overflows.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "engram/core/bfloat16.hpp"
#include "engram/kernels/knn_ring.hpp"
#include "engram/kernels/rows.hpp"

namespace engram {

/// Widest keys that may have a compact copy: the rounded query lies on the stack.
inline constexpr int knn_compact_widest = 1024;
/// Bounds of a slot: |y|^2 less what rounding may add to it, a multiple of |x|, and a multiple of |x - x'|.
inline constexpr int knn_compact_bounds = 3;

/// Words of a compact key; what is beyond the key is zero.
constexpr int knn_compact_stride(int key_width) {
    return (key_width + bfloat16_pairs::width - 1) / bfloat16_pairs::width * bfloat16_pairs::words;
}

namespace detail {

/// Float arithmetic on D numbers: g of the equations above, and what is too long for it.
struct knn_rounding {
    static constexpr double too_long = 0x1p60;
    int D;

    double g() const {
        constexpr int lanes = pack<float>::width;
        return ((D + lanes - 1) / lanes + std::bit_width(unsigned(lanes)) + 6) * 0x1p-23;
    }
    /// No less than a length whose square was summed in floats.
    double length(float square) const { return std::sqrt(double(square) * (1 + 2 * g()) + (D + 4) * 0x1p-100); }
    /// No less as a float, and as a factor of a float product.
    static float above(double x) { return static_cast<float>(x + std::abs(x) * 0x1p-20); }
};

/// A vector less the centre, z = a - c [D], as bfloat16 z' [stride(D)]: |z|^2, |z - z'|^2 and |z'|^2 as floats sum
/// them. With `whole` also z as floats in the order of the pairs' halves.
struct knn_centred {
    float all, lost, kept;

    knn_centred(const float* a, const float* c, int D, std::uint32_t* pairs, float* whole = nullptr) {
        using P = pack<float>;
        P all_sum(0), lost_sum(0), kept_sum(0);
        for (int i = 0; i < D; i += bfloat16_pairs::width, pairs += bfloat16_pairs::words) {
            P low, high;
            if (i + bfloat16_pairs::width <= D) {
                low = P::load(a + i) - P::load(c + i);
                high = P::load(a + i + P::width) - P::load(c + i + P::width);
            } else {
                const int first = std::min(D - i, P::width), second = D - i - first;
                low = P::load(a + i, first) - P::load(c + i, first);
                high = P::load(a + i + first, second) - P::load(c + i + first, second);
            }
            const auto rounded = bfloat16_pairs::nearest(low, high);
            rounded.store(pairs);
            all_sum += square(low) + square(high);
            lost_sum += square(low - rounded.low()) + square(high - rounded.high());
            kept_sum += square(rounded.low()) + square(rounded.high());
            if (!whole) continue;
            low.store(whole + i);
            high.store(whole + i + P::width);
        }
        all = all_sum.sum(), lost = lost_sum.sum(), kept = kept_sum.sum();
    }
    /// No less than |z - z'|, the rounding of a - c to a float included; without z' that alone.
    double error(const knn_rounding& of, bool rounded = true) const {
        return (rounded ? of.length(lost) : 0) + 0x1p-23 * of.length(all);
    }
};

}  // namespace detail

/// Makes the compact copy of one slot. Keys of no finite or of a huge length get bounds below everything. Norms may be
/// summed in another order than here, as those are that come from a device.
inline void knn_compact_write(const knn_ring<float>& ring, int slot) {
    const int D = ring.key_width, stride = knn_compact_stride(D);
    const detail::knn_rounding of{D};
    std::uint32_t* const pairs = ring.compact.pairs + std::ptrdiff_t(slot) * stride;
    const float *const c = ring.key, *const k = c + std::ptrdiff_t(slot) * D;
    const detail::knn_centred y(k, c, D, pairs);
    const float square = dot(k, k, D);
    const double g = of.g(), length = of.length(square), centre = of.length(dot(c, c, D));
    const double other = double(ring.norm[slot]) - double(square);
    float bounds[knn_compact_bounds] = {-std::numeric_limits<float>::infinity(), 0, 0};
    if (length < of.too_long && centre < of.too_long && std::abs(other) < of.too_long * of.too_long) {
        const double least =
            other - 0x1p-20 * std::abs(other) + y.all * (1 - 2 * g - 0x1p-20) - 2 * g * length * (length + 2 * centre);
        bounds[0] = -of.above(-least);
        bounds[1] = of.above(2 * y.error(of) + 4 * g * (length + of.length(y.all)));
        bounds[2] = of.above(2 * of.length(y.kept));
    } else {
        std::fill_n(pairs, stride, 0u);
    }
    for (int i = 0; i < knn_compact_bounds; ++i) ring.compact.bounds[std::ptrdiff_t(i) * ring.slots + slot] = bounds[i];
}

/// Makes the compact copy, if the ring has one, of the keys and norms that it holds now.
template <class Real>
void knn_compact_again(const knn_ring<Real>& ring) {
    if constexpr (std::is_same_v<Real, float>)
        for (int i = 0; ring.compact.pairs && i < knn_valid(ring); ++i) knn_compact_write(ring, i);
}

// Wrapped by hand: clang-format 14 mangles template lambdas.
// clang-format off

/// Products of a vector with a pack of compact rows [stride] that follow each other, one a lane; rows from `count` on
/// repeat the last one. The vector is pairs if `Rounded`, else floats in the order of the pairs' halves.
template <bool Rounded>
ENGRAM_SIMD pack<float> pair_dots(const std::uint32_t* rounded, const float* whole, const std::uint32_t* rows,
                                  int count, int stride) {
    using P = pack<float>;
    using pairs = bfloat16_pairs;
    constexpr int group = std::min(4, P::width), ahead = P::width;
    P sum[P::width];
    for (int first = 0; first < P::width; first += group)
        [&]<int... I>(std::integer_sequence<int, I...>) {
            P part[group] = {((void)I, P(0))...};
            const std::uint32_t* const row[group] = {
                rows + std::ptrdiff_t(first + I < count ? first + I : count - 1) * stride...};
            // Rows that come next are asked for in the order of addresses; no byte of them need exist.
            auto ask = reinterpret_cast<std::uintptr_t>(rows);
            ask += sizeof(std::uint32_t) * std::size_t(first + ahead) * std::size_t(stride);
            for (int i = 0; i < stride; i += pairs::words) {
                (__builtin_prefetch(reinterpret_cast<const void*>(ask + I * sizeof(pairs))), ...);
                ask += group * sizeof(pairs);
                if constexpr (Rounded) {
                    const auto x = pairs::load(rounded + i);
                    ((part[I] = multiply_add(pairs::load(row[I] + i), x, part[I])), ...);
                } else {
                    const P low = P::load(whole + 2 * i), high = P::load(whole + 2 * i + P::width);
                    ((part[I] = multiply_add(pairs::load(row[I] + i).low(), low, part[I])), ...);
                    ((part[I] = multiply_add(pairs::load(row[I] + i).high(), high, part[I])), ...);
                }
            }
            ((sum[first + I] = part[I]), ...);
        }(std::make_integer_sequence<int, group>{});
    return sums<P::width>(sum);
}

// clang-format on

/// below_i <= norm_i - 2 q . key_i - d as floats compute that of the first `valid` slots. Of use only if `ok`: queries
/// and centres of no finite or of a huge length are refused.
struct knn_below {
    double centre, uncertain;
    bool ok = false;

    template <bool Rounded = bfloat16_products>
    static knn_below of(const knn_ring<float>& ring, const float* query, int valid, float* below) {
        using P = pack<float>;
        using pairs = bfloat16_pairs;
        const int D = ring.key_width, stride = knn_compact_stride(D);
        const detail::knn_rounding of{D};
        const float square = dot(ring.key, ring.key, D);
        const double length = of.length(dot(query, query, D)), centre = of.length(square);
        if (!(length < of.too_long && centre < of.too_long)) return {};

        alignas(64) std::uint32_t rounded[knn_compact_widest / 2 + pairs::words];
        alignas(64) float whole[Rounded ? 1 : knn_compact_widest + pairs::width];
        const detail::knn_centred x(query, ring.key, D, rounded, Rounded ? nullptr : whole);
        const P of_error(of.above(of.length(x.all))), of_length(of.above(x.error(of, Rounded)));
        for (int first = 0; first < valid; first += P::width) {
            const int count = std::min(P::width, valid - first);
            const std::uint32_t* const rows = ring.compact.pairs + std::ptrdiff_t(first) * stride;
            const P product = pair_dots<Rounded>(rounded, whole, rows, count, stride);
            const auto bound = [&](int i) {
                return P::load(ring.compact.bounds + std::ptrdiff_t(i) * ring.slots + first, count);
            };
            (bound(0) - P(2) * product - of_error * bound(1) - of_length * bound(2)).store(below + first, count);
        }
        return {square - 2.0 * dot(query, ring.key, D), 2 * of.g() * centre * (centre + 2 * length), true};
    }

    /// No less than `distance` where it is compared with below_i.
    float bound(float distance) const { return detail::knn_rounding::above(distance - centre + uncertain); }
};

/// Interleaved parts of the numbers that k_at_most looks at.
inline constexpr int knn_columns = 32;

/// A number that at least k of n are not above, and few more are: the k-th smallest of the minima of `knn_columns`
/// interleaved parts. k <= knn_columns <= n; no NaN.
inline float k_at_most(const float* numbers, int n, int k) {
    using P = pack<float>;
    constexpr int packs = knn_columns / P::width;
    static_assert(packs > 0);
    P least[packs];
    for (int j = 0; j < packs; ++j) least[j] = P::load(numbers + j * P::width);
    int i = knn_columns;
    for (; i + knn_columns <= n; i += knn_columns)
        for (int j = 0; j < packs; ++j) {
            const P d = P::load(numbers + i + j * P::width);
            least[j] = select(d < least[j], d, least[j]);
        }
    alignas(64) float minima[knn_columns];
    for (int j = 0; j < packs; ++j) least[j].store(minima + j * P::width);
    for (; i < n; ++i) minima[i % knn_columns] = std::min(minima[i % knn_columns], numbers[i]);
    // The largest that fewer than k are below; counted and not sorted, since no branch of a sort can be foretold.
    P result(-std::numeric_limits<float>::infinity());
    for (int j = 0; j < packs; ++j) {
        const P mine = P::load(minima + j * P::width);
        P below(0);
        for (const float other : minima) below += select(P(other) < mine, P(1), P(0));
        result = select((below < P(k)) & (result < mine), mine, result);
    }
    float lanes[P::width];
    result.store(lanes);
    return *std::max_element(lanes, lanes + P::width);
}

/// The indices of numbers [n] that are not above `bound`, ascending; returns how many, at most `most`. They may be
/// written over the numbers.
template <class Index>
int indices_at_most(const float* numbers, int n, float bound, int most, Index* index) {
    using P = pack<float>;
    int found = 0;
    for (int first = 0; first < n; first += P::width) {
        const int count = std::min(P::width, n - first);
        const P here = P::load(numbers + first, count);
        if (!any(here <= P(bound))) continue;
        float lane[P::width];
        here.store(lane);
        for (int i = 0; i < count; ++i) {
            if (found == most) return found;
            // No branch on the number: which lane it is cannot be foretold.
            index[found] = static_cast<Index>(first + i);
            found += lane[i] <= bound;
        }
    }
    return found;
}

}  // namespace engram
