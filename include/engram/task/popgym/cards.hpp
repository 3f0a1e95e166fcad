#pragma once
// SPDX-License-Identifier: MIT

// Shuffled decks of 52 cards, for the games of POPGym that deal. A card is 0 .. 51: rank = card / 4 (the ace is 0),
// suit = card % 4, colour = card % 2.

#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/core/philox.hpp"

namespace engram::popgym {

inline constexpr int deck_size = 52, suits = 4, ranks = 13;

ENGRAM_HD constexpr int suit_of(int card) {
    return card % suits;
}
ENGRAM_HD constexpr int rank_of(int card) {
    return card / suits;
}
ENGRAM_HD constexpr int colour_of(int card) {
    return card % 2;
}

/// Up to so many decks shuffled together, in the order of dealing.
template <int Decks>
struct card_stack {
    std::uint8_t card[(deck_size * Decks + 7) / 8 * 8];  // no padding behind it

    ENGRAM_HD int operator[](int i) const { return card[i]; }

    /// Two places from each word: what the first leaves of it is as random. No pair of places is favoured by more than
    /// count^2 / 2^32.
    ENGRAM_HD_CALL void shuffle(philox& random, int count) {
        for (int i = 0, kind = 0; i < count; ++i, kind = kind + 1 == deck_size ? 0 : kind + 1)
            card[i] = static_cast<std::uint8_t>(kind);
        std::uint32_t words[deck_size * Decks / 2];
        random.fill(words, count / 2);
        for (int i = count - 1; i > 0; i -= 2) {
            const std::uint64_t first = std::uint64_t{words[(count - 1 - i) / 2]} * static_cast<std::uint32_t>(i + 1);
            const std::uint64_t second = (first & 0xFFFFFFFFu) * static_cast<std::uint32_t>(i);
            exchange(i, static_cast<int>(first >> 32));
            exchange(i - 1, static_cast<int>(second >> 32));
        }
    }

    /// Whether the first `count` are a shuffled stack of whole decks.
    bool whole(int count) const {
        int found[deck_size]{};
        for (int i = 0; i < count; ++i) {
            if (card[i] >= deck_size) return false;
            ++found[card[i]];
        }
        for (const int n : found)
            if (n != count / deck_size) return false;
        return true;
    }

private:
    ENGRAM_HD void exchange(int i, int j) {
        const std::uint8_t other = card[j];
        card[j] = card[i], card[i] = other;
    }
};

}  // namespace engram::popgym
