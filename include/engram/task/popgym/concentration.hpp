#pragma once
// SPDX-License-Identifier: MIT

// Concentration of POPGym: N = 52, 104 or 52 cards lie face down, and an action turns one. Two turned one after the
// other that match (in colour, colour, rank) stay open and earn 2 / N; others cost 2 / L, L = 2 N being the limit of
// steps, and are turned down again, but are both seen once. The first card of a pair earns nothing. Whoever turns a
// card that lies open already, or the same one twice, ends the try: 1 / L for the first card of a pair, 2 / L for the
// second. All open ends the episode. Observation: for each card its kind, or that it is face down.
//
// The oracle knows what lies where, and so needs no luck.

#include "engram/task/popgym/cards.hpp"
#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct concentration : game<concentration> {
    card_stack<2> cards;
    std::uint8_t open[2 * deck_size];
    std::int32_t opened, waiting, seen[2];  // cards open; the first of a pair, and those turned in this try, or -1

    ENGRAM_HD static sheet describe_at(setting s) {
        const int n = size(s);
        return {"popgym_concentration", n * (kinds(s) + 1), n, n, 2 * n};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        cards.shuffle(random, size(level));
        for (std::uint8_t& each : open) each = 0;
        opened = 0, waiting = seen[0] = seen[1] = -1;
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int n = size(level), first = waiting;
        const bool second = first >= 0;
        const float failed = -1.0f / static_cast<float>(2 * n);
        take(action);
        seen[0] = second ? first : action, seen[1] = second ? action : -1;
        waiting = -1;
        float reward = 0;
        if (open[action]) {
            reward = second ? 2 * failed : failed;
        } else if (!second) {
            waiting = action;
        } else if (action != first && kind_of(first) == kind_of(action)) {
            open[first] = open[action] = 1;
            opened += 2;
            reward = 2.0f / static_cast<float>(n);
        } else {
            reward = 2 * failed;
        }
        return {reward, time == 2 * n || opened == n};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        if (level.difficulty == 2)
            show<ranks>(out, [this](int i) { return rank_of(cards[i]); });
        else
            show<2>(out, [this](int i) { return colour_of(cards[i]); });
        echo(out, size(level));
    }

    int oracle() const {
        const int n = size(level);
        for (int i = 0; i < n; ++i)
            for (int j = waiting < 0 ? i + 1 : 0; j < n && !open[i]; ++j) {
                if (open[j] || i == j || kind_of(i) != kind_of(j)) continue;
                if (waiting < 0 || waiting == j) return i;
            }
        return 0;
    }

    bool valid() const {
        const int n = size(level);
        if (!runs() || !cards.whole(n)) return false;
        int found = 0;
        for (int i = 0; i < 2 * deck_size; ++i) {
            if (open[i] > 1 || (i >= n && open[i])) return false;
            found += open[i];
        }
        const auto is_place = [&](std::int32_t i) { return i >= -1 && i < n; };
        return found == opened && found < n && is_place(waiting) && is_place(seen[0]) && is_place(seen[1]) &&
               (waiting < 0 || !open[waiting]);
    }

    ENGRAM_HD static int size(setting s) { return deck_size * s.of(1, 2, 1); }
    ENGRAM_HD static int kinds(setting s) { return s.of(2, 2, ranks); }
    /// Of the card at a place.
    ENGRAM_HD int kind_of(int i) const { return level.difficulty == 2 ? rank_of(cards[i]) : colour_of(cards[i]); }

private:
    /// All cards, and those of this try as if they were open. The number of kinds is a constant, so that a card's place
    /// among the numbers is one as well.
    template <int Kinds, class Kind>
    ENGRAM_HD void show(writer& out, Kind kind) const {
        constexpr int width = Kinds + 1;
        const int n = size(level);
        std::int32_t ones[2 * deck_size];  // found by packs and by arithmetic: nobody can predict which cards are open
        for (int i = 0; i < n; ++i) ones[i] = i * width + Kinds - open[i] * (Kinds - kind(i));
        for (int i = 0; i < n; ++i) out.at[ones[i]] = 1;
        for (const std::int32_t i : seen)
            if (i >= 0) out.at[i * width + Kinds] = 0, out.at[i * width + kind(i)] = 1;
        out.at += n * width;
    }
};

static_assert(environment<concentration>);

}  // namespace engram::popgym
