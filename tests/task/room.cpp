// SPDX-License-Identifier: MIT
#include "engram/task/room.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

using namespace engram;

namespace {

constexpr int c = cell_length, h = cell_length / 2;

/// Walls around, and a third of the cells inside, but never where a walk begins.
room thicket(philox& random) {
    room in;
    in.width = in.height = 12;
    for (int y = 0; y < 12; ++y)
        for (int x = 0; x < 12; ++x) {
            const bool edge = x == 0 || y == 0 || x == 11 || y == 11;
            in.at(x, y).kind =
                edge || (random.below(3) == 0 && (x != 5 || y != 5)) ? cell_kind::wall : cell_kind::ground;
        }
    return in;
}

room_object ball_at(int x, int y, int radius) {
    room_object o;
    o.x = x, o.y = y, o.radius = radius, o.height = 2 * radius, o.form = shape::ball;
    return o;
}

}  // namespace

TEST_CASE("sine and cosine of a heading err by at most one unit and are exact at the quarters") {
    for (int heading = -full_turn; heading <= 2 * full_turn; heading += 7) {
        const double angle = 2 * 3.14159265358979323846 * heading / full_turn;
        CHECK(std::fabs(sine(heading) - 65536 * std::sin(angle)) <= 1);
        CHECK(std::fabs(cosine(heading) - 65536 * std::cos(angle)) <= 1);
    }
    for (int quarter = 0; quarter < 4; ++quarter) {
        const int at = quarter * full_turn / 4;
        CHECK(cosine(at) == (quarter == 0 ? 65536 : quarter == 2 ? -65536 : 0));
        CHECK(sine(at) == (quarter == 1 ? 65536 : quarter == 3 ? -65536 : 0));
    }
}

TEST_CASE("a plan becomes a room, and a bad plan a sentence") {
    const room in = room_from_plan({"####", "#.o#", "#Gg#", "####"});
    CHECK(int{in.width} == 4);
    CHECK(int{in.height} == 4);
    CHECK(in.at(0, 0).kind == cell_kind::wall);
    CHECK(in.at(1, 1).kind == cell_kind::ground);
    CHECK(in.at(2, 1).kind == cell_kind::pad);
    CHECK(in.at(1, 2).kind == cell_kind::gate_shut);
    CHECK(in.at(2, 2).kind == cell_kind::gate_open);
    CHECK(in.valid());
    CHECK_THROWS_WITH(room_from_plan({"###", "##"}), "room: the row '##' has 2 cells, the first row 3");
    CHECK_THROWS_WITH(room_from_plan({"#x#"}), "room: 'x' in a plan, expected one of . # G g o");
    CHECK_THROWS_WITH(room_from_plan({}), "room: a plan of 0 rows of 0 cells, expected 1 to 32 of each");
    CHECK_THROWS_WITH(room_from_plan({std::string_view("#################################")}),
                      "room: a plan of 1 rows of 33 cells, expected 1 to 32 of each");
}

TEST_CASE("a disc collides with what is nearer than its radius, corners and the outside included") {
    const room in = room_from_plan({"...", ".#.", "..."});
    CHECK_FALSE(collides(in, h, c + h, c / 4));
    CHECK_FALSE(collides(in, c - 100, c + h, 100));  // touches the wall
    CHECK(collides(in, c - 99, c + h, 100));
    CHECK_FALSE(collides(in, c - 80, c - 80, 100));  // 80 sqrt 2 from the corner
    CHECK(collides(in, c - 70, c - 70, 100));
    CHECK(collides(in, 99, h, 100));  // the outside
    CHECK_FALSE(collides(in, 100, h, 100));
    CHECK(collides(in, c + h, c + h, 0));
    CHECK(collides(in, -5 * c, h, 0));
}

TEST_CASE("who walks never enters a wall, whatever the steps") {
    philox random(7, 8);
    int moved = 0;
    for (int trial = 0; trial < 40; ++trial) {
        const room in = thicket(random);
        const int radius = c / 16 + random.below(c / 3);
        pose who{5 * c + h, 5 * c + h, 0};
        REQUIRE_FALSE(collides(in, who.x, who.y, radius));
        for (int step = 0; step < 500; ++step) {
            who.heading = random.below(full_turn);
            const pose before = who;
            walk(in, who, random.below(3 * c) - c / 2, random.below(2 * c) - c, radius);
            moved += !(before == who);
            REQUIRE_FALSE(collides(in, who.x, who.y, radius));
        }
    }
    CHECK(moved > 10000);  // of 20000: the check above is not about standing still
}

TEST_CASE("walking stops at a wall, slides along it, and follows the heading") {
    const room in = room_from_plan({"########", "#......#", "#......#", "########"});
    pose who{2 * c, 2 * c, 0};
    walk(in, who, c, 0, c / 4);
    CHECK(who == pose{3 * c, 2 * c, 0});  // east
    walk(in, who, 0, h, c / 4);
    CHECK(who == pose{3 * c, 2 * c + h, 0});  // the right of east is south
    who.heading = full_turn / 4;              // south, whose right is west
    walk(in, who, -h, c, c / 4);
    CHECK(who == pose{2 * c, 2 * c, full_turn / 4});
    who = {3 * c, 2 * c + h, 0};
    walk(in, who, 20 * c, 0, c / 4);  // to the wall at x = 7: pieces of a 16th
    CHECK(who.x <= 7 * c - c / 4);
    CHECK(who.x >= 7 * c - c / 4 - c / 16);
    who = {2 * c, 2 * c + h, full_turn / 8};  // south-east, against the southern wall
    walk(in, who, 2 * c, 0, c / 4);
    CHECK(std::abs(who.x - (2 * c + static_cast<int>(2 * c * 0.70710678))) <= 4);
    CHECK(who.y <= 3 * c - c / 4);
    CHECK(who.y >= 3 * c - c / 4 - c / 16);
    who = {6 * c + h, c + h, full_turn / 8};  // the same against the eastern wall
    walk(in, who, c, 0, c / 4);
    CHECK(std::abs(who.y - (c + h + static_cast<int>(c * 0.70710678))) <= 4);
}

TEST_CASE("shut gates and solid objects stop who walks, open gates and other objects do not") {
    room in = room_from_plan({"######", "#..G.#", "######"});
    const pose start{c + h, c + h, 0};
    pose who = start;
    walk(in, who, 3 * c, 0, c / 4);
    CHECK(who.x < 3 * c);
    in.at(3, 1).kind = cell_kind::gate_open;
    who = start;
    walk(in, who, 3 * c, 0, c / 4);
    CHECK(who.x == 4 * c + h);
    REQUIRE(in.put(ball_at(3 * c + h, c + h, c / 8)));
    who = start;
    walk(in, who, 3 * c, 0, c / 4);
    CHECK(who.x <= 3 * c + c / 8);
    CHECK(who.x > 3 * c);
    CHECK(touched(in, who.x, who.y, c / 4) == -1);
    CHECK(touched(in, who.x + c / 16, who.y, c / 4) == 0);
    in.objects[0].solid = false;
    who = start;
    walk(in, who, 3 * c, 0, c / 4);
    CHECK(who.x == 4 * c + h);
    CHECK(touched(in, 3 * c + h, who.y, c / 4) == 0);
    in.objects[0].form = shape::none;  // collected
    CHECK(touched(in, 3 * c + h, who.y, c / 4) == -1);
}

TEST_CASE("a full room takes no more objects and pictures") {
    room in = room_from_plan({"#"});
    for (int i = 0; i < room::object_capacity; ++i) CHECK(in.put(ball_at(0, 0, 1)));
    CHECK_FALSE(in.put(ball_at(0, 0, 1)));
    for (int i = 0; i < room::picture_capacity; ++i) CHECK(in.hang(0, 0, face::west, 0));
    CHECK_FALSE(in.hang(0, 0, face::west, 0));
    CHECK(in.valid());
}

TEST_CASE("numbers that would become a wrong index make a room invalid") {
    room good = room_from_plan({"###", "#.#", "###"});
    REQUIRE(good.put(ball_at(h, h, h)));
    REQUIRE(good.hang(0, 0, face::west, 15, 3));
    CHECK(good.valid());
    const auto broken = [&](auto change) {
        room bad = good;
        change(bad);
        return !bad.valid();
    };
    CHECK(broken([](room& r) { r.width = 0; }));
    CHECK(broken([](room& r) { r.height = 33; }));
    CHECK(broken([](room& r) { r.wall_height = 0; }));
    CHECK(broken([](room& r) { r.objects_used = 17; }));
    CHECK(broken([](room& r) { r.pictures_used = 33; }));
    CHECK(broken([](room& r) { r.ground_skin = 16; }));
    CHECK(broken([](room& r) { r.at(1, 1).skin = 16; }));
    CHECK(broken([](room& r) { r.at(1, 1).kind = static_cast<cell_kind>(5); }));
    CHECK(broken([](room& r) { r.skins[3].kind = static_cast<pattern>(9); }));
    CHECK(broken([](room& r) { r.skins[3].repeats = 0; }));
    CHECK(broken([](room& r) { r.pictures[0].skin = 16; }));
    CHECK(broken([](room& r) { r.pictures[0].x = 3; }));
    CHECK(broken([](room& r) { r.pictures[0].image = -2; }));
    CHECK(broken([](room& r) { r.objects[0].form = static_cast<shape>(5); }));
    CHECK(broken([](room& r) { r.objects[0].radius = 0; }));
    CHECK(broken([](room& r) { r.objects[0].height = -1; }));
    CHECK(broken([](room& r) { r.objects[0].x = 33 * cell_length; }));
}
