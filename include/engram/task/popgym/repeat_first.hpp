#pragma once
// SPDX-License-Identifier: MIT

// RepeatFirst of POPGym: N = 52, 416 or 832 cards are dealt one by one, and each step asks for the suit of the very
// first: 1 / (N - 1) for it, the negative for another.

#include "engram/task/popgym/cards.hpp"
#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct repeat_first : game<repeat_first> {
    card_stack<16> cards;

    ENGRAM_HD static sheet describe_at(setting s) {
        return {"popgym_repeat_first", suits, suits, suits, size(s) - 1, 1, -0.5f};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        cards.shuffle(random, size(level));
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int longest = size(level) - 1;
        take(action);
        return {(action == oracle() ? 1.0f : -1.0f) / static_cast<float>(longest), time == longest};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        out.one_hot(suit_of(cards[time]), suits);
        echo(out, suits);
    }

    ENGRAM_HD int oracle() const { return suit_of(cards[0]); }

    bool valid() const { return runs() && cards.whole(size(level)); }

    ENGRAM_HD static int size(setting s) { return deck_size * s.of(1, 8, 16); }
};

static_assert(environment<repeat_first>);

}  // namespace engram::popgym
