#pragma once
// SPDX-License-Identifier: MIT

// Random mazes of rooms and corridors, dug into the grid of a room.
//
// Only cells with two odd coordinates (nodes) and cells between two nodes are ever dug. Rooms come first: rectangles of
// nodes that do not overlap. Corridors fill the rest: trees that grow from the newest node or from a random one, a coin
// each time. Then the regions are joined: of all walls between two regions, in random order, those are opened that join
// two that were apart, so there is one way in between and no more. Every node is dug, so all of them are connected.
//
// Integers only, no heap, loops that end; 27 x 27 cells take some 20 microseconds. In the spirit of R. Nystrom, "Rooms
// and mazes" (2014).

#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/room.hpp"

namespace engram {

struct maze_cell {
    std::uint8_t x = 0, y = 0;
    bool operator==(const maze_cell&) const = default;
};

/// What a maze is made of. Width and height, outer walls included, are odd, 7 to 31; rooms are at most `longest_room`
/// cells long, odd, at least 3. `rooms` is how many are wanted: fewer where there is no space. `opened`: how many
/// percent of the walls between two nodes are opened that need not be.
struct maze_recipe {
    int width = 11, height = 11, rooms = 9, longest_room = 3, opened = 0;
};

/// Digs a maze and gives its spawn places: `each` cells of every room, without repetition.
class maze_generator {
public:
    static constexpr int most_rooms = 15, each = 5, spawn_capacity = most_rooms * each;

    ENGRAM_HD_CALL maze_generator(room& in, const maze_recipe& wanted, philox& random)
        : in_(in), random_(random), across_((wanted.width - 1) / 2), down_((wanted.height - 1) / 2) {
        in.width = static_cast<std::uint8_t>(wanted.width), in.height = static_cast<std::uint8_t>(wanted.height);
        for (int i = 0; i < wanted.width * wanted.height; ++i) in.cells[i].kind = cell_kind::wall;
        for (int i = 0; i < across_ * down_; ++i) region_[i] = 0;
        for (int i = 0; i < 8 * wanted.rooms && rooms_ < wanted.rooms && rooms_ < most_rooms; ++i)
            place_room((wanted.longest_room - 1) / 2);
        regions_ = rooms_;
        for (int i = 0; i < across_ * down_; ++i)
            if (!region_[i]) grow_corridors(i);
        join();
        if (wanted.opened > 0) open_more(wanted.opened);
    }

    ENGRAM_HD int spawn_count() const { return rooms_ * each; }
    ENGRAM_HD maze_cell spawn(int i) const { return spawns_[i]; }

private:
    static constexpr int most_nodes = (room::longest_side - 1) / 2;

    ENGRAM_HD void dig(int x, int y) { in_.at(x, y).kind = cell_kind::ground; }

    /// A room of 2 to 1 + `longer` nodes a side, if there is space where it falls.
    ENGRAM_HD_CALL void place_room(int longer) {
        const int w = 2 + random_.below(longer);
        const int h = 2 + random_.below(longer);
        const int left = random_.below(across_ - w + 1);
        const int top = random_.below(down_ - h + 1);
        for (int j = top; j < top + h; ++j)
            for (int i = left; i < left + w; ++i)
                if (region_[j * across_ + i]) return;
        for (int j = top; j < top + h; ++j)
            for (int i = left; i < left + w; ++i) region_[j * across_ + i] = static_cast<std::uint8_t>(rooms_ + 1);
        // The n-th cell of those left is taken with the chance that is fair: those still wanted / those left.
        int taken = 0, left_over = (2 * w - 1) * (2 * h - 1);
        for (int y = 2 * top + 1; y < 2 * (top + h); ++y)
            for (int x = 2 * left + 1; x < 2 * (left + w); ++x, --left_over) {
                dig(x, y);
                if (random_.below(left_over) >= each - taken) continue;
                spawns_[rooms_ * each + taken++] = {static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y)};
            }
        ++rooms_;
    }

    ENGRAM_HD_CALL void grow_corridors(int first) {
        std::uint8_t growing[most_nodes * most_nodes];
        int count = 0;
        ++regions_;
        const auto reach = [&](int node) {
            region_[node] = static_cast<std::uint8_t>(regions_);
            growing[count++] = static_cast<std::uint8_t>(node);
            dig(2 * (node % across_) + 1, 2 * (node / across_) + 1);
        };
        reach(first);
        while (count > 0) {
            const int from = random_.below(2) == 0 ? count - 1 : random_.below(count), node = growing[from];
            const int i = node % across_, j = node / across_;
            int free[4], found = 0;
            if (i > 0 && !region_[node - 1]) free[found++] = node - 1;
            if (i + 1 < across_ && !region_[node + 1]) free[found++] = node + 1;
            if (j > 0 && !region_[node - across_]) free[found++] = node - across_;
            if (j + 1 < down_ && !region_[node + across_]) free[found++] = node + across_;
            if (found == 0) {
                growing[from] = growing[--count];
                continue;
            }
            const int next = free[random_.below(found)];
            dig(i + next % across_ + 1, j + next / across_ + 1);  // between the two
            reach(next);
        }
    }

    ENGRAM_HD_CALL void join() {
        std::uint8_t above[most_nodes * most_nodes + 1];
        for (int r = 0; r <= regions_; ++r) above[r] = static_cast<std::uint8_t>(r);
        const auto root = [&](int r) {
            while (above[r] != r) r = above[r] = above[above[r]];
            return r;
        };
        std::uint16_t walls[2 * most_nodes * most_nodes];  // twice a node, + 1: to the south of it, otherwise east
        int count = 0;
        for (int node = 0; node < across_ * down_; ++node) {
            if (node % across_ + 1 < across_ && region_[node] != region_[node + 1])
                walls[count++] = static_cast<std::uint16_t>(2 * node);
            if (node / across_ + 1 < down_ && region_[node] != region_[node + across_])
                walls[count++] = static_cast<std::uint16_t>(2 * node + 1);
        }
        for (; count > 0; --count) {
            const int k = random_.below(count), wall = walls[k], node = wall / 2, south = wall % 2;
            walls[k] = walls[count - 1];
            const int a = root(region_[node]), b = root(region_[node + (south ? across_ : 1)]);
            if (a == b) continue;
            above[a] = static_cast<std::uint8_t>(b);
            dig(2 * (node % across_) + 1 + !south, 2 * (node / across_) + 1 + south);
        }
    }

    ENGRAM_HD_CALL void open_more(int percent) {
        for (int y = 1; y < in_.height - 1; ++y)
            for (int x = 1 + y % 2; x < in_.width - 1; x += 2)  // between two nodes
                if (in_.at(x, y).solid() && random_.below(100) < percent) dig(x, y);
    }

    room& in_;
    philox& random_;
    int across_, down_, rooms_ = 0, regions_ = 0;
    std::uint8_t region_[most_nodes * most_nodes];  // of each node; rooms come first; 0: none yet
    maze_cell spawns_[spawn_capacity]{};
};

}  // namespace engram
