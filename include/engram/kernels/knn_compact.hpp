#pragma once
// SPDX-License-Identifier: MIT

// The first look of a k-NN search at a quarter of the bytes: keys as bytes, and for every slot a number that is not
// above its distance, however the floats are rounded (ours).
//
// Keys and query are taken from a centre c, the key in slot 0, so that keys which lie close together far from zero
// lose no more than others: with x = q - c and y = k - c,
//
//   |k|^2 - 2 q.k = d + |y|^2 - 2 x.y,   d = |c|^2 - 2 q.c,
//   x.y <= x'.y' + |x| |y - y'| + |x - x'| |y'|      (Cauchy and Schwarz), where
//   y' = s n,  s = max_i |y_i| / 127,  n_i whole,    so that |y'| <= 127 sqrt(D) s,
//   x' = r m,  r = max_i |x_i| / M,    m_i whole,    M = 2^15 - 129, or less where m.n would pass 2^31.
//
// |y - y'| and |x - x'| are measured, m.n is exact. The query has sixteen bits, which cost no bytes: it is then so much
// nearer to its x' than keys to their y' that a coarse bound of |y'| will do. Where all numbers are below 2^-50, all
// bytes and the scale are zero, so that no product of scales is below 2^-122.
//
// The rest is for float. A sum of D products passes a term through D / width + log2(width) + 6 roundings at most; with
// g = 2^-23 times that, twice what rounding to nearest can do, it is wrong by g |a| |b|. So today's distance is wrong
// by g |k| (|k| + 2 |q|), where |q| <= |x| + |c|. The bound is wrong by seven roundings of numbers below 3 |x| |y| +
// |y|^2, since |y'| < 1.2 |y|, and by that of |y|^2: less than 4 g |x| |y| and (2 g + 2^-20) |y|^2. What is measured in
// floats, |z - z'|, is wrong by 2^-21 |z| at most, the rounding of a - c included. Under every root stands
// F = (D + 4) 2^-100: g F is more than sums can lose to numbers below 2^-126 that become zero, and sqrt(F) more than
// such numbers. Lengths from 2^60 on are refused, so that nothing overflows.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "engram/core/byte_products.hpp"
#include "engram/kernels/knn_ring.hpp"
#include "engram/kernels/rows.hpp"

namespace engram {

/// Widest keys that may have a compact copy: the query lies on the stack.
inline constexpr int knn_compact_widest = 1024;
/// Bounds of a slot: |y|^2 less what rounding may add to it, a multiple of |x|, and 2 s.
inline constexpr int knn_compact_bounds = 3;
/// Slots that lie together in a block: a row of words for every four numbers of their keys, then a row for every bound.
/// A search reads from end to end, which is the order that a processor's own look-ahead understands.
inline constexpr int knn_compact_block = 32;

/// Rows of keys; what is beyond the key is multiplied by zero.
constexpr int knn_compact_rows(int key_width) {
    return (key_width + 3) / 4;
}
/// Words of the compact copy of a ring.
constexpr std::ptrdiff_t knn_compact_words(int slots, int key_width) {
    constexpr int block = knn_compact_block;
    return std::ptrdiff_t((slots + block - 1) / block) * block * (knn_compact_rows(key_width) + knn_compact_bounds);
}

namespace internal {

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

/// A vector less the centre, z = a - c [D], as whole numbers [D, and zeros up to a pack] from -most to most times a
/// scale: |z|^2 and |z - z'|^2 as floats sum them.
struct knn_scaled {
    float all, lost, scale;

    knn_scaled(const float* a, const float* c, int D, int most, std::int32_t* whole) {
        using P = pack<float>;
        using words = typename byte_products<>::native;
        alignas(64) float centred[knn_compact_widest + P::width];
        P largest(0), all_sum(0), lost_sum(0);
        for (int i = 0; i < D; i += P::width) {
            const int left = D - i;
            const P z = left < P::width ? P::load(a + i, left) - P::load(c + i, left) : P::load(a + i) - P::load(c + i);
            z.store(centred + i);
            largest = max(largest, abs(z));
            all_sum = multiply_add(z, z, all_sum);
        }
        float lane[P::width];
        largest.store(lane);
        const float top = *std::max_element(lane, lane + P::width);
        const bool enough = top >= 0x1p-50f && top < float(knn_rounding::too_long) * 2;
        scale = enough ? top / float(most) : 0;
        const P factor(enough ? float(most) / top : 0), unit(scale);
        // What is added to this number is rounded to a whole one, and is its lower bits.
        const P integers(0x1.8p23f);
        for (int i = 0; i < D; i += P::width) {
            const P z = P::load(centred + i), sum = multiply_add(z, factor, integers);
            const auto bits = __builtin_bit_cast(words, sum.lanes) - __builtin_bit_cast(words, integers.lanes);
            std::memcpy(whole + i, &bits, sizeof bits);
            const P lost_here = multiply_add(integers - sum, unit, z);
            lost_sum = multiply_add(lost_here, lost_here, lost_sum);
        }
        all = all_sum.sum(), lost = lost_sum.sum();
    }
    /// No less than |z - z'|.
    double error(const knn_rounding& of) const { return of.length(lost) + 0x1p-21 * of.length(all); }
};

}  // namespace internal

/// Makes the compact copy of one slot. Keys of no finite or of a huge length get bounds below everything. Norms may be
/// summed in another order than here, as those are that come from a device.
inline void knn_compact_write(const knn_ring<float>& ring, int slot) {
    constexpr int block = knn_compact_block;
    const int D = ring.key_width, rows = knn_compact_rows(D);
    const internal::knn_rounding of{D};
    const float *const c = ring.key, *const k = c + std::ptrdiff_t(slot) * D;
    std::int32_t whole[knn_compact_widest + pack<float>::width];
    const internal::knn_scaled y(k, c, D, 127, whole);
    const float square = dot(k, k, D);
    const double g = of.g(), length = of.length(square), centre = of.length(dot(c, c, D));
    const double other = double(ring.norm[slot]) - double(square);
    float bounds[knn_compact_bounds] = {-std::numeric_limits<float>::infinity(), 0, 0};
    if (length < of.too_long && centre < of.too_long && std::abs(other) < of.too_long * of.too_long) {
        const double least =
            other - 0x1p-20 * std::abs(other) + y.all * (1 - 2 * g - 0x1p-20) - 2 * g * length * (length + 2 * centre);
        bounds[0] = -of.above(-least);
        bounds[1] = of.above(2 * y.error(of) + 4 * g * (length + of.length(y.all)));
        bounds[2] = 2 * y.scale;
    }
    std::uint32_t* word = ring.compact.words + knn_compact_words(slot / block * block, D) + slot % block;
    // Bytes are whole numbers from 1 on, 128 more than these are.
    for (int i = 0; i < rows; ++i, word += block) {
        *word = 0x80808080u;
        for (int j = 0; j < 4; ++j) *word ^= (std::uint32_t(whole[4 * i + j]) & 255u) << (8 * j);
    }
    for (int i = 0; i < knn_compact_bounds; ++i, word += block) *word = std::bit_cast<std::uint32_t>(bounds[i]);
}

/// Makes the compact copy, if the ring has one, of the keys and norms that it holds now.
template <class Real>
void rebuild_compact(const knn_ring<Real>& ring) {
    if constexpr (std::is_same_v<Real, float>)
        for (int i = 0; ring.compact.words && i < knn_valid(ring); ++i) knn_compact_write(ring, i);
}

/// The first look at a ring with a compact copy: numbers below_i <= norm_i - 2 q . key_i - d as floats compute that.
/// Of use only if `possible`: queries and centres of no finite or of a huge length are refused.
template <byte_instruction By = best_byte_instruction>
class knn_first_look {
    using P = pack<float>;
    using products = byte_products<By>;

public:
    knn_first_look(const knn_ring<float>& ring, const float* query)
        : compact_(ring.compact.words), D_(ring.key_width), rows_(knn_compact_rows(D_)) {
        const float* const c = ring.key;
        const internal::knn_rounding of{D_};
        const float square = dot(c, c, D_);
        const double q_length = of.length(dot(query, query, D_)), c_length = of.length(square);
        possible = q_length < of.too_long && c_length < of.too_long;
        if (!possible) return;
        centre_ = square - 2.0 * dot(query, c, D_);
        uncertain_ = 2 * of.g() * c_length * (c_length + 2 * q_length);

        std::int32_t whole[knn_compact_widest + P::width];
        const internal::knn_scaled x(query, c, D_, std::min(products::most, (1 << 24) / D_), whole);
        scale_ = x.scale;
        length_ = of.above(of.length(x.all));
        error_ = of.above(127 * std::sqrt(double(D_)) * x.error(of));
        std::int32_t sum = 0;
        for (int i = 0; i < rows_; ++i) {
            products::split(whole + 4 * i, words_ + 2 * i);
            for (int j = 0; j < 4; ++j) sum += whole[4 * i + j];
        }
        offset_ = 128 * std::uint32_t(sum);
    }

    /// Writes below_i for slots first to last - 1; first is that of a block.
    void below(int first, int last, float* below) const {
        for (; first < last; first += knn_compact_block) {
            P part[packs];
            of_block(words(first), part);
            for (int i = 0; i < packs; ++i)
                if (const int at = first + i * P::width; at + P::width <= last)
                    part[i].store(below + at);
                else if (at < last)
                    part[i].store(below + at, last - at);
        }
    }
    /// About how many slots of two full blocks may be the nearest of them, where `below` has been written of both:
    /// products of errors are far from what Cauchy and Schwarz allow.
    int near(int one, int other, const float* below) const {
        P least(std::numeric_limits<float>::infinity()), count(0);
        const auto each_pack = [&](auto&& visit) {
            for (const int first : {one, other})
                for (int i = 0; i < knn_compact_block; i += P::width)
                    visit(P::load(below + first + i), words(first) + rows_ * knn_compact_block + i);
        };
        each_pack([&](P number, const std::uint32_t* row) {
            const P wrong = multiply_add(P(length_), bound(row, 1),
                                         multiply_add(P(error_), bound(row, 2), P(4 * float(uncertain_))));
            least = select(number + wrong < least, number + wrong, least);
        });
        float lane[P::width];
        least.store(lane);
        for (const float x : lane) lane[0] = x < lane[0] ? x : lane[0];
        each_pack([&](P number, const std::uint32_t*) { count += select(number <= P(lane[0]), P(1), P(0)); });
        return static_cast<int>(count.sum());
    }
    /// No less than `distance` where it is compared with below_i.
    float bound(float distance) const { return internal::knn_rounding::above(distance - centre_ + uncertain_); }

    bool possible;

private:
    static constexpr int packs = knn_compact_block / P::width;

    const std::uint32_t* words(int first) const { return compact_ + knn_compact_words(first, D_); }
    static ENGRAM_SIMD P bound(const std::uint32_t* row, int i) {
        P result;
        std::memcpy(&result, row + i * knn_compact_block, sizeof result);
        return result;
    }

    // Wrapped by hand: clang-format 14 mangles template lambdas.
    // clang-format off

    ENGRAM_SIMD void of_block(const std::uint32_t* row, P* out) const {
        [&]<int... I>(std::integer_sequence<int, I...>) {
            products sum[packs];
            for (int i = 0; i < rows_; ++i, row += knn_compact_block)
                (sum[I].add(row + I * P::width, words_ + 2 * i), ...);
            ((out[I] = of_pack(sum[I].total(), row + I * P::width)), ...);
        }(std::make_integer_sequence<int, packs>{});
    }

    // clang-format on

    ENGRAM_SIMD P of_pack(typename products::native total, const std::uint32_t* row) const {
        typedef std::int32_t integers __attribute__((vector_size(pack_bytes)));
        const P product(__builtin_convertvector(__builtin_bit_cast(integers, total - offset_), typename P::native));
        return multiply_add(-bound(row, 2), multiply_add(product, P(scale_), P(error_)),
                            multiply_add(P(-length_), bound(row, 1), bound(row, 0)));
    }

    const std::uint32_t* compact_;
    int D_, rows_;
    double centre_, uncertain_;
    float length_, error_;  // no less than |x|, and than |x - x'| |y'| / s
    float scale_;           // r
    std::uint32_t offset_;  // 128 sum_i m_i, since bytes are 128 more than n
    std::uint32_t words_[2 * knn_compact_rows(knn_compact_widest)];
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
