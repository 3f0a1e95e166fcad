#pragma once
// SPDX-License-Identifier: MIT

// The world of the 3D tasks: a grid of cells with what stands and hangs in it, and how a body moves through it.
//
// A room is whole numbers only, trivially copyable and without padding: it can be part of an environment, whose bytes
// are its checkpoint, and it is the same on every device. Lengths are in units of 1/65536 of a cell, headings in
// 1/65536 of a turn. x runs east along a row, y south down the rows as they are printed; heading 0 looks east, and a
// growing heading turns right. Heights are above the ground.

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "engram/core/device.hpp"
#include "engram/core/error.hpp"
#include "engram/task/texture.hpp"

namespace engram {

constexpr int cell_length = 1 << 16;  // units to a cell
constexpr int full_turn = 1 << 16;    // headings to a turn

/// sin of a heading, times 65536 and rounded: integer arithmetic, so that a walk is the same on every device. Error at
/// most 1 unit.
ENGRAM_HD_CALL int sine(int heading) {
    const int quarter = full_turn / 4, h = heading & (full_turn - 1), within = h & (quarter - 1);
    const std::int64_t z = (h & quarter ? quarter - within : within) << 14;  // 2^28 is a quarter turn
    const std::int64_t s = (z * z) >> 28;
    std::int64_t p = 43068;  // Taylor's coefficients of sin(pi z / 2), times 2^28
    p = -1256749 + ((p * s) >> 28);
    p = 21392326 + ((p * s) >> 28);
    p = -173399667 + ((p * s) >> 28);
    p = 421657428 + ((p * s) >> 28);
    const int found = static_cast<int>((((p * z) >> 28) + 2048) >> 12);
    return h & (2 * quarter) ? -found : found;
}
/// Of a heading in 1/65536 of a turn, in 1/65536.
ENGRAM_HD int cosine(int heading) {
    return sine(heading + full_turn / 4);
}

/// Where somebody stands and looks.
struct pose {
    std::int32_t x = 0, y = 0, heading = 0;
    bool operator==(const pose&) const = default;
};

/// What a cell is to a body and to the eye. Walls and shut gates are solid and fill their cell; a pad is ground painted
/// with the cell's own skin.
enum class cell_kind : std::uint8_t { ground, wall, gate_shut, gate_open, pad };
constexpr int cell_kind_count = 5;

struct cell {
    cell_kind kind = cell_kind::ground;
    std::uint8_t skin = 0;  // which of the room's textures
    ENGRAM_HD bool solid() const { return kind == cell_kind::wall || kind == cell_kind::gate_shut; }
};

/// The side of a cell that is seen, by the compass.
enum class face : std::uint8_t { east, south, west, north };

/// A picture in the middle of one face of a solid cell: an image of a gallery or, where `image` is -1, a skin.
struct wall_picture {
    std::uint8_t x = 0, y = 0;
    face side = face::east;
    std::uint8_t skin = 0;
    std::int32_t image = -1;
};

enum class shape : std::uint8_t { none, ball, box, cone, cylinder };
constexpr int shape_count = 5;

/// An upright body of one colour. `radius` is that of the circle around its base (a box is a square in that circle);
/// a ball of another height than its diameter is an ellipsoid. A solid object stops who walks; `none` is not there.
struct room_object {
    std::int32_t x = 0, y = 0, base = 0, height = 0, radius = 0;
    std::uint16_t heading = 0;
    shape form = shape::none;
    std::uint8_t solid = 1;
    colour paint{};
    std::uint8_t tag = 0;  // what it means to its task
};

/// The sky is a gradient; a sun and hills are there where their slope (rise / run, in 1/256) is not 0.
struct sky {
    colour zenith{70, 130, 220}, horizon{200, 220, 240}, hill{90, 120, 110};
    std::uint8_t fog = 0;  // cells at which half of the light is the horizon's; 0: none
    std::uint16_t sun_heading = 0, sun_slope = 0, hill_slope = 0, hill_seed = 0;
};

struct room {
    static constexpr int longest_side = 32, skin_count = 16, picture_capacity = 32, object_capacity = 16;

    std::uint8_t width = 0, height = 0;  // cells
    std::uint8_t pictures_used = 0, objects_used = 0;
    std::int32_t wall_height = cell_length;
    sky above{};
    std::uint8_t ground_skin = 0, unused = 0;
    cell cells[longest_side * longest_side]{};  // row-major, rows of `width`
    texture skins[skin_count]{};
    wall_picture pictures[picture_capacity]{};
    room_object objects[object_capacity]{};

    ENGRAM_HD bool inside(int x, int y) const { return x >= 0 && y >= 0 && x < width && y < height; }
    ENGRAM_HD cell& at(int x, int y) { return cells[y * width + x]; }
    ENGRAM_HD const cell& at(int x, int y) const { return cells[y * width + x]; }

    /// The picture on a face, or null.
    ENGRAM_HD_CALL const wall_picture* picture_on(int x, int y, face side) const {
        for (int i = 0; i < pictures_used; ++i)
            if (pictures[i].x == x && pictures[i].y == y && pictures[i].side == side) return pictures + i;
        return nullptr;
    }

    /// Adds a picture or an object; false: the room is full.
    ENGRAM_HD_CALL bool hang(int x, int y, face side, int skin, int image = -1) {
        if (pictures_used == picture_capacity) return false;
        pictures[pictures_used++] = {static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y), side,
                                     static_cast<std::uint8_t>(skin), image};
        return true;
    }
    ENGRAM_HD_CALL bool put(const room_object& thing) {
        if (objects_used == object_capacity) return false;
        objects[objects_used++] = thing;
        return true;
    }

    /// Whether every number can be drawn and walked: what damaged bytes hold must not become an index.
    ENGRAM_HD_CALL bool valid() const {
        bool good = width >= 1 && height >= 1 && width <= longest_side && height <= longest_side && wall_height > 0 &&
                    wall_height <= 16 * cell_length && pictures_used <= picture_capacity &&
                    objects_used <= object_capacity && ground_skin < skin_count;
        for (int i = 0; good && i < width * height; ++i)
            good = static_cast<int>(cells[i].kind) < cell_kind_count && cells[i].skin < skin_count;
        for (const texture& t : skins) good = good && static_cast<int>(t.kind) < pattern_count && t.repeats >= 1;
        for (int i = 0; good && i < pictures_used; ++i)
            good = inside(pictures[i].x, pictures[i].y) && pictures[i].skin < skin_count && pictures[i].image >= -1;
        for (int i = 0; good && i < objects_used; ++i) {
            const room_object& o = objects[i];
            const int far = longest_side * cell_length;
            good = static_cast<int>(o.form) < shape_count && o.radius > 0 && o.radius <= cell_length && o.height > 0 &&
                   o.height <= 16 * cell_length && o.base >= 0 && o.base <= far && o.x >= 0 && o.x <= far && o.y >= 0 &&
                   o.y <= far;
        }
        return good;
    }
};

static_assert(std::is_trivially_copyable_v<room> && std::has_unique_object_representations_v<room>);

/// Whether a disc of this radius at (x, y) touches something solid; all that is outside the grid is solid.
ENGRAM_HD_CALL bool collides(const room& in, int x, int y, int radius) {
    const std::int64_t reach = std::int64_t{radius} * radius;
    const auto outside = [](int p, int low, int high) -> std::int64_t {
        return p < low ? low - p : p > high ? p - high : 0;
    };
    // An arithmetic shift rounds down, also below zero.
    for (int cy = (y - radius) >> 16; cy <= (y + radius) >> 16; ++cy)
        for (int cx = (x - radius) >> 16; cx <= (x + radius) >> 16; ++cx) {
            if (in.inside(cx, cy) && !in.at(cx, cy).solid()) continue;
            const std::int64_t dx = outside(x, cx << 16, (cx + 1) << 16), dy = outside(y, cy << 16, (cy + 1) << 16);
            if (dx * dx + dy * dy < reach || (dx == 0 && dy == 0)) return true;
        }
    for (int i = 0; i < in.objects_used; ++i) {
        const room_object& o = in.objects[i];
        const std::int64_t dx = x - o.x, dy = y - o.y, near = std::int64_t{radius} + o.radius;
        if (o.form != shape::none && o.solid && dx * dx + dy * dy < near * near) return true;
    }
    return false;
}

/// The first object whose circle is touched by a disc at (x, y), solid or not; -1: none.
ENGRAM_HD_CALL int touched(const room& in, int x, int y, int radius) {
    for (int i = 0; i < in.objects_used; ++i) {
        const room_object& o = in.objects[i];
        const std::int64_t dx = x - o.x, dy = y - o.y, near = std::int64_t{radius} + o.radius;
        if (o.form != shape::none && dx * dx + dy * dy <= near * near) return i;
    }
    return -1;
}

/// Moves by up to `ahead` along the heading and `right` across it, sliding along what is solid: in pieces of a 16th of
/// a cell, each taken whole, or along x, or along y, or not at all. A disc that starts free stays free; its radius is
/// at least a 16th of a cell.
ENGRAM_HD_CALL void walk(const room& in, pose& who, int ahead, int right, int radius) {
    const std::int64_t c = cosine(who.heading), s = sine(who.heading);
    const auto dx = static_cast<int>((ahead * c - right * s) >> 16),
               dy = static_cast<int>((ahead * s + right * c) >> 16);
    const int wide = dx < 0 ? -dx : dx, tall = dy < 0 ? -dy : dy;
    const int pieces = (wide > tall ? wide : tall) / (cell_length / 16) + 1;
    for (int k = 0; k < pieces; ++k) {
        const auto part = [&](std::int64_t d) { return static_cast<int>(d * (k + 1) / pieces - d * k / pieces); };
        const int x = who.x + part(dx), y = who.y + part(dy);
        if (!collides(in, x, y, radius))
            who.x = x, who.y = y;
        else if (!collides(in, x, who.y, radius))
            who.x = x;
        else if (!collides(in, who.x, y, radius))
            who.y = y;
    }
}

/// A room from a plan, one character a cell: '#' wall (skin 1), '.' ground, 'G' shut and 'g' open gate (skin 2), 'o'
/// pad (skin 3); the ground has skin 0.
inline room room_from_plan(std::initializer_list<std::string_view> rows) {
    room made;
    const std::size_t width = rows.size() ? rows.begin()->size() : 0;
    require(width >= 1 && width <= room::longest_side && rows.size() <= room::longest_side, "room: a plan of ",
            rows.size(), " rows of ", width, " cells, expected 1 to ", room::longest_side, " of each");
    made.width = static_cast<std::uint8_t>(width);
    made.height = static_cast<std::uint8_t>(rows.size());
    cell* next = made.cells;
    for (const std::string_view row : rows) {
        require(row.size() == width, "room: the row '", row, "' has ", row.size(), " cells, the first row ", width);
        for (const char c : row) {
            const std::size_t kind = std::string_view(".#Ggo").find(c);
            require(kind != std::string_view::npos, "room: '", c, "' in a plan, expected one of . # G g o");
            constexpr cell known[] = {{cell_kind::ground, 0},
                                      {cell_kind::wall, 1},
                                      {cell_kind::gate_shut, 2},
                                      {cell_kind::gate_open, 2},
                                      {cell_kind::pad, 3}};
            *next++ = known[kind];
        }
    }
    return made;
}

}  // namespace engram
