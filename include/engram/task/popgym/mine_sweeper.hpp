#pragma once
// SPDX-License-Identifier: MIT

// MineSweeper of POPGym: m = 2, 6, 10 mines lie on S x S cells, S = 4, 6, 8, of which L = S S - m are safe. A click
// shows how many mines lie in the 3 x 3 cells around, itself included; nothing opens by itself. A fresh safe cell
// earns 1 / L, one that is open already costs 0.5 / (L - 2), a mine 0.5 + 1 / L and ends the episode, as do all safe
// cells being open and L steps.
//
// Rules `package` end after L steps; rules `paper` one step later. The original's action is a row and a column; ours
// is row * S + column.

#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct mine_sweeper : game<mine_sweeper> {
    static constexpr std::array reads{"difficulty", "rules"};
    static constexpr int most = 8;
    static constexpr std::uint8_t mine = 1, viewed = 2;

    std::uint8_t cells[most * most];
    std::int32_t opened, near;  // safe cells open; mines around the last click

    ENGRAM_HD static sheet describe_at(setting s) {
        const int n = side(s);
        return {"popgym_mine_sweeper", shown(s), 2 * n, n * n, safe(s) + s.paper};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        for (std::uint8_t& each : cells) each = 0;
        opened = near = 0;
        for (int left = mines(level); left > 0;) {
            std::uint8_t& cell = cells[random.below(side(level) * side(level))];
            if (cell) continue;
            cell = mine, --left;
        }
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int wanted = safe(level);
        const float each = 1.0f / static_cast<float>(wanted);
        float reward = each;
        std::uint8_t& cell = cells[action];
        const bool exploded = cell == mine;
        if (exploded)
            reward = -0.5f - each;
        else if (cell == viewed)
            reward = -0.5f / static_cast<float>(wanted - 2);
        else
            cell = viewed, ++opened;
        near = mines_near(action);
        take(action);
        return {reward, exploded || opened == wanted || time == wanted + level.paper};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        out.one_hot(near, shown(level));
        echo_cell(out, side(level));
    }

    int oracle() const {
        for (int i = 0; i < side(level) * side(level); ++i)
            if (cells[i] == 0) return i;
        return 0;
    }

    bool valid() const {
        const int n = side(level);
        int found = 0, seen = 0;
        for (int i = 0; i < most * most; ++i) {
            if (cells[i] > viewed || (i >= n * n && cells[i])) return false;
            found += cells[i] == mine, seen += cells[i] == viewed;
        }
        return runs() && found == mines(level) && seen == opened && opened < safe(level) && near >= 0 &&
               near < shown(level);
    }

    ENGRAM_HD static int side(setting s) { return s.of(4, 6, 8); }
    ENGRAM_HD static int mines(setting s) { return s.of(2, 6, 10); }
    ENGRAM_HD static int safe(setting s) { return side(s) * side(s) - mines(s); }
    /// Numbers that can be seen, as many as there are.
    ENGRAM_HD static int shown(setting s) { return s.of(3, 7, 10); }

private:
    ENGRAM_HD_CALL int mines_near(int at) const {
        const int n = side(level), row = at / n, column = at % n;
        int found = 0;
        for (int y = row > 0 ? row - 1 : 0; y <= row + 1 && y < n; ++y)
            for (int x = column > 0 ? column - 1 : 0; x <= column + 1 && x < n; ++x) found += cells[y * n + x] == mine;
        return found;
    }
};

static_assert(environment<mine_sweeper>);

}  // namespace engram::popgym
