#pragma once
// SPDX-License-Identifier: MIT

// HigherLower of POPGym: N = 52, 104 or 156 cards; the rank of one is seen, and whether the next one is higher (0) or
// lower (1) is to be guessed: 1 / N for a right guess, the negative for a wrong one, nothing for an equal rank.
//
// The order of cards to come is chance here: the oracle counts those that were dealt, as well as anybody can play.

#include "engram/task/popgym/cards.hpp"
#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct higher_lower : game<higher_lower> {
    card_stack<3> cards;

    ENGRAM_HD static sheet describe_at(setting s) {
        const int n = size(s);
        return {"popgym_higher_lower", ranks, 2, 2, n - 1, static_cast<float>(n - 1) / static_cast<float>(n), 0};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        cards.shuffle(random, size(level));
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int n = size(level), now = rank_of(cards[time]), next = rank_of(cards[time + 1]);
        take(action);
        const float right = next == now ? 0.0f : (next > now) == (action == 0) ? 1.0f : -1.0f;
        return {right / static_cast<float>(n), time == n - 1};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        out.one_hot(rank_of(cards[time]), ranks);
        echo(out, 2);
    }

    int oracle() const {
        int balance = 0;
        for (int i = time + 1; i < size(level); ++i) {
            const int next = rank_of(cards[i]), now = rank_of(cards[time]);
            balance += next > now ? 1 : next < now ? -1 : 0;
        }
        return balance >= 0 ? 0 : 1;
    }

    bool valid() const { return runs() && cards.whole(size(level)); }

    ENGRAM_HD static int size(setting s) { return deck_size * s.of(1, 2, 3); }
};

static_assert(environment<higher_lower>);

}  // namespace engram::popgym
