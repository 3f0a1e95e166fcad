// What rooms with a goal share.
#include "engram/task/sought_goal.hpp"

#include <doctest/doctest.h>

#include <cstring>

using namespace engram;

TEST_CASE("a goal is unknown until it is reached, and known from the step after") {
    using enum goal_state;
    CHECK(after_step(unknown, false) == unknown);
    for (const goal_state before : {unknown, reached, known}) CHECK(after_step(before, true) == reached);
    CHECK(after_step(reached, false) == known);
    CHECK(after_step(known, false) == known);
}

TEST_CASE("who has reached a goal stands within its reach, and nobody else; at paper fidelity nothing is kept") {
    using enum goal_state;
    CHECK((can_be(unknown, true, false) && can_be(reached, true, true) && can_be(known, true, false)));
    CHECK_FALSE((can_be(unknown, true, true) || can_be(reached, true, false) || can_be(known, true, true)));
    CHECK_FALSE(can_be(static_cast<goal_state>(3), true, false));
    for (const bool there : {false, true}) {
        CHECK(can_be(unknown, false, there));
        CHECK_FALSE((can_be(reached, false, there) || can_be(known, false, there)));
    }
}

TEST_CASE("a room is shown as it is until its goal has been found, then without it") {
    room place{}, spare{};
    place.width = place.height = 7;
    place.put({});
    const room before = place;
    CHECK(&room_with_goal(place, spare, goal_state::unknown) == &place);
    for (const goal_state found : {goal_state::reached, goal_state::known}) {
        const room& seen = room_with_goal(place, spare, found);
        CHECK(&seen == &spare);
        CHECK(seen.width == 7);
        CHECK(seen.objects_used == 0);
        CHECK((seen.skins[0].first == place.skins[0].first) == (found == goal_state::known));
        CHECK(std::memcmp(&before, &place, sizeof(room)) == 0);
    }
}

TEST_CASE("sides go round from the north, and so does the first one in each quarter turn") {
    CHECK(
        (side_at(2, 0, 7, 5) == 0 && side_at(6, 2, 7, 5) == 1 && side_at(2, 4, 7, 5) == 2 && side_at(0, 2, 7, 5) == 3));
    for (int turned = 0; turned < room_sides; ++turned)
        CHECK((first_side(turned + 1) - first_side(turned) + full_turn) % full_turn == full_turn / room_sides);
    for (int i = 0; i < room_sides; ++i)
        for (int j = 0; j < i; ++j) CHECK_FALSE(side_paint(i).first == side_paint(j).first);
}
