#pragma once
// SPDX-License-Identifier: MIT

// Two Colors (facts 3.7, errata U27): green and red items lie in a room whose floor hurts; a column shows which colour
// is good in this episode, and is gone after 45 agent steps. What an item did is not to be seen either: health and
// reward are hidden, so the colour has to be remembered.
//
//   item: +1 and 25 health of the good colour, -1 and -25 of the other; a body that touches one takes it
//   time: 0.01 a tic for being alive; the episode ends without health or at the time limit
//   items: ten of each colour, then one every 30 tics, green and red by turns, at random places
//   actions: turn left, turn right, forward, left and forward, right and forward; with `task.backward` also backward,
//            left and backward, right and backward (their order is ours)
//
// A cell is 64 of the game's units. Fidelity `paper` is the paper's: 64 x 112 x 3, two tics an agent step, 1050 of
// them, a room of 20 x 20 cells. `small` is ours: 16 x 28 x 3, eight tics a step, 150 of them, a room of 10 x 10 with
// five items of each colour and a new one every 64 tics; the column is gone after 12 steps. Turning and walking are the
// engine's (640 / 65536 of a turn and 8 1/3 units a tic, without inertia: ours).
//
// Ours, where the sources are silent: health 5 less every 32 tics and never above 100; bodies are discs of 16 and 20
// units; the agent starts in the middle, looking at the column; the wall stub; the sixteen nearest bodies in front are
// drawn, and none beyond; level `holdout_extrapolate` takes twice the time.

#include <array>
#include <limits>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/first_person.hpp"
#include "engram/task/grid_path.hpp"

namespace engram {

struct two_colors_level {
    std::int32_t tics = 2, limit = 1050, column = 45;  // an agent step; agent steps
    std::int32_t side = 20, each = 10, every = 30;     // cells; items of a colour at the start; tics to a new one
    std::int32_t height = 64, width = 112;             // of a frame
    bool operator==(const two_colors_level&) const = default;
};

struct two_colors {
    static constexpr bool uses_stimuli = false;
    static constexpr std::array reads{"fidelity", "backward"};
    static constexpr int body = cell_length / 4, item_radius = 5 * cell_length / 16, capacity = 160;
    static constexpr int turn = 640, stride = 8533;  // a tic
    static constexpr int full_health = 100, worth = 25, hurt = 5, hurt_every = 32;

    struct item {
        std::int32_t x, y, colour;  // 0 green, 1 red
    };

    two_colors_level level;
    philox random;
    std::int32_t time, tic, health, good, next_colour, count;  // agent steps and tics so far; items there
    pose who;
    std::int32_t unused;
    item items[capacity];

    static task_info describe(const task_options& options) {
        const two_colors_level sizes = sizes_of(options);
        task_info info{
            .name = "two_colors", .observation = {sizes.height, sizes.width, 3}, .actions = options.backward ? 8 : 5};
        const float unknown = std::numeric_limits<float>::quiet_NaN();
        info.add_level({"train", 0, unknown, sizes.limit});
        info.add_level({"holdout_extrapolate", 0, unknown, 2 * sizes.limit});
        return info;
    }

    static two_colors make(const std::string& name, const task_options& options, const stimulus_set*) {
        two_colors fresh{};
        fresh.level = sizes_of(options);
        if (name != "train") fresh.level.limit *= 2;
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        time = tic = count = next_colour = unused = 0;
        health = full_health;
        good = random.below(2);
        who = {level.side * cell_length / 2 + cell_length, level.side * cell_length / 2 + cell_length, 0};
        for (int i = 0; i < 2 * level.each; ++i) put_item(i % 2);
    }

    ENGRAM_HD_CALL outcome step(int action) {
        float reward = 0;
        const room place = surroundings();
        for (int k = 0; k < level.tics && health > 0; ++k) {
            move(place, action);
            reward += 0.01f + take_items();
            ++tic;
            if (tic % hurt_every == 0) health -= hurt;
            if (tic % level.every == 0) put_item(next_colour), next_colour = 1 - next_colour;
        }
        ++time;
        return {reward, health <= 0 || time >= level.limit};
    }

    ENGRAM_HD_CALL void observe(const float*, float* pixels) const {
        room place;
        view(place).draw(pixels);
    }
    /// The frame that observe() draws, of a room that is put up for it.
    ENGRAM_HD_CALL room_view view(room& place) const {
        place = surroundings();
        // As many as the room holds, nearest first, of those that are not behind the camera.
        std::int64_t farthest = -1;
        std::int32_t last = -1;
        while (place.objects_used < room::object_capacity) {
            std::int64_t nearest = std::numeric_limits<std::int64_t>::max();
            std::int32_t found = -1;
            for (int i = 0; i < count; ++i) {
                const std::int64_t d = square_distance(items[i]);
                const bool later = d > farthest || (d == farthest && i > last);
                if (later && d < nearest && in_front(items[i])) nearest = d, found = i;
            }
            if (found < 0) break;
            place.put(drawn(items[found])), farthest = nearest, last = found;
        }
        lens through;
        through.height = level.height, through.width = level.width, through.eye = 41.0f / 64;
        through.field_of_view = 1.5707963f;
        return {&place, who, through};
    }

    std::optional<trial_event> event() const { return std::nullopt; }

    /// Collects the good colour and keeps off the other.
    int oracle() const { return seek(1 << good); }
    /// What somebody does who saw no column: collects everything.
    int collector() const { return seek(3); }

    bool valid() const {
        const auto inside = [&](int p) { return p >= cell_length && p <= (level.side + 1) * cell_length; };
        bool right = time >= 0 && time < level.limit && tic == time * level.tics && health > 0 &&
                     health <= full_health && (good == 0 || good == 1) && (next_colour == 0 || next_colour == 1) &&
                     count >= 0 && count <= capacity && unused == 0 && inside(who.x) && inside(who.y) &&
                     who.heading >= 0 && who.heading < full_turn;
        for (int i = 0; right && i < count; ++i)
            right = inside(items[i].x) && inside(items[i].y) && (items[i].colour == 0 || items[i].colour == 1);
        return right && !collides(surroundings(), who.x, who.y, body);
    }

    /// Whether the column still stands.
    ENGRAM_HD bool column_there() const { return time < level.column; }

    /// The walls, and the column while it stands.
    ENGRAM_HD_CALL room surroundings() const {
        room made;
        const int side = level.side + 2;
        made.width = made.height = static_cast<std::uint8_t>(side);
        made.wall_height = 2 * cell_length;
        made.above.zenith = {60, 60, 70}, made.above.horizon = {110, 110, 120};
        made.skins[0] = {pattern::checks, 1, {112, 96, 72}, {124, 108, 84}, 0};
        made.skins[1] = {pattern::bricks, 1, {150, 150, 160}, {120, 120, 130}, 0};
        for (int y = 0; y < side; ++y)
            for (int x = 0; x < side; ++x) {
                const bool stub = x == side * 3 / 4 && y <= level.side / 5;
                if (x == 0 || y == 0 || x == side - 1 || y == side - 1 || stub) made.at(x, y) = {cell_kind::wall, 1};
            }
        if (column_there()) {
            room_object column;
            column.x = level.side * cell_length / 2 + 7 * cell_length / 2, column.y = who_starts();
            column.height = 2 * cell_length, column.radius = cell_length / 4, column.form = shape::cylinder;
            column.paint = paint_of(good);
            made.put(column);
        }
        return made;
    }

private:
    static two_colors_level sizes_of(const task_options& options) {
        return pace::paper_fidelity(options) ? two_colors_level{} : two_colors_level{8, 150, 12, 10, 5, 64, 16, 28};
    }
    ENGRAM_HD std::int32_t who_starts() const { return level.side * cell_length / 2 + cell_length; }
    ENGRAM_HD_CALL static colour paint_of(int which) { return which == 0 ? colour{40, 190, 50} : colour{220, 30, 30}; }

    ENGRAM_HD_CALL static room_object drawn(const item& from) {
        room_object made;
        made.x = from.x, made.y = from.y, made.height = cell_length / 3, made.radius = item_radius;
        made.form = shape::cylinder, made.solid = 0, made.paint = paint_of(from.colour);
        return made;
    }
    ENGRAM_HD std::int64_t square_distance(const item& to) const {
        const std::int64_t dx = to.x - who.x, dy = to.y - who.y;
        return dx * dx + dy * dy;
    }
    ENGRAM_HD_CALL bool in_front(const item& thing) const {
        const std::int64_t ahead =
            std::int64_t{thing.x - who.x} * cosine(who.heading) + std::int64_t{thing.y - who.y} * sine(who.heading);
        return ahead > -(std::int64_t{item_radius} << 16);
    }

    ENGRAM_HD_CALL void move(const room& place, int action) {
        const bool left = action == 0 || action == 3 || action == 6, right = action == 1 || action == 4 || action == 7;
        const bool ahead = action >= 2 && action <= 4, back = action >= 5;
        who.heading = (who.heading + (right ? turn : 0) - (left ? turn : 0)) & (full_turn - 1);
        if (ahead || back) walk(place, who, ahead ? stride : -stride, 0, body);
    }

    /// Everything that the body touches; the reward of it.
    ENGRAM_HD_CALL float take_items() {
        float reward = 0;
        constexpr std::int64_t reach = body + item_radius;
        for (int i = 0; i < count;) {
            if (square_distance(items[i]) > reach * reach) {
                ++i;
                continue;
            }
            const bool right = items[i].colour == good;
            reward += right ? 1.0f : -1.0f;
            health += right ? worth : -worth;
            if (health > full_health) health = full_health;
            items[i] = items[--count];
            items[count] = {0, 0, 0};
        }
        return reward;
    }

    /// At a random place clear of walls and out of reach of the agent; a room that is full stays as it is.
    ENGRAM_HD_CALL void put_item(int which) {
        if (count == capacity) return;
        const room place = surroundings();
        constexpr std::int64_t near = 3 * cell_length / 2;
        for (int k = 0; k < 100; ++k) {
            const int x = cell_length + random.below(level.side * cell_length);
            const int y = cell_length + random.below(level.side * cell_length);
            const item made{x, y, which};
            if (collides(place, x, y, item_radius) || square_distance(made) < near * near) continue;
            items[count++] = made;
            return;
        }
    }

    /// Bit c of `wanted`: colour c is collected. Goes to the nearest such item with a clear way to it, if there is one.
    int seek(int wanted) const {
        const room place = surroundings();
        constexpr double clear = body + item_radius + cell_length / 16.0;
        const auto blocked = [&](const item& to) {
            const double dx = to.x - who.x, dy = to.y - who.y, length = std::hypot(dx, dy);
            for (int i = 0; i < count; ++i) {
                if (wanted >> items[i].colour & 1) continue;
                const double ix = items[i].x - who.x, iy = items[i].y - who.y, along = (ix * dx + iy * dy) / length;
                if (along > 0 && along < length && std::fabs(ix * dy - iy * dx) / length < clear) return true;
            }
            return !free_line(place, who.x, who.y, to.x, to.y, 3 * body / 4);
        };
        double least = 1e30, goal_x = who_starts(), goal_y = who_starts();
        for (int i = 0; i < count; ++i) {
            if (!(wanted >> items[i].colour & 1)) continue;
            const double cost =
                std::sqrt(static_cast<double>(square_distance(items[i]))) + (blocked(items[i]) ? 1e7 : 0);
            if (cost < least) least = cost, goal_x = items[i].x, goal_y = items[i].y;
        }
        int best = 0;
        double most = -1e30;
        for (int action = 0; action < 5; ++action) {  // turning and going forward are enough
            two_colors then = *this;
            double score = 0;
            for (int k = 0; k < level.tics; ++k) {
                const int before = then.count, fine = then.good;
                then.good = wanted == 3 ? fine : wanted >> 1;
                then.move(place, action);
                const float got = then.take_items();
                score += wanted == 3 ? 1000.0 * (before - then.count) : 1000.0 * static_cast<double>(got);
                then.good = fine;
            }
            const double dx = goal_x - then.who.x, dy = goal_y - then.who.y;
            const double aside =
                std::remainder(std::atan2(dy, dx) / 6.283185307179586 * full_turn - then.who.heading, full_turn);
            score -= std::hypot(dx, dy) / stride + 1.5 * std::fabs(aside) / turn;
            if (score > most) most = score, best = action;
        }
        return best;
    }
};

static_assert(environment<two_colors>);
static_assert(sizeof(two_colors) < 4096);

}  // namespace engram
