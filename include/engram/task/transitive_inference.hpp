#pragma once
// SPDX-License-Identifier: MIT

// Transitive inference (facts 2.6): the order of a chain of coloured boxes, learned from neighbours, asked of a pair
// that was never shown.
//
// n boxes (5, 6, 7, 8: small, interpolate, large, extrapolate) in colours of the split, their order drawn anew. Two of
// them stand before the agent, left and right; it chooses by walking into one, and is put back at the start.
//
//   demonstration   all n - 1 pairs of neighbours in random order, sides random: +1 for the higher, then the next pair;
//                   0 for the lower, and the pair comes again, its sides drawn anew (ours)
//   challenge       the second of the chain against the second to last, once: +5 for the higher, 0 for the lower
//
// An episode returns at most (n - 1) + 5 (errata 1.2); for the mixed level the mean of both lengths' maxima (errata
// M42, ours). Time limit 200 s at paper fidelity (facts 2.1), which ends it with 0. The room and
// its sizes are ours: at paper fidelity so large that a random walk makes about three choices, as the paper's random
// row of 1.44 asks for. Small fidelity (ours):
//
//   The demonstration goes up the chain. Each pair is shown for one agent step, the lower box a slab, whatever is
//   done, and asked in the next one, sides drawn anew: +1 for the higher. After it all pairs are asked again, in random
//   order and each once, +1 for the higher: what was shown is to be remembered, and each pair says so, where the
//   paper's challenge is the one reward in an episode that asks for memory. The challenge is as above, so that an
//   episode returns at most 2 (n - 1) + 5. Going up the chain lets an agent tell ranks by the time at which boxes were
//   shown; in random order, all pairs that had been shown were learnt and the challenge was not. A choice takes one
//   agent step, a whole cell to the side. Colours are seen in a light of the episode's (suite_colours.hpp). Time limit
//   30 s.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "engram/task/environment.hpp"
#include "engram/task/first_person.hpp"
#include "engram/task/grid_path.hpp"
#include "engram/task/ray_caster.hpp"
#include "engram/task/room.hpp"
#include "engram/task/suite_colours.hpp"
#include "engram/task/suite_level.hpp"

namespace engram {

struct inference_level {
    suite_level base;
    pace time;
    std::int32_t length = 3, breadth = 3;        // of the room inside, cells
    std::int32_t behind = 0, ahead = 0;          // the start, and from there to the boxes, along x
    std::int32_t aside = 0;                      // from the middle row to a box
    std::int32_t box = 0, high = 0, body = 0;    // radii, and how high a box is
    std::int32_t limit = 0;                      // frames
    std::int32_t height_px = 12, width_px = 16;  // of a view
    std::int32_t unused = 0;
    bool operator==(const inference_level&) const = default;

    ENGRAM_HD int centre() const { return cell_length + breadth * cell_length / 2; }
    ENGRAM_HD pose start() const { return {cell_length + behind, centre(), 0}; }
};

struct transitive_inference {
    static constexpr bool uses_stimuli = false;
    static constexpr std::array reads{"fidelity"};
    static constexpr int capacity = 8;  // boxes of a chain

    inference_level level;
    philox random;
    pose who;
    std::int32_t frame;
    std::int32_t count, trial;     // boxes; pairs done, the challenge is the last
    std::int32_t higher_right;     // whether the higher box stands to the right
    std::int32_t chain[capacity];  // colours, lowest first
    std::int32_t pairs[capacity];  // the lower of each pair of neighbours, in the order of the demonstration
    std::int32_t again[capacity];  // and in that of their second coming (small fidelity)
    std::int32_t shade, unused;    // the light of the episode (suite_colours.hpp); 0: none (paper fidelity)
    room here;                     // a function of the above

    static task_info describe(const task_options& options) {
        const int steps = time_of(options).steps(static_cast<float>(seconds(options)));
        task_info info{.name = "transitive_inference", .observation = view_shape(options), .actions = walking_actions};
        info.revision = revision_of(options, 3);
        for (const auto& each : suite_levels)
            info.add_level({each.name, maximum(each.level.size, options), NAN, steps, each.further});
        return info;
    }

    static transitive_inference make(const std::string& name, const task_options& options, const stimulus_set*) {
        const task_info info = describe(options);
        const bool paper = pace::paper_fidelity(options);
        const auto cells = [](double x) { return static_cast<std::int32_t>(x * cell_length); };
        transitive_inference fresh{};
        inference_level& level = fresh.level;
        level.base = find_suite_level(info, name);
        level.time = time_of(options);
        level.length = paper ? 10 : 2, level.breadth = paper ? 9 : 3;
        level.behind = cells(paper ? 1.5 : 0.5), level.ahead = cells(paper ? 4.25 : 0.65);
        level.aside = cells(paper ? 1.5 : 1), level.box = cells(paper ? 0.7 : 0.6);
        level.high = cells(1), level.body = cells(paper ? 0.25 : 0.1);
        level.limit = seconds(options) * frames_per_second;
        level.height_px = info.observation.height, level.width_px = info.observation.width;
        return fresh;
    }

    ENGRAM_HD_CALL void reset() {
        count = chain_length(level.base.draw(random));
        for (int i = 0; i < capacity; ++i) chain[i] = pairs[i] = again[i] = 0;
        for (int i = 0; i < count; ++i) {
            bool used = true;
            while (used) {
                chain[i] = random.below(inference_colours);
                used = false;
                for (int j = 0; j < i; ++j) used = used || chain[j] == chain[i];
            }
        }
        shuffle_pairs(pairs);
        if (level.time.whole) {
            shuffle_pairs(again);
            for (int i = 0; i < count - 1; ++i) pairs[i] = i;  // up the chain
        }
        shade = level.time.whole ? 1 + random.below(1 << 30) : 0;
        frame = trial = 0;
        show();
    }

    /// A choice ends the movement of its agent step, but not the step's time.
    ENGRAM_HD_CALL outcome step(int action) {
        float reward = 0;
        bool chosen = false;
        for (int tick = 0; tick < level.time.ticks; ++tick) {
            frame += level.time.frames;
            if (told()) {
                ++trial, chosen = true;
                show();
            }
            if (!chosen) {
                level.time.move(here, who, action, level.body);
                const int box = touched(here, who.x, who.y, level.body);
                chosen = box >= 0;
                if (chosen) {
                    const bool right = box == higher_right, last = trial == challenge();
                    if (right) reward = last ? 5.0f : 1.0f;
                    if (last) return {reward, true};
                    trial += right || level.time.whole;
                    show();
                }
            }
            if (frame >= level.limit) return {reward, true};
        }
        return {reward, false};
    }

    ENGRAM_HD_CALL void observe(const float*, float* pixels) const {
        draw_frame(here, who, view_lens(level.time, level.height_px, level.width_px, 0.8f), {}, pixels);
    }
    /// The frame that observe() draws.
    ENGRAM_HD room_view view(room&) const {
        return {&here, who, view_lens(level.time, level.height_px, level.width_px, 0.8f)};
    }

    std::optional<trial_event> event() const { return std::nullopt; }

    /// Walks into the higher box.
    int oracle() const {
        const room_object& goal = here.objects[higher_right];
        if (level.time.whole)
            return cell_way_action(here, who, who.x >> 16, goal.y >> 16, [](int, int) { return true; });
        return action_towards(who, goal.x, goal.y, level.time.turn * level.time.ticks * 9 / 16);
    }

    bool valid() const {
        bool good = count >= 5 && count <= capacity && trial >= 0 && trial <= challenge() && frame >= 0 &&
                    frame < level.limit && frame % (level.time.ticks * level.time.frames) == 0 &&
                    (higher_right == 0 || higher_right == 1) && (shade > 0) == (level.time.whole != 0) && shade >= 0 &&
                    unused == 0 && (!told() || who == level.start());
        int colours = 0, demonstrated = 0, repeated = 0;  // one bit each
        for (int i = 0; good && i < capacity; ++i) {
            good = chain[i] >= 0 && chain[i] < inference_colours && pairs[i] >= 0 && pairs[i] < count - 1 &&
                   again[i] >= 0 && again[i] < count - 1;
            if (good && i < count) good = !(colours & 1 << chain[i]), colours |= 1 << chain[i];
            if (good && i < count - 1) good = !(demonstrated & 1 << pairs[i]), demonstrated |= 1 << pairs[i];
            if (good && i < count - 1 && level.time.whole)
                good = pairs[i] == i && !(repeated & 1 << again[i]), repeated |= 1 << again[i];
        }
        if (!good || !level.time.fits(who) || who.heading < 0 || who.heading >= full_turn || who.x <= 0 || who.y <= 0 ||
            who.x >= (level.length + 2) * cell_length || who.y >= (level.breadth + 2) * cell_length)
            return false;
        const room known = build();
        return std::memcmp(&known, &here, sizeof(room)) == 0 && !collides(here, who.x, who.y, level.body) &&
               touched(here, who.x, who.y, level.body) < 0;
    }

    /// The ranks of the two boxes that stand there.
    ENGRAM_HD int lower_rank() const {
        const int shown = (level.time.whole ? 2 : 1) * (count - 1);
        if (trial == challenge()) return 1;
        return trial >= shown ? again[trial - shown] : pairs[level.time.whole ? trial / 2 : trial];
    }
    ENGRAM_HD int higher_rank() const { return trial == challenge() ? count - 2 : lower_rank() + 1; }
    /// Whether a pair is being shown with its outcome and nothing is asked (small fidelity).
    ENGRAM_HD bool told() const { return level.time.whole && trial < 2 * (count - 1) && trial % 2 == 0; }
    /// The number of the last trial, from 0.
    ENGRAM_HD int challenge() const { return (level.time.whole ? 3 : 1) * (count - 1); }

private:
    static int seconds(const task_options& options) { return pace::paper_fidelity(options) ? 200 : 30; }
    static pace time_of(const task_options& options) { return pace::of(options, 2); }

    ENGRAM_HD static int chain_length(scale size) { return 5 + static_cast<int>(size); }
    static float maximum(scale size, const task_options& options) {
        const int times = pace::paper_fidelity(options) ? 1 : 2;
        const auto of = [&](scale s) { return static_cast<float>(times * (chain_length(s) - 1) + 5); };
        return size == scale::small_or_large ? (of(scale::small) + of(scale::large)) / 2 : of(size);
    }

    ENGRAM_HD_CALL void shuffle_pairs(std::int32_t* order) {
        for (int i = 0; i < count - 1; ++i) {  // inside out
            const int j = random.below(i + 1);
            order[i] = order[j];
            order[j] = i;
        }
    }

    ENGRAM_HD_CALL void show() {
        higher_right = random.below(2);
        who = level.start();
        here = build();
    }

    /// One room of a plain floor and banded walls; box 0 stands to the left.
    ENGRAM_HD_CALL room build() const {
        room made;
        made.width = static_cast<std::uint8_t>(level.length + 2);
        made.height = static_cast<std::uint8_t>(level.breadth + 2);
        made.wall_height = 7 * cell_length / 4;
        made.above.sun_heading = 5 * full_turn / 8;  // behind whoever looks ahead
        made.skins[0] = {pattern::plain, 1, {134, 122, 104}, {}, 0};
        made.skins[1] = {pattern::bands, 2, {206, 214, 216}, {176, 190, 196}, 0};
        for (int y = 0; y < made.height; ++y)
            for (int x = 0; x < made.width; ++x)
                if (x == 0 || y == 0 || x == made.width - 1 || y == made.height - 1)
                    made.at(x, y) = {cell_kind::wall, 1};
        for (int right = 0; right < 2; ++right) {
            room_object thing;
            thing.x = level.start().x + level.ahead;
            thing.y = level.centre() + (right ? level.aside : -level.aside);
            thing.radius = level.box, thing.height = level.high;
            thing.form = shape::box, thing.solid = 0;  // a body has to get near enough to touch
            if (told() && right != higher_right) thing.height /= 4;
            thing.tag = static_cast<std::uint8_t>(right);
            const int rank = right == higher_right ? higher_rank() : lower_rank();
            thing.paint = inference_colour(level.base.holdout, chain[rank]);
            if (shade) thing.paint = shade_of(thing.paint, shade, chain[rank]);
            made.put(thing);
        }
        return made;
    }
};

static_assert(environment<transitive_inference>);

}  // namespace engram
