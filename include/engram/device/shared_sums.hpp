#pragma once
// SPDX-License-Identifier: MIT

// Many sums by one block of a device kernel: a few lanes add up each, beside each other.

#include <engram/device/executor.hpp>

namespace engram {

/// to(i, sum of term(i, c) over c < width) for i < count. `shares` lanes add up a sum, in rounds of as many sums as
/// there are lanes. partial [share_numbers].
template <int Lanes>
struct shared_sums {
    static constexpr int shares = 8;
    // Shares of one sum lie in different banks of the scratch, and so do those of neighbouring sums.
    static constexpr int pitch = Lanes + 4, share_numbers = shares * pitch;

    template <class Block, class Real, class Term, class To>
    ENGRAM_HD static void add_up(Block& block, Real* partial, int count, int width, Term term, To to) {
        for (int first = 0; first < count; first += Lanes) {
            const int here = count - first < Lanes ? count - first : Lanes;
            block.each([=](int lane) {
                const int share = lane % shares;
                for (int i = lane / shares; i < here; i += Lanes / shares) {
                    Real sum = 0;
                    for (int c = share; c < width; c += shares) sum += term(first + i, c);
                    partial[share * pitch + i] = sum;
                }
            });
            block.each([=](int lane) {
                if (lane >= here) return;
                Real sum = 0;
                for (int k = 0; k < shares; ++k) sum += partial[k * pitch + lane];
                to(first + lane, sum);
            });
        }
    }
};

/// Block b has row b of an operation: body.put(b, i, sum of body.term(b, i, c) over c < body.terms()) for
/// i < body.count().
template <class Real, class Body>
struct row_sums {
    static constexpr int lanes = 128, scratch = shared_sums<lanes>::share_numbers;
    Body body;
    template <class Block>
    ENGRAM_HD void operator()(Block& block, int row) const {
        const auto& of = body;
        shared_sums<lanes>::add_up(
            block, block.scratch, of.count(), of.terms(),
            [row, &of](int i, int c) -> Real { return of.term(row, i, c); },
            [row, &of](int i, Real sum) { of.put(row, i, sum); });
    }
};

}  // namespace engram
