#pragma once
// SPDX-License-Identifier: MIT

// visible_goal_procedural_maze (facts 2.5): a maze drawn for each episode, and in it a goal that stays. +10 for each
// time that it is reached, then the agent stands at a random spawn place of the same maze again. Only time ends an
// episode: 120 s at paper fidelity, 50 s, which are 200 agent steps, at small fidelity (ours).
//
//   size         cells    rooms   longest   objects   rows of the goal (from 1, the outer wall)
//                                                      train stimuli   holdout stimuli
//   small        11 x 11    9        3         5       2 to 5          7 to 10
//   interpolate  15 x 15   11        5        10       2 to 7 (ours)   9 to 14
//   large        21 x 21   13        7        15       2 to 10         12 to 20
//   extrapolate  27 x 27   15        9        20       2 to 13 (ours)  15 to 26
//
// Ours: the generator (maze_generator.hpp); the goal, a golden ball in a free cell of its rows, all alike; a body of
// 0.25 cells radius that reaches it when they touch; a speed of 5 cells/s; objects that do not stop anybody, at most 15
// as that is what a room holds; walls of nine areas with a texture each, drawn anew for each episode.
//
// Small fidelity (ours): 7 x 7, 9 x 7, 9 x 9, 11 x 9 cells (small, interpolate, large, extrapolate), 2, 3, 3, 4 rooms
// up to 3 cells long, and nine of ten walls between two nodes opened that need not be: who knows where the goal is
// gets there by going that way. It is in the rows north of the middle for train stimuli, south of it for holdout
// stimuli, nearly fills its cell, and is to be seen until it has been found. What is done there, and the outer walls,
// are those of all rooms with a goal (sought_goal.hpp). The walls within are plain, a hue for each area, and nothing
// else stands there. A goal pays 1: the learners' costs are those of the arenas, and with rewards of 10 much less of
// the task is learnt (docs/decisions/0045). What is new at holdout is the size of the maze.

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/explorer.hpp"
#include "engram/task/first_person.hpp"
#include "engram/task/grid_path.hpp"
#include "engram/task/maze_generator.hpp"
#include "engram/task/sought_goal.hpp"
#include "engram/task/suite_level.hpp"

namespace engram {

struct procedural_maze_level {
    suite_level base{};
    pace step{};
    std::int32_t height = 12, width = 16;  // of a frame
    std::int32_t limit = 0, unused = 0;    // agent steps
    bool operator==(const procedural_maze_level&) const = default;
};

struct procedural_maze {
    static constexpr bool uses_stimuli = false;
    static constexpr std::array reads{"fidelity"};
    static constexpr int body = cell_length / 4, goal_radius = cell_length / 4, reach = body + goal_radius;
    static constexpr int areas = 3;  // of the walls, along each side

    procedural_maze_level level;
    philox random;
    scale size;
    std::int32_t time;
    pose who;
    room place;
    std::uint8_t spawn_count;
    maze_cell goal, spawns[maze_generator::spawn_capacity];
    goal_state found;        // unknown throughout at paper fidelity
    std::uint8_t turned;     // quarters by which the outer walls and the light are turned; 0 at paper fidelity
    std::uint8_t unused[5];  // keeps the state free of padding

    static task_info describe(const task_options& options) {
        task_info info{
            .name = "visible_goal_procedural_maze", .observation = view_shape(options), .actions = walking_actions};
        info.seeks_goal = true;
        info.has_explorer = !pace::paper_fidelity(options);
        info.revision = revision_of(options, 6);
        const int longest = time_limit(options);
        for (const auto& each : suite_levels)
            info.add_level({each.name, 0, std::numeric_limits<float>::quiet_NaN(), longest, each.further});
        return info;
    }

    static procedural_maze make(const std::string& wanted, const task_options& options, const stimulus_set*) {
        const task_info info = describe(options);
        procedural_maze fresh{};
        fresh.level.base = find_suite_level(info, wanted);
        fresh.level.step = pace_of(options);
        fresh.level.height = info.observation.height, fresh.level.width = info.observation.width;
        fresh.level.limit = time_limit(options);
        return fresh;
    }

    /// `whole`: of the small fidelity.
    ENGRAM_HD_CALL static maze_recipe recipe(scale s, bool whole) {
        constexpr maze_recipe recipes[] = {{11, 11, 9, 3}, {15, 15, 11, 5}, {21, 21, 13, 7}, {27, 27, 15, 9}},
                              small[] = {{7, 7, 2, 3, 90}, {9, 7, 3, 3, 90}, {9, 9, 3, 3, 90}, {11, 9, 4, 3, 90}};
        return whole ? small[static_cast<int>(s)] : recipes[static_cast<int>(s)];
    }

    /// The first and the last row of the goal, from 0.
    struct rows {
        int first, last;
    };
    ENGRAM_HD_CALL static rows goal_rows(scale s, bool holdout, bool whole) {
        if (whole) {
            const int half = recipe(s, true).height / 2;
            return holdout ? rows{half + 1, 2 * half - 1} : rows{1, half - 1};
        }
        constexpr rows train[] = {{1, 4}, {1, 6}, {1, 9}, {1, 12}}, held[] = {{6, 9}, {8, 13}, {11, 19}, {14, 25}};
        return holdout ? held[static_cast<int>(s)] : train[static_cast<int>(s)];
    }

    ENGRAM_HD_CALL void reset() {
        size = level.base.draw(random);
        time = 0, found = goal_state::unknown;
        turned = static_cast<std::uint8_t>(level.step.whole ? random.below(room_sides) : 0);
        place = room{};
        const maze_generator made(place, recipe(size, level.step.whole), random);
        spawn_count = static_cast<std::uint8_t>(made.spawn_count());
        for (int i = 0; i < maze_generator::spawn_capacity; ++i) spawns[i] = made.spawn(i);
        paint();
        draw_goal();
        furnish();
        spawn();
    }

    ENGRAM_HD_CALL outcome step(int action) {
        const bool rests = found == goal_state::reached;
        const bool reached =
            !rests && walk_to_goal(level.step, place, who, action, body, centre(goal.x), centre(goal.y), reach);
        if (level.step.whole) found = after_step(found, reached);
        if (rests || (reached && !level.step.whole)) spawn();
        const float pays = level.step.whole ? 1.0f : 10.0f;
        return {reached ? pays : 0.0f, ++time >= level.limit};
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
    int oracle() const {
        return shortest_way_action(level.step, place, who, body, centre(goal.x), centre(goal.y), reach, time);
    }

    /// Of the maze nothing is known beforehand but its size. Small fidelity alone.
    int explore(explored& all) const {
        all.look_around(place, who, through(), found == goal_state::unknown, goal.x, goal.y);
        const auto passable = [&](int x, int y) { return !all.seen.at(x, y) || !place.at(x, y).solid(); };
        return explore_action(place, who, all.seen, passable, [&](int x, int y) {
            return all.goal ? x == goal.x && y == goal.y : passable(x, y) && !all.searched.at(x, y);
        });
    }

    /// A closed maze of its size, the goal in its rows, the body and all spawn places on free ground.
    bool valid() const {
        if (!level.base.valid() || !level.base.draws(size) || time < 0 || time >= level.limit) return false;
        const maze_recipe made = recipe(size, level.step.whole);
        if (!place.valid() || place.width != made.width || place.height != made.height || place.pictures_used != 0 ||
            place.wall_height != cell_length || turned >= (level.step.whole ? room_sides : 1))
            return false;
        for (int y = 0; y < place.height; ++y)
            for (int x = 0; x < place.width; ++x) {
                const bool edge = on_edge(x, y);
                const cell_kind kind = place.at(x, y).kind;
                if (kind != cell_kind::wall && (edge || kind != cell_kind::ground)) return false;
            }
        const auto free = [&](maze_cell c) { return place.inside(c.x, c.y) && !place.at(c.x, c.y).solid(); };
        const rows allowed = goal_rows(size, level.base.holdout == 1, level.step.whole);
        bool good = free(goal) && goal.y >= allowed.first && goal.y <= allowed.last && spawn_count >= 2 &&
                    spawn_count <= maze_generator::spawn_capacity;
        for (int i = 0; good && i < spawn_count; ++i) good = free(spawns[i]);
        for (int i = 0; good && i < place.objects_used; ++i) good = place.objects[i].solid == 0;
        good = good && can_be(found, level.step.whole != 0, within_reach(who, centre(goal.x), centre(goal.y), reach));
        return good && level.step.fits(who) && who.x >= 0 && who.x < place.width * cell_length && who.y >= 0 &&
               who.y < place.height * cell_length && who.heading >= 0 && who.heading < full_turn &&
               !collides(place, who.x, who.y, body);
    }

private:
    static pace pace_of(const task_options& options) { return pace::of(options, 5.0f); }
    static int time_limit(const task_options& options) {
        return pace_of(options).steps(pace::paper_fidelity(options) ? 120.0f : 50.0f);
    }
    ENGRAM_HD lens through() const { return view_lens(level.step, level.height, level.width); }
    ENGRAM_HD static int centre(int c) { return c * cell_length + cell_length / 2; }

    ENGRAM_HD_CALL void paint() {
        constexpr pattern kinds[] = {pattern::bricks, pattern::stripes, pattern::tiles, pattern::bands,
                                     pattern::checks};
        place.skins[0] = {pattern::checks, 1, {120, 110, 100}, {134, 124, 112}, 0};
        for (int i = 1; i <= areas * areas; ++i) {
            if (level.step.whole) {
                place.skins[i] = {pattern::plain, 1, from_hue(random.below(1536), 50, 170), {}, 0};
                continue;
            }
            const int kind = random.below(5);
            place.skins[i] = random_texture(kinds[kind], random);
        }
        for (int y = 0; y < place.height; ++y)
            for (int x = 0; x < place.width; ++x)
                place.at(x, y).skin = place.at(x, y).solid() ? static_cast<std::uint8_t>(1 + area(x, y)) : 0;
        if (level.step.whole) paint_sides();
    }
    /// Nothing but these and the light tells the direction.
    ENGRAM_HD_CALL void paint_sides() {
        constexpr int first = 1 + areas * areas;  // of their skins
        for (int i = 0; i < room_sides; ++i) place.skins[first + i] = side_paint(i);
        place.above.sun_heading = static_cast<std::uint16_t>(turned * (full_turn / 4));
        for (int y = 0; y < place.height; ++y)
            for (int x = 0; x < place.width; ++x) {
                if (!on_edge(x, y)) continue;
                const int side = side_at(x, y, place.width, place.height);
                place.at(x, y).skin = static_cast<std::uint8_t>(first + (side + room_sides - turned) % room_sides);
            }
    }
    ENGRAM_HD bool on_edge(int x, int y) const {
        return x == 0 || y == 0 || x == place.width - 1 || y == place.height - 1;
    }

    ENGRAM_HD int area(int x, int y) const { return y * areas / place.height * areas + x * areas / place.width; }

    ENGRAM_HD_CALL void draw_goal() {
        const rows allowed = goal_rows(size, level.base.holdout == 1, level.step.whole);
        int free = 0;
        for (int y = allowed.first; y <= allowed.last; ++y)
            for (int x = 0; x < place.width; ++x) free += !place.at(x, y).solid();
        int chosen = random.below(free);
        for (int y = allowed.first; y <= allowed.last; ++y)
            for (int x = 0; x < place.width; ++x)
                if (!place.at(x, y).solid() && chosen-- == 0)
                    goal = {static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y)};
        if (level.step.whole)
            return void(
                place.put(thing(goal, shape::ball, 9 * cell_length / 20, 9 * cell_length / 10, {255, 205, 20})));
        place.put(thing(goal, shape::ball, goal_radius, cell_length / 2, {255, 205, 20}));
        place.objects[0].base = cell_length / 5;
    }

    /// Cones, cylinders and boxes in cells with odd coordinates, which are always free.
    ENGRAM_HD_CALL void furnish() {
        if (level.step.whole) return;
        constexpr int wanted[] = {5, 10, 15, 20};
        constexpr shape forms[] = {shape::cone, shape::cylinder, shape::box};
        const int most = room::object_capacity - 1, all = wanted[static_cast<int>(size)];
        for (int i = 0; i < (all < most ? all : most); ++i) {
            const int x = 2 * random.below(place.width / 2) + 1;
            const int y = 2 * random.below(place.height / 2) + 1;
            const shape form = forms[random.below(3)];
            const colour paint = from_hue(random.below(1536), 30, 230);
            const maze_cell at{static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y)};
            // A second object in a cell would hide in the first; there is space elsewhere in other episodes.
            bool taken = at == goal;
            for (int k = 1; k < place.objects_used; ++k)
                taken = taken || (place.objects[k].x == centre(x) && place.objects[k].y == centre(y));
            if (!taken) place.put(thing(at, form, cell_length / 6, cell_length / 3, paint));
        }
    }

    ENGRAM_HD_CALL static room_object thing(maze_cell at, shape form, int radius, int height, colour paint) {
        room_object made;
        made.x = centre(at.x), made.y = centre(at.y), made.radius = radius, made.height = height;
        made.form = form, made.solid = 0, made.paint = paint;
        return made;
    }

    /// A random spawn place out of reach of the goal.
    ENGRAM_HD_CALL void spawn() {
        int free = 0;
        for (int i = 0; i < spawn_count; ++i) free += !(spawns[i] == goal);
        int chosen = random.below(free);
        for (int i = 0; i < spawn_count; ++i)
            if (!(spawns[i] == goal) && chosen-- == 0) who.x = centre(spawns[i].x), who.y = centre(spawns[i].y);
        who.heading = level.step.whole ? first_side(turned) : random.below(full_turn);
    }
};

static_assert(environment<procedural_maze>);
static_assert(sizeof(procedural_maze) < 4096);

}  // namespace engram
