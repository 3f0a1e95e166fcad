#pragma once
// SPDX-License-Identifier: MIT

// Three navigation tasks in a square arena (facts 2.5): visible_goal_with_buildings, invisible_goal_with_buildings and
// invisible_goal_empty_arena. A goal is drawn for each episode and stays; +1 for each time that it is reached, then the
// agent stands at a random place again. Only time ends an episode.
//
//   side: 10, 15, 20, 25 m for small, interpolate, large, extrapolate (facts 2.2), a cell a metre, and a wall around
//   goal: in the north-west or south-east quadrant (train stimuli), north-east or south-west (holdout)
//   time: 200 s at paper fidelity (facts 2.1), 50 s, which are 200 agent steps, at small fidelity (ours)
//
// Ours: a speed of 2.5 m/s, a body of 0.25 m radius and the distance at which a goal counts as reached, see
// `goal_arena_level`; the goal, at least that far from the border of its quadrant and 0.75 m from all that is solid;
// the blocks, the same in every episode of a size; sun and hills, the same in every episode, by which direction can be
// told where there is nothing else.
//
// Small fidelity (ours): 4, 5, 6, 7 cells a side, one or two blocks of a cell each, a goal that fills a cell and is
// reached in it. A visible goal is to be seen until it has been found (sought_goal.hpp); what is done there, and by
// what one knows the way, is that of all rooms with a goal.
//
// There, blocks stand elsewhere in each episode: where they stood alike, two arenas were all that was ever seen in
// training, and were learnt by heart (docs/decisions/0044). They are few, as between more of them an agent without a
// memory finds its way all too well (docs/decisions/0051). The four walls have a colour each, and walls and light are
// turned together by quarters: goals lie in the quadrants of the level's stimuli, but nothing that is seen tells which
// these are. Where it did, agents never went where no goal had been in training, as the paper's do in the empty arena.
// So what is new at holdout is the size of the arena; that a goal is looked for, found and remembered is asked of both.

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/explorer.hpp"
#include "engram/task/first_person.hpp"
#include "engram/task/grid_path.hpp"
#include "engram/task/sought_goal.hpp"
#include "engram/task/suite_level.hpp"

namespace engram {

/// A goal is reached at 0.9 m, in the empty arena at paper fidelity at 0.15 m: that brings a random agent near the
/// paper's rows. At small fidelity it is a cell.
struct goal_arena_level {
    suite_level base{};
    pace step{};
    std::int32_t height = 12, width = 16;  // of a frame
    std::int32_t limit = 0, reach = 0;     // agent steps; units of length
    bool operator==(const goal_arena_level&) const = default;
};

/// A block of w x h cells, its corner (x, y) counted from the arena's.
struct arena_block {
    std::int8_t x = 0, y = 0, w = 0, h = 0;
};

template <bool Visible, bool Buildings>
struct goal_arena {
    static_assert(Buildings || !Visible, "the suite has no visible goal in the empty arena");
    static constexpr bool uses_stimuli = false;
    static constexpr std::array reads{"fidelity"};
    static constexpr int body = cell_length / 4, clear = 3 * cell_length / 4;
    static constexpr int block_capacity = 10, first_block_skin = 2, first_side_skin = 12;

    goal_arena_level level;
    philox random;
    scale size;
    std::int32_t time, goal_x, goal_y;
    std::int32_t turned;     // quarters; 0 at paper fidelity
    goal_state found;        // unknown throughout at paper fidelity
    std::uint8_t unused[3];  // keeps the state free of padding
    pose who;
    room place;

    static constexpr const char* name = Visible     ? "visible_goal_with_buildings"
                                        : Buildings ? "invisible_goal_with_buildings"
                                                    : "invisible_goal_empty_arena";

    static task_info describe(const task_options& options) {
        task_info info{.name = name, .observation = view_shape(options), .actions = walking_actions};
        info.seeks_goal = true;
        info.has_explorer = !pace::paper_fidelity(options);
        info.revision = revision_of(options, Visible ? 6 : Buildings ? 5 : 3);
        const int longest = time_limit(options);
        for (const auto& each : suite_levels)
            info.add_level({each.name, 0, std::numeric_limits<float>::quiet_NaN(), longest, each.further});
        return info;
    }

    static goal_arena make(const std::string& wanted, const task_options& options, const stimulus_set*) {
        const task_info info = describe(options);
        const bool paper = pace::paper_fidelity(options);
        goal_arena fresh{};
        fresh.level.base = find_suite_level(info, wanted);
        fresh.level.step = pace_of(options);
        fresh.level.height = info.observation.height, fresh.level.width = info.observation.width;
        fresh.level.limit = time_limit(options);
        fresh.level.reach = !paper ? cell_length / 2 : Buildings ? 9 * cell_length / 10 : 15 * cell_length / 100;
        return fresh;
    }

    /// In cells; `whole`: of the small fidelity.
    static constexpr int side_of(scale s, bool whole) {
        const int steps = static_cast<int>(s);
        return whole ? 4 + steps : 10 + 5 * steps;
    }

    /// The arena of a size without a goal, at small fidelity without blocks.
    ENGRAM_HD_CALL static room arena(scale s, bool whole, int turned = 0) {
        const int side = side_of(s, whole) + 2;
        room made;
        made.width = made.height = static_cast<std::uint8_t>(side);
        made.wall_height = Buildings ? 3 * cell_length / 2 : 3 * cell_length / 4;
        made.above.sun_heading = full_turn / 9, made.above.sun_slope = 105;
        made.above.hill_slope = 90, made.above.hill_seed = 12345;
        made.skins[0] = {pattern::checks, 1, {92, 130, 80}, {104, 142, 90}, 0};
        made.skins[1] = {pattern::plain, 1, {176, 170, 160}, {}, 0};
        if (whole) {
            for (int i = 0; i < room_sides; ++i) made.skins[first_side_skin + i] = side_paint(i);
            made.above = {};
            made.above.sun_heading = static_cast<std::uint16_t>(turned * (full_turn / 4));
            made.wall_height = 3 * cell_length / 2;
            made.skins[0].kind = pattern::plain;  // the colours of checks would tell one quadrant from the next
        }
        const auto put = [&](int x, int y, int skin) {
            const int last = side - 1;
            for (int i = 0; i < turned; ++i) {
                const int before = x;
                x = last - y, y = before;
            }
            made.at(x, y) = {cell_kind::wall, static_cast<std::uint8_t>(skin)};
        };
        for (int y = 0; y < side; ++y)
            for (int x = 0; x < side; ++x)
                if (x == 0 || y == 0 || x == side - 1 || y == side - 1)
                    put(x, y, !whole ? 1 : first_side_skin + side_at(x, y, side, side));
        if constexpr (Buildings)
            for (int i = 0; i < block_capacity; ++i) {
                const arena_block b = whole ? arena_block{} : block(s, i);
                const int skin = first_block_skin + i;
                for (int y = b.y; y < b.y + b.h; ++y)
                    for (int x = b.x; x < b.x + b.w; ++x) put(x + 1, y + 1, skin);
                constexpr pattern kinds[] = {pattern::plain, pattern::stripes, pattern::bands};
                // Red to violet, neighbours in the list far apart; pink is the goal's.
                const int hue = 120 * (3 * i % 10);
                made.skins[skin] = {kinds[i % 3], 2, from_hue(hue, 40, 250), from_hue(hue, 20, 150), 0};
            }
        return made;
    }

    ENGRAM_HD_CALL void reset() {
        size = level.base.draw(random);
        time = 0, found = goal_state::unknown;
        turned = whole() ? random.below(room_sides) : 0;
        place = arena(size, whole(), turned);
        if (Buildings && whole()) scatter_blocks();
        draw_goal();
        if constexpr (Visible) place.put(oval());
        spawn();
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const bool rests = found == goal_state::reached;
        const bool reached = !rests && walk_to_goal(level.step, place, who, action, body, goal_x, goal_y, level.reach);
        if (whole()) found = after_step(found, reached);
        if (rests || (reached && !whole())) spawn();
        return {reached ? 1.0f : 0.0f, ++time >= level.limit};
    }

    ENGRAM_HD_CALL void observe(const float*, float* pixels) const {
        if (found == goal_state::unknown) return draw_frame(place, who, through(), {}, pixels);
        room spare;
        view(spare).draw(pixels);
    }
    /// The frame that observe() draws.
    ENGRAM_HD room_view view(room& spare) const { return {&room_with_goal(place, spare, found), who, through()}; }

    /// Nothing is asked of the agent that could be right or wrong.
    std::optional<trial_event> event() const { return std::nullopt; }

    /// The shortest way to the goal.
    int oracle() const { return shortest_way_action(level.step, place, who, body, goal_x, goal_y, level.reach, time); }

    /// It is known where the goal can be, but neither where it is nor where blocks stand. Small fidelity alone.
    int explore(explored& all) const {
        const int gx = goal_x >> 16, gy = goal_y >> 16;
        all.look_around(place, who, through(), Visible && found == goal_state::unknown, gx, gy);
        const int last = side_of(size, true) + 1, odd = last % 2 == 0;
        return explore_action(
            place, who, all.seen,
            [&](int cx, int cy) {
                const bool inner = cx > 0 && cy > 0 && cx < last && cy < last;
                return inner && !(all.seen.at(cx, cy) && place.at(cx, cy).solid());
            },
            [&](int cx, int cy) {
                if (all.goal) return cx == gx && cy == gy;
                return !all.searched.at(cx, cy) && !(odd && (2 * cx == last || 2 * cy == last));
            });
    }

    /// An arena is known byte for byte but for where its blocks stand, the goal is drawn as it is drawn by `reset`, and
    /// the body stands free.
    bool valid() const {
        if (!level.base.valid() || !level.base.draws(size) || time < 0 || time >= level.limit) return false;
        const int far = (side_of(size, whole()) + 2) * cell_length;
        const auto inside = [&](int p) { return p >= 0 && p < far; };
        if (!inside(goal_x) || !inside(goal_y) || !inside(who.x) || !inside(who.y) || who.heading < 0 ||
            who.heading >= full_turn || turned < 0 || turned >= (whole() ? room_sides : 1) ||
            !can_be(found, whole(), within_reach(who, goal_x, goal_y, level.reach)))
            return false;
        goal_arena again = *this;
        again.place = arena(size, whole(), turned);
        if (whole() && !again.take_blocks(place)) return false;
        if (!level.step.fits(who) || !again.goal_fits(goal_x, goal_y) ||
            (whole() && (goal_x == far / 2 || goal_y == far / 2)) ||
            ((goal_x > far / 2) == (goal_y > far / 2)) == (level.base.holdout == 1))
            return false;
        if constexpr (Visible) again.place.put(oval());
        return std::memcmp(&again.place, &place, sizeof(room)) == 0 && !collides(place, who.x, who.y, body);
    }

private:
    static pace pace_of(const task_options& options) { return pace::of(options, 2.5f); }
    static int time_limit(const task_options& options) {
        return pace_of(options).steps(pace::paper_fidelity(options) ? 200.0f : 50.0f);
    }
    ENGRAM_HD lens through() const { return view_lens(level.step, level.height, level.width); }
    ENGRAM_HD bool whole() const { return level.step.whole != 0; }

    /// Blocks of the small fidelity, a cell each.
    ENGRAM_HD static constexpr int block_count(scale s) { return Buildings ? 1 + static_cast<int>(s) / 2 : 0; }
    static_assert(block_count(scale::extrapolate) < 4, "four around a cell would part it from the rest");

    /// Blocks on cells drawn at random, none beside the wall.
    ENGRAM_HD_CALL void scatter_blocks() {
        const int side = side_of(size, true);
        for (int i = 0; i < block_count(size); ++i)
            for (int tries = 0; tries < 100; ++tries) {
                const int x = 2 + random.below(side - 2);
                const int y = 2 + random.below(side - 2);
                if (place.at(x, y).solid()) continue;
                place.at(x, y) = {cell_kind::wall, static_cast<std::uint8_t>(first_block_skin + i)};
                break;
            }
    }

    /// The blocks of another room; false: they are not such as `scatter_blocks` puts.
    bool take_blocks(const room& from) {
        if (from.width != place.width) return false;
        const int side = side_of(size, true), all = block_count(size);
        int taken = 0;  // a bit each
        for (int y = 2; y < side; ++y)
            for (int x = 2; x < side; ++x) {
                const cell here = from.at(x, y);
                const int i = here.skin - first_block_skin;
                if (here.kind != cell_kind::wall || i < 0 || i >= all || (taken >> i & 1)) continue;
                taken |= 1 << i;
                place.at(x, y) = here;
            }
        return taken == (1 << all) - 1;
    }

    /// Block i of a size; beyond its blocks, one without cells.
    ENGRAM_HD_CALL static arena_block block(scale s, int i) {
        constexpr arena_block blocks[4][block_capacity] = {
            {{1, 2, 2, 1}, {6, 2, 1, 2}, {3, 6, 2, 1}, {7, 7, 1, 1}},
            {{2, 2, 2, 2}, {9, 1, 1, 3}, {3, 8, 1, 4}, {8, 6, 3, 1}, {11, 11, 2, 1}},
            {{2, 3, 3, 1}, {11, 2, 2, 2}, {16, 5, 1, 4}, {6, 8, 2, 2}, {2, 13, 1, 3}, {12, 12, 3, 1}, {8, 16, 2, 1}},
            {{3, 2, 2, 3},
             {12, 3, 3, 1},
             {19, 2, 1, 4},
             {7, 9, 2, 2},
             {15, 9, 2, 3},
             {21, 12, 1, 2},
             {2, 15, 3, 1},
             {10, 16, 1, 4},
             {17, 18, 3, 2},
             {5, 21, 2, 1}}};
        return blocks[static_cast<int>(s)][i];
    }

    /// Within the quadrant by `reach`, and clear of what is solid.
    ENGRAM_HD_CALL bool goal_fits(int x, int y) const {
        if (whole()) return level.step.fits({x, y, 0}) && !collides(place, x, y, body);
        const int middle = cell_length + side_of(size, false) * cell_length / 2;
        const auto within = [&](int p) { return p <= middle - level.reach || p >= middle + level.reach; };
        return within(x) && within(y) && !collides(place, x, y, clear);
    }

    /// A place from `from` on, less than `length` farther; of whole cells the middle of one.
    ENGRAM_HD_CALL int draw_place(int from, int length) {
        return whole() ? from + random.below(length / cell_length) * cell_length + cell_length / 2
                       : from + random.below(length);
    }

    ENGRAM_HD_CALL void draw_goal() {
        const int side = side_of(size, whole());
        // Of an odd number of whole cells, the middle one belongs to no quadrant.
        const int half = whole() ? side / 2 * cell_length : side * cell_length / 2, rest = side * cell_length - half;
        const bool east = random.below(2) == 1, south = east != (level.base.holdout == 1);
        const int left = cell_length + (east ? rest : 0), top = cell_length + (south ? rest : 0);
        // About half of a quadrant fits: a place is missed a hundred times in a row less than once in 2^100 episodes.
        for (int i = 0; i < 100; ++i) {
            goal_x = draw_place(left, half);
            goal_y = draw_place(top, half);
            if (goal_fits(goal_x, goal_y)) return;
        }
    }

    /// A free place out of reach of the goal. Where chance finds none, which is as unlikely, the agent stays.
    ENGRAM_HD_CALL void spawn() {
        const int side = side_of(size, whole()) * cell_length;
        for (int i = 0; i < 100; ++i) {
            const int x = draw_place(cell_length, side);
            const int y = draw_place(cell_length, side);
            if (collides(place, x, y, body)) continue;
            who.x = x, who.y = y;
            if (!within_reach(who, goal_x, goal_y, level.reach)) break;
        }
        who.heading = whole() ? first_side(turned) : random.below(full_turn);
    }

    /// The goal as it is seen: it floats, and touches a body that comes within reach.
    ENGRAM_HD_CALL room_object oval() const {
        room_object made;
        made.x = goal_x, made.y = goal_y;
        made.base = cell_length / 5, made.height = 8 * cell_length / 5,
        made.radius = whole() ? 2 * cell_length / 5 : level.reach - body;
        made.form = shape::ball, made.solid = 0, made.paint = {255, 40, 170};
        return made;
    }
};

using visible_goal_with_buildings = goal_arena<true, true>;
using invisible_goal_with_buildings = goal_arena<false, true>;
using invisible_goal_empty_arena = goal_arena<false, false>;

static_assert(environment<visible_goal_with_buildings>);
static_assert(environment<invisible_goal_with_buildings>);
static_assert(environment<invisible_goal_empty_arena>);
static_assert(sizeof(visible_goal_with_buildings) < 4096);

}  // namespace engram
