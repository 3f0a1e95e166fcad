// SPDX-License-Identifier: MIT
#include "engram/task/ray_caster.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

using namespace engram;

namespace {

constexpr int c = cell_length, h = cell_length / 2;
constexpr float right_angle = 1.57079633f;  // a field of view whose edges have slope 1

struct image {
    int height, width;
    std::vector<float> pixels;
    rgb at(int y, int x) const {
        const float* p = pixels.data() + (y * width + x) * 3;
        return {p[0], p[1], p[2]};
    }
    bool operator==(const image&) const = default;
};

image see(const room& in, const pose& from, const lens& through, const gallery& images = {}) {
    image seen{through.height, through.width, {}};
    seen.pixels.assign(static_cast<std::size_t>(through.height * through.width * 3), -1);
    render(in, from, through, images, seen.pixels.data());
    return seen;
}

/// The channel that is far brighter than the others: 'r', 'g' or 'b'; 'w' if all are bright, '-' otherwise.
char hue_of(rgb p) {
    if (std::min({p.r, p.g, p.b}) > 0.45f) return 'w';
    if (p.r > 2 * std::max(p.g, p.b)) return 'r';
    if (p.g > 2 * std::max(p.r, p.b)) return 'g';
    if (p.b > 2 * std::max(p.r, p.g)) return 'b';
    return '-';
}

/// Walls around a square; red walls, green ground, a white sky, no fog: what is seen is told by its colour.
room hall(int side) {
    room in;
    in.width = in.height = static_cast<std::uint8_t>(side);
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x)
            if (x == 0 || y == 0 || x == side - 1 || y == side - 1) in.at(x, y) = {cell_kind::wall, 1};
    in.skins[0] = {pattern::plain, 1, {0, 255, 0}};
    in.skins[1] = {pattern::plain, 1, {255, 0, 0}};
    in.skins[2] = {pattern::plain, 1, {0, 0, 255}};
    in.above.zenith = in.above.horizon = {255, 255, 255};
    return in;
}

room_object solid(shape form, float x, float y, float radius, float height) {
    room_object o;
    o.form = form, o.paint = {0, 0, 255};
    o.x = static_cast<int>(x * c), o.y = static_cast<int>(y * c);
    o.radius = static_cast<int>(radius * c), o.height = static_cast<int>(height * c);
    return o;
}

int count(const image& seen, char hue, int first_x, int last_x, int first_y, int last_y) {
    int found = 0;
    for (int y = first_y; y <= last_y; ++y)
        for (int x = first_x; x <= last_x; ++x) found += hue_of(seen.at(y, x)) == hue;
    return found;
}
int in_column(const image& seen, char hue, int x) {
    return count(seen, hue, x, x, 0, seen.height - 1);
}
int in_row(const image& seen, char hue, int y) {
    return count(seen, hue, 0, seen.width - 1, y, y);
}

/// A room full of everything, for what must hold everywhere.
room random_place(philox& random) {
    room in;
    in.width = static_cast<std::uint8_t>(3 + random.below(30)),
    in.height = static_cast<std::uint8_t>(3 + random.below(30));
    in.wall_height = h + random.below(2 * c);
    for (int y = 0; y < in.height; ++y)
        for (int x = 0; x < in.width; ++x)
            in.at(x, y) = {static_cast<cell_kind>(random.below(3) ? 0 : random.below(cell_kind_count)),
                           static_cast<std::uint8_t>(random.below(room::skin_count))};
    for (int i = 0; i < room::skin_count; ++i)
        in.skins[i] = random_texture(static_cast<pattern>(i % pattern_count), random);
    in.skins[4].first = {255, 255, 255};  // bricks as bright as can be
    for (int i = 0; i < room::picture_capacity; ++i)
        in.hang(random.below(in.width), random.below(in.height), static_cast<face>(random.below(4)), i % 16, i % 4 - 1);
    for (int i = 0; i < room::object_capacity; ++i) {
        room_object o = solid(static_cast<shape>(random.below(shape_count)), 0, 0, 0.05f + random.uniform() / 2,
                              0.1f + random.uniform());
        o.x = random.below(in.width * c), o.y = random.below(in.height * c), o.base = random.below(c);
        in.put(o);
    }
    in.above.fog = static_cast<std::uint8_t>(random.below(20));
    in.above.sun_slope = static_cast<std::uint16_t>(random.below(300));
    in.above.hill_slope = static_cast<std::uint16_t>(random.below(200));
    in.above.hill_seed = static_cast<std::uint16_t>(random.below(65536));
    return in;
}

pose free_place(const room& in, philox& random) {
    for (;;) {
        const pose from{random.below(in.width * c), random.below(in.height * c), random.below(full_turn)};
        if (!in.at(from.x >> 16, from.y >> 16).solid()) return from;
    }
}

constexpr float wall_texels[] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};  // red, green / blue, white
const gallery four_colours{wall_texels, 2, 1};

}  // namespace

// A wall at distance d covers the slopes from -eye / d to (1 - eye) / d, in a frame of H rows that covers [-1, 1]: an
// interval of H / (2 d) rows. The rows whose centres lie in it are fewer or more by less than one.
TEST_CASE("the height of a wall is its exact projection, the same across a flat wall") {
    const room in = hall(31);
    for (const float eye : {0.5f, 0.3f, 0.8f})
        for (const int d : {1, 2, 3, 5, 9, 13})
            for (const int quarter : {0, 1, 2, 3}) {
                CAPTURE(eye);
                CAPTURE(d);
                CAPTURE(quarter);
                lens through{.height = 96, .width = 96, .field_of_view = right_angle, .eye = eye};
                const int near = 30 * c - d * c, far = c + d * c, middle = 15 * c + h;
                const pose from{quarter == 0   ? near
                                : quarter == 2 ? far
                                               : middle,
                                quarter == 1   ? near
                                : quarter == 3 ? far
                                               : middle,
                                quarter * full_turn / 4};
                const image seen = see(in, from, through);
                const float f = 48;
                for (int x = 0; x < 96; ++x) {
                    REQUIRE(std::fabs(static_cast<float>(in_column(seen, 'r', x)) - f / static_cast<float>(d)) < 1);
                    REQUIRE(in_column(seen, 'r', x) == in_column(seen, 'r', 0));
                }
                int first = 0;
                while (hue_of(seen.at(first, 48)) != 'r') ++first;
                const float top = 48 - f * (1 - eye) / static_cast<float>(d);
                CHECK(static_cast<float>(first) + 0.5f >= std::max(top, 0.0f) - 1e-3f);
                CHECK(static_cast<float>(first) - 0.5f <= std::max(top, 0.0f) + 1e-3f);
                CHECK(count(seen, 'w', 0, 95, 0, first - 1) == 96 * first);  // sky above, ground below
                const int last = first + in_column(seen, 'r', 48);
                CHECK(count(seen, 'g', 0, 95, last, 95) == 96 * (96 - last));
            }
}

TEST_CASE("an aspect squeezes the same view into another number of columns") {
    const room in = hall(9);
    const pose from{4 * c, 4 * c, 0};
    const image wide = see(in, from, {.height = 48, .width = 64, .field_of_view = right_angle});
    const image narrow = see(in, from, {.height = 48, .width = 16, .field_of_view = right_angle, .aspect = 4.0f / 3});
    const image square = see(in, from, {.height = 48, .width = 48, .field_of_view = right_angle});
    CHECK(in_column(wide, 'r', 32) == in_column(narrow, 'r', 8));
    CHECK(in_column(wide, 'r', 32) > in_column(square, 'r', 24));
}

// The oracle intersects the ray with every solid cell, in double. A ray that clips or misses the corner of a cell by
// less than 1e-3, or meets two cells within 1e-3, may go either way in float and is left out.
TEST_CASE("the first wall is the nearest of all, for random rays in random grids") {
    philox random(21, 22);
    int found = 0, left = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        room in = random_place(random);
        const pose from = free_place(in, random);
        const double x = from.x / double{c}, y = from.y / double{c}, angle = 6.283185307 * random.uniform();
        const double dx = std::cos(angle), dy = std::sin(angle);
        double best = 1e30, second = 1e30, graze = 1e30;
        int at_x = -1, at_y = -1;
        for (int cy = 0; cy < in.height; ++cy)
            for (int cx = 0; cx < in.width; ++cx) {
                if (!in.at(cx, cy).solid()) continue;
                const double ax = (cx + (dx < 0) - x) / dx, bx = (cx + (dx > 0) - x) / dx;
                const double ay = (cy + (dy < 0) - y) / dy, by = (cy + (dy > 0) - y) / dy;
                const double enter = std::max(ax, ay), leave = std::min(bx, by);
                if (leave <= 0) continue;
                if (std::fabs(enter - leave) < 1e-3) graze = std::min(graze, enter);
                if (enter >= leave) continue;
                second = std::min(second, std::max(enter, best));
                if (enter < best) best = enter, at_x = cx, at_y = cy;
            }
        if (best < 1e29 && (second - best < 1e-3 || graze < best + 1e-3)) continue;
        const wall_hit hit = first_wall(in, static_cast<float>(x), static_cast<float>(y), static_cast<float>(dx),
                                        static_cast<float>(dy));
        REQUIRE(hit.found == (best < 1e29));
        left += !hit.found;
        if (!hit.found) continue;
        ++found;
        CHECK(hit.x == at_x);
        CHECK(hit.y == at_y);
        CHECK(std::fabs(hit.distance - best) < 1e-3);
        const double px = x + best * dx, py = y + best * dy;
        const double across = hit.side == face::east    ? at_x + 1 - px
                              : hit.side == face::west  ? at_x - px
                              : hit.side == face::south ? at_y + 1 - py
                                                        : at_y - py;
        CHECK(std::fabs(across) < 1e-3);
    }
    CHECK(found > 1000);
    CHECK(left > 50);
}

// A ball of radius r at distance D fills the slopes up to r / sqrt(D^2 - r^2), in both directions.
TEST_CASE("a ball in front hides the wall, has its exact size, and is hidden behind a wall") {
    room in = hall(11);
    const lens through{.height = 97, .width = 97, .field_of_view = right_angle};
    const pose from{2 * c, 5 * c + h, 0};
    const image empty = see(in, from, through);
    for (const float distance : {1.5f, 3.0f, 6.0f}) {
        room with = in;
        room_object ball = solid(shape::ball, 2 + distance, 5.5f, 0.25f, 0.5f);
        ball.base = c / 4;
        with.put(ball);
        const image seen = see(with, from, through);
        const float extent = 97 * 0.25f / std::sqrt(distance * distance - 0.0625f);
        CHECK(std::fabs(static_cast<float>(in_column(seen, 'b', 48)) - extent) < 1.01f);
        CHECK(std::fabs(static_cast<float>(in_row(seen, 'b', 48)) - extent) < 1.01f);
        with.at(3, 5) = {cell_kind::wall, 1};  // nearer than any of the balls
        in.at(3, 5) = {cell_kind::wall, 1};
        if (distance > 2) CHECK(see(with, from, through) == see(in, from, through));
        in.at(3, 5) = {};
        CHECK_FALSE(seen == empty);
    }
}

TEST_CASE("of two objects the nearer is seen, in whatever order they were put") {
    const lens through{.height = 33, .width = 33, .field_of_view = right_angle};
    const pose from{2 * c, 5 * c + h, 0};
    image seen[2];
    for (int order = 0; order < 2; ++order) {
        room in = hall(11);
        room_object near = solid(shape::box, 4, 5.5f, 0.3f, 0.8f), far = solid(shape::cylinder, 6, 5.5f, 0.3f, 0.9f);
        near.paint = {0, 255, 0};
        in.put(order ? far : near);
        in.put(order ? near : far);
        seen[order] = see(in, from, through);
        CHECK(hue_of(seen[order].at(16, 16)) == 'g');
    }
    CHECK(seen[0] == seen[1]);
}

// Seen along its axis of symmetry: a box in a circle of radius r has its front at D - r / sqrt 2 and is 2 r / sqrt 2
// wide; the eye at half height sees as far up as down.
TEST_CASE("a box, a cylinder and a cone have their exact outlines") {
    const lens through{.height = 97, .width = 97, .field_of_view = right_angle};
    const pose from{2 * c, 5 * c + h, 0};
    const float D = 2, r = 0.4f, half = r / std::sqrt(2.0f), tangent = r / std::sqrt(D * D - r * r), f = 48.5f;
    const auto view_of = [&](shape form) {
        room in = hall(11);
        in.put(solid(form, 2 + D, 5.5f, r, 1));
        return see(in, from, through);
    };
    const image box = view_of(shape::box), cylinder = view_of(shape::cylinder), cone = view_of(shape::cone);
    const auto near = [](int pixels, float exact) { return std::fabs(static_cast<float>(pixels) - exact) < 1.01f; };
    CHECK(near(in_row(box, 'b', 48), 2 * f * half / (D - half)));
    CHECK(near(in_column(box, 'b', 48), f / (D - half)));
    CHECK(near(in_row(cylinder, 'b', 48), 2 * f * tangent));
    CHECK(near(in_column(cylinder, 'b', 48), f / (D - r)));
    CHECK(near(in_column(cone, 'b', 48), f * (0.5f / D + 0.5f / (D - r))));  // the tip is at the axis
    CHECK(in_row(cone, 'b', 48) < in_row(cylinder, 'b', 48));
    int above = 0;  // a cone narrows towards its tip
    for (int y = 37; y < 60; ++y) above += in_row(cone, 'b', y) < in_row(cone, 'b', y - 1);
    CHECK(above == 0);
}

TEST_CASE("a picture is seen on its own face only, upright and not mirrored") {
    // Someone who looks at a face from 1.5 cells away, with the heading that faces it.
    constexpr struct {
        face side;
        int dx, dy, heading;
    } places[] = {{face::east, 2, 0, full_turn / 2},
                  {face::south, 0, 2, 3 * full_turn / 4},
                  {face::west, -2, 0, 0},
                  {face::north, 0, -2, full_turn / 4}};
    for (const auto& hung : places)
        for (const auto& seen_from : places) {
            room in = hall(11);
            in.skins[3] = {pattern::plain, 1, {90, 90, 90}};
            in.at(5, 5) = {cell_kind::wall, 3};
            REQUIRE(in.hang(5, 5, hung.side, 0, 0));
            const image seen = see(in, {(5 + seen_from.dx) * c + h, (5 + seen_from.dy) * c + h, seen_from.heading},
                                   {.height = 60, .width = 60, .field_of_view = right_angle}, four_colours);
            // The block is 20 pixels wide, the picture 14 of them.
            const char quarters[] = {hue_of(seen.at(26, 26)), hue_of(seen.at(26, 33)), hue_of(seen.at(33, 26)),
                                     hue_of(seen.at(33, 33)), 0};
            CHECK(std::string_view(quarters) == (hung.side == seen_from.side ? "rgbw" : "----"));
            if (hung.side == seen_from.side) CHECK(seen.at(22, 30).r < 0.3f);  // the frame
        }
    room in = hall(11);
    in.hang(10, 5, face::west, 2, 7);  // an image that the gallery does not have: the skin
    const image seen = see(in, {8 * c, 5 * c + h, 0}, {.height = 60, .width = 60}, four_colours);
    CHECK(hue_of(seen.at(30, 30)) == 'b');
}

TEST_CASE("a shut gate shows its skin, an open one what is behind it, a pad its own ground") {
    room in = hall(7);
    in.at(4, 3) = {cell_kind::gate_shut, 2};
    const pose from{2 * c, 3 * c + h, 0};
    const lens through{.height = 65, .width = 65, .field_of_view = right_angle};
    CHECK(hue_of(see(in, from, through).at(32, 32)) == 'b');
    in.at(4, 3).kind = cell_kind::gate_open;
    CHECK(hue_of(see(in, from, through).at(32, 32)) == 'r');
    CHECK(in_column(see(in, from, through), 'b', 32) == 0);
    in.at(4, 3).kind = cell_kind::pad;
    // Ground from 2 to 3 cells ahead of an eye half a cell high: slopes 1/4 to 1/6 of 32.5 rows.
    CHECK(std::fabs(static_cast<float>(in_column(see(in, from, through), 'b', 32)) - 32.5f / 12) < 1.01f);
}

TEST_CASE("where no wall stops it, sight goes to the horizon") {
    const room in = room_from_plan({"...", "...", "..."});
    room open = in;
    open.skins[0] = {pattern::plain, 1, {0, 255, 0}};
    open.above.zenith = open.above.horizon = {255, 255, 255};
    const image seen = see(open, {c + h, c + h, 1000}, {.height = 33, .width = 33});
    CHECK(in_column(seen, 'w', 16) == 17);  // the horizon itself is sky
    CHECK(in_column(seen, 'g', 16) == 16);
    open.above.fog = 1;
    CHECK(hue_of(see(open, {c + h, c + h, 1000}, {.height = 33, .width = 33}).at(17, 16)) == 'w');
}

TEST_CASE("things throw a shadow on the ground, hills stand on the horizon, the sun where its heading is") {
    const lens through{.height = 65, .width = 65, .field_of_view = right_angle};
    const pose from{3 * c, 7 * c + h, 0};
    room in = hall(15);
    const image empty = see(in, from, through);
    in.put(solid(shape::ball, 6, 7.5f, 0.3f, 0.6f));
    const image lain = see(in, from, through);
    in.objects[0].base = c;
    const image lifted = see(in, from, through);
    // The ground 2.65 cells ahead, before the ball: slope 0.5 / 2.65 of 32.5 rows.
    CHECK(hue_of(lain.at(32 + 6, 32)) == 'g');
    CHECK(lain.at(32 + 6, 32).g < 0.9f * empty.at(32 + 6, 32).g);
    CHECK(lifted.at(32 + 6, 32).g == empty.at(32 + 6, 32).g);

    in = hall(15);
    in.above.hill = {0, 0, 255};
    in.above.hill_slope = 256;
    const image hilly = see(in, from, through);
    int blue = 0;
    for (int x = 0; x < 65; ++x) {
        blue += in_column(hilly, 'b', x);
        int y = 0;
        while (hue_of(hilly.at(y, x)) == 'w') ++y;
        while (hue_of(hilly.at(y, x)) != 'r') {
            CHECK(hue_of(hilly.at(y, x)) != 'w');  // no sky below a hill
            ++y;
        }
    }
    CHECK(blue > 65 * 5);

    in = hall(15);
    in.above.zenith = in.above.horizon = {0, 0, 60};
    in.above.sun_slope = 128;
    in.above.sun_heading = full_turn / 16;  // tan of 22.5 degrees to the right, and half as high as the frame
    const image sunny = see(in, from, through);
    int sum_x = 0, sum_y = 0, white = 0;
    for (int y = 0; y < 32; ++y)
        for (int x = 0; x < 65; ++x)
            if (hue_of(sunny.at(y, x)) == 'w' && sunny.at(y, x).b > 0.88f) sum_x += x, sum_y += y, ++white;
    REQUIRE(white > 5);
    CHECK(std::fabs(static_cast<float>(sum_x) / static_cast<float>(white) - (32 + 32.5f * 0.4142f)) < 1);
    CHECK(std::fabs(static_cast<float>(sum_y) / static_cast<float>(white) - (32 - 32.5f * 0.5f / 0.9239f)) < 1);
}

// 16 periods to a cell, 27.67 cells away: a pixel covers 1.7 x 1.7 cells, a mean of 27 periods. Near by both colours
// are plain to see. Just below the horizon, a pixel of the ground covers even more.
TEST_CASE("far textures are calm at 33 x 33 pixels") {
    const lens through{.height = 33, .width = 33, .field_of_view = right_angle};
    for (const pattern kind : {pattern::stripes, pattern::bands, pattern::checks}) {
        CAPTURE(static_cast<int>(kind));
        room in = hall(31);
        in.skins[0] = in.skins[1] = {kind, 16, {255, 0, 0}, {0, 0, 0}};
        const auto spread = [&](int x, int heading, int first_row, int last_row) {
            const image seen = see(in, {x, 15 * c + h, heading}, through);
            float least = 1, most = 0;
            for (int row = first_row; row <= last_row; ++row)
                for (int column = 8; column < 25; ++column) {      // no side walls
                    REQUIRE(hue_of(seen.at(row, column)) != 'w');  // not the sky
                    least = std::min(least, seen.at(row, column).r);
                    most = std::max(most, seen.at(row, column).r);
                }
            return most - least;
        };
        CHECK(spread(2 * c + c / 3, 0, 16, 16) < 0.05f);
        CHECK(spread(30 * c - c / 8, 0, 12, 20) > 0.5f);
        CHECK(spread(2 * c, 700, 18, 18) < 0.1f);
    }
}

TEST_CASE("more samples smooth the edges and keep the picture") {
    philox random(31, 32);
    room in = hall(9);
    in.skins[1] = random_texture(pattern::bricks, random);
    in.put(solid(shape::ball, 6, 4, 0.3f, 0.6f));
    in.above.hill_slope = 80;
    lens through{.height = 32, .width = 32};
    const pose from{3 * c, 5 * c, 3000};
    const image one = see(in, from, through);
    through.samples = 2;
    const image four = see(in, from, through);
    through.samples = 12;
    const image many = see(in, from, through);
    const auto gap = [&](const image& a) {
        double sum = 0;
        for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::pow(a.pixels[i] - many.pixels[i], 2);
        return std::sqrt(sum / static_cast<double>(a.pixels.size()));
    };
    CHECK(gap(four) < 0.7 * gap(one));
    CHECK(gap(one) < 0.1);
}

TEST_CASE("every number is finite and in [0, 1], and the same again") {
    philox random(41, 42);
    for (int trial = 0; trial < 300; ++trial) {
        const room in = random_place(random);
        lens through{.height = 1 + random.below(40), .width = 1 + random.below(40)};
        through.field_of_view = 0.1f + 2.8f * random.uniform();
        through.aspect = random.below(2) ? 0 : 0.5f + random.uniform();
        through.eye = 0.05f + 0.4f * random.uniform();
        through.samples = 1 + random.below(3);
        const pose from = free_place(in, random);
        const image seen = see(in, from, through, four_colours);
        for (const float p : seen.pixels) REQUIRE((p >= 0 && p <= 1));
        REQUIRE(seen == see(in, from, through, four_colours));
    }
}

TEST_CASE("bytes that pass as a valid room can be drawn, whatever they are") {
    philox random(51, 52);
    int drawn = 0;
    for (int trial = 0; trial < 3000; ++trial) {
        room in = random_place(random);
        auto* bytes = reinterpret_cast<unsigned char*>(&in);
        for (int i = 0; i < 8; ++i) bytes[random.below(sizeof(room))] = static_cast<unsigned char>(random.next());
        const pose from = in.valid() ? free_place(in, random) : pose{};
        if (!in.valid() || cell_length > 4 * in.wall_height) continue;
        ++drawn;
        const image seen = see(in, from, {.height = 12, .width = 16, .eye = 0.2f}, four_colours);
        for (const float p : seen.pixels) REQUIRE((p >= 0 && p <= 1));
    }
    CHECK(drawn > 300);
}

TEST_CASE("what cannot be seen from is said in a sentence") {
    const room in = hall(5);
    float pixels[12 * 12 * 3];
    const auto draw = [&](const room& place, const pose& from, auto change) {
        lens through{.height = 12, .width = 12};
        change(through);
        render(place, from, through, {}, pixels);
    };
    const auto same = [](lens&) {};
    const pose from{2 * c, 2 * c, 0};
    CHECK_NOTHROW(draw(in, from, same));
    CHECK_THROWS_WITH(draw(in, {3 * c + h, 9 * c, 0}, same),
                      "ray caster: the camera stands at (3.5, 9), outside the grid of 5 x 5 cells");
    CHECK_THROWS_WITH(draw(in, {-1, c, 0}, same), doctest::Contains("outside the grid of 5 x 5 cells"));
    CHECK_THROWS_WITH(draw(in, {4 * c + h, c + h, 0}, same),
                      "ray caster: the camera stands inside the solid cell (4, 1)");
    CHECK_THROWS_WITH(
        draw(in, from, [](lens& l) { l.eye = 1; }),
        "ray caster: the eye is 1 cells above the ground, expected to be between the ground and the top of "
        "the walls at 1");
    CHECK_THROWS_WITH(draw(in, from, [](lens& l) { l.height = 0; }),
                      "ray caster: a frame of 0 x 12 pixels, expected 1 to 4096 of each");
    CHECK_THROWS_WITH(draw(in, from, [](lens& l) { l.field_of_view = 4; }),
                      "ray caster: a field of view of 4 radians, expected 0.05 to 3");
    CHECK_THROWS_WITH(draw(in, from, [](lens& l) { l.samples = 0; }),
                      "ray caster: 0 samples along each side of a pixel, expected 1 to 16");
    CHECK_THROWS_WITH(draw(in, from, [](lens& l) { l.aspect = -1; }),
                      "ray caster: an aspect of -1, expected width / height, or 0 for square pixels");
    room bad = in;
    bad.ground_skin = 99;
    CHECK_THROWS_WITH(draw(bad, from, same),
                      "ray caster: the room is not valid; its sizes, kinds or skins are out of range");
}
