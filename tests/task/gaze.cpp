// SPDX-License-Identifier: MIT
#include "engram/task/gaze.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace engram;

namespace {

constexpr double radians = 6.283185307179586 / full_turn;

/// Four frames of the action that `next` gives; true once `met` holds after one of them, within so many actions.
template <class Next, class Met>
bool reaches(gaze& eye, int actions, Next next, Met met) {
    for (int a = 0; a < actions; ++a) {
        const int action = next(eye);
        for (int frame = 0; frame < 4; ++frame) {
            eye.move(action);
            if (met(eye)) return true;
        }
    }
    return false;
}

}  // namespace

TEST_CASE("where a gaze meets the panel agrees with trigonometry") {
    int inside = 0;
    for (int yaw = -32768; yaw < 32768; yaw += 97)
        for (int pitch = -gaze::highest; pitch <= gaze::highest; pitch += 383) {
            const gaze eye{yaw, pitch};
            const double x = 0.5 + std::tan(yaw * radians) / 1.5;
            const double y = 0.5 - std::tan(pitch * radians) / std::cos(yaw * radians) / 1.5;
            for (const panel_box& part : {panel_box{}, cross_zone, button_zone(0), button_zone(2)}) {
                const double left = part.left / 1000.0, right = part.right / 1000.0, top = part.top / 1000.0,
                             bottom = part.bottom / 1000.0;
                const double margin = std::fmin(std::fmin(x - left, right - x), std::fmin(y - top, bottom - y));
                if (std::fabs(margin) < 1e-3) continue;  // sine and cosine are rounded
                const bool expected = margin > 0 && std::cos(yaw * radians) > 0;
                REQUIRE(eye.on(part) == expected);
                inside += expected;
            }
        }
    CHECK(inside > 1000);
}

TEST_CASE("looks go where they say, around the back, and stop on the lattice above and below") {
    gaze eye;
    eye.move(static_cast<int>(looking::right)), eye.move(static_cast<int>(looking::up));
    CHECK(eye.yaw == 383);
    CHECK(eye.pitch == 383);
    eye.move(static_cast<int>(looking::nothing));
    CHECK(eye.yaw == 383);
    for (int i = 0; i < 100; ++i) eye.move(static_cast<int>(looking::up));
    CHECK(eye.pitch == gaze::highest);
    for (int i = 0; i < 36 + 36; ++i) eye.move(static_cast<int>(looking::down));
    CHECK(eye.pitch == -gaze::highest);
    CHECK(gaze::highest % (4 * gaze::step) == 0);
    eye.yaw = 32767;
    eye.move(static_cast<int>(looking::right));
    CHECK(eye.yaw == -32768 + 382);
    CHECK(eye.valid());
    CHECK_FALSE(gaze{0, gaze::highest + 1}.valid());
    CHECK_FALSE(gaze{32768, 0}.valid());
}

// Actions of four frames are 8.4 degrees, and buttons hardly wider.
TEST_CASE("the cross and every button are reached from every heading of a start, and no other button on the way") {
    for (int start = -full_turn / 8; start <= full_turn / 8; ++start) {
        gaze eye{start, 0};
        REQUIRE(reaches(eye, 6, look_at_middle, [](const gaze& now) { return now.on(cross_zone); }));
        for (int d = 0; d < 4; ++d) {
            gaze from = eye;
            // The frames of the last action are played to its end.
            while ((from.yaw - start) % (4 * gaze::step) != 0)
                from.move(static_cast<int>(start > 0 ? looking::left : looking::right));
            int other = 0;
            REQUIRE(reaches(
                from, 6, [d](const gaze& now) { return look_at_button(now, d); },
                [&](const gaze& now) {
                    for (int e = 0; e < 4; ++e) other += e != d && now.on(button_zone(e));
                    return now.on(button_zone(d));
                }));
            REQUIRE(other == 0);
            const bool back = reaches(from, 7, look_at_middle, [](const gaze& now) { return now.on(cross_zone); });
            REQUIRE(back);
        }
    }
}
