#pragma once
// SPDX-License-Identifier: MIT

// MultiarmedBandit of POPGym: 10, 20 or 30 arms pay with probabilities drawn anew for each episode of T = 200, 400 or
// 600 steps. Seen is whether the arm paid; it earns 1 / T, or costs as much where it did not.
//
// Probabilities are multiples of 2^-24. The oracle pulls the arm that is best, and still needs luck.

#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct multiarmed_bandit : game<multiarmed_bandit> {
    static constexpr int most = 30;

    std::uint32_t chance[most];  // of 2^24
    std::int32_t paid, unused;

    ENGRAM_HD static sheet describe_at(setting s) {
        return {"popgym_multiarmed_bandit", 2, arms(s), arms(s), length(s), 1, 0};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        paid = unused = 0;
        for (int i = 0; i < most; ++i) chance[i] = i < arms(level) ? random.next() >> 8 : 0;
    }

    ENGRAM_HD_CALL outcome step(int action) {
        paid = (random.next() >> 8) < chance[action];
        take(action);
        // By arithmetic: nobody can predict a branch on it.
        return {static_cast<float>(2 * paid - 1) / static_cast<float>(length(level)), time == length(level)};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        out.one_hot(paid, 2);
        echo(out, arms(level));
    }

    int oracle() const {
        int best = 0;
        for (int i = 1; i < arms(level); ++i)
            if (chance[i] > chance[best]) best = i;
        return best;
    }

    bool valid() const {
        for (const std::uint32_t c : chance)
            if (c >> 24) return false;
        return runs() && (paid == 0 || paid == 1) && unused == 0;
    }

    ENGRAM_HD static int arms(setting s) { return s.of(10, 20, 30); }
    ENGRAM_HD static int length(setting s) { return s.of(200, 400, 600); }
};

static_assert(environment<multiarmed_bandit>);

}  // namespace engram::popgym
