#pragma once
// SPDX-License-Identifier: MIT

// Fully connected layers with ReLU, which several encoders end in and their decoders begin with.

#include <cmath>
#include <concepts>
#include <string>
#include <vector>

#include <engram/operations/affine.hpp>
#include <engram/operations/channels.hpp>
#include <engram/operations/concatenate.hpp>
#include <engram/operations/map.hpp>

namespace engram {

/// Pixels in [0, 1] to [-1, 1].
struct centre_pixels {
    constexpr auto operator()(auto x) const { return 2 * x - 1; }
};

/// What the settings of every encoder of images have: whether pixels go to [-1, 1] instead of [0, 1], and whether each
/// image loses its mean colour.
template <class S>
concept pixel_settings = std::same_as<decltype(S::centre), bool> && std::same_as<decltype(S::subtract_mean), bool>;

/// What every encoder of images begins with. Where most of an image is one bright ground, all images excite the first
/// layer alike and differ little in it; without its mean colour an image is what differs from the ground (ours).
template <class Backend, pixel_settings Settings>
var<Backend> prepare_pixels(var<Backend> observation, image_shape image, const Settings& s) {
    if (s.centre) observation = map("centre", centre_pixels{}, observation);
    return s.subtract_mean ? subtract_mean_colour("subtract_mean", observation, image) : observation;
}

/// Layers of the given widths after `inputs` columns; weights He-scaled, since every layer is followed by a ReLU.
template <class Backend>
std::vector<linear> declare_layers(graph<Backend>& g, const std::string& name, int inputs,
                                   const std::vector<int>& widths) {
    std::vector<linear> layers;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        layers.push_back(g.declare_linear(message(name, ".", i), inputs, widths[i],
                                          initial::fan_in<typename Backend::real>(std::sqrt(2.0))));
        inputs = widths[i];
    }
    return layers;
}

/// relu(x W + b) layer after layer, from the layer `first` on.
template <class Backend>
var<Backend> apply_layers(const std::string& name, var<Backend> x, const std::vector<linear>& layers,
                          std::size_t first = 0) {
    for (std::size_t i = first; i < layers.size(); ++i)
        x = map(message(name, ".", i, ".relu"), rectify{}, affine(message(name, ".", i), x, layers[i]));
    return x;
}

}  // namespace engram
