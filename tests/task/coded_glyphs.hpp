#pragma once
// SPDX-License-Identifier: MIT

// Glyphs whose pixels say which one it is, so that a test can tell what a frame shows; and the sequences of a task in
// buffers of the right sizes.

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engram/task/glyphs.hpp"
#include "engram/task/sequence.hpp"

/// Images of 14 x 14, `train` + `holdout` of them, of class id % classes.
inline std::shared_ptr<const engram::glyph_set> coded_glyphs(int train = 300, int holdout = 200, int classes = 10) {
    engram::glyph_collector glyphs(14, classes);
    std::vector<std::uint8_t> image(196);
    for (int id = 0; id < train + holdout; ++id) {
        image[0] = static_cast<std::uint8_t>(id % 256);
        image[195] = static_cast<std::uint8_t>(id / 256);
        glyphs.add(id < train ? engram::split::train : engram::split::holdout, id % classes, image);
    }
    return std::make_shared<const engram::glyph_set>(std::move(glyphs).finish("coded"));
}

/// The glyph that a frame shows.
inline int glyph_of(std::span<const float> frame) {
    return static_cast<int>(std::lround(frame[0] * 255) + 256 * std::lround(frame[195] * 255));
}

/// One drawn sequence.
struct drawn_sequence {
    std::vector<float> observation, condition, target, weight;
    std::vector<int> origin, label, query;

    drawn_sequence(const engram::sequence_source& source, const std::string& level, std::uint64_t seed,
                   std::uint64_t index) {
        const auto& info = source.info();
        const auto steps = static_cast<std::size_t>(info.steps);
        // What a task has to overwrite.
        observation.assign(steps * static_cast<std::size_t>(info.observation.size()), -7);
        condition.assign(steps * static_cast<std::size_t>(info.actions), -7);
        target.assign(steps * static_cast<std::size_t>(info.targets), -7);
        weight.assign(steps, -7);
        origin.assign(steps, -7);
        label.assign(steps, -7);
        query.assign(steps, -7);
        source.draw(level, seed, index,
                    {.observation = observation.data(),
                     .condition = condition.data(),
                     .target = target.data(),
                     .weight = weight.data(),
                     .origin = origin.data(),
                     .label = label.data(),
                     .query = query.data()});
    }
    std::span<const float> frame(int t, int size) const {
        return std::span(observation)
            .subspan(static_cast<std::size_t>(t) * static_cast<std::size_t>(size), static_cast<std::size_t>(size));
    }
    /// Glyphs of all steps, for a task that shows coded glyphs.
    std::vector<int> glyphs() const {
        std::vector<int> found;
        for (std::size_t t = 0; t < origin.size(); ++t) found.push_back(glyph_of(frame(static_cast<int>(t), 196)));
        return found;
    }
    bool operator==(const drawn_sequence&) const = default;
};

/// The rows of a batch [T, B, F] equal single draws, and a draw touches no other row and no input left out.
inline bool batch_equals_singles(const engram::sequence_source& source, const std::string& level) {
    const auto& info = source.info();
    constexpr std::size_t rows = 3;
    const auto steps = static_cast<std::size_t>(info.steps);
    struct input {
        std::size_t columns;
        float* engram::sequence_place::*to;
        std::vector<float> drawn_sequence::*single;
    };
    const std::vector<input> inputs{
        {static_cast<std::size_t>(info.observation.size()), &engram::sequence_place::observation,
         &drawn_sequence::observation},
        {static_cast<std::size_t>(info.actions), &engram::sequence_place::condition, &drawn_sequence::condition},
        {static_cast<std::size_t>(info.targets), &engram::sequence_place::target, &drawn_sequence::target},
        {1, &engram::sequence_place::weight, &drawn_sequence::weight}};
    for (const auto& each : inputs) {
        std::vector<float> batch(steps * rows * each.columns, -7);
        for (const std::size_t row : {std::size_t{0}, std::size_t{2}}) {  // row 1 stays as it is
            engram::sequence_place place{.rows = static_cast<std::ptrdiff_t>(rows)};
            place.*each.to = batch.data() + row * each.columns;
            source.draw(level, 5, 40 + row, place);
        }
        const drawn_sequence first(source, level, 5, 40), third(source, level, 5, 42);
        for (std::size_t t = 0; t < steps; ++t)
            for (std::size_t c = 0; c < each.columns; ++c) {
                const auto at = [&](std::size_t row) { return batch[(t * rows + row) * each.columns + c]; };
                if (at(0) != (first.*each.single)[t * each.columns + c] || at(1) != -7 ||
                    at(2) != (third.*each.single)[t * each.columns + c])
                    return false;
            }
    }
    return true;
}

/// Drawing is a pure function: the same again, in another order, between other draws; and index, seed and level matter.
inline bool is_pure(const engram::sequence_source& source) {
    const auto& levels = source.info().levels;
    std::vector<drawn_sequence> forward, backward;
    for (std::uint64_t i = 0; i < 20; ++i) forward.emplace_back(source, levels[0], 3, i << (i % 4 * 16));
    for (std::uint64_t i = 20; i-- > 0;) {
        drawn_sequence(source, levels[1], i, i);
        backward.emplace_back(source, levels[0], 3, i << (i % 4 * 16));
    }
    for (std::size_t i = 0; i < 20; ++i)
        if (!(forward[i] == backward[19 - i])) return false;
    for (std::size_t i = 0; i < 20; ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (forward[i].observation == forward[j].observation) return false;
    const drawn_sequence one(source, levels[0], 3, 7);
    return !(one == drawn_sequence(source, levels[0], 4, 7)) && !(one == drawn_sequence(source, levels[1], 3, 7)) &&
           !(one == drawn_sequence(source, levels[0], 3, 7 + (std::uint64_t{1} << 32)));
}
