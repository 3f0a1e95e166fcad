#pragma once
// SPDX-License-Identifier: MIT

// LabyrinthEscape and LabyrinthExplore of POPGym: mazes of 11, 15 or 19 cells a side, walls included, of which the
// 3 x 3 cells around are seen, and the last action (4 at first), each as a one-hot of five. Actions: left, right, up,
// down; walls stop. 1023 steps at most.
//
//   escape    1 / 1024 off for a step, 1 for the goal, which is in the wall on the other side and ends the episode
//   explore   1 / F for a cell seen for the first time, F being all but the start; 1 / 1024 off for any other step;
//             all cells visited end the episode
//
// In the first row and the first column the view is cut, and filled with walls behind: it is not centred there, as in
// the original. Mazes are cut by hunting and killing: from a random odd cell a walk to random neighbours two cells on
// that are still closed, until there is none; then as many times as there are cells a random odd one is drawn, and
// where it is open a walk begins there. It may leave a cell closed. Start: anywhere in one of the outer walls.

#include "engram/task/popgym/game.hpp"

namespace engram::popgym {

template <bool Escape>
struct labyrinth : game<labyrinth<Escape>> {
    using shared = game<labyrinth>;
    using shared::level, shared::random, shared::time, shared::last;

    static constexpr int most = 19, longest = 1023;
    enum : std::uint8_t { open, wall, start, goal, kinds = 5 };
    static constexpr std::uint8_t visited = 8;  // a further bit of a cell

    std::uint8_t cells[(most * most + 7) / 8 * 8];
    std::int32_t row, column, free, left;  // where one is; open cells but for the start, and those not visited

    ENGRAM_HD static sheet describe_at(setting) {
        return {Escape ? "popgym_labyrinth_escape" : "popgym_labyrinth_explore", 10 * kinds, 4, 4, longest};
    }

    ENGRAM_HD_CALL void reset() {
        this->begin();
        const int n = side();
        for (std::uint8_t& each : cells) each = wall;
        row = odd(), column = odd();
        at(row, column) = open;
        walk();
        for (int i = 0; i < n * n; ++i) {
            row = odd(), column = odd();
            if (at(row, column) == open) walk();
        }
        enter();
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const int y = row + (action == 3) - (action == 2), x = column + (action == 1) - (action == 0);
        const bool inside = y >= 0 && x >= 0 && y < side() && x < side();
        if (inside && kind(y, x) != wall) row = y, column = x;
        this->take(action);
        const bool fresh = !(at(row, column) & visited);
        at(row, column) |= visited;
        left -= fresh;
        const bool ended = time == longest;
        if constexpr (Escape) {
            const bool there = kind(row, column) == goal;
            return {(there ? 1.0f : 0.0f) - 1.0f / 1024, there || ended};
        }
        return {fresh ? 1.0f / static_cast<float>(free) : -1.0f / 1024, left == 0 || ended};
    }

    ENGRAM_HD_CALL void observe(const float*, float* numbers) const {
        writer out = this->clear(numbers);
        const int top = row > 0 ? row - 1 : 0, first = column > 0 ? column - 1 : 0;
        for (int y = top; y < top + 3; ++y)
            for (int x = first; x < first + 3; ++x) {
                const bool seen = y <= row + 1 && x <= column + 1 && y < side() && x < side();
                out.one_hot(seen ? kind(y, x) : wall, kinds);
            }
        out.one_hot(time == 0 ? 4 : last, kinds);
        this->echo(out, 4);
    }

    /// The first step of a shortest way to the goal, or to a cell not visited yet.
    int oracle() const {
        const int n = side();
        std::array<std::int16_t, most * most> queue, move;
        move.fill(-1);
        int used = 0;
        queue[static_cast<std::size_t>(used++)] = static_cast<std::int16_t>(row * n + column);
        move[static_cast<std::size_t>(row * n + column)] = 0;
        for (int head = 0; head < used; ++head) {
            const int here = queue[static_cast<std::size_t>(head)], y = here / n, x = here % n;
            const auto way = move[static_cast<std::size_t>(here)];
            if (head > 0 && (Escape ? kind(y, x) == goal : !(cells[here] & visited))) return way;
            for (int a = 0; a < 4; ++a) {
                const int ny = y + (a == 3) - (a == 2), nx = x + (a == 1) - (a == 0), there = ny * n + nx;
                if (ny < 0 || nx < 0 || ny >= n || nx >= n || kind(ny, nx) == wall) continue;
                if (move[static_cast<std::size_t>(there)] >= 0) continue;
                move[static_cast<std::size_t>(there)] = head == 0 ? static_cast<std::int16_t>(a) : way;
                queue[static_cast<std::size_t>(used++)] = static_cast<std::int16_t>(there);
            }
        }
        return 0;
    }

    bool valid() const {
        const int n = side();
        if (!this->runs() || row < 0 || column < 0 || row >= n || column >= n) return false;
        int starts = 0, goals = 0, opened = 0, remain = 0;
        for (int i = 0; i < static_cast<int>(sizeof cells); ++i) {
            const int what = cells[i] & ~visited;
            if (what > goal || (i >= n * n && what != wall) || (what == wall && (cells[i] & visited))) return false;
            starts += what == start, goals += what == goal, opened += what == open;
            remain += what != wall && !(cells[i] & visited);
        }
        return starts == 1 && goals == (Escape ? 1 : 0) && opened == free && remain == left && free > 0 && left > 0 &&
               (cells[row * n + column] & visited);
    }

    ENGRAM_HD int side() const { return level.of(11, 15, 19); }
    ENGRAM_HD int kind(int y, int x) const { return cells[y * side() + x] & ~visited; }

private:
    ENGRAM_HD std::uint8_t& at(int y, int x) { return cells[y * side() + x]; }
    ENGRAM_HD int odd() { return 1 + 2 * random.below(side() / 2); }

    /// From where one is to closed cells, as long as there are any around.
    ENGRAM_HD_CALL void walk() {
        for (;;) {
            int found = 0, ways[4];
            for (int a = 0; a < 4; ++a) {
                const int y = row + 2 * ((a == 3) - (a == 2)), x = column + 2 * ((a == 1) - (a == 0));
                if (y > 0 && x > 0 && y < side() && x < side() && kind(y, x) == wall) ways[found++] = a;
            }
            if (found == 0) return;
            const int a = ways[random.below(found)];
            for (int k = 0; k < 2; ++k) {
                row += (a == 3) - (a == 2), column += (a == 1) - (a == 0);
                at(row, column) = open;
            }
        }
    }

    /// Puts start and goal into opposite walls.
    ENGRAM_HD_CALL void enter() {
        const int n = side(), which = random.below(4), near = odd(), far = odd();
        const int low = which % 2 == 0 ? 0 : n - 1;  // north, south, west, east
        row = which < 2 ? low : near, column = which < 2 ? near : low;
        free = 0;
        for (int i = 0; i < n * n; ++i) free += cells[i] == open;
        at(row, column) = start | visited;
        if constexpr (Escape) at(which < 2 ? n - 1 - low : far, which < 2 ? far : n - 1 - low) = goal;
        left = free + (Escape ? 1 : 0);
    }
};

using labyrinth_escape = labyrinth<true>;
using labyrinth_explore = labyrinth<false>;
static_assert(environment<labyrinth_escape> && environment<labyrinth_explore>);

}  // namespace engram::popgym
