#pragma once
// SPDX-License-Identifier: MIT

// An encoder for either kind of observation: layers for a row of numbers (height 1), convolutions for an image. Only
// the one that the task needs is declared and run, so one agent type serves T-Maze and Two Colors (facts 3.8).
//
//   numbers   mlp, by default one layer of 256 on the numbers as they are
//   image     small_conv, by default 32 @ 8 x 8 / 4, 64 @ 4 x 4 / 2, 64 @ 3 x 3 / 1, and a linear layer behind them
//   (ours)

#include <engram/encoder/mlp.hpp>
#include <engram/encoder/small_conv.hpp>

namespace engram {

struct numbers_or_image {
    using role = encoder_role;

    struct settings {
        mlp::settings numbers{.layers = {256}, .centre = false};
        small_conv::settings image{
            .channels = {32, 64, 64}, .kernels = {8, 4, 3}, .strides = {4, 2, 1}, .output = 256, .centre = false};
        void check() const { numbers.check(), image.check(); }
    };
    struct weights {
        mlp::weights numbers;
        small_conv::weights image;
    };

    static bool is_image(image_shape size) { return size.height > 1; }

    template <class Backend>
    static weights declare(graph<Backend>& g, const settings& s, image_shape size) {
        if (is_image(size)) return {{}, small_conv::declare(g, s.image, size)};
        return {mlp::declare(g, s.numbers, size), {}};
    }
    template <class Backend>
    static var<Backend> encode(const settings& s, const weights& w, const var<Backend>& observation, image_shape size) {
        return is_image(size) ? small_conv::encode(s.image, w.image, observation, size)
                              : mlp::encode(s.numbers, w.numbers, observation, size);
    }
};

}  // namespace engram

ENGRAM_REFLECT(engram::numbers_or_image::settings, numbers, image);

static_assert(engram::encoder_policy<engram::numbers_or_image>);
