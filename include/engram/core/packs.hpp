#pragma once
// SPDX-License-Identifier: MIT

// packs<Real, Count>: Count registers as one number, for sums whose next term waits for the last: a multiplier that
// takes four cycles and begins two products in each has eight of them to go on with. By halves, not as an array: g++
// keeps an array in memory where a loop indexes it.

#include <type_traits>

#include "engram/core/pack.hpp"

namespace engram {

/// Count masks.
template <class Real, int Count>
struct packs_mask {
    using half = std::conditional_t<Count == 2, pack_mask<Real>, packs_mask<Real, Count / 2>>;
    half low, high;
};

/// Count packs, a power of two above 1.
template <class Real, int Count>
struct packs {
    static_assert(Count > 1 && (Count & (Count - 1)) == 0);
    using half = std::conditional_t<Count == 2, pack<Real>, packs<Real, Count / 2>>;
    using mask = packs_mask<Real, Count>;
    static constexpr int width = 2 * half::width;
    half low, high;

    packs() = default;
    template <arithmetic Scalar>
    ENGRAM_SIMD packs(Scalar s) : low(s), high(s) {}
    ENGRAM_SIMD packs(half l, half h) : low(l), high(h) {}

    /// `width` numbers from any address.
    static ENGRAM_SIMD packs load(const Real* from) { return {half::load(from), half::load(from + half::width)}; }
    ENGRAM_SIMD void store(Real* to) const {
        low.store(to);
        high.store(to + half::width);
    }

    friend ENGRAM_SIMD packs operator+(packs a, packs b) { return {a.low + b.low, a.high + b.high}; }
    friend ENGRAM_SIMD packs operator-(packs a, packs b) { return {a.low - b.low, a.high - b.high}; }
    /// Rounded by itself, as a pack's.
    friend ENGRAM_SIMD packs operator*(packs a, packs b) { return {a.low * b.low, a.high * b.high}; }
    ENGRAM_SIMD packs operator-() const { return {-low, -high}; }
    friend ENGRAM_SIMD mask operator<(packs a, packs b) { return {a.low < b.low, a.high < b.high}; }
    friend ENGRAM_SIMD mask operator!=(packs a, packs b) { return {a.low != b.low, a.high != b.high}; }
    /// a b + c, rounded once where the processor can.
    friend ENGRAM_SIMD packs multiply_add(packs a, packs b, packs c) {
        return {multiply_add(a.low, b.low, c.low), multiply_add(a.high, b.high, c.high)};
    }
    /// Lane by lane `m ? a : b`.
    friend ENGRAM_SIMD packs select(mask m, packs a, packs b) {
        return {select(m.low, a.low, b.low), select(m.high, a.high, b.high)};
    }
};

}  // namespace engram
