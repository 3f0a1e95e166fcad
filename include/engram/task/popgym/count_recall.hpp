#pragma once
// SPDX-License-Identifier: MIT

// CountRecall of POPGym: two stacks of N = 52, 104 or 208 cards are dealt side by side. Each step shows a value and a
// query, and asks how many values of the queried kind have been dealt, the visible one included: 1 / (N - 1) for the
// right number, the negative for another. A kind is a colour, a suit or a rank, of which there are C = 26, 26, 16.
//
// Rules `package`: answers 0 .. C. Rules `paper`: 0 .. C - 1, so that a kind of which all are dealt has no answer.

#include "engram/task/popgym/cards.hpp"
#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct count_recall : game<count_recall> {
    static constexpr std::array reads{"difficulty", "rules"};

    card_stack<4> values, queries;
    std::int32_t counts[ranks], unused;  // of the values dealt, by kind

    ENGRAM_HD static sheet describe_at(setting s) {
        // The paper's unanswerable steps are not worth a formula.
        const float random =
            s.paper ? std::numeric_limits<float>::quiet_NaN() : 2.0f / static_cast<float>(answers(s)) - 1;
        return {"popgym_count_recall", 2 * kinds(s), answers(s), answers(s), size(s) - 1, 1, random};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        values.shuffle(random, size(level));
        queries.shuffle(random, size(level));
        for (int& count : counts) count = 0;
        unused = 0;
        ++counts[kind_of(values[0])];
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int longest = size(level) - 1;
        const bool right = action == counts[kind_of(queries[time])];
        take(action);
        ++counts[kind_of(values[time])];
        return {static_cast<float>(2 * right - 1) / static_cast<float>(longest), time == longest};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        out.one_hot(kind_of(values[time]), kinds(level));
        out.one_hot(kind_of(queries[time]), kinds(level));
        echo(out, answers(level));
    }

    int oracle() const {
        const int count = counts[kind_of(queries[time])];
        return count < answers(level) ? count : answers(level) - 1;
    }

    bool valid() const {
        if (!runs() || unused != 0 || !values.whole(size(level)) || !queries.whole(size(level))) return false;
        std::int32_t found[ranks]{};
        for (int i = 0; i <= time; ++i) ++found[kind_of(values[i])];
        return std::memcmp(found, counts, sizeof found) == 0;
    }

    ENGRAM_HD static int size(setting s) { return deck_size * s.of(1, 2, 4); }
    ENGRAM_HD static int kinds(setting s) { return s.of(2, suits, ranks); }
    ENGRAM_HD static int answers(setting s) { return size(s) / kinds(s) + (s.paper ? 0 : 1); }
    ENGRAM_HD int kind_of(int card) const { return level.of(colour_of(card), suit_of(card), rank_of(card)); }
};

static_assert(environment<count_recall>);

}  // namespace engram::popgym
