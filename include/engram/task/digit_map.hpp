#pragma once
// SPDX-License-Identifier: MIT

// MNIST map (facts 4.9): a 4 x 4 grid of random digits, no two the same image, seen through a walker's eyes, one cell a
// step. The walk begins at a uniform cell; every move is uniform among those that stay on the grid (2 at a corner, 3 at
// an edge, 4 inside). The move that led to a step is its condition, one-hot of up, down, left, right, and all zero at
// step 0: it is given to the model and not modelled. The frame of a cell seen before repeats its latest visit.
// T = `items`, 25 by default; there is no step before which nothing can be recalled, so `recall` is -1.

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "engram/core/error.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/glyph_data.hpp"
#include "engram/task/glyph_sequence.hpp"
#include "engram/task/sequence.hpp"
#include "engram/task/sequence_stream.hpp"

namespace engram {

class digit_map final : public sequence_source {
public:
    static constexpr int grid = 4, moves = 4;

    static constexpr std::array reads{"items", "glyph_side", "fidelity", "data", "stimuli"};
    static sequence_info describe(const task_options& options) {
        const int steps = options.items == 0 ? 25 : options.items, side = glyph_side(options);
        require(steps >= 1 && steps <= 100000, "mnist_map: a walk of ", steps,
                " steps was asked for; expected 1 to 100000");
        return {.name = "mnist_map", .steps = steps, .observation = {side, side, 1}, .actions = moves};
    }

    explicit digit_map(const task_options& options)
        : info_(describe(options)), glyphs_(load_glyphs(info_.name, glyph_use::digits, options)) {
        check();
    }
    /// With glyphs that are already there.
    digit_map(const task_options& options, std::shared_ptr<const glyph_set> glyphs)
        : info_(describe(options)), glyphs_(std::move(glyphs)) {
        check();
    }

    const sequence_info& info() const override { return info_; }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        glyph_sequence sequence(*glyphs_, split_of(info_, level), sequence_stream(info_.name, level, seed, index));
        std::array<int, grid * grid> visited;  // latest step at a cell, -1: none
        visited.fill(-1);
        int y = sequence.below(grid), x = sequence.below(grid), move = -1;
        for (int t = 0; t < info_.steps; ++t) {
            if (t > 0) move = step(sequence, y, x);
            if (to.condition)
                for (int m = 0; m < moves; ++m) to.condition[t * to.rows * moves + m] = m == move ? 1.0f : 0.0f;
            // A digit is drawn when its cell is first seen: the cells never seen do not matter.
            int& last = visited[static_cast<std::size_t>(y * grid + x)];
            if (last < 0)
                sequence.fresh();
            else
                sequence.repeat(last);
            last = t;
        }
        sequence.write(to);
    }

private:
    void check() const { require_glyphs(*glyphs_, info_, std::min(grid * grid, info_.steps)); }

    /// Goes one cell on and says by which move.
    static int step(glyph_sequence& sequence, int& y, int& x) {
        constexpr std::array<int, moves> down{-1, 1, 0, 0}, right{0, 0, -1, 1};
        std::array<std::size_t, moves> open;
        int count = 0;
        for (std::size_t m = 0; m < moves; ++m) {
            const int to_y = y + down[m], to_x = x + right[m];
            if (to_y >= 0 && to_y < grid && to_x >= 0 && to_x < grid) open[static_cast<std::size_t>(count++)] = m;
        }
        const std::size_t move = open[static_cast<std::size_t>(sequence.below(count))];
        y += down[move];
        x += right[move];
        return static_cast<int>(move);
    }

    sequence_info info_;
    std::shared_ptr<const glyph_set> glyphs_;
};

}  // namespace engram
