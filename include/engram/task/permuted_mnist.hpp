#pragma once
// SPDX-License-Identifier: MIT

// Permuted MNIST (facts 3.3): the pixels of a digit one by one, under one fixed permutation, and its class at the end.
//
//   observation [pixel], target [class 0 .. 9] with weight 1 at the last step and 0 before it
//
// T = `steps`: 784 are the pixels of a 28 x 28 digit, 3136 the same with 2352 zeros behind them before they are
// permuted, 196 a digit of 14 x 14 (ours). 0: 196 at the small fidelity, 784 at the paper's. The permutation is
// Fisher's and Yates's from a Philox stream of T alone: it belongs to the task and not to a run's seed. Digits come
// from MNIST where there is a data folder, and are drawn otherwise.

#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/glyph_data.hpp"
#include "engram/task/glyph_sequence.hpp"
#include "engram/task/sequence.hpp"
#include "engram/task/sequence_stream.hpp"

namespace engram {

class permuted_mnist final : public sequence_source {
public:
    static constexpr std::array reads{"steps", "fidelity", "data", "stimuli"};
    static sequence_info describe(const task_options& options) {
        sequence_info info{
            .name = "permuted_mnist", .steps = steps_of(options), .observation = {1, 1, 1}, .targets = 1};
        info.classes = 10;
        return info;
    }

    explicit permuted_mnist(const task_options& options)
        : permuted_mnist(options, load_glyphs("permuted_mnist", glyph_use::digits, with_side(options))) {}
    /// With glyphs that are already there.
    permuted_mnist(const task_options& options, std::shared_ptr<const glyph_set> glyphs)
        : info_(describe(options)), glyphs_(std::move(glyphs)), order_(order_of(info_.steps)) {
        require(glyphs_->image_size() <= info_.steps, "permuted_mnist: glyphs of ", glyphs_->image_size(),
                " pixels do not fit into ", info_.steps, " steps");
    }

    const sequence_info& info() const override { return info_; }
    /// Step t shows pixel order()[t]; pixels from the image's size on are zeros.
    const std::vector<int>& order() const { return order_; }

    void draw(const std::string& level, std::uint64_t seed, std::uint64_t index,
              const sequence_place& to) const override {
        const split from = split_of(info_, level);
        philox random = sequence_stream(info_.name, level, seed, index);
        const int id = glyphs_->first(from) + random.below(glyphs_->count(from)), pixels = glyphs_->image_size();
        std::vector<float> image(static_cast<std::size_t>(pixels));
        glyphs_->write(id, image.data());
        for (int t = 0; t < info_.steps; ++t) {
            const int pixel = order_[static_cast<std::size_t>(t)];
            const bool asks = t == info_.steps - 1;
            if (to.observation)
                to.observation[t * to.rows] = pixel < pixels ? image[static_cast<std::size_t>(pixel)] : 0.0f;
            if (to.target) to.target[t * to.rows] = asks ? static_cast<float>(glyphs_->label(id)) : 0.0f;
            if (to.weight) to.weight[t * to.rows] = asks ? 1.0f : 0.0f;
            if (to.origin) to.origin[t] = -1;
            if (to.label) to.label[t] = glyphs_->label(id);
            if (to.query) to.query[t] = asks;
        }
    }

private:
    static int steps_of(const task_options& options) {
        task_options own = options;  // 784 and 3136 are pixels of 28 x 28, whatever side other tasks show
        own.glyph_side = 0;
        const int T = options.steps == 0 ? glyph_side(own) * glyph_side(own) : options.steps;
        require(T == 196 || T == 784 || T == 3136, "permuted_mnist: ", T,
                " steps were asked for; expected 196, 784 or 3136");
        return T;
    }
    static task_options with_side(task_options options) {
        options.glyph_side = steps_of(options) == 196 ? 14 : 28;
        return options;
    }
    static std::vector<int> order_of(int T) {
        std::vector<int> order(static_cast<std::size_t>(T));
        std::iota(order.begin(), order.end(), 0);
        philox random(1, stream_id("permuted_mnist.order", static_cast<std::uint32_t>(T)));
        for (int i = T - 1; i > 0; --i)
            std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i + 1))]);
        return order;
    }

    sequence_info info_;
    std::shared_ptr<const glyph_set> glyphs_;
    std::vector<int> order_;
};

}  // namespace engram
