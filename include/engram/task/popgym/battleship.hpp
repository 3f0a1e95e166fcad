#pragma once
// SPDX-License-Identifier: MIT

// Battleship of POPGym: ships of 2, 3, 3 and 4 cells, which may touch, lie on S x S cells, S = 8, 10, 12. A shot at a
// fresh cell of a ship is seen as 1 and earns 1 / 12, every other one is seen as 0 and costs 1 / (S S - 12). Twelve
// hits or S S steps end the episode; who never hits has less than -1.
//
// The original's action is a row and a column; ours is row * S + column, as its wrapper DiscreteAction has it.
// Placement: a cell and one of four directions are drawn anew until the ship fits.

#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

struct battleship : game<battleship> {
    static constexpr int parts = 12, most = 12;
    static constexpr std::uint8_t ship = 1, shot = 2;

    std::uint8_t cells[most * most];
    std::int32_t hits, hit;  // so far, and whether the last shot was one

    ENGRAM_HD static sheet describe_at(setting s) {
        const int n = side(s);
        return {"popgym_battleship", 2, 2 * n, n * n, n * n};
    }

    ENGRAM_HD_CALL void reset() {
        begin();
        for (std::uint8_t& each : cells) each = 0;
        hits = hit = 0;
        for (int i = 0; i < 4; ++i) {
            const int length = i == 0 ? 2 : i == 3 ? 4 : 3;
            while (!placed(length)) {
            }
        }
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int n = side(level);
        hit = cells[action] == ship;
        cells[action] |= shot;
        hits += hit;
        take(action);
        return {hit ? 1.0f / parts : -1.0f / static_cast<float>(n * n - parts), hits == parts || time == n * n};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = clear(numbers);
        out.one_hot(hit, 2);
        echo_cell(out, side(level));
    }

    int oracle() const {
        for (int i = 0; i < most * most; ++i)
            if (cells[i] == ship) return i;
        return 0;
    }

    bool valid() const {
        const int n = side(level);
        int ships = 0, found = 0;
        for (int i = 0; i < most * most; ++i) {
            if (cells[i] > (ship | shot) || (i >= n * n && cells[i])) return false;
            ships += cells[i] & ship, found += cells[i] == (ship | shot);
        }
        return runs() && ships == parts && found == hits && hits < parts && (hit == 0 || hit == 1);
    }

    ENGRAM_HD static int side(setting s) { return s.of(8, 10, 12); }

private:
    /// Tries one place.
    ENGRAM_HD_CALL bool placed(int length) {
        const int n = side(level), row = random.below(n), column = random.below(n);
        const bool down = random.below(2) == 0, back = random.below(2) == 1;
        const int dy = down ? (back ? -1 : 1) : 0, dx = down ? 0 : back ? -1 : 1;
        const int y = row + dy * (length - 1), x = column + dx * (length - 1);
        if (y < 0 || y >= n || x < 0 || x >= n) return false;
        for (int k = 0; k < length; ++k)
            if (cells[(row + k * dy) * n + column + k * dx]) return false;
        for (int k = 0; k < length; ++k) cells[(row + k * dy) * n + column + k * dx] = ship;
        return true;
    }
};

static_assert(environment<battleship>);

}  // namespace engram::popgym
