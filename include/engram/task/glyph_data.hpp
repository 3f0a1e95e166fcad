#pragma once
// SPDX-License-Identifier: MIT

// Glyphs from real data, and the choice of a source by the task's options.
//
// MNIST: the file `train` gives train images, `t10k` holdout images; classes 0 to 9, all images. Omniglot: three
// characters of every one of the 50 alphabets, of both archives, are held out (facts 4.9); the class of a drawing is
// its character, NNNN - 1. A drawing is reduced by area averaging and stretched to full ink, as thin strokes would fade
// otherwise. Images that are equal after that are used once.
//
// Sides: 14 pixels for the small frame, 28 for the paper's, 32 on request: digits of MNIST then stand in a margin of
// two pixels. The option `stimulus_count` is not read: sequences are drawn from all images.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engram/core/error.hpp"
#include "engram/core/philox.hpp"
#include "engram/io/file.hpp"
#include "engram/io/idx.hpp"
#include "engram/io/omniglot.hpp"
#include "engram/task/environment.hpp"
#include "engram/task/glyphs.hpp"
#include "engram/task/stroke_glyphs.hpp"

namespace engram {

/// Area average of square planes of bytes onto [side, side]: `reduce_area` with its overlaps worked out once, rows
/// after columns, for tens of thousands of images.
class area_average {
public:
    area_average(int side_in, int side) : in_(side_in), out_(side), columns_(size(side_in * side)) {
        const double scale = static_cast<double>(side_in) / side;
        for (int to = 0; to < side; ++to) {
            const double low = to * scale, high = low + scale;
            span_of each{static_cast<int>(low), {}};
            for (int i = each.first; i < side_in && i < high; ++i)
                each.weights.push_back(
                    static_cast<float>((std::min(high, i + 1.0) - std::max(low, double(i))) / scale));
            spans_.push_back(std::move(each));
        }
    }

    /// `plane` [side_in, side_in] bytes, `out` [side, side] in the same units.
    void operator()(std::span<const std::uint8_t> plane, float* out) {
        for (int y = 0; y < in_; ++y)
            for (int x = 0; x < out_; ++x) {
                const auto& from = spans_[size(x)];
                float sum = 0;
                for (std::size_t i = 0; i < from.weights.size(); ++i)
                    sum += from.weights[i] * static_cast<float>(plane[size(y * in_ + from.first) + i]);
                columns_[size(y * out_ + x)] = sum;
            }
        for (int y = 0; y < out_; ++y)
            for (int x = 0; x < out_; ++x) {
                const auto& from = spans_[size(y)];
                float sum = 0;
                for (std::size_t i = 0; i < from.weights.size(); ++i)
                    sum += from.weights[i] * columns_[(size(from.first) + i) * size(out_) + size(x)];
                *out++ = sum;
            }
    }

private:
    struct span_of {
        int first;
        std::vector<float> weights;
    };
    static std::size_t size(int n) { return static_cast<std::size_t>(n); }

    int in_, out_;
    std::vector<span_of> spans_;
    std::vector<float> columns_;  // [side_in, side]
};

/// Digits of MNIST, `side` pixels wide, from the folder of its four files.
inline glyph_set mnist_digits(const std::string& folder, int side) {
    glyph_collector glyphs(side, 10);
    for (const split s : {split::train, split::holdout}) {
        const auto path_of = [&](const char* what) {
            const std::string path = folder + (s == split::train ? "/train-" : "/t10k-") + what;
            return exists_on_disk(path) ? path : path + ".gz";
        };
        const std::string path = path_of("images-idx3-ubyte"), label_path = path_of("labels-idx1-ubyte");
        const idx_images images = read_idx_images(path);
        const bytes labels = read_idx_labels(label_path);
        const bool in_margin = side == 32 && images.rows == 28;
        require(images.rows == images.columns && (images.rows >= side || in_margin), path, ": images of ", images.rows,
                " x ", images.columns, ", expected a square of at least ", side);
        require(static_cast<int>(labels.size()) == images.count, label_path, ": ", labels.size(), " labels, but ", path,
                " has ", images.count, " images");
        std::vector<int> seen(10);
        area_average average(images.rows, side);
        std::vector<float> reduced(static_cast<std::size_t>(side * side));
        bytes rounded(reduced.size());
        glyphs.reserve(s, images.count);
        for (int i = 0; i < images.count; ++i) {
            const int label = labels[static_cast<std::size_t>(i)];
            require(label <= 9, label_path, ": label ", label, " of image ", i, ", expected 0 to 9");
            ++seen[static_cast<std::size_t>(label)];
            if (images.rows == side) {
                glyphs.add(s, label, images.image(i));
                continue;
            }
            if (in_margin) {
                for (int y = 0; y < 28; ++y)
                    std::copy_n(images.image(i).data() + 28 * y, 28, rounded.begin() + 32 * (y + 2) + 2);
                glyphs.add(s, label, rounded);
                continue;
            }
            average(images.image(i), reduced.data());
            std::transform(reduced.begin(), reduced.end(), rounded.begin(),
                           [](float ink) { return static_cast<std::uint8_t>(ink + 0.5f); });
            glyphs.add(s, label, rounded);
        }
        for (int digit = 0; digit < 10; ++digit)
            require(seen[static_cast<std::size_t>(digit)] > 0, label_path, ": no image of the digit ", digit);
    }
    return std::move(glyphs).finish("mnist");
}

inline glyph_set omniglot_characters(const std::string& folder, int side) {
    constexpr int held_out = 3;
    const omniglot_archive archives[] = {omniglot_archive(folder + "/images_background.zip"),
                                         omniglot_archive(folder + "/images_evaluation.zip")};
    const char* const names[] = {"images_background.zip", "images_evaluation.zip"};
    int classes = 0, number = 0;
    std::set<int> held;  // characters
    for (const int a : {0, 1}) {
        const std::string path = folder + "/" + names[a];
        std::map<std::string, std::set<int>> alphabets;
        for (const auto& drawing : archives[a].drawings()) {
            require(drawing.character >= 1, path, ": a character numbered 0, expected 1 or more");
            alphabets[drawing.alphabet].insert(drawing.character);
            classes = std::max(classes, drawing.character);
        }
        const std::size_t expected = a == 0 ? 30 : 20;
        require(alphabets.size() == expected, path, ": ", alphabets.size(), " alphabets, expected ", expected);
        for (const auto& [alphabet, characters] : alphabets) {
            require(static_cast<int>(characters.size()) > held_out, path, ": alphabet ", alphabet, " has ",
                    characters.size(), " characters, expected at least ", held_out + 1, ", of which ", held_out,
                    " are held out");
            // The same ones for everybody: they depend on the alphabet's place alone, not on a run's seed.
            std::vector<int> left(characters.begin(), characters.end());
            philox random(0, stream_id("held-out characters", static_cast<std::uint32_t>(number++)));
            for (int i = 0; i < held_out; ++i) {
                const auto pick = left.begin() + random.below(static_cast<int>(left.size()));
                held.insert(*pick);
                left.erase(pick);
            }
        }
    }

    glyph_collector glyphs(side, classes);
    area_average average(105, side);
    std::vector<float> reduced(static_cast<std::size_t>(side * side));
    bytes ink(reduced.size());
    for (const auto& archive : archives)
        for (int i = 0; i < static_cast<int>(archive.drawings().size()); ++i) {
            const int character = archive.drawings()[static_cast<std::size_t>(i)].character;
            picture drawing = archive.image(i);
            for (auto& pixel : drawing.pixels) pixel = static_cast<std::uint8_t>(255 - pixel);
            average(drawing.pixels, reduced.data());
            const float most = std::max(1e-6f, *std::max_element(reduced.begin(), reduced.end()));
            std::transform(reduced.begin(), reduced.end(), ink.begin(),
                           [most](float x) { return static_cast<std::uint8_t>(x / most * 255 + 0.5f); });
            glyphs.add(held.contains(character) ? split::holdout : split::train, character - 1, ink);
        }
    return std::move(glyphs).finish("omniglot");
}

/// What a task can show: digits by their class, any glyphs (digits unless characters are asked for), or characters.
enum class glyph_use { digits, any, characters };

/// 14 or 28 pixels by the fidelity, or what the options ask for (32 is the other size that the GTMM paper names, errata
/// G11).
inline int glyph_side(const task_options& options) {
    require_known("fidelity", options.fidelity, std::vector<std::string>{"small", "paper"});
    const int side = options.glyph_side;
    require(side == 0 || side == 14 || side == 28 || side == 32,
            "task.glyph_side: expected 14, 28 or 32, or 0 for the ", "fidelity's, got ", side);
    return side > 0 ? side : options.fidelity == "paper" ? 28 : 14;
}

/// The glyphs that the options ask for. `auto` takes the data folder where one is given, and what is built in
/// otherwise.
inline std::shared_ptr<const glyph_set> load_glyphs(const std::string& task, glyph_use use,
                                                    const task_options& options) {
    require_known("stimuli", options.stimuli, std::vector<std::string>{"auto", "builtin", "mnist", "omniglot"});
    const int side = glyph_side(options);
    const std::string fitting = use == glyph_use::characters ? "omniglot" : "mnist";
    std::string source = options.stimuli;
    if (source == "auto") source = options.data.empty() ? "builtin" : fitting;
    if (source == "builtin")
        return std::make_shared<const glyph_set>(use == glyph_use::characters ? builtin_characters(side)
                                                                              : builtin_digits(side));
    require(source == fitting || use == glyph_use::any, task, ": stimuli '", source, "' do not serve, the task shows ",
            use == glyph_use::digits ? "digits" : "characters", "; expected builtin or ", fitting);
    require(!options.data.empty(), task, ": stimuli '", source, "' need a data folder that holds ", source, "/");
    const std::string folder = options.data + "/" + source;
    require(folder_on_disk(folder), task, ": data folder '", options.data, "' has no folder ", source);
    return std::make_shared<const glyph_set>(source == "mnist" ? mnist_digits(folder, side)
                                                               : omniglot_characters(folder, side));
}

}  // namespace engram
