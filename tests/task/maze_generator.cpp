// SPDX-License-Identifier: MIT
#include "engram/task/maze_generator.hpp"

#include <doctest/doctest.h>

#include <set>
#include <utility>
#include <vector>

using namespace engram;

namespace {

constexpr maze_recipe recipes[] = {{7, 7, 1, 3},    {11, 11, 9, 3},  {15, 15, 11, 5}, {21, 21, 13, 7},
                                   {27, 27, 15, 9}, {31, 31, 15, 9}, {9, 7, 3, 3},    {15, 27, 11, 5}};

bool open(const room& in, int x, int y) {
    return in.inside(x, y) && !in.at(x, y).solid();
}

/// Cells that are reached from the first free one.
int flooded(const room& in) {
    std::set<std::pair<int, int>> seen{{1, 1}};
    std::vector<std::pair<int, int>> queue{{1, 1}};
    while (!queue.empty()) {
        const auto [x, y] = queue.back();
        queue.pop_back();
        for (const auto& [dx, dy] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}})
            if (open(in, x + dx, y + dy) && seen.insert({x + dx, y + dy}).second) queue.push_back({x + dx, y + dy});
    }
    return static_cast<int>(seen.size());
}

}  // namespace

TEST_CASE("every maze is closed, connected, and every cell with odd coordinates is free") {
    philox random(3, 4);
    for (const maze_recipe& recipe : recipes)
        for (int trial = 0; trial < 150; ++trial) {
            room in;
            const maze_generator made(in, recipe, random);
            REQUIRE(in.width == recipe.width);
            REQUIRE(in.height == recipe.height);
            int free = 0;
            for (int y = 0; y < in.height; ++y)
                for (int x = 0; x < in.width; ++x) {
                    free += open(in, x, y);
                    const bool edge = x == 0 || y == 0 || x == in.width - 1 || y == in.height - 1;
                    if (edge) REQUIRE_FALSE(open(in, x, y));
                    if (x % 2 == 1 && y % 2 == 1) REQUIRE(open(in, x, y));
                }
            REQUIRE(flooded(in) == free);
            REQUIRE(made.spawn_count() >= maze_generator::each);
            REQUIRE(made.spawn_count() <= recipe.rooms * maze_generator::each);
            std::set<std::pair<int, int>> spawns;
            for (int i = 0; i < made.spawn_count(); ++i) {
                REQUIRE(open(in, made.spawn(i).x, made.spawn(i).y));
                spawns.insert({made.spawn(i).x, made.spawn(i).y});
            }
            REQUIRE(static_cast<int>(spawns.size()) == made.spawn_count());  // no cell twice
        }
}

// Nodes as vertices, open cells between them as edges: without rooms there would be no ring. A room of a x b nodes has
// (a - 1)(b - 1) squares and its doors add none, so rings = squares, where a square is an open cell of even
// coordinates.
TEST_CASE("there is one way between two regions, and no more") {
    philox random(5, 6);
    for (const maze_recipe& recipe : recipes)
        for (int trial = 0; trial < 50; ++trial) {
            room in;
            const maze_generator made(in, recipe, random);
            int nodes = 0, edges = 0, squares = 0;
            for (int y = 1; y < in.height - 1; ++y)
                for (int x = 1; x < in.width - 1; ++x) {
                    if (!open(in, x, y)) continue;
                    const int odd = x % 2 + y % 2;
                    nodes += odd == 2, edges += odd == 1, squares += odd == 0;
                }
            CHECK(edges == nodes - 1 + squares);
        }
}

TEST_CASE("of the walls between two nodes as many are opened besides as is wanted, and the maze stays closed") {
    const auto walls = [](int opened) {
        philox random(7, 8);
        int left = 0;
        for (int trial = 0; trial < 200; ++trial) {
            room in;
            const maze_generator made(in, {13, 9, 2, 3, opened}, random);
            for (int y = 0; y < in.height; ++y)
                for (int x = 0; x < in.width; ++x) {
                    const bool edge = x == 0 || y == 0 || x == in.width - 1 || y == in.height - 1;
                    if (edge) REQUIRE_FALSE(open(in, x, y));
                    if (!edge && x % 2 + y % 2 == 1) left += !open(in, x, y);
                }
        }
        return left;
    };
    const int all = walls(0);
    CHECK(walls(100) == 0);
    CHECK(walls(25) == doctest::Approx(0.75 * all).epsilon(0.06));
    CHECK(walls(75) == doctest::Approx(0.25 * all).epsilon(0.12));
}

TEST_CASE("the same stream gives the same maze, the next draw another one") {
    philox random(7, 8), again(7, 8);
    room first, second, third;
    const maze_generator a(first, recipes[2], random), b(second, recipes[2], again), c(third, recipes[2], random);
    const auto same = [](const room& p, const room& q) {
        for (int i = 0; i < p.width * p.height; ++i)
            if (p.cells[i].kind != q.cells[i].kind) return false;
        return true;
    };
    CHECK(same(first, second));
    CHECK_FALSE(same(first, third));
    for (int i = 0; i < a.spawn_count(); ++i) CHECK(a.spawn(i) == b.spawn(i));
}
