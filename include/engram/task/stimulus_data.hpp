#pragma once
// SPDX-License-Identifier: MIT

// Stimuli from real data. MNIST: the file `train` gives train images, `t10k` holdout images. Omniglot: the background
// alphabets give train images, the evaluation alphabets holdout images; one drawing is one stimulus. The images taken
// are spread evenly over each file, so that few of them still come from every alphabet.
//
// An image is reduced by area averaging, its darkest pixel is stretched to full ink (thin strokes would fade), and laid
// in near-black ink on white, on three channels. Images that are equal after that are used once.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engram/io/file.hpp"
#include "engram/io/idx.hpp"
#include "engram/io/omniglot.hpp"
#include "engram/task/stimulus.hpp"

namespace engram {

/// Area average of a [side_in, side_in] plane of bytes onto [side, side], divided by 255.
inline std::vector<float> reduce_area(std::span<const std::uint8_t> plane, int side_in, int side) {
    std::vector<float> out(static_cast<std::size_t>(side * side));
    const float scale = static_cast<float>(side_in) / static_cast<float>(side);
    const auto overlap = [&](int i, int target) {  // length of input cell i inside the target cell
        const float low = static_cast<float>(target) * scale, high = low + scale;
        return std::max(0.0f, std::min(high, static_cast<float>(i + 1)) - std::max(low, static_cast<float>(i)));
    };
    const auto first = [&](int target) { return static_cast<int>(static_cast<float>(target) * scale); };
    const auto last = [&](int target) { return std::min(side_in, first(target) + static_cast<int>(scale) + 2); };
    for (int y = 0; y < side; ++y)
        for (int x = 0; x < side; ++x) {
            float sum = 0;
            for (int v = first(y); v < last(y); ++v)
                for (int u = first(x); u < last(x); ++u)
                    sum += overlap(v, y) * overlap(u, x) *
                           static_cast<float>(plane[static_cast<std::size_t>(v * side_in + u)]);
            out[static_cast<std::size_t>(y * side + x)] = sum / (scale * scale * 255.0f);
        }
    return out;
}

/// Ink in [0, 1] of each pixel, as an image of three channels.
inline std::vector<float> ink_on_white(std::vector<float> ink) {
    const float most = std::max(1e-6f, *std::max_element(ink.begin(), ink.end()));
    std::vector<float> image;
    image.reserve(3 * ink.size());
    for (const float x : ink) image.insert(image.end(), 3, 1.0f - 0.95f * x / most);
    return image;
}

/// Adds up to `wanted` of the `available` images to a split (0: all of them), evenly spread; what turns out to be a
/// duplicate is made up for by images in between.
template <class Image>
void collect_spread(stimulus_collector& images, split s, int wanted, int available, const std::string& source,
                    Image image_of) {
    require(wanted >= 0 && wanted <= available, source, ": ", wanted, " images were asked for, but it has ", available);
    const int target = wanted == 0 ? available : wanted;
    std::vector<bool> used(static_cast<std::size_t>(available));
    const auto take = [&](int i) {
        used[static_cast<std::size_t>(i)] = true;
        images.add(s, ink_on_white(image_of(i)));
    };
    for (int k = 0; k < target; ++k) take(static_cast<int>(std::int64_t{k} * available / target));
    for (int i = 0; i < available && images.count(s) < target; ++i)
        if (!used[static_cast<std::size_t>(i)]) take(i);
    require(images.count(s) >= wanted, source, ": ", wanted, " distinct images were asked for, but it has ",
            images.count(s));
}

/// `count` digits of each split, the train file to train on, t10k held out.
inline stimulus_set mnist_stimuli(const std::string& folder, int count = 1200, int side = 12) {
    stimulus_collector images(side);
    for (const split s : {split::train, split::holdout}) {
        std::string path = folder + (s == split::train ? "/train" : "/t10k") + "-images-idx3-ubyte";
        if (!exists_on_disk(path)) path += ".gz";
        const idx_images digits = read_idx_images(path);
        require(digits.rows == digits.columns && digits.rows >= side, path, ": images of ", digits.rows, " x ",
                digits.columns, ", expected a square of at least ", side);
        collect_spread(images, s, count, digits.count, path,
                       [&](int i) { return reduce_area(digits.image(i), digits.rows, side); });
    }
    return std::move(images).finish("mnist");
}

/// `count` characters of each split, background to train on, evaluation held out.
inline stimulus_set omniglot_stimuli(const std::string& folder, int count = 1200, int side = 12) {
    stimulus_collector images(side);
    for (const split s : {split::train, split::holdout}) {
        const std::string path = folder + (s == split::train ? "/images_background.zip" : "/images_evaluation.zip");
        const omniglot_archive archive(path);
        collect_spread(images, s, count, static_cast<int>(archive.drawings().size()), path, [&](int i) {
            picture drawing = archive.image(i);
            for (auto& pixel : drawing.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
            return reduce_area(drawing.pixels, drawing.width, side);
        });
    }
    return std::move(images).finish("omniglot");
}

}  // namespace engram
