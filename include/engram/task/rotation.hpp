#pragma once
// SPDX-License-Identifier: MIT

// 3D rotation (facts 4.9): a camera stands still in a random room and turns, ever faster, once around in 15 steps, and
// then does so again. T = 30 frames; frame t + 15 equals frame t bit for bit, so from step 15 on all can be recalled.
//
//   heading(t) = start + (k (k + 1) / 240) turns, k = t mod 15: step k turns by (k + 1) / 120, 3 to 45 degrees (ours)
//
// The room, drawn anew for every sequence: a rectangle of 3 to 5 cells a side with another wall texture on each side,
// one to three corridors, one to four framed pictures, two to five objects, ground, sky, sun and hills. The levels
// train and holdout_interpolate draw different rooms of the same kind.
//
// Frames are 32 x 32 x 3 (`paper`) or 16 x 16 x 3 (`small`), 4 samples a pixel.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/ray_caster.hpp"
#include "engram/task/sequence.hpp"
#include "engram/task/sequence_stream.hpp"

namespace engram {

class rotation_task final : public sequence_source {
public:
    static constexpr int period = 15, steps = 2 * period;

    explicit rotation_task(const task_options& options) : info_(describe(options)) {
        lens_.height = info_.observation.height;
        lens_.width = info_.observation.width;
        lens_.samples = 2;
    }

    static constexpr std::array reads{"fidelity"};
    static sequence_info describe(const task_options& options) {
        require_known("fidelity", options.fidelity, std::vector<std::string>{"small", "paper"});
        const int side = options.fidelity == "paper" ? 32 : 16;
        return {.name = "rotation", .steps = steps, .observation = {side, side, 3}, .recall = period};
    }

    const sequence_info& info() const override { return info_; }

    /// A room and where the camera stands in it.
    struct scene {
        room place{};
        pose start{};
    };

    /// What the `index`-th sequence of a level shows.
    scene draw_scene(const std::string& level, std::uint64_t seed, std::uint64_t index) const {
        require_known("rotation level", level, info_.levels);
        philox random = sequence_stream("rotation", level, seed, index);
        return furnish(random);
    }

    static pose looking(const pose& start, int step) {
        const int k = step % period;
        return {start.x, start.y,
                (start.heading + full_turn * k * (k + 1) / (period * (period + 1))) & (full_turn - 1)};
    }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        const scene shown = draw_scene(level, seed, index);
        const std::ptrdiff_t size = info_.observation.size();
        for (int t = 0; t < steps; ++t) {
            if (to.observation && t < period)
                render(shown.place, looking(shown.start, t), lens_, {}, to.observation + t * to.rows * size);
            if (to.observation && t >= period)
                std::copy_n(to.observation + (t - period) * to.rows * size, size, to.observation + t * to.rows * size);
            if (to.weight) to.weight[t * to.rows] = 0;
            if (to.origin) to.origin[t] = t < period ? -1 : t - period;
            if (to.label) to.label[t] = -1;
        }
    }

private:
    static constexpr int grid = 13;  // cells a side: a room in the middle, corridors of up to three cells, walls

    /// The skins: ground 0, sides 1 to 4 (south, west, north, east), pictures from 5.
    static scene furnish(philox& random) {
        scene made;
        room& in = made.place;
        in.width = in.height = grid;
        const int width = 3 + random.below(3), height = 3 + random.below(3), left = 4, top = 4;
        const int right = left + width - 1, low = top + height - 1;
        for (int y = 0; y < grid; ++y)
            for (int x = 0; x < grid; ++x) {
                const int wall = y > low ? 1 : x < left ? 2 : y < top ? 3 : 4;
                in.at(x, y) = {cell_kind::wall, static_cast<std::uint8_t>(wall)};
            }
        const auto dig = [&](int x, int y) { in.at(x, y) = {cell_kind::ground, 0}; };
        for (int y = top; y <= low; ++y)
            for (int x = left; x <= right; ++x) dig(x, y);
        paint(in, random);

        // Corridors, each from another side, and pictures beside them.
        const int corridors = 1 + random.below(3), first_side = random.below(4);
        for (int i = 0; i < 4; ++i) {
            const int from = (first_side + i) % 4, length = 1 + random.below(3);
            const bool across = from % 2 == 0;  // south and north: any column
            const int way = across ? left + random.below(width) : top + random.below(height);
            for (int k = 1; i < corridors && k <= length; ++k)
                if (across)
                    dig(way, from == 0 ? low + k : top - k);
                else
                    dig(from == 1 ? left - k : right + k, way);
        }
        const int pictures = 1 + random.below(4);
        for (int i = 0, hung = 0; i < 20 && hung < pictures; ++i) {
            const int from = random.below(4);
            const int x = from == 1 ? left - 1 : from == 3 ? right + 1 : left + random.below(width);
            const int y = from == 0 ? low + 1 : from == 2 ? top - 1 : top + random.below(height);
            const face seen = from == 0 ? face::north : from == 1 ? face::east : from == 2 ? face::south : face::west;
            if (!in.at(x, y).solid() || in.picture_on(x, y, seen)) continue;
            in.hang(x, y, seen, 5 + hung++);
        }

        const auto middle = [&](int first, int count) {
            return (first + random.below(count)) * cell_length + cell_length / 2;
        };
        made.start = {middle(left + 1, width - 2), middle(top + 1, height - 2),
                      random.below(full_turn)};  // not at a wall
        const int objects = 2 + random.below(4);
        for (int i = 0, put = 0; i < 40 && put < objects; ++i) {
            const int x = middle(left, width), y = middle(top, height);
            if (collides(in, x, y, cell_length / 2) || (x == made.start.x && y == made.start.y)) continue;
            in.put(random_object(x, y, random)), ++put;
        }
        return made;
    }

    static void paint(room& in, philox& random) {
        constexpr pattern grounds[] = {pattern::checks, pattern::noise, pattern::tiles, pattern::plain};
        constexpr pattern walls[] = {pattern::bricks, pattern::stripes, pattern::bands, pattern::checks,
                                     pattern::tiles,  pattern::dots,    pattern::noise, pattern::bricks};
        in.skins[0] = random_texture(grounds[random.below(4)], random);
        in.skins[0].repeats = 2;
        for (int i = 1; i <= 4; ++i) in.skins[i] = random_texture(walls[random.below(8)], random);
        for (int i = 5; i < 9; ++i) in.skins[i] = random_texture(pattern::emblem, random);
        const int blue = 768 + random.below(320);
        const int dark = 30 + random.below(60), bright = 190 + random.below(60);
        in.above.zenith = from_hue(blue, dark, bright);
        in.above.horizon = from_hue(random.below(1536), 195, 240);
        in.above.hill = from_hue(random.below(1536), 60, 130);
        in.above.fog = 12;
        in.above.sun_heading = static_cast<std::uint16_t>(random.below(full_turn));
        in.above.sun_slope = static_cast<std::uint16_t>(110 + random.below(70));
        in.above.hill_slope = static_cast<std::uint16_t>(70 + random.below(60));
        in.above.hill_seed = static_cast<std::uint16_t>(random.below(1 << 16));
    }

    static room_object random_object(int x, int y, philox& random) {
        room_object thing;
        thing.x = x + random.below(cell_length / 4) - cell_length / 8;
        thing.y = y + random.below(cell_length / 4) - cell_length / 8;
        thing.radius = cell_length / 5 + random.below(cell_length / 8);
        thing.form = static_cast<shape>(1 + random.below(shape_count - 1));
        const int tall = thing.form == shape::ball ? 0 : random.below(cell_length / 3);
        thing.height = (thing.form == shape::box ? thing.radius * 7 / 5 : 2 * thing.radius) + tall;
        thing.heading = static_cast<std::uint16_t>(random.below(full_turn));
        const int hue = random.below(1536), low = random.below(60), high = 220 + random.below(36);
        thing.paint = from_hue(hue, low, high);
        return thing;
    }

    sequence_info info_;
    lens lens_{};
};

}  // namespace engram
