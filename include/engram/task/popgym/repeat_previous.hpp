#pragma once
// SPDX-License-Identifier: MIT

// RepeatPrevious of POPGym: cards are dealt, and each step asks for the suit that was shown k - 1 cards before the
// visible one, k = 4, 32 or 64 of 52, 104 or 156 cards. Steps at which there is no such card earn nothing; each other
// one 1 / (N - k) for the right suit and its negative for another. `decks` deals more of them, or fewer (ours): the
// same question asked for longer.

#include "engram/task/popgym/cards.hpp"
#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct repeat_previous : game<repeat_previous> {
    static constexpr std::array reads{"difficulty", "decks"};
    static constexpr int most_decks = 16;

    card_stack<most_decks> cards;

    static task_info describe(const task_options& options) {
        require(options.decks >= 0 && options.decks <= most_decks, "popgym_repeat_previous: ", options.decks,
                " decks were asked for; expected 1 to ", most_decks, ", or 0 for as many as the difficulty has");
        const setting s = setting_of(options);
        require(size(s) > back(s), "popgym_repeat_previous: one deck holds no card that was dealt ", back(s) - 1,
                " cards before another; give it more decks");
        return game::describe(options);
    }

    ENGRAM_HD static sheet describe_at(setting s) {
        return {"popgym_repeat_previous", suits, suits, suits, size(s) - 1, 1, -0.5f};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        cards.shuffle(random, size(level));
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int n = size(level), k = back(level);
        const bool asked = time + 1 >= k, right = asked && action == oracle();
        take(action);
        return {asked ? (right ? 1.0f : -1.0f) / static_cast<float>(n - k) : 0.0f, time == n - 1};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        out.one_hot(suit_of(cards[time]), suits);
        echo(out, suits);
    }

    ENGRAM_HD int oracle() const {
        const int asked = time + 1 - back(level);
        return asked >= 0 ? suit_of(cards[asked]) : 0;
    }

    bool valid() const { return runs() && cards.whole(size(level)); }

    ENGRAM_HD static int size(setting s) { return deck_size * (s.decks > 0 ? s.decks : s.of(1, 2, 3)); }
    ENGRAM_HD static int back(setting s) { return s.of(4, 32, 64); }
};

static_assert(environment<repeat_previous>);

}  // namespace engram::popgym
