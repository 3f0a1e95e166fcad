#pragma once
// SPDX-License-Identifier: MIT

// Spot the difference, four tasks (facts 2.4): look at the blocks of a room, wait in a corridor, and find in a second
// room, with the same blocks in the same places, the one that differs.
//
//   spot_diff           two blocks, one changes its colour; one has to look around to see them
//   spot_diff_passive   the two stand at the entrance of the corridor, in sight from the start
//   spot_diff_multi     2 or 3 (small), 4, 5 or 6 (large), 7 blocks; colours may repeat (errata M37); no delay (ours)
//   spot_diff_motion    two blocks of one colour that move; one follows another pattern
//
// Once the body is wholly inside the corridor the gate behind it shuts for good; the gate ahead opens after 0, 5, 10 or
// 15 s (small, interpolate, large, extrapolate; facts 2.2), counted in frames. Touching a block of the second room ends
// the episode: +1 for the one that differs, else 0. So does the time limit, with 0: 120 s, motion 240 s at paper
// fidelity.
//
// Ours besides: everything is uniform; two blocks and the changed one have three different colours or patterns;
// blocks of the first room stop a body, moving ones do not. The maximum is 1; whoever touches a block at random gets
// 1 / blocks.
//
// Small fidelity (ours) keeps what is to be remembered and for how long beside the rest of an episode: rooms of 3 x 3
// cells and a corridor of one, blocks that fill a cell, a tenth of the delay (0, 2, 4, 6 agent steps), 40 s.
//
//   basic    the blocks stand in the middle of the north and of the south wall: from the west wall, where the agent
//            begins in any of four directions, it has both, one or none in sight, and one turn or two show them
//   passive  in the corners beside the corridor
//   multi    two (small), three, four (large), five blocks, along both long walls of a room of five columns, none in
//            the first: whoever walks on has one pair of places after the other in sight, and in the second room the
//            same pairs in the same order. A body looks ahead throughout: what turns does not turn it
//   motion   where the basic ones stand; a body looks ahead throughout, and is held where it enters a room until it has
//            had four looks, which show all of a path (motion_pattern.hpp), from its beginning; paths stand upright
//            along the way through the rooms, so that each place is another one in the frame, and are drawn anew in
//            training, where in seven of eight episodes all rests. No two blocks, nor what one does in both rooms if it
//            differs, are alike at more than one look. Colours are those of training
//
// Colours are seen in a light of the episode's (suite_colours.hpp).

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/first_person.hpp"
#include "engram/task/grid_path.hpp"
#include "engram/task/motion_pattern.hpp"
#include "engram/task/ray_caster.hpp"
#include "engram/task/room.hpp"
#include "engram/task/spot_diff_rooms.hpp"
#include "engram/task/suite_colours.hpp"
#include "engram/task/suite_level.hpp"

namespace engram {

struct spot_diff_level {
    suite_level base;
    pace time;
    spot_diff_plan plan;
    std::int32_t limit = 0, unused = 0;  // frames
    std::int32_t height = 12, width = 16;
    bool operator==(const spot_diff_level&) const = default;
};

template <difference Kind>
struct spot_the_difference {
    static constexpr bool uses_stimuli = false;
    static constexpr std::array reads{"fidelity"};
    static constexpr int capacity = 7;  // blocks

    spot_diff_level level;
    std::int32_t delay;  // frames; of this episode, as all that follows
    philox random;
    pose who;
    std::int32_t frame, shut_frame;  // shut_frame: when the first gate shut; -1: not yet
    passage now;
    std::int32_t count, odd, changed, paint;  // blocks, which one differs, its new look, the colour of moving blocks
    std::int32_t look[capacity], spot[capacity];  // colour or pattern within the split, place on the rim
    std::int32_t shade;  // which shades the colours have in this episode; 0: they are as they are (paper fidelity)
    // When the second room was entered, where blocks move at small fidelity; -1: not yet, or not asked.
    std::int32_t entered, unused;
    room here;  // as it is now: a function of all the above

    static task_info describe(const task_options& options) {
        constexpr const char* names[] = {"spot_diff", "spot_diff_passive", "spot_diff_multi", "spot_diff_motion"};
        const int steps = time_of(options).steps(static_cast<float>(seconds(options)));
        task_info info{
            .name = names[static_cast<int>(Kind)], .observation = view_shape(options), .actions = walking_actions};
        constexpr int small[] = {3, 2, 5, 5}, paper[] = {1, 1, 1, 2};
        info.revision = revision_of(options, small[static_cast<int>(Kind)], paper[static_cast<int>(Kind)]);
        for (const auto& each : suite_levels) info.add_level({each.name, 1, NAN, steps, each.further});
        return info;
    }

    static spot_the_difference make(const std::string& name, const task_options& options, const stimulus_set*) {
        const task_info info = describe(options);
        const bool paper = pace::paper_fidelity(options);
        spot_the_difference fresh{};
        fresh.level.base = find_suite_level(info, name);
        fresh.level.time = time_of(options);
        fresh.level.plan = plan_of(paper);
        fresh.level.limit = seconds(options) * frames_per_second;
        fresh.level.height = info.observation.height, fresh.level.width = info.observation.width;
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        const int size = static_cast<int>(level.base.draw(random));
        constexpr int wait[] = {0, 5, 10, 15};  // seconds; at small fidelity tenths of that
        delay = Kind == difference::multi ? 0 : wait[size] * (level.time.whole ? 6 : frames_per_second);
        constexpr int fewest[] = {2, 4, 5, 7};
        count = 2;
        if (Kind == difference::multi && level.time.whole)
            count = 2 + size;
        else if (Kind == difference::multi)
            count = fewest[size] + (size == 0 || size == 2 ? random.below(2) : 0);
        odd = random.below(count);
        draw_looks();
        draw_spots();
        paint = random.below(difference_colours);
        shade = level.time.whole ? 1 + random.below(1 << 30) : 0;
        who = level.plan.start();
        if (Kind == difference::basic && level.time.whole) who.heading = random.below(4) * (full_turn / 4);
        frame = 0, shut_frame = entered = -1;
        now = passage::first_room;
        here = build();
    }

    ENGRAM_HD_CALL outcome step(int action) {
        for (int tick = 0; tick < level.time.ticks; ++tick) {
            const pose before = who;
            level.time.move(here, who, looks_ahead() ? way_ahead(action) : action, level.plan.body);
            if (looks_ahead()) who.heading = before.heading;
            if (is_held(before)) who = before;
            frame += level.time.frames;
            if (moves_by_looks() && entered < 0 && in_second_room(who)) entered = frame;
            pass();
            const int chosen = now == passage::second_room ? touched_block(who) : -1;
            if (chosen >= 0) return {chosen == odd ? 1.0f : 0.0f, true};
            if (frame >= level.limit) return {0, true};
        }
        return {0, false};
    }

    ENGRAM_HD_CALL void observe(const float*, float* pixels) const {
        draw_frame(here, who, view_lens(level.time, level.height, level.width, 0.8f), {}, pixels);
    }
    /// The frame that observe() draws.
    ENGRAM_HD room_view view(room&) const {
        return {&here, who, view_lens(level.time, level.height, level.width, 0.8f)};
    }

    std::optional<trial_event> event() const { return std::nullopt; }

    /// Walks through the corridor and to the block that differs.
    int oracle() const {
        const spot_diff_plan& plan = level.plan;
        if (level.time.whole) {
            const bool last = now == passage::second_room;
            const lattice_place goal = rim_place(spot[odd]);
            const auto free = [&](int x, int y) {
                pose there{x * cell_length + cell_length / 2, y * cell_length + cell_length / 2, 0};
                return !collides(here, there.x, there.y, plan.body) && (!last || touched_block(there) < 0);
            };
            return last ? cell_way_action(here, who, plan.along(1, goal) >> 16, plan.across(goal) >> 16, free)
                        : cell_way_action(here, who, plan.first_gate() + 1, plan.middle(), free);
        }
        const int tolerance = level.time.turn * level.time.ticks * 9 / 16;
        const int beside = now == passage::second_room ? plan.west(1) + cell_length / 3 : plan.west(1) + cell_length;
        const int mouth = plan.first_gate() * cell_length - cell_length / 2;
        if (now == passage::first_room && who.x < mouth - cell_length)
            return action_towards(who, mouth, plan.centre(), tolerance);
        if (who.x < beside) return action_towards(who, who.x + cell_length, plan.centre(), tolerance);
        const int middle = plan.west(1) + plan.columns * cell_length / 2;
        const room_object& goal = here.objects[odd];
        if (!way_is_free(goal.x, goal.y) && away(middle, plan.centre()) > 0.4 * cell_length)
            return action_towards(who, middle, plan.centre(), tolerance);
        return action_towards(who, goal.x, goal.y, tolerance);
    }

    bool valid() const {
        const bool multi = Kind == difference::multi;
        const spot_diff_plan& plan = level.plan;
        bool good = frame >= 0 && frame < level.limit && frame % (level.time.ticks * level.time.frames) == 0 &&
                    delay >= 0 && delay <= 15 * frames_per_second && count >= 2 && count <= (multi ? capacity : 2) &&
                    odd >= 0 && odd < count && changed >= 0 && changed < looks() && paint >= 0 &&
                    paint < difference_colours && (shade > 0) == (level.time.whole != 0) && shade >= 0 &&
                    now >= passage::first_room && now <= passage::second_room;
        for (int i = 0; good && i < capacity; ++i)
            good = look[i] >= 0 && look[i] < looks() && spot[i] >= 0 && spot[i] < rim_places;
        if (good && moves_by_looks()) {
            const bool holdout = level.base.holdout != 0;
            good = motion_in_split(look[0], holdout) && motion_in_split(look[1], holdout) &&
                   motion_in_split(changed, holdout) && paths_differ();
        }
        if (!good) return false;
        const bool first = now == passage::first_room, last = now == passage::second_room;
        good =
            first ? shut_frame == -1 : shut_frame >= 0 && shut_frame <= frame && (frame - shut_frame >= delay) == last;
        good = good && (!looks_ahead() || who.heading == 0);
        if (entered == -1)
            good = good && !(moves_by_looks() && last && in_second_room(who));
        else
            good = good && moves_by_looks() && last && entered > shut_frame + delay && entered <= frame &&
                   entered % (level.time.ticks * level.time.frames) == 0;
        good = good && level.time.fits(who) && who.heading >= 0 && who.heading < full_turn && who.x > 0 && who.y > 0 &&
               who.x < plan.width() * cell_length && who.y < plan.height() * cell_length;
        if (!good) return false;
        const room known = build();
        return std::memcmp(&known, &here, sizeof(room)) == 0 && !collides(here, who.x, who.y, plan.body) &&
               (!first || (who.x < plan.second_gate() * cell_length && !plan.in_corridor(who))) &&
               (first || who.x - plan.body >= (plan.first_gate() + 1) * cell_length) &&
               (!last || touched_block(who) < 0);
    }

private:
    static int seconds(const task_options& options) {
        return pace::paper_fidelity(options) ? (Kind == difference::motion ? 240 : 120) : 40;
    }

    /// A little slower through the large rooms, so that random walks seldom end an episode (facts 2.7).
    static pace time_of(const task_options& options) {
        return pace::of(options, Kind == difference::motion ? 1.3f : 1.8f);
    }

    static spot_diff_plan plan_of(bool paper) {
        const auto cells = [](double length) { return static_cast<std::int32_t>(length * cell_length); };
        const bool moving = Kind == difference::motion;
        const bool two_still = Kind == difference::basic || Kind == difference::passive;
        if (paper)
            return {11,         11,          two_still ? 4 : 6, cells(moving ? 1.6 : 1.5),
                    cells(0.6), cells(0.25), cells(0.9),        cells(moving ? 0.9 : 0),
                    cells(5.5)};
        return {Kind == difference::multi ? 5 : 3,
                3,
                1,
                cells(0.5),
                cells(moving ? 0.35 : 0.7),
                cells(0.15),
                cells(moving ? 0.5 : 1),
                cells(moving ? 0.45 : 0),
                cells(Kind == difference::passive ? 1.5 : 0.5)};
    }

    /// Whether a body looks along the way through the rooms throughout: many and moving blocks at small fidelity.
    ENGRAM_HD bool looks_ahead() const {
        return (Kind == difference::multi || Kind == difference::motion) && level.time.whole;
    }
    /// An action without its turn.
    ENGRAM_HD static int way_ahead(int action) {
        const bool forward = action == static_cast<int>(walking::look_left_forward) ||
                             action == static_cast<int>(walking::look_right_forward);
        return forward ? static_cast<int>(walking::forward) : action;
    }

    /// Whether blocks move from look to look: moving ones at small fidelity.
    ENGRAM_HD bool moves_by_looks() const { return Kind == difference::motion && level.time.whole; }
    ENGRAM_HD bool in_second_room(const pose& body) const { return body.x >= level.plan.west(1); }
    /// How many looks have been had in this room; before it is entered blocks wait.
    ENGRAM_HD int looked() const {
        if (now != passage::second_room) return frame / level.time.frames;
        return entered < 0 ? 0 : (frame - entered) / level.time.frames;
    }
    /// Whether somebody there may not walk on yet.
    ENGRAM_HD bool is_held(const pose& body) const {
        if (!moves_by_looks() || now == passage::waiting) return false;
        return (now == passage::first_room || in_second_room(body)) && looked() < motion_looks - 1;
    }

    ENGRAM_HD int looks() const {
        if (moves_by_looks()) return motion_paths;
        return Kind == difference::motion ? motions_per_split : difference_colours;
    }

    /// Whether no two of the three paths are alike at more than one look.
    ENGRAM_HD bool paths_differ() const {
        return looks_alike(look[0], look[1]) < 2 && looks_alike(look[0], changed) < 2 &&
               looks_alike(look[1], changed) < 2;
    }

    ENGRAM_HD_CALL void draw_looks() {
        for (int i = 0; i < capacity; ++i) look[i] = 0;
        if (moves_by_looks()) {
            // In seven of eight episodes of training all rests: what is asked is learnt there first.
            const bool holdout = level.base.holdout != 0, rest = random.below(8) != 0;
            const auto draw = [&] {
                return draw_motion_path(random, holdout, rest ? 1 : motion_looks - random.below(2));
            };
            do look[0] = draw(), look[1] = draw(), changed = draw();
            while (!paths_differ());
            return;
        }
        for (int i = 0; i < count; ++i) {
            look[i] = random.below(looks());
            while (Kind != difference::multi && i == 1 && look[1] == look[0]) look[1] = random.below(looks());
        }
        do changed = random.below(looks());
        while (changed == look[odd] || (Kind != difference::multi && changed == look[1 - odd]));
    }

    /// Different places; the two of the basic task are not neighbours.
    ENGRAM_HD_CALL void draw_spots() {
        for (int i = 0; i < capacity; ++i) spot[i] = 0;
        for (int i = 0; i < count;) {
            if (Kind == difference::passive)
                spot[i] = level.time.whole ? 1 + 2 * random.below(2) : 12 + random.below(2);
            if (Kind == difference::motion) spot[i] = random.below(4);
            // The middle of the north or of the south.
            if ((Kind == difference::basic || Kind == difference::motion) && level.time.whole)
                spot[i] = 5 + 3 * random.below(2);
            if (Kind == difference::multi) {
                spot[i] = random.below(level.time.whole ? 8 : rim_places);
                if (level.time.whole && spot[i] < 2)
                    spot[i] = 2 * spot[i] + 1;  // at the far end
                else if (level.time.whole)
                    spot[i] += 2;
            }
            if (Kind == difference::basic && !level.time.whole) {  // those that are not in the last column
                const int k = random.below(10);
                spot[i] = k < 2 ? 2 * k : k + 2;
            }
            bool good = true;
            for (int j = 0; j < i; ++j) {
                const lattice_place a = rim_place(spot[i]), b = rim_place(spot[j]);
                const int across = a.column - b.column, down = a.row - b.row, apart = across * across + down * down;
                good = good && apart >= (Kind != difference::basic ? 1 : level.time.whole ? 5 : 4);
            }
            i += good;
        }
    }

    /// The gates, then the blocks at this frame.
    ENGRAM_HD_CALL void pass() {
        const passage before = now;
        if (now == passage::first_room && level.plan.in_corridor(who)) now = passage::waiting, shut_frame = frame;
        if (now == passage::waiting && frame - shut_frame >= delay) now = passage::second_room;
        if (now != before) here = build();
        if (Kind == difference::motion)
            for (int i = 0; i < here.objects_used; ++i) here.objects[i] = block(i);
    }

    /// Only the blocks of the room that can be seen are there; none while both gates are shut.
    ENGRAM_HD_CALL room build() const {
        room made = level.plan.build(now);
        for (int i = 0; now != passage::waiting && i < count; ++i) made.put(block(i));
        return made;
    }

    ENGRAM_HD_CALL room_object block(int i) const {
        const bool second = now == passage::second_room;
        const int seen = second && i == odd ? changed : look[i];
        const lattice_place at = rim_place(spot[i]);
        room_object thing;
        thing.x = level.plan.along(second, at), thing.y = level.plan.across(at);
        thing.height = level.plan.high, thing.radius = level.plan.block;
        thing.form = shape::box;
        thing.solid = !second && Kind != difference::motion;  // a body has to get near enough to touch
        const int named = Kind == difference::motion ? paint : seen;
        // Of moving blocks paths are held out, not colours (errata M10).
        thing.paint = difference_colour(level.base.holdout && Kind != difference::motion, named);
        if (shade) thing.paint = shade_of(thing.paint, shade, named);
        thing.tag = static_cast<std::uint8_t>(i);
        if (moves_by_looks()) {
            const displacement at_look = motion_at_look(seen, looked());
            thing.x += at_look.x * level.plan.reach;
            thing.base = (1 - at_look.y) * level.plan.reach;  // what is north on a map is up
        } else if (Kind == difference::motion) {
            const auto along = static_cast<motion>(seen + motions_per_split * level.base.holdout);
            const displacement by = motion_at(along, frame, level.plan.reach);
            thing.x += by.x, thing.y += by.y;
        }
        return thing;
    }

    /// The nearest of the blocks that the body touches; -1: none.
    ENGRAM_HD_CALL int touched_block(const pose& body) const {
        const std::int64_t reach = level.plan.block + level.plan.body;
        std::int64_t nearest = reach * reach + 1;
        int found = -1;
        for (int i = 0; i < here.objects_used; ++i) {
            // By looks it moves along the way through the rooms, above where it rests and can be touched.
            const int x = moves_by_looks() ? level.plan.along(1, rim_place(spot[i])) : here.objects[i].x;
            const std::int64_t dx = body.x - x, dy = body.y - here.objects[i].y;
            if (dx * dx + dy * dy < nearest) nearest = dx * dx + dy * dy, found = i;
        }
        return found;
    }

    double away(double x, double y) const { return std::hypot(x - who.x, y - who.y); }

    /// Whether a body that goes straight to (x, y) keeps clear of the blocks that do not differ.
    bool way_is_free(double x, double y) const {
        const double dx = x - who.x, dy = y - who.y, length = dx * dx + dy * dy;
        bool free = true;
        for (int i = 0; i < here.objects_used; ++i) {
            const double bx = here.objects[i].x - who.x, by = here.objects[i].y - who.y;
            const double along = (bx * dx + by * dy) / length, t = along > 1 ? 1 : along;
            const double gap = std::hypot(bx - t * dx, by - t * dy);
            const bool passed = t <= 0 || gap > level.plan.block + level.plan.body + 0.02 * cell_length;
            free = free && (i == odd || passed);
        }
        return free;
    }
};

using spot_diff = spot_the_difference<difference::basic>;
using spot_diff_passive = spot_the_difference<difference::passive>;
using spot_diff_multi = spot_the_difference<difference::multi>;
using spot_diff_motion = spot_the_difference<difference::motion>;

static_assert(environment<spot_diff> && environment<spot_diff_passive> && environment<spot_diff_multi> &&
              environment<spot_diff_motion>);

}  // namespace engram
