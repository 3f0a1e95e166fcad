#pragma once
// SPDX-License-Identifier: MIT

// Autoencode of POPGym: N = 52, 104 or 156 cards are shown; then their suits are asked for, the last one first:
// 1 / N for the right suit, the negative for another. Observation (watching, suit): the last card is shown with
// `watching` off, and (0, 0) is all that there is to see after it.

#include "engram/task/popgym/cards.hpp"
#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct autoencode : game<autoencode> {
    card_stack<3> cards;

    ENGRAM_HD static sheet describe_at(setting s) {
        return {"popgym_autoencode", 2 + suits, suits, suits, 2 * size(s) - 1, 1, -0.5f};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        cards.shuffle(random, size(level));
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int n = size(level);
        const bool asked = time + 1 >= n, right = asked && action == oracle();
        take(action);
        // By arithmetic: nobody can predict a branch on it.
        return {static_cast<float>(2 * right - asked) / static_cast<float>(n), time == 2 * n - 1};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        const int n = size(level);
        writer out = clear(numbers);
        out.one_hot(time + 1 < n ? 1 : 0, 2);
        out.one_hot(time < n ? suit_of(cards[time]) : 0, suits);
        echo(out, suits);
    }

    ENGRAM_HD int oracle() const {
        const int n = size(level);
        return time + 1 >= n ? suit_of(cards[2 * n - 2 - time]) : 0;
    }

    bool valid() const { return runs() && cards.whole(size(level)); }

    ENGRAM_HD static int size(setting s) { return deck_size * s.of(1, 2, 3); }
};

static_assert(environment<autoencode>);

}  // namespace engram::popgym
