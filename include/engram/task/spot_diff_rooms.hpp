#pragma once
// SPDX-License-Identifier: MIT

// The scene of spot the difference: two rooms of the same size, joined by a corridor of one cell's width from the
// middle of the one's east wall to the middle of the other's west wall, with a gate at each end.
//
//   #########  #########      room 1: sandy bands on a brown floor
//   #       #  #       #      corridor: plain grey, darker floor
//   #   >   A..B       #      room 2: pale green checks on a grey floor
//   #       #  #       #      A, B: gates, barred in black and amber
//   #########  #########
//
// Blocks stand at places of a 5 x 5 lattice in each room, (0, 0) in the north-west, (4, 2) before the corridor of room
// 1, (0, 2) behind that of room 2; both are always free, and so is the inside of the lattice. All sizes are ours. At
// small fidelity a room has 3 x 3 cells, that of many blocks five columns of three, and a block stands in the middle of
// a cell.

#include <cstdint>

#include "engram/core/device.hpp"
#include "engram/task/room.hpp"

namespace engram {

/// What a block may differ in and where blocks stand: the four tasks.
enum class difference : std::int32_t { basic, passive, multi, motion };

/// How far an episode is: in the first room, shut in the corridor, on to the second room.
enum class passage : std::int32_t { first_room, waiting, second_room };

/// A place of the lattice.
struct lattice_place {
    std::int32_t column = 0, row = 0;
    bool operator==(const lattice_place&) const = default;
};

/// The rim of the lattice without the two entrances, and what of it each task uses.
constexpr int rim_places = 14;
ENGRAM_HD_CALL lattice_place rim_place(int i) {
    constexpr lattice_place rim[rim_places] = {{0, 0}, {4, 0}, {0, 4}, {4, 4},  // corners: motion
                                               {1, 0}, {2, 0}, {3, 0}, {1, 4},
                                               {2, 4}, {3, 4}, {0, 1}, {0, 3},  // with some corners: basic
                                               {4, 1}, {4, 3}};                 // at the corridor: passive
    return rim[i];
}

/// Sizes, in cells and units of length.
struct spot_diff_plan {
    std::int32_t columns = 5, rows = 5;          // of a room, in cells; rows is odd
    std::int32_t corridor = 2;                   // its length between the gates, in cells
    std::int32_t margin = 0;                     // from a wall to the outer places
    std::int32_t block = 0, body = 0, high = 0;  // radii, and how high a block is
    std::int32_t reach = 0;                      // of a moving block
    std::int32_t begin = 0;                      // from the first room's west wall to where a body starts
    bool operator==(const spot_diff_plan&) const = default;

    ENGRAM_HD int middle() const { return 1 + rows / 2; }     // the corridor's row
    ENGRAM_HD int first_gate() const { return columns + 1; }  // columns
    ENGRAM_HD int second_gate() const { return columns + corridor + 2; }
    ENGRAM_HD int width() const { return 2 * columns + corridor + 4; }
    ENGRAM_HD int height() const { return rows + 2; }

    /// Units along x and y from the first room (0) or the second (1) to the middle of a place.
    ENGRAM_HD int along(int which, lattice_place at) const { return west(which) + lattice(at.column, columns); }
    ENGRAM_HD int across(lattice_place at) const { return cell_length + lattice(at.row, rows); }
    /// Where the first room (0) or the second (1) begins.
    ENGRAM_HD int west(int which) const { return (which == 0 ? 1 : second_gate() + 1) * cell_length; }

    /// A body in the middle row of the first room, looking at the corridor.
    ENGRAM_HD pose start() const { return {west(0) + begin, centre(), 0}; }
    ENGRAM_HD int centre() const { return middle() * cell_length + cell_length / 2; }

    ENGRAM_HD_CALL bool in_corridor(const pose& who) const {
        return who.x - body >= (first_gate() + 1) * cell_length && who.x + body <= second_gate() * cell_length;
    }

    /// Units from a wall to place k of the five between it and the wall opposite, `cells` away.
    ENGRAM_HD int lattice(int k, int cells) const { return margin + k * (cells * cell_length - 2 * margin) / 4; }

    /// The building without its blocks.
    ENGRAM_HD_CALL room build(passage now) const {
        room made;
        made.width = static_cast<std::uint8_t>(width()), made.height = static_cast<std::uint8_t>(height());
        made.wall_height = 7 * cell_length / 4;
        made.above.sun_heading = 5 * full_turn / 8;  // behind whoever walks on
        made.ground_skin = 2;                        // of open gates
        made.skins[0] = {pattern::plain, 1, {150, 118, 88}, {}, 0};
        made.skins[1] = {pattern::bands, 2, {222, 204, 172}, {196, 172, 136}, 0};
        made.skins[2] = {pattern::plain, 1, {84, 84, 88}, {}, 0};
        made.skins[3] = {pattern::plain, 1, {158, 158, 162}, {}, 0};
        made.skins[4] = {pattern::plain, 1, {112, 116, 120}, {}, 0};
        made.skins[5] = {pattern::checks, 2, {198, 216, 200}, {166, 190, 170}, 0};
        made.skins[6] = {pattern::stripes, 4, {30, 30, 30}, {250, 190, 60}, 0};
        for (int y = 0; y < made.height; ++y)
            for (int x = 0; x < made.width; ++x) {
                const bool first = x <= first_gate(), second = x >= second_gate(), way = y == middle();
                const bool border = x == 0 || x == made.width - 1 || y == 0 || y == made.height - 1;
                const bool partition = x >= first_gate() && x <= second_gate() && !way;
                const int floor = first ? 0 : second ? 4 : 2, wall = first ? 1 : second ? 5 : 3;
                made.at(x, y) = border || partition ? cell{cell_kind::wall, static_cast<std::uint8_t>(wall)}
                                                    : cell{cell_kind::pad, static_cast<std::uint8_t>(floor)};
            }
        const bool before = now == passage::first_room, after = now == passage::second_room;
        made.at(first_gate(), middle()) = {before ? cell_kind::gate_open : cell_kind::gate_shut, 6};
        made.at(second_gate(), middle()) = {after ? cell_kind::gate_open : cell_kind::gate_shut, 6};
        return made;
    }
};

}  // namespace engram
